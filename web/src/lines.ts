// Lines over time, drawn by uPlot.

import uPlot from "uplot";
import { SvgPainter } from "./paint";
import { increments, names, show, ticks } from "./format";
import type { Unit } from "./data";
import { DASHES, theme } from "./view";

export interface Line { name: string; colour: number; xs: ArrayLike<number>; ys: ArrayLike<number | null> }
export interface Lines { title: string; x: string; y: string; unitX: Unit; unitY: Unit; lines: Line[] }

/** The strokes of variants as borders. */
const BORDERS = ["solid", "dashed", "dotted", "double"];

/** The index of the nearest value of a series to one of all places: lines need not have values at the same places. */
function nearest(plot: uPlot, series: number, index: number | null): number | null {
  const [xs, ys] = [plot.data[0], plot.data[series]!];
  if (series === 0 || index === null || (ys[index] !== null && ys[index] !== undefined)) return index;
  let [left, right] = [index - 1, index + 1];
  while (left >= 0 && (ys[left] === null || ys[left] === undefined)) left--;
  while (right < ys.length && (ys[right] === null || ys[right] === undefined)) right++;
  if (left < 0) return right < ys.length ? right : null;
  if (right >= ys.length) return left;
  return xs[index]! - xs[left]! <= xs[right]! - xs[index]! ? left : right;
}

/** All x values of all lines, ascending, and each line's values there: what uPlot wants. */
function joined(lines: Line[]): uPlot.AlignedData {
  return uPlot.join(lines.map((line) => [Array.from(line.xs), Array.from(line.ys)] as uPlot.AlignedData));
}

export class Chart {
  private plot: uPlot | null = null;

  private readonly resized: ResizeObserver;

  constructor(readonly data: Lines, private readonly to: HTMLElement, private readonly sync: uPlot.SyncPubSub) {
    this.resized = new ResizeObserver(() => {
      if (to.clientWidth > 0) this.plot?.setSize({ width: to.clientWidth, height: 260 });
    });
    this.resized.observe(to);
  }

  /** Takes the chart away, for another in its place. */
  end(): void {
    this.resized.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  private get canvas(): HTMLCanvasElement | null {
    return this.to.querySelector("canvas");
  }

  draw(): void {
    this.plot?.destroy();
    const { data } = this;
    const colours = theme();
    const axis = (label: string, name: (splits: (number | null)[]) => string[], unit: Unit): uPlot.Axis => ({
      label, stroke: colours.faint, grid: { stroke: colours.grid, width: 1 }, ticks: { stroke: colours.grid, width: 1 },
      values: (_, splits) => name(splits as (number | null)[]), incrs: increments(unit), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
    });
    const x = (value: number): string => show(data.unitX, value);
    const lines = data.lines.filter((line) => line.xs.length > 0);
    const namesX = (splits: (number | null)[]): string[] => names(data.unitX, splits);
    const namesY = (splits: (number | null)[]): string[] => names(data.unitY, splits);
    this.plot = new uPlot({
      width: this.to.clientWidth || 600, height: 260, title: data.title,
      // Each line shows its own nearest value, with its own place where that is another.
      cursor: { sync: { key: this.sync.key }, dataIdx: (plot, series, index) => nearest(plot, series, index) as number },
      scales: { x: { time: false } },
      // A line and its mark in the legend are of one stroke.
      legend: { markers: { dash: (_, series) => BORDERS[(lines[series - 1]?.colour ?? 0) % 4]! } },
      axes: [{ ...axis(data.x, namesX, data.unitX) }, { ...axis(data.y, namesY, data.unitY), size: 74 }],
      series: [
        { label: data.x, value: (_, value) => (value === null ? "" : x(value)) },
        ...lines.map((line): uPlot.Series => ({
          label: line.name, stroke: colours.series[line.colour % 4]!, width: 1.5, dash: DASHES[line.colour % 4]!, spanGaps: true, points: { show: line.xs.length < 40 },
          value: (plot, value, _, index) => {
            if (value === null || value === undefined || index === null) return "";
            const cursor = plot.cursor.idx;
            const at = plot.data[0][index]!;
            return cursor === null || cursor === undefined || plot.data[0][cursor] === at ? show(data.unitY, value) : `${show(data.unitY, value)} at ${x(at)}`;
          },
        })),
      ],
    }, joined(lines), this.to);
    this.canvas?.setAttribute("role", "img");
    this.canvas?.setAttribute("aria-label", `${data.title}: ${data.y} over ${data.x}. The table below holds the same.`);
  }

  svg(): string {
    const { data } = this;
    const [width, height, left, top, right, bottom] = [900, 320, 74, 40 + 14 * Math.floor(data.lines.reduce((sum, line) => sum + line.name.length * 6.6 + 48, 0) / 700), 12, 40];
    const colours = theme();
    const painter = new SvgPainter(width, height);
    const all = data.lines.flatMap((line) => Array.from(line.xs).map((x, at): [number, number | null] => [x, line.ys[at] ?? null]))
      .filter((p): p is [number, number] => p[1] !== null && Number.isFinite(p[0]) && Number.isFinite(p[1]));
    const [x0, x1, y0, y1] = all.reduce(([a, b, c, d], [x, y]) => [Math.min(a, x), Math.max(b, x), Math.min(c, y), Math.max(d, y)],
      [Infinity, -Infinity, Infinity, -Infinity] as [number, number, number, number]);
    const px = (x: number): number => left + ((x - x0) / (x1 - x0 || 1)) * (width - left - right);
    const py = (y: number): number => height - bottom - ((y - y0) / (y1 - y0 || 1)) * (height - top - bottom);
    painter.rect(0, 0, width, height, colours.paper);
    painter.text(data.title, left, 16, colours.ink);
    const across = ticks(x0, x1, 6, false, data.unitX);
    const acrossNames = names(data.unitX, across);
    across.forEach((x, at) => {
      painter.line([[px(x), top], [px(x), height - bottom]], colours.grid);
      painter.text(acrossNames[at]!, px(x), height - bottom + 16, colours.faint, "middle");
    });
    const up = ticks(y0, y1, 5, false, data.unitY);
    const upNames = names(data.unitY, up);
    up.forEach((y, at) => {
      painter.line([[left, py(y)], [width - right, py(y)]], colours.grid);
      painter.text(upNames[at]!, left - 6, py(y) + 4, colours.faint, "end");
    });
    painter.text(data.x, width / 2, height - 6, colours.faint, "middle");
    let [name, row] = [left, 32];
    data.lines.forEach((line) => {
      const colour = colours.series[line.colour % 4]!;
      const points: [number, number][] = [];
      for (let i = 0; i < line.xs.length; i++) {
        const y = line.ys[i];
        if (y !== null && y !== undefined && Number.isFinite(y) && Number.isFinite(line.xs[i]!)) points.push([px(line.xs[i]!), py(y)]);
      }
      const dash = DASHES[line.colour % 4]!;
      painter.line(points, colour, 1.5, dash);
      painter.line([[name, row - 4], [name + 24, row - 4]], colour, 2, dash);
      painter.text(line.name, name + 30, row, colour);
      name += line.name.length * 6.6 + 48;
      if (name > width - 160) [name, row] = [left, row + 14];
    });
    return painter.toString();
  }
}
