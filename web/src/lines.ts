// Lines: histograms, tails and series over time, drawn by uPlot.

import uPlot from "uplot";
import { SvgPainter } from "./paint";
import { powers, ticks } from "./format";
import { theme } from "./view";

export interface Line { name: string; colour: number; xs: ArrayLike<number>; ys: ArrayLike<number | null>; dash?: number[]; faint?: boolean }
export interface Lines {
  title: string; x: string; y: string; logX: boolean; logY: boolean;
  showX: (value: number) => string; showY: (value: number) => string; lines: Line[];
}

/** All x values of all lines, ascending, and each line's values there: what uPlot wants. */
function joined(lines: Line[]): uPlot.AlignedData {
  return uPlot.join(lines.map((line) => [Array.from(line.xs), Array.from(line.ys)] as uPlot.AlignedData));
}

export class Chart {
  private plot: uPlot | null = null;

  private readonly resized: ResizeObserver;

  constructor(readonly data: Lines, private readonly to: HTMLElement, private readonly sync: uPlot.SyncPubSub) {
    this.resized = new ResizeObserver(() => this.plot?.setSize({ width: to.clientWidth, height: 260 }));
    this.resized.observe(to);
  }

  /** Takes the chart away, for another in its place. */
  end(): void {
    this.resized.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  get canvas(): HTMLCanvasElement | null {
    return this.to.querySelector("canvas");
  }

  draw(): void {
    this.plot?.destroy();
    const { data } = this;
    const colours = theme();
    const axis = (label: string, show: (value: number) => string): uPlot.Axis => ({
      label, stroke: colours.faint, grid: { stroke: colours.grid, width: 1 }, ticks: { stroke: colours.grid, width: 1 },
      values: (_, splits) => splits.map((value) => (value === null ? "" : show(value))), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
    });
    const lines = data.lines.filter((line) => line.xs.length > 0);
    this.plot = new uPlot({
      width: this.to.clientWidth || 600, height: 260, title: data.title,
      cursor: { sync: { key: this.sync.key } },
      scales: { x: { time: false, distr: data.logX ? 3 : 1 }, y: { distr: data.logY ? 3 : 1 } },
      axes: [{ ...axis(data.x, data.showX) }, { ...axis(data.y, data.showY), size: 74 }],
      series: [
        { label: data.x, value: (_, value) => (value === null ? "" : data.showX(value)) },
        ...lines.map((line): uPlot.Series => ({
          label: line.name, stroke: colours.series[line.colour % 4]!, width: line.faint ? 0.6 : 1.5, dash: line.dash ?? [], spanGaps: true, points: { show: line.xs.length < 40 },
          value: (_, value) => (value === null || value === undefined ? "" : data.showY(value)),
        })),
      ],
    }, joined(lines), this.to);
    this.canvas?.setAttribute("role", "img");
    this.canvas?.setAttribute("aria-label", `${data.title}: ${data.y} over ${data.x}. The table below holds the same.`);
  }

  svg(): string {
    const { data } = this;
    const [width, height, left, top, right, bottom] = [900, 320, 74, 40, 12, 40];
    const colours = theme();
    const painter = new SvgPainter(width, height);
    const map = (log: boolean) => (value: number): number => (log ? Math.log10(value) : value);
    const [fx, fy] = [map(data.logX), map(data.logY)];
    const all = data.lines.flatMap((line) => Array.from(line.xs).map((x, at): [number, number | null] => [x, line.ys[at] ?? null]))
      .filter((p): p is [number, number] => p[1] !== null && Number.isFinite(fx(p[0])) && Number.isFinite(fy(p[1])));
    const [x0, x1, y0, y1] = all.reduce(([a, b, c, d], [x, y]) => [Math.min(a, x), Math.max(b, x), Math.min(c, y), Math.max(d, y)],
      [Infinity, -Infinity, Infinity, -Infinity] as [number, number, number, number]);
    const px = (x: number): number => left + ((fx(x) - fx(x0)) / (fx(x1) - fx(x0) || 1)) * (width - left - right);
    const py = (y: number): number => height - bottom - ((fy(y) - fy(y0)) / (fy(y1) - fy(y0) || 1)) * (height - top - bottom);
    painter.rect(0, 0, width, height, colours.paper);
    painter.text(data.title, left, 16, colours.ink);
    const logTicks = (from: number, to: number): number[] => (from < 1 ? powers(1, to / from).map((p) => from * p) : powers(from, to));
    for (const x of data.logX ? logTicks(x0, x1) : ticks(x0, x1, 6, false)) {
      painter.line([[px(x), top], [px(x), height - bottom]], colours.grid);
      painter.text(data.showX(x), px(x), height - bottom + 16, colours.faint, "middle");
    }
    for (const y of data.logY ? logTicks(y0, y1) : ticks(y0, y1, 5, false)) {
      painter.line([[left, py(y)], [width - right, py(y)]], colours.grid);
      painter.text(data.showY(y), left - 6, py(y) + 4, colours.faint, "end");
    }
    painter.text(data.x, width / 2, height - 6, colours.faint, "middle");
    let name = left;
    data.lines.forEach((line) => {
      const colour = colours.series[line.colour % 4]!;
      const points: [number, number][] = [];
      for (let i = 0; i < line.xs.length; i++) {
        const y = line.ys[i];
        if (y !== null && y !== undefined && Number.isFinite(fy(y)) && Number.isFinite(fx(line.xs[i]!))) points.push([px(line.xs[i]!), py(y)]);
      }
      painter.line(points, colour, line.faint ? 0.6 : 1.5, line.dash);
      if (!line.faint) {
        painter.text(line.name, name, 32, colour);
        name += line.name.length * 6.6 + 18;
      }
    });
    return painter.toString();
  }
}
