// Flame graphs of profiled trials: widths are exact time, the outermost function is at the top.

import { Reader, blob, type Flame } from "./data";
import type { CellFigures } from "./cell";
import { Figure } from "./figure";
import { count, short, time } from "./format";

/** Frames narrower than this share of the picture are not drawn. */
const LEAST = 0.0008;
/** Height of a frame in pixels. */
const ROW = 18;
/** Functions in the table. */
const LISTED = 30;

/** A function in one place of the call tree, with its times on every side, its own and with what it called. */
interface Frame { name: string; parent: Frame | null; depth: number; own: number[]; all: number[]; below: Map<string, Frame> }

function frame(name: string, parent: Frame | null, sides: number): Frame {
  const none = (): number[] => new Array<number>(sides).fill(0);
  return { name, parent, depth: parent ? parent.depth + 1 : 0, own: none(), all: none(), below: new Map() };
}

async function add(root: Frame, flame: Flame, side: number, sides: number): Promise<void> {
  const reader = new Reader(await blob(flame.blob));
  const frames: Frame[] = [];
  for (let at = 0; at < flame.nodes; at++) {
    const back = reader.varint();
    const name = flame.names[reader.varint()] ?? "";
    const own = reader.varint();
    const parent = back === 0 ? root : frames[at - back]!;
    let here = parent.below.get(name);
    if (!here) {
      here = frame(name, parent, sides);
      parent.below.set(name, here);
    }
    here.own[side]! += own;
    for (let up: Frame | null = here; up; up = up.parent) up.all[side]! += own;
    frames.push(here);
  }
}

const stack = (one: Frame): string[] => (one.parent ? [...stack(one.parent), one.name] : []);

/** Pictures of one cell: of each side, and of each difference from the first one. */
class Graph {
  readonly box = document.createElement("div");
  private readonly told = document.createElement("output");
  private readonly found = document.createElement("span");
  private side = 0;
  private isDifference = false;
  private zoomed: Frame;
  private wanted = "";

  constructor(private readonly root: Frame, private readonly names: string[]) {
    this.zoomed = root;
    this.box.className = "flame";
    this.box.setAttribute("role", "group");
    this.box.tabIndex = 0;
    this.box.setAttribute("aria-label", "Flame graph");
    this.told.className = "told";
  }

  mount(figure: Figure): void {
    const search = document.createElement("input");
    search.type = "search";
    search.placeholder = "Search functions";
    search.setAttribute("aria-label", "Search functions");
    search.addEventListener("input", () => {
      this.wanted = search.value.trim().toLowerCase();
      this.draw();
    });
    const head = document.createElement("div");
    head.className = "flame-head";
    head.append(search, this.found);
    figure.body.classList.add("flames");
    figure.body.append(head, this.box, this.told);
    this.names.forEach((name, side) => figure.button(name, `Show the time of ${name}`, () => this.show(side, false)));
    this.names.slice(1).forEach((name, at) => figure.button(`${name} less ${this.names[0]}`,
      `Show the time of ${name}, red where it is longer than that of ${this.names[0]}, blue where it is shorter`, () => this.show(at + 1, true)));
    figure.button("All", "Show all again", () => this.zoom(this.root));
    this.box.addEventListener("click", (event) => {
      const at = event.target instanceof HTMLElement ? this.drawn.get(event.target) : undefined;
      if (at) this.zoom(at);
    });
    this.box.addEventListener("pointerover", (event) => {
      const at = event.target instanceof HTMLElement ? this.drawn.get(event.target) : undefined;
      if (at) this.told.textContent = this.text(at);
    });
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "0" || event.key === "Escape") this.zoom(this.root);
    });
    this.show(this.names.length - 1, this.names.length > 1);
  }

  private readonly drawn = new Map<HTMLElement, Frame>();

  private show(side: number, isDifference: boolean): void {
    this.side = side;
    this.isDifference = isDifference;
    this.draw();
  }

  private zoom(to: Frame): void {
    this.zoomed = to;
    this.draw();
  }

  /** A frame in words: its time on each side. */
  private text(one: Frame): string {
    const whole = this.root.all;
    const sides = this.names.map((name, side) => {
      const all = one.all[side]!;
      return `${this.names.length > 1 ? `${name} ` : ""}${time(all)} (${short((all / Math.max(1, whole[side]!)) * 100)} %)`;
    });
    return `${one.name || "all"}: ${sides.join(", ")}`;
  }

  private colour(one: Frame): string {
    if (this.wanted !== "" && one.name.toLowerCase().includes(this.wanted)) return "var(--flame-found)";
    if (!this.isDifference) {
      let sum = 0;
      for (const char of one.name) sum = (sum * 31 + char.charCodeAt(0)) % 997;
      return `hsl(${20 + (sum % 35)} 85% ${70 + (sum % 12)}%)`;
    }
    const [a, b] = [one.all[0]!, one.all[this.side]!];
    const change = (b - a) / Math.max(a, b, 1);
    return `hsl(${change > 0 ? 0 : 215} 80% ${94 - 26 * Math.min(1, Math.abs(change))}%)`;
  }

  draw(): void {
    this.drawn.clear();
    this.box.replaceChildren();
    const whole = Math.max(1, this.zoomed.all[this.side]!);
    let deepest = this.zoomed.depth;
    let sum = 0;
    const put = (one: Frame, from: number, inFound: boolean): void => {
      const width = one.all[this.side]! / whole;
      if (width < LEAST) return;
      const isFound = this.wanted !== "" && one.name.toLowerCase().includes(this.wanted);
      if (isFound && !inFound) sum += one.all[this.side]!;
      deepest = Math.max(deepest, one.depth);
      this.bar(one, from, width);
      let at = from;
      for (const below of [...one.below.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
        put(below, at, inFound || isFound);
        at += below.all[this.side]! / whole;
      }
    };
    for (let up = this.zoomed.parent; up; up = up.parent) this.bar(up, 0, 1);
    put(this.zoomed, 0, false);
    this.box.style.height = `${Math.min(640, (deepest + 1) * ROW + 2)}px`;
    this.told.textContent = this.text(this.zoomed);
    this.found.textContent = this.wanted === "" ? "" : `found: ${time(sum)} (${short((sum / whole) * 100)} %)`;
  }

  private bar(one: Frame, from: number, width: number): void {
    const bar = document.createElement("div");
    bar.className = "frame";
    bar.textContent = one.parent ? one.name : "all";
    bar.title = this.text(one);
    Object.assign(bar.style, {
      left: `${from * 100}%`, width: `${width * 100}%`, top: `${one.depth * ROW}px`, backgroundColor: this.colour(one),
    });
    this.drawn.set(bar, one);
    this.box.append(bar);
  }
}

/** Frames with time of their own, and this time by function. */
function tally(root: Frame, sides: number): { rows: (string | number)[][]; functions: Map<string, number[]> } {
  const rows: (string | number)[][] = [];
  const functions = new Map<string, number[]>();
  const walk = (one: Frame): void => {
    if (one.own.some((own) => own > 0)) {
      rows.push([stack(one).join(";"), ...one.own]);
      const sums = functions.get(one.name) ?? new Array<number>(sides).fill(0);
      one.own.forEach((own, side) => { sums[side]! += own; });
      functions.set(one.name, sums);
    }
    for (const below of one.below.values()) walk(below);
  };
  walk(root);
  return { rows, functions };
}

export async function flames(of: CellFigures): Promise<void> {
  const all = of.cell.flames;
  if (all.length === 0) return;
  const root = frame("", null, all.length);
  for (const [side, flame] of all.entries()) await add(root, flame, side, all.length);
  const names = all.map((flame) => of.name(flame.column));
  const figure = new Figure("flame", "Where every instruction went",
    `Call stacks of the profiled trial of each variant, seed ${[...new Set(all.map((flame) => flame.seed))].join(", ")}: the outermost function is at the top, and widths are exact time. Waits stand beside the tasks. A click shows a function alone.`);
  of.to.append(figure.element);
  const graph = new Graph(root, names);
  graph.mount(figure);
  of.all.push(graph);
  const { rows, functions } = tally(root, all.length);
  figure.exports([{ name: `stacks-${of.cell.place}`, head: ["stack", ...names.map((name) => `${name} ns`)], rows: () => rows }]);
  const last = all.length - 1;
  const change = (sums: number[]): number => (last > 0 ? Math.abs(sums[last]! - sums[0]!) : sums[0]!);
  const largest = [...functions].sort(([, a], [, b]) => change(b) - change(a)).slice(0, LISTED);
  figure.table(last > 0 ? "Functions that changed most" : "Functions", ["function", ...names, ...(last > 0 ? ["difference"] : [])],
    largest.map(([name, sums]) => [name, ...sums.map((sum) => `${count(sum)} ns`), ...(last > 0 ? [`${count(sums[last]! - sums[0]!)} ns`] : [])]));
}
