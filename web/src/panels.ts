// Panels that share an x axis: curves with ribbons, marks and direct labels, and a crosshair that goes through all of them.

import type { Unit } from "./data";
import type { Redraw } from "./cell";
import { names as tickNames, powers, show, ticks } from "./format";
import { CanvasPainter, SvgPainter, type Painter } from "./paint";
import { DASHES, theme } from "./view";

export interface Mark { x: number; y: number; text: string }
export interface Curve {
  name: string; colour: number; xs: ArrayLike<number>; ys: ArrayLike<number>;
  /** A ribbon around the curve. */
  low?: ArrayLike<number>; high?: ArrayLike<number>;
  /** Single values with no line between them. */
  dots?: boolean;
  /** Places on the curve that are named. */
  marks?: Mark[];
}
/** Colours of what is no variant: an ideal, and what a textbook's policy does. */
export const [IDEAL, TEXTBOOK] = [-1, -2];
const inkOf = (curve: Curve): string => (curve.colour < 0 ? theme().faint : theme().series[curve.colour % 4]!);
const dashesOf = (curve: Curve): number[] => DASHES[(curve.colour + 4) % 4]!;
export interface Panel {
  title: string; y: string; unitY: Unit; height: number; curves: Curve[];
  logY?: boolean; fromY?: number; toY?: number;
  /** Panels of one scale have the same y axis. */
  scale?: string;
  /** Names stand at the ends of the curves, not above them. */
  labelled?: boolean;
  /** A line at no difference. */
  zero?: boolean;
}
export interface PanelsData { title: string; x: string; unitX: Unit; logX: boolean; columns: number; panels: Panel[] }

/** What charts of one figure share: where the pointer is, in values of x. */
export class Crosshair {
  at: number | null = null;
  private readonly all: (() => void)[] = [];
  join(redraw: () => void): void { this.all.push(redraw); }
  move(at: number | null): void {
    this.at = at;
    for (const redraw of this.all) redraw();
  }
}

/** The value of a curve at a place: of the nearest of single values, else between its neighbours; null outside. */
export function valueAt(curve: Curve, x: number): number | null {
  const { xs, ys } = curve;
  const n = xs.length;
  if (n === 0) return null;
  if (curve.dots) {
    let best = 0;
    for (let at = 1; at < n; at++) if (Math.abs(xs[at]! - x) < Math.abs(xs[best]! - x)) best = at;
    return ys[best]!;
  }
  if (x < xs[0]! || x > xs[n - 1]!) return null;
  let [low, high] = [0, n - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (xs[middle]! <= x) low = middle;
    else high = middle - 1;
  }
  if (low === n - 1 || xs[low]! === x) return ys[low]!;
  return ys[low]! + ((x - xs[low]!) / (xs[low + 1]! - xs[low]!)) * (ys[low + 1]! - ys[low]!);
}

interface Frame { left: number; top: number; w: number; h: number; x: (v: number) => number; back: (px: number) => number; y: (v: number) => number; from: number; to: number }

const LEFT = 70;
const RIGHT = 14;
const TOP = 26;
const BOTTOM = 40;
/** Height of a line of text. */
const LINE = 16;
/** Width of a panel's title with its legend. */
const headWidth = (panel: Panel): number => panel.title.length * 6.8 + panel.curves.reduce((sum, curve) => sum + curve.name.length * 6.8 + 42, 0) + 8;
/** Below this width panels stand below each other. */
const NARROW = 620;

export class Panels implements Redraw {
  readonly canvas = document.createElement("canvas");
  private readonly tip: HTMLOutputElement = document.createElement("output");
  private readonly range: { from: number; to: number };

  constructor(readonly data: PanelsData, to: HTMLElement, private readonly cross = new Crosshair()) {
    const xs = data.panels.flatMap((panel) => panel.curves.flatMap((curve) => (curve.xs.length > 0 ? [curve.xs[0]!, curve.xs[curve.xs.length - 1]!] : [])));
    this.range = data.unitX === "share" ? { from: 0, to: 1 } : { from: Math.min(...xs), to: Math.max(...xs) };
    this.canvas.className = "sheet";
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${data.title}. The table below holds the same.`);
    this.tip.className = "tip";
    to.append(this.canvas, this.tip);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    cross.join(() => this.draw());
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const frames = this.frames(box.width).frames;
      const frame = frames.find((f) => x >= f.left && x <= f.left + f.w && y >= f.top - TOP && y <= f.top + f.h + BOTTOM);
      cross.move(frame ? frame.back(x) : null);
    });
    this.canvas.addEventListener("pointerleave", () => cross.move(null));
  }

  draw(): void {
    const width = this.canvas.clientWidth;
    if (width === 0) return;
    const { height } = this.frames(width);
    this.canvas.style.height = `${height}px`;
    const scale = Math.min(2, devicePixelRatio || 1);
    [this.canvas.width, this.canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    const to = this.canvas.getContext("2d")!;
    to.setTransform(scale, 0, 0, scale, 0, 0);
    this.paint(new CanvasPainter(to, width, height));
    this.tip.textContent = this.told();
  }

  svg(width = this.canvas.clientWidth || 900): string {
    const painter = new SvgPainter(width, this.frames(width).height);
    this.paint(painter);
    return painter.toString();
  }

  /** The values under the crosshair, panel by panel. */
  private told(): string {
    const { at } = this.cross;
    if (at === null) return "";
    const { data } = this;
    const parts = data.panels.map((panel) => {
      const values = panel.curves.flatMap((curve) => {
        const value = valueAt(curve, at);
        return value === null ? [] : [`${curve.name} ${show(panel.unitY, value)}`];
      });
      return `${panel.title}: ${values.join(", ") || "–"}`;
    });
    return `${data.x} ${show(data.unitX, at)} · ${parts.join(" · ")}`;
  }

  private frames(width: number): { height: number; frames: Frame[] } {
    const { data, range } = this;
    const columns = width < NARROW ? 1 : Math.min(data.columns, data.panels.length);
    const each = width / columns;
    const frames: Frame[] = [];
    let top = 0;
    for (let first = 0; first < data.panels.length; first += columns) {
      const row = data.panels.slice(first, first + columns);
      const tall = Math.max(...row.map((panel) => panel.height));
      // Where title and legend have no room beside each other, the legend gets a line of its own.
      const more = row.some((panel, nth) => first + nth === 0 && !panel.labelled && headWidth(panel) > each - LEFT - RIGHT) ? LINE : 0;
      row.forEach((panel, nth) => frames.push(this.frame(panel, nth * each, top + more, each, tall, range)));
      top += tall + TOP + BOTTOM + more;
    }
    return { height: top, frames };
  }

  private frame(panel: Panel, from: number, top: number, width: number, height: number, range: { from: number; to: number }): Frame {
    const names = panel.labelled ? Math.min(110, Math.max(...panel.curves.map((curve) => curve.name.length * 6.6), 0) + 10) : 0;
    const [left, w, h] = [from + LEFT, width - LEFT - RIGHT - names, height];
    const map = (value: number): number => (this.data.logX ? Math.log10(Math.max(1, value)) : value);
    const [x0, x1] = [map(range.from), map(range.to)];
    const [low, high] = this.extent(panel);
    const up = (value: number): number => (panel.logY ? Math.log10(Math.max(low, value)) : value);
    const [y0, y1] = [up(low), up(high)];
    return {
      left, top: top + TOP, w, h, from: low, to: high,
      x: (value) => left + ((map(value) - x0) / (x1 - x0 || 1)) * w,
      back: (px) => {
        const at = x0 + (Math.min(w, Math.max(0, px - left)) / w) * (x1 - x0);
        return this.data.logX ? 10 ** at : at;
      },
      y: (value) => top + TOP + h - ((up(value) - y0) / (y1 - y0 || 1)) * h,
    };
  }

  /** Ends of a panel's y axis: those of all panels of its scale. */
  private extent(panel: Panel): [number, number] {
    const group = panel.scale === undefined ? [panel] : this.data.panels.filter((other) => other.scale === panel.scale);
    let [low, high] = [Infinity, -Infinity];
    for (const { curves } of group) {
      for (const curve of curves) {
        for (const values of [curve.ys, curve.low ?? [], curve.high ?? []]) {
          for (let at = 0; at < values.length; at++) {
            const value = values[at]!;
            if (panel.logY && value <= 0) continue;
            [low, high] = [Math.min(low, value), Math.max(high, value)];
          }
        }
      }
    }
    if (!Number.isFinite(low)) [low, high] = [0, 1];
    const [from, to] = [panel.fromY ?? low, panel.toY ?? high];
    if (panel.zero) {
      const far = Math.max(Math.abs(from), Math.abs(to)) || 0.001;
      return [-far * 1.1, far * 1.1];
    }
    return [from, to > from ? to : from + 1];
  }

  private paint(painter: Painter): void {
    const colours = theme();
    const { frames } = this.frames(painter.width);
    painter.rect(0, 0, painter.width, this.frames(painter.width).height, colours.paper);
    this.data.panels.forEach((panel, nth) => this.panel(painter, panel, frames[nth]!, nth));
  }

  private panel(painter: Painter, panel: Panel, frame: Frame, nth: number): void {
    const { data, range } = this;
    const colours = theme();
    const { left, top, w, h } = frame;
    const beside = headWidth(panel) <= w || panel.labelled || nth > 0;
    painter.text(panel.title, left, beside ? top - 10 : top - 10 - LINE, colours.ink);
    this.axes(painter, panel, frame);
    if (panel.zero) painter.line([[left, frame.y(0)], [left + w, frame.y(0)]], colours.faint);
    const inside = (curve: Curve): [number, number][] => {
      const out: [number, number][] = [];
      for (let at = 0; at < curve.xs.length; at++) if (!panel.logY || curve.ys[at]! > 0) out.push([frame.x(curve.xs[at]!), frame.y(curve.ys[at]!)]);
      return out;
    };
    for (const curve of panel.curves) {
      if (!curve.low || !curve.high) continue;
      const edge = (values: ArrayLike<number>): [number, number][] => Array.from(curve.xs, (x, at) => [frame.x(x), Math.min(top + h, Math.max(top, frame.y(values[at]!)))]);
      painter.area([...edge(curve.high), ...edge(curve.low).reverse()], inkOf(curve), 0.18);
    }
    const ends: { name: string; colour: string; y: number }[] = [];
    const named: { text: string; x: number; y: number }[] = [];
    const drawn: [number, number][][] = [];
    for (const curve of panel.curves) {
      const colour = inkOf(curve);
      const points = inside(curve);
      // Later variants are smaller: where values are the same, all are seen.
      const size = Math.max(3, 8 - 2 * panel.curves.indexOf(curve));
      if (curve.dots) for (const [x, y] of points) painter.rect(x - size / 2, y - size / 2, size, size, colour);
      else painter.line(points, colour, 1.6, dashesOf(curve));
      for (const mark of curve.marks ?? []) {
        const [x, y] = [frame.x(mark.x), frame.y(mark.y)];
        painter.rect(x - 3, y - 3, 6, 6, colour);
        drawn.push([[x - 3, y], [x + 3, y]]);
        if (mark.text !== "") named.push({ text: mark.text, x, y });
      }
      drawn.push(points);
      const end = points[points.length - 1];
      if (end) ends.push({ name: curve.name, colour, y: end[1] });
    }
    for (const one of clear(named, drawn, frame)) painter.text(one.text, one.left, one.bottom, colours.faint);
    if (panel.labelled) this.labels(painter, ends, frame);
    else if (nth === 0) this.legend(painter, panel, frame);
    const { at } = this.cross;
    if (at !== null && at >= range.from && at <= range.to) painter.line([[frame.x(at), top], [frame.x(at), top + h]], colours.faint, 1, [3, 2]);
    painter.text(data.x, left + w / 2, top + h + 32, colours.faint, "middle");
  }

  private axes(painter: Painter, panel: Panel, { left, top, w, h, x, y, from, to }: Frame): void {
    const { data, range } = this;
    const colours = theme();
    let across = data.logX ? powers(range.from, range.to) : ticks(range.from, range.to, Math.max(2, w / 90), false, data.unitX);
    while (across.length > Math.max(2, w / 54)) across = across.filter((_, nth) => nth % 2 === 0);
    const acrossNames = data.logX ? across.map((at) => show(data.unitX, at)) : tickNames(data.unitX, across);
    across.forEach((at, nth) => {
      painter.line([[x(at), top], [x(at), top + h]], colours.grid);
      painter.text(acrossNames[nth]!, x(at), top + h + 15, colours.faint, "middle");
    });
    const up = panel.logY ? logTicks(from, to) : ticks(from, to, panel.zero ? 6 : Math.max(2, h / 40), false, panel.unitY);
    const upNames = panel.logY ? up.map((at) => show(panel.unitY, at)) : tickNames(panel.unitY, up);
    up.forEach((at, nth) => {
      painter.line([[left, y(at)], [left + w, y(at)]], colours.grid);
      painter.text(upNames[nth]!, left - 6, y(at) + 4, colours.faint, "end");
    });
    // A panel that is titled by what goes up says it once.
    if (panel.y !== panel.title) painter.text(panel.y, left - LEFT + 11, top + h / 2, colours.faint, "middle", true);
  }

  /** Names at the ends of curves, moved apart where they would lie over each other. */
  private labels(painter: Painter, ends: { name: string; colour: string; y: number }[], { left, top, w, h }: Frame): void {
    const sorted = [...ends].sort((a, b) => a.y - b.y);
    sorted.forEach((end, at) => { if (at > 0) end.y = Math.max(end.y, sorted[at - 1]!.y + 14); });
    const over = (sorted[sorted.length - 1]?.y ?? 0) - (top + h);
    for (const end of sorted) painter.text(end.name.slice(0, 16), left + w + 6, end.y + 4 - Math.max(0, over), end.colour);
  }

  private legend(painter: Painter, panel: Panel, { left, top, w }: Frame): void {
    const colours = theme();
    let x = left + w;
    for (const curve of [...panel.curves].reverse()) {
      painter.text(curve.name, x, top - 10, colours.ink, "end");
      x -= curve.name.length * 6.8 + 6;
      painter.line([[x - 24, top - 14], [x, top - 14]], inkOf(curve), 2, dashesOf(curve));
      x -= 36;
    }
  }
}

/** Size of a mark's name, a letter and a line, and how far from its mark it stands. */
const [LETTER, TALL, GAP] = [6.6, 12, 7];

/** Where the names of marks stand: beside them, within the frame, and over no curve, mark or other name; a name without such a place is left out. */
function clear(names: { text: string; x: number; y: number }[], drawn: [number, number][][], frame: Frame): { text: string; left: number; bottom: number }[] {
  const taken: Box[] = [];
  return names.flatMap(({ text, x, y }) => {
    const wide = text.length * LETTER;
    const boxes = [[x - GAP - wide, y - 4], [x + GAP, y + 4 + TALL], [x + GAP, y - 4], [x - GAP - wide, y + 4 + TALL], [x - wide / 2, y - GAP - 3], [x - wide / 2, y + GAP + TALL]]
      .map(([left, bottom]): Box => ({ left: left!, right: left! + wide, top: bottom! - TALL, bottom: bottom! }));
    const free = boxes.find((box) => box.left >= frame.left && box.right <= frame.left + frame.w && box.top >= frame.top - 2 && box.bottom <= frame.top + frame.h
      && !taken.some((other) => box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom)
      && !drawn.some((line) => line.some((to, at) => at > 0 && crosses(line[at - 1]!, to, box))));
    if (!free) return [];
    taken.push(free);
    return [{ text, left: free.left, bottom: free.bottom }];
  });
}

interface Box { left: number; right: number; top: number; bottom: number }

/** Whether a line from one point to another passes through a box (Liang and Barsky, 1984). */
function crosses([x0, y0]: [number, number], [x1, y1]: [number, number], box: Box): boolean {
  let [enter, leave] = [0, 1];
  for (const [step, before] of [[x0 - x1, x0 - box.left], [x1 - x0, box.right - x0], [y0 - y1, y0 - box.top], [y1 - y0, box.bottom - y0]] as const) {
    if (step === 0 && before < 0) return false;
    if (step < 0) enter = Math.max(enter, before / step);
    if (step > 0) leave = Math.min(leave, before / step);
  }
  return enter <= leave;
}

/** Powers of ten of a share from `from` to `to`. */
function logTicks(from: number, to: number): number[] {
  const out: number[] = [];
  for (let power = Math.ceil(Math.log10(from) - 1e-9); 10 ** power <= to * 1.0001; power++) out.push(10 ** power);
  return out;
}
