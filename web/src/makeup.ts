// Memory by kind over the time of an observed trial: kinds that add up as areas, others as lines, and kills as marks.

import type { CellFigures } from "./cell";
import { columnValues, type MakeUp } from "./data";
import { Figure } from "./figure";
import { names as tickNames, show, ticks, time } from "./format";
import { LETTER, legendOf, onTop, space } from "./legend";
import type { Painter } from "./paint";
import { Sheet } from "./sheet";
import { theme } from "./view";

/** Colours of kinds, light and dark. Anonymous pages are warm, those of files cold, active ones stronger. */
const KINDS: Record<string, [string, string]> = {
  "anonymous": ["#c2410c", "#fb8b4b"],
  "anonymous, active": ["#c2410c", "#fb8b4b"],
  "anonymous, inactive": ["#f0a882", "#a85a2c"],
  "file": ["#0f62a8", "#6cb0f2"],
  "file, active": ["#0f62a8", "#6cb0f2"],
  "file, inactive": ["#8fbfe6", "#3c6f9e"],
  "in zram": ["#7b3fa0", "#c79be8"],
  "slab": ["#4a7a1c", "#9ccc65"],
  "page tables": ["#b48a0a", "#e7bf62"],
  "other": ["#a3adb8", "#56606b"],
  "free": ["#e6eaee", "#2b333b"],
};
/** Strokes of lines, in their order. */
const STROKES = [[], [6, 3]];

const LEFT = 70;
const RIGHT = 14;
const TALL = 170;
const TITLE = 22;
const BOTTOM = 38;
/** Below this width panels stand below each other. */
const NARROW = 620;

/** What one panel shows. */
interface Drawn { data: MakeUp; name: string; xs: Float64Array; stacked: [string, Float64Array][]; lines: [string, Float64Array][] }

export async function makeUps(of: CellFigures): Promise<void> {
  const figures: [string, Drawn[]][] = [];
  for (const group of new Set(of.cell.makeups.map((data) => data.of))) {
    const all = of.cell.makeups.filter((data) => data.of === group && data.table.columns.length > 1 && data.table.rows > 1);
    if (all.length === 0) continue;
    const drawn = await Promise.all(all.map(async (data): Promise<Drawn> => {
      const [xs, ...kinds] = await Promise.all(data.table.columns.map((column) => columnValues(data.table, column)));
      const named = kinds.map((values, at): [string, Float64Array] => [data.table.columns[at + 1]!.name, values]);
      return { data, name: of.name(data.table.column), xs: xs!, stacked: named.slice(0, data.stacked), lines: named.slice(data.stacked) };
    }));
    figures.push([group, drawn]);
  }
  // Figures of one trial have the same ends, so that moments lie below each other.
  const until = Math.max(1, ...figures.flatMap(([, drawn]) => drawn.map(({ xs, data }) => Math.max(xs[xs.length - 1]!, ...data.kills.map(([at]) => at)))));
  for (const [group, drawn] of figures) figure(of, group, drawn, until);
}

function figure(of: CellFigures, group: string, drawn: Drawn[], until: number): void {
  const title = group === "" ? "What memory held over time" : `What the memory group ${group} held over time`;
  const killed = drawn.some(({ data }) => data.kills.length > 0);
  const samples = [...new Set(drawn.map(({ xs }) => `${xs.length}`))].join(" and ");
  const figure = new Figure("makeup", title,
    `From ${samples} samples of the kernel's counters in the observed trial of each variant, which carries the observer's cost. ${
      group === "" ? "Lists of anonymous pages also hold shared memory. Other is what these counters do not tell, such as locked pages and pages on their way, beyond its least." : "Pages of files include shared memory. Other is the kernel's memory."
    }${killed ? " A line from top to bottom is a kill for lack of memory." : ""}`);
  const sheet = new Sheet(title, (width) => tall(drawn, width), (painter) => paint(drawn, painter, until));
  // The page of a finding has a place of its own for them.
  (document.getElementById("makeup") ?? of.to).append(figure.element);
  figure.body.append(sheet.canvas);
  sheet.draw();
  of.all.push(sheet);
  const name = group === "" ? "memory" : `memory-${group}`;
  figure.pictures(`${name}-${of.cell.place}`, [{ svg: (width) => sheet.svg(width) }]);
  figure.exports(drawn.map(({ data }) => of.dump(data.table)));
  const kinds = kindsOf(drawn);
  figure.table("First, largest and last values", ["kind", ...drawn.flatMap((one) => [`${one.name}: first`, ...(before(one) === null ? [] : ["before the first kill"]), "largest", "last"])],
    kinds.map((kind) => [kind, ...drawn.flatMap((one) => {
      const values = [...one.stacked, ...one.lines].find(([name]) => name === kind)?.[1];
      const at = before(one);
      const value = (row: number): string => (values ? show("bytes", values[row] ?? 0) : "");
      return [value(0), ...(at === null ? [] : [value(at)]), values ? show("bytes", values.reduce((a, b) => Math.max(a, b), 0)) : "", value(one.xs.length - 1)];
    })]));
}

/** The last sample before the first kill; null without one. */
function before({ data, xs }: Drawn): number | null {
  if (data.kills.length === 0) return null;
  const first = Math.min(...data.kills.map(([at]) => at));
  const after = xs.findIndex((x) => x > first);
  return Math.max(0, (after < 0 ? xs.length : after) - 1);
}

/** All kinds, those that add up before lines, each in the order of the first that has it. */
function kindsOf(drawn: Drawn[]): string[] {
  const stacked = Object.keys(KINDS).filter((kind) => drawn.some((one) => one.stacked.some(([name]) => name === kind)));
  return [...stacked, ...new Set(drawn.flatMap((one) => one.lines.map(([name]) => name)))];
}

const columnsOf = (drawn: Drawn[], width: number): number => (width < NARROW ? 1 : Math.min(2, drawn.length));
const rowsOf = (drawn: Drawn[], width: number): number => Math.ceil(drawn.length / columnsOf(drawn, width));
const legendTall = (drawn: Drawn[], width: number): number => legendOf(kindsOf(drawn), width).length * 18 + 6;
const tall = (drawn: Drawn[], width: number): number => legendTall(drawn, width) + rowsOf(drawn, width) * (TITLE + TALL + BOTTOM);

function paint(drawn: Drawn[], painter: Painter, until: number): void {
  const colours = theme();
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" ? 1 : 0;
  const colour = (kind: string): string => KINDS[kind]?.[dark] ?? colours.faint;
  const { width } = painter;
  painter.rect(0, 0, width, tall(drawn, width), colours.paper);
  const lines = [...new Set(drawn.flatMap((one) => one.lines.map(([name]) => name)))];
  legendOf(kindsOf(drawn), width).forEach((row, nth) => {
    let x = 4;
    for (const kind of row) {
      const at = lines.indexOf(kind);
      if (at < 0) painter.rect(x, 5 + nth * 18, 10, 10, colour(kind));
      else painter.line([[x - 2, 10 + nth * 18], [x + 12, 10 + nth * 18]], colours.ink, 2, STROKES[at % STROKES.length]);
      painter.text(kind, x + 15, 14 + nth * 18, colours.ink);
      x += space(kind);
    }
  });
  const most = Math.max(1, ...drawn.map((one) => largest(one)));
  const columns = columnsOf(drawn, width);
  drawn.forEach((one, nth) => {
    const left = (nth % columns) * (width / columns) + LEFT;
    const top = legendTall(drawn, width) + Math.floor(nth / columns) * (TITLE + TALL + BOTTOM) + TITLE;
    const w = width / columns - LEFT - RIGHT;
    const x = (value: number): number => left + (value / until) * w;
    const y = (value: number): number => top + TALL - (value / most) * TALL;
    painter.text(one.name, left, top - 8, colours.ink);
    const across = ticks(0, until, Math.max(2, w / 110), false, "nanos");
    tickNames("nanos", across).forEach((name, at) => {
      painter.line([[x(across[at]!), top], [x(across[at]!), top + TALL + 4]], colours.grid);
      painter.text(name, x(across[at]!), top + TALL + 17, colours.faint, "middle");
    });
    const up = ticks(0, most, TALL / 40, false, "bytes");
    tickNames("bytes", up).forEach((name, at) => {
      painter.line([[left - 4, y(up[at]!)], [left + w, y(up[at]!)]], colours.grid);
      painter.text(name, left - 8, y(up[at]!) + 4, colours.faint, "end");
    });
    painter.text("time", left + w / 2, top + TALL + 32, colours.faint, "middle");
    areas(one, painter, x, y, colour, colours.paper);
    for (const [kind, values] of one.lines) {
      const points = Array.from(one.xs, (at, row): [number, number] => [x(at), y(values[row]!)]);
      painter.line(points, colours.paper, 3.5);
      painter.line(points, colours.ink, 1.8, STROKES[lines.indexOf(kind) % STROKES.length]);
    }
    marks(one, painter, x, { left, top, right: left + w }, colours.paper, colours.stall);
  });
}

/** The most that areas or a line reach. */
function largest({ xs, stacked, lines }: Drawn): number {
  let most = 0;
  for (let row = 0; row < xs.length; row++) {
    most = Math.max(most, stacked.reduce((sum, [, values]) => sum + values[row]!, 0), ...lines.map(([, values]) => values[row]!));
  }
  return most;
}

/** Kinds above each other, with a thin line between them and their names where there is room. */
function areas({ xs, stacked }: Drawn, painter: Painter, x: (at: number) => number, y: (at: number) => number, colour: (kind: string) => string, paper: string): void {
  const below = new Float64Array(xs.length);
  for (const [kind, values] of stacked) {
    const floor = Array.from(xs, (at, row): [number, number] => [x(at), y(below[row]!)]);
    const ceiling = Array.from(xs, (at, row): [number, number] => [x(at), y(below[row]! + values[row]!)]);
    painter.area([...ceiling, ...floor.reverse()], colour(kind), 1);
    painter.line(ceiling, paper, 1);
    named(kind, ceiling, [...floor].reverse(), painter, onTop(colour(kind)));
    for (let row = 0; row < xs.length; row++) below[row]! += values[row]!;
  }
}

/** Writes the name of a kind at the first place where its area is tall enough for all of it. */
function named(kind: string, ceiling: [number, number][], floor: [number, number][], painter: Painter, ink: string): void {
  const wide = space(kind) - 24;
  for (let from = 0; from < ceiling.length; from++) {
    let [high, low] = [-Infinity, Infinity];
    for (let to = from; to < ceiling.length; to++) {
      high = Math.max(high, ceiling[to]![1]);
      low = Math.min(low, floor[to]![1]);
      if (low - high < 15) break;
      if (ceiling[to]![0] - ceiling[from]![0] >= wide) {
        painter.text(kind, ceiling[from]![0] + 6, (high + low) / 2 + 4, ink);
        return;
      }
    }
  }
}

/** Kills from top to bottom, and above the panel, beside its name, as many of them as there is room for. */
function marks({ data, name }: Drawn, painter: Painter, x: (at: number) => number, { left, top, right }: { left: number; top: number; right: number }, paper: string, ink: string): void {
  const kills = [...data.kills].sort((a, b) => a[0] - b[0]);
  for (const [at] of kills) {
    painter.line([[x(at), top], [x(at), top + TALL]], paper, 4);
    painter.line([[x(at), top], [x(at), top + TALL]], ink, 2);
  }
  const room = (right - left) / LETTER - name.length - 2;
  const told = kills.map(([at, process]) => `${process || "a process"} at ${time(at)}`);
  for (let some = told.length; some > 0; some--) {
    const more = some < told.length ? ` and ${told.length - some} more` : "";
    const text = `killed: ${told.slice(0, some).join(", ")}${more}`;
    if (text.length > room && some > 1) continue;
    if (text.length <= room) painter.text(text, right, top - 8, ink, "end");
    return;
  }
}
