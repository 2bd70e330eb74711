// The state of every page: how often it was used, or how old it is, against whether it is still in memory.

import { count } from "./format";
import { rgb, type Named, type Range, type Source, type Theme } from "./view";

export class PageState implements Source {
  readonly x = "page";
  readonly y;

  constructor(readonly title: string, readonly page: Float64Array, readonly present: Float64Array, readonly value: Float64Array, what: string) {
    let most = 1;
    for (const v of value) if (v > most) most = v;
    this.y = { from: 0, to: most * 1.05, log: false, label: what, show: count };
  }

  /** For each column of pixels the mean value, filled as far up as pages there are present. */
  draw(image: ImageData, range: Range, y: (value: number) => number, theme: Theme): number {
    const [here, gone] = [rgb(theme.fast), rgb(theme.slow)];
    const { width, height } = image;
    const across = width / (range.to - range.from);
    const sums = new Float64Array(width);
    const present = new Float64Array(width);
    const number = new Float64Array(width);
    let points = 0;
    for (let row = 0; row < this.page.length; row++) {
      const page = this.page[row]!;
      if (page < range.from || page >= range.to) continue;
      points++;
      const left = Math.floor((page - range.from) * across);
      const right = Math.max(left + 1, Math.floor((page + 1 - range.from) * across));
      for (let column = left; column < Math.min(width, right); column++) {
        sums[column]! += this.value[row]!;
        present[column]! += this.present[row]!;
        number[column]!++;
      }
    }
    for (let column = 0; column < width; column++) {
      const n = number[column]!;
      if (n === 0) continue;
      const mean = sums[column]! / n;
      const [top, split] = [y(mean), y((mean * present[column]!) / n)];
      for (let row = top; row < height; row++) {
        const colour = row >= split && present[column]! > 0 ? here : gone;
        const at = (row * width + column) * 4;
        image.data[at] = colour[0];
        image.data[at + 1] = colour[1];
        image.data[at + 2] = colour[2];
        image.data[at + 3] = colour === here ? 230 : 110;
      }
    }
    return points;
  }

  lines(range: Range): { name: string; colour: keyof Theme; points: [number, number][] }[] {
    const step = Math.max(1, (range.to - range.from) / 400);
    const points: [number, number][] = [];
    let sum = 0;
    let n = 0;
    let next = range.from + step;
    for (let row = 0; row < this.page.length; row++) {
      const page = this.page[row]!;
      if (page < range.from || page >= range.to) continue;
      if (page >= next && n > 0) {
        points.push([next - step / 2, sum / n]);
        [sum, n] = [0, 0];
        while (page >= next) next += step;
      }
      sum += this.value[row]!;
      n++;
    }
    if (n > 0) points.push([next - step / 2, sum / n]);
    return [{ name: "mean", colour: "ink", points }];
  }
}

/** Points of two columns. */
export class Scatter implements Source {
  constructor(
    readonly title: string, readonly x: string, readonly y: Source["y"],
    private readonly xs: Float64Array, private readonly ys: Float64Array, private readonly colour: (row: number) => "slow" | "fast", private readonly names: Named[] = [],
  ) {}

  legend(): Named[] {
    return this.names;
  }

  draw(image: ImageData, range: Range, y: (value: number) => number, theme: Theme): number {
    const colours = { slow: rgb(theme.slow), fast: rgb(theme.fast) };
    const across = image.width / (range.to - range.from);
    const size = (this.xs.length * (range.to - range.from)) / Math.max(1, this.xs.length) < image.width * 2 ? 4 : 2;
    let points = 0;
    for (let row = 0; row < this.xs.length; row++) {
      const [at, value] = [this.xs[row]!, this.ys[row]!];
      if (at < range.from || at >= range.to || value < this.y.from) continue;
      points++;
      const kind = this.colour(row);
      const [r, g, b] = colours[kind];
      // What stands out by its colour does so by its shape as well: a cross, larger than the squares.
      const isCross = kind === "slow";
      const wide = isCross ? size * 2 + 1 : size;
      const [px, py] = [Math.floor((at - range.from) * across) - (wide >> 1), y(value) - (wide >> 1)];
      for (let dy = 0; dy < wide; dy++) {
        for (let dx = 0; dx < wide; dx++) {
          if (isCross && Math.abs(dx - dy) > 1 && Math.abs(dx + dy - wide + 1) > 1) continue;
          if (px + dx < 0 || py + dy < 0 || px + dx >= image.width || py + dy >= image.height) continue;
          const to = ((py + dy) * image.width + px + dx) * 4;
          image.data[to] = r;
          image.data[to + 1] = g;
          image.data[to + 2] = b;
          image.data[to + 3] = 200;
        }
      }
    }
    return points;
  }
}
