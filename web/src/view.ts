// A map: a frame with axes, drawn pixel by pixel, zoomed by wheel, drag and keys. Views of one group share their x range.

import { CanvasPainter, SvgPainter, type Painter, type Placed } from "./paint";
import type { Unit } from "./data";
import { count, names, powers, ticks } from "./format";

export interface Range { from: number; to: number }

/** What several views share. */
export class Link {
  range: Range;
  private views: (() => void)[] = [];
  private crossed: ((at: number | null) => void)[] = [];

  constructor(readonly full: Range) {
    this.range = { ...full };
  }

  join(draw: () => void): void {
    this.views.push(draw);
  }

  /** Who wants to know at which place the pointer is. */
  follow(cross: (at: number | null) => void): void {
    this.crossed.push(cross);
  }

  cross(at: number | null): void {
    for (const cross of this.crossed) cross(at);
  }

  /** Shows a range, at least `least` wide, within the whole. */
  show(from: number, to: number, least = 4): void {
    const whole = this.full.to - this.full.from;
    const width = Math.min(whole, Math.max(Math.min(least, whole), to - from));
    const start = Math.min(this.full.to - width, Math.max(this.full.from, from + (to - from - width) / 2));
    this.range = { from: start, to: start + width };
    for (const draw of this.views) draw();
  }

  reset(): void {
    this.show(this.full.from, this.full.to);
  }

  zoom(factor: number, at = 0.5): void {
    const { from, to } = this.range;
    const centre = from + (to - from) * at;
    this.show(centre - (to - from) * factor * at, centre + (to - from) * factor * (1 - at));
  }

  move(share: number): void {
    const { from, to } = this.range;
    this.show(from + (to - from) * share, to + (to - from) * share);
  }
}

export interface Theme { ink: string; faint: string; grid: string; paper: string; series: string[]; slow: string; fast: string; hit: string; minor: string; major: string; stall: string }

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string): string => style.getPropertyValue(name).trim();
  return {
    ink: get("--ink"), faint: get("--faint"), grid: get("--grid"), paper: get("--paper"), slow: get("--slow"), fast: get("--fast"),
    hit: get("--hit"), minor: get("--minor"), major: get("--major"), stall: get("--stall"),
    series: [get("--a"), get("--b"), get("--c"), get("--d")],
  };
}

/** Strokes of the variants, which tell them apart where colours do not: in grey print. */
export const DASHES: number[][] = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

/** A colour as bytes. */
export function rgb(colour: string): [number, number, number] {
  const hex = Number.parseInt(colour.slice(1), 16);
  return [(hex >> 16) & 255, (hex >> 8) & 255, hex & 255];
}

export interface Axis { from: number; to: number; log: boolean; label: string; show: (value: number) => string }

/** A colour and what it stands for. */
export interface Named { name: string; colour: keyof Theme; isCross?: boolean }

/** Pixels of a map and what they stand for. */
export interface Drawn { image: ImageData; points: number }

export interface Source {
  title: string;
  x: string;
  /** Unit of the x axis; numbers without one. */
  unit?: Unit;
  y: Axis;
  /** Draws a range into pixels; may call `again` when more is there. */
  draw(image: ImageData, range: Range, y: (value: number) => number, theme: Theme, again: () => void): number;
  /** Lines over the map, in values. */
  lines?(range: Range): { name: string; colour: keyof Theme; points: [number, number][] }[];
  /** What colours stand for, drawn beside the title; what is drawn as a cross says so. */
  legend?(): Named[];
  /** Loads what drawing needs; until then it draws less. */
  prepare?(): Promise<void>;
  /** The place nearest to a point, in values of x. */
  nearest?(x: number, y: number, radius: number): number | null;
  /** What lies at a place, as text. */
  tell?(x: number): Promise<string>;
}

const LEFT = 64;
const RIGHT = 12;
const TOP = 24;
const BOTTOM = 38;
/** Height of a line of text, and width of a letter. */
const [LINE, LETTER] = [16, 6.6];

export class View {
  readonly canvas = document.createElement("canvas");
  private readonly tip: HTMLOutputElement = document.createElement("output");
  /** The crosshair, which goes through all views of a link. */
  private readonly hair = document.createElement("div");
  private readonly raw = document.createElement("canvas");
  private waiting = false;
  private seen = false;
  private stale = true;
  points = 0;
  frames = 0;

  constructor(readonly link: Link, readonly source: Source, readonly height = 240) {
    this.canvas.tabIndex = 0;
    this.canvas.className = "map";
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${source.title}: ${source.y.label} over ${source.x}. Arrow keys move, plus and minus zoom, 0 shows all. The table below holds the same.`);
    this.tip.className = "tip";
    this.hair.className = "hair";
    this.hair.hidden = true;
    link.follow((at) => void this.crossed(at));
    link.join(() => this.later());
    new ResizeObserver(() => this.later()).observe(this.canvas);
    // What is out of sight is drawn when it comes into sight.
    new IntersectionObserver((entries) => {
      this.seen = entries.some((entry) => entry.isIntersecting);
      if (this.seen && this.stale) this.later();
    }, { rootMargin: "100px" }).observe(this.canvas);
    this.listen();
  }

  mount(to: HTMLElement): void {
    to.classList.add("view");
    to.append(this.canvas, this.hair, this.tip);
    this.later();
  }

  /** Loads what a whole drawing needs. */
  async prepare(): Promise<void> {
    await this.source.prepare?.();
  }

  /** Draws before the next frame. */
  later(): void {
    const { from, to } = this.link.range;
    this.canvas.dataset.from = String(from);
    this.canvas.dataset.to = String(to);
    this.stale = true;
    if (this.waiting || (!this.seen && this.points > 0)) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw(): void {
    const width = this.canvas.clientWidth;
    if (width === 0) return;
    this.stale = false;
    const scale = Math.min(2, devicePixelRatio || 1);
    const [w, h] = [Math.round(width * scale), Math.round(this.height * scale)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
    }
    const to = this.canvas.getContext("2d")!;
    to.setTransform(scale, 0, 0, scale, 0, 0);
    this.paint(new CanvasPainter(to, width, this.height), scale, true);
    this.canvas.dataset.points = String(this.points);
    if (this.points > 0 && performance.getEntriesByName("first-picture").length === 0) performance.mark("first-picture");
    this.frames++;
    this.canvas.dataset.frames = String(this.frames);
  }

  /** The whole figure, with all texts. */
  paint(painter: Painter, scale: number, again: boolean): void {
    const colours = theme();
    const { y } = this.source;
    const top = this.top(painter.width);
    const [w, h] = [painter.width - LEFT - RIGHT, painter.height - top - BOTTOM];
    const range = this.link.range;
    painter.rect(0, 0, painter.width, painter.height, colours.paper);
    painter.text(this.source.title, LEFT, 15, colours.ink);
    const [low, high] = y.log ? [Math.log10(Math.max(1, y.from)), Math.log10(Math.max(10, y.to))] : [y.from, y.to];
    const place = (value: number): number => 1 - ((y.log ? Math.log10(Math.max(1, value)) : value) - low) / (high - low || 1);
    for (const at of y.log ? powers(y.from, y.to) : ticks(y.from, y.to, 4)) {
      const down = top + place(at) * h;
      painter.line([[LEFT, down], [LEFT + w, down]], colours.grid);
      painter.text(y.show(at), LEFT - 6, down + 4, colours.faint, "end");
    }
    const across = (value: number): number => LEFT + ((value - range.from) / (range.to - range.from)) * w;
    const marks = ticks(range.from, range.to, Math.max(2, w / 110));
    const marked = this.source.unit ? names(this.source.unit, marks) : marks.map(count);
    marks.forEach((at, nth) => {
      const text = marked[nth]!;
      painter.line([[across(at), top], [across(at), top + h]], colours.grid);
      painter.text(text, Math.min(across(at), painter.width - text.length * 3.5), top + h + 15, colours.faint, "middle");
    });
    painter.text(this.source.x, LEFT + w / 2, top + h + 32, colours.faint, "middle");
    painter.text(y.label, 12, top + h / 2, colours.faint, "middle", true);
    const [pw, ph] = [Math.max(1, Math.round(w * scale)), Math.max(1, Math.round(h * scale))];
    this.raw.width = pw;
    this.raw.height = ph;
    const context = this.raw.getContext("2d")!;
    const image = context.createImageData(pw, ph);
    const row = (value: number): number => Math.min(ph - 1, Math.max(0, Math.round(place(value) * (ph - 1))));
    this.points = this.source.draw(image, range, row, colours, again ? () => this.later() : () => undefined);
    context.putImageData(image, 0, 0);
    painter.image(this.raw, LEFT, top, w, h);
    let name = LEFT + w;
    const line = top - 9;
    for (const { name: text, colour, isCross } of [...(this.source.legend?.() ?? [])].reverse()) {
      name -= text.length * LETTER;
      painter.text(text, name, line, colours.ink);
      name -= 14;
      if (isCross) {
        painter.line([[name + 1, line - 8], [name + 9, line]], String(colours[colour]), 2);
        painter.line([[name + 1, line], [name + 9, line - 8]], String(colours[colour]), 2);
      } else painter.rect(name, line - 9, 10, 10, String(colours[colour]));
      name -= 12;
    }
    for (const curve of this.source.lines?.(range) ?? []) {
      const colour = String(colours[curve.colour]);
      const points = curve.points
        .filter(([x]) => x >= range.from && x <= range.to)
        .map(([x, value]): [number, number] => [across(x), top + Math.min(1, Math.max(0, place(value))) * h]);
      painter.line(points, colour, 1.5);
      painter.text(curve.name, name, line, colour, "end");
      name -= curve.name.length * 7 + 14;
    }
  }

  /** Where the map begins: where title and legend have no room beside each other, the legend gets a line of its own. */
  private top(width: number): number {
    const { title } = this.source;
    const legend = (this.source.legend?.() ?? []).reduce((sum, { name }) => sum + name.length * LETTER + 26, 0);
    const curves = (this.source.lines?.(this.link.range) ?? []).reduce((sum, { name }) => sum + name.length * 7 + 14, 0);
    return title.length * LETTER + legend + curves > width - LEFT - RIGHT ? TOP + LINE : TOP;
  }

  svg(width = this.canvas.clientWidth || 900, placed?: Placed[]): string {
    const painter = new SvgPainter(width, this.height, placed);
    this.paint(painter, 2, false);
    return painter.toString();
  }

  private listen(): void {
    const { canvas, link } = this;
    const share = (event: MouseEvent): number => {
      const box = canvas.getBoundingClientRect();
      return Math.min(1, Math.max(0, (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)));
    };
    canvas.addEventListener("wheel", (event) => {
      // Without a key the page scrolls, as readers expect.
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== canvas) return;
      event.preventDefault();
      link.zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, share(event));
    }, { passive: false });
    let start: number | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      start = share(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (start === null) return;
      const [a, b] = [Math.min(start, share(event)), Math.max(start, share(event))];
      start = null;
      const { from, to } = link.range;
      if (b - a > 0.01) link.show(from + (to - from) * a, from + (to - from) * b);
    });
    canvas.addEventListener("dblclick", () => link.reset());
    canvas.addEventListener("pointermove", (event) => this.point(event, share(event)));
    canvas.addEventListener("pointerleave", () => link.cross(null));
    canvas.addEventListener("keydown", (event) => {
      const keys: Record<string, () => void> = {
        ArrowLeft: () => link.move(-0.2), ArrowRight: () => link.move(0.2),
        "+": () => link.zoom(0.5), "=": () => link.zoom(0.5), "-": () => link.zoom(2), "0": () => link.reset(), Home: () => link.reset(),
      };
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
  }

  /** Moves the crosshair of all views to what is nearest to the pointer. */
  private point(event: MouseEvent, share: number): void {
    const box = this.canvas.getBoundingClientRect();
    const { from, to } = this.link.range;
    const top = this.top(box.width);
    const down = 1 - (event.clientY - box.top - top) / (this.height - top - BOTTOM);
    const { y } = this.source;
    const value = y.log ? 10 ** (Math.log10(Math.max(1, y.from)) + down * Math.log10(y.to / Math.max(1, y.from))) : y.from + down * (y.to - y.from);
    const width = (to - from) / Math.max(1, box.width - LEFT - RIGHT);
    const x = from + share * (to - from);
    this.link.cross(this.source.nearest?.(x, value, width * 4) ?? x);
  }

  /** Shows the crosshair, and what this view has there. */
  private async crossed(at: number | null): Promise<void> {
    const { from, to } = this.link.range;
    this.hair.hidden = at === null || at < from || at > to;
    if (at === null) {
      this.tip.textContent = "";
      return;
    }
    const w = this.canvas.clientWidth - LEFT - RIGHT;
    const top = this.top(this.canvas.clientWidth);
    this.hair.style.top = `${top}px`;
    this.hair.style.height = `${this.height - top - BOTTOM}px`;
    this.hair.style.left = `${LEFT + ((at - from) / (to - from)) * w}px`;
    if (this.source.tell && this.seen) this.tip.textContent = await this.source.tell(at);
  }
}

/** Fills a square of pixels. */
export function dot(image: ImageData, x: number, y: number, size: number, [r, g, b]: readonly [number, number, number], alpha = 255): void {
  const half = size >> 1;
  for (let row = Math.max(0, y - half); row < Math.min(image.height, y - half + size); row++) {
    for (let column = Math.max(0, x - half); column < Math.min(image.width, x - half + size); column++) {
      const at = (row * image.width + column) * 4;
      image.data[at] = r;
      image.data[at + 1] = g;
      image.data[at + 2] = b;
      image.data[at + 3] = Math.max(image.data[at + 3]!, alpha);
    }
  }
}
