// Bars with intervals, and stacks: how much of a time went where.

import type { Bars, Whole } from "./data";
import { names as tickNames, ticks } from "./format";
import { LETTER, legendOf, onTop, space } from "./legend";
import type { Painter } from "./paint";
import { Sheet } from "./sheet";
import { theme } from "./view";

const LEFT = 150;
const RIGHT = 16;
const BAR = 16;
/** Height of a bar of parts. */
const BAND = 24;

/** Groups below each other, in each a bar for every variant: the estimate, its interval, and a dot for every trial. */
export function bars(data: Bars, names: string[]): Sheet {
  const sides = Math.max(1, names.length);
  const group = sides * BAR + 12;
  const height = 28 + data.groups.length * group + 26;
  return new Sheet(data.title, () => height, (painter) => {
    const colours = theme();
    let most = 0;
    for (const { sides } of data.groups) for (const bar of sides) if (bar) most = Math.max(most, bar.high, bar.value, ...bar.values);
    const left = Math.min(LEFT, painter.width * 0.3);
    const across = (value: number): number => left + (value / (most || 1)) * (painter.width - left - RIGHT);
    const bottom = height - 26;
    painter.rect(0, 0, painter.width, height, colours.paper);
    let x = left;
    names.forEach((name, at) => {
      filled(painter, x, 4, 14, 11, colours.series[at % 4]!, at, colours.paper);
      painter.text(name, x + 18, 14, colours.ink);
      x += 18 + name.length * LETTER + 18;
    });
    const axis = ticks(0, most, Math.max(2, (painter.width - left) / 130), false, data.unit);
    const axisNames = tickNames(data.unit, axis);
    axis.forEach((at, nth) => {
      painter.line([[across(at), 26], [across(at), bottom]], colours.grid);
      painter.text(axisNames[nth]!, Math.min(across(at), painter.width - 24), bottom + 16, colours.faint, "middle");
    });
    data.groups.forEach(({ label, sides }, row) => {
      const top = 30 + row * group;
      painter.text(label, left - 8, top + (group - 12) / 2 + 4, colours.ink, "end");
      sides.forEach((bar, side) => {
        if (!bar) return;
        const y = top + side * BAR;
        const colour = colours.series[side % 4]!;
        filled(painter, left, y + 2, Math.max(1, across(bar.value) - left), BAR - 4, colour, side, colours.paper);
        const middle = y + BAR / 2;
        painter.line([[across(bar.low), middle], [across(bar.high), middle]], colours.ink, 1.5);
        for (const end of [bar.low, bar.high]) painter.line([[across(end), middle - 4], [across(end), middle + 4]], colours.ink, 1.5);
        // Trials on top of all, in a frame that tells them from bar and line.
        for (const value of bar.values) {
          painter.rect(across(value) - 2.5, middle - 2.5, 5, 5, colours.paper);
          painter.rect(across(value) - 1.5, middle - 1.5, 3, 3, colours.ink);
        }
      });
    });
  });
}

/** A bar in its variant's colour and pattern, which tells it apart in grey print: full, striped, framed, striped widely. */
function filled(painter: Painter, x: number, y: number, w: number, h: number, colour: string, variant: number, paper: string): void {
  painter.rect(x, y, w, h, colour);
  const kind = variant % 4;
  if (kind === 2 && w > 4) painter.rect(x + 2, y + 2, w - 4, h - 4, paper);
  const every = kind === 1 ? 5 : kind === 3 ? 12 : 0;
  for (let at = every; every > 0 && at < w - 2; at += every) painter.rect(x + at, y + 1.5, 1.5, h - 3, paper);
}

/** Colours of parts, in the order of bars and legend: those of work warm, those of waiting cold. */
const PARTS: Record<string, [string, string]> = {
  "user mode": ["#4a7a1c", "#9ccc65"],
  "faults and system calls": ["#b48a0a", "#e7bf62"],
  "direct reclaim": ["#c2410c", "#fb8b4b"],
  "waits in reclaim": ["#f0a882", "#a85a2c"],
  "compaction": ["#7b3fa0", "#c79be8"],
  "waits in compaction": ["#cfaee2", "#7d5a92"],
  "blocked (I/O, locks)": ["#0f62a8", "#6cb0f2"],
  "waits for a CPU": ["#7fb3de", "#3c6f9e"],
  "held by dirty limits": ["#0b6e6e", "#5fc9c0"],
  "unexplained": ["#56606b", "#a3adb8"],
};

/** What is not drawn: a process that sleeps waits for nothing that reclaim could give it. */
const SLEEP = "sleep";

/** Wholes below each other, each a bar of parts. */
export function stacks(wholes: Whole[], names: string[]): Sheet {
  const known = Object.keys(PARTS);
  const place = (part: string): number => (known.includes(part) ? known.indexOf(part) : known.length);
  const parts = [...new Set(wholes.flatMap((whole) => whole.parts.filter(([name, nanos]) => nanos > 0 && name !== SLEEP).map(([name]) => name)))]
    .sort((a, b) => place(a) - place(b));
  const widest = Math.max(...wholes.map((whole) => label(whole, names).length * 6.8)) + 16;
  // Where names would take half of the width, they stand above their bars.
  const above = (width: number): boolean => widest > width * 0.45;
  const rowOf = (width: number): number => (above(width) ? 50 : 34);
  const heightOf = (width: number): number => legendOf(parts, width).length * 18 + 12 + wholes.length * rowOf(width) + 26;
  return new Sheet("Where time went", heightOf, (painter) => {
    const height = heightOf(painter.width);
    const colours = theme();
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark" ? 1 : 0;
    const colour = (part: string): string => PARTS[part]?.[dark] ?? colours.faint;
    const most = Math.max(1, ...wholes.map((whole) => whole.parts.reduce((sum, [name, nanos]) => sum + (name === SLEEP ? 0 : nanos), 0)));
    const row = rowOf(painter.width);
    const left = above(painter.width) ? 8 : widest;
    const across = (nanos: number): number => (nanos / most) * (painter.width - left - RIGHT);
    const legends = legendOf(parts, painter.width);
    const first = legends.length * 18 + 8;
    const bottom = height - 26;
    painter.rect(0, 0, painter.width, height, colours.paper);
    legends.forEach((line, nth) => {
      let x = 4;
      for (const part of line) {
        painter.rect(x, 5 + nth * 18, 10, 10, colour(part));
        painter.text(part, x + 14, 14 + nth * 18, colours.ink);
        x += space(part);
      }
    });
    const axis = ticks(0, most, Math.max(2, (painter.width - left) / 130), false, "nanos");
    const axisNames = tickNames("nanos", axis);
    axis.forEach((at, nth) => {
      painter.line([[left + across(at), first], [left + across(at), bottom]], colours.grid);
      painter.text(axisNames[nth]!, Math.min(left + across(at), painter.width - 24), bottom + 16, colours.faint, "middle");
    });
    wholes.forEach((whole, at) => {
      const y = first + 4 + at * row + row - 34;
      if (left < widest) painter.text(label(whole, names), left, y - 4, colours.ink);
      else painter.text(label(whole, names), left - 8, y + 16, colours.ink, "end");
      let x = left;
      for (const part of parts) {
        const nanos = whole.parts.find(([name]) => name === part)?.[1] ?? 0;
        const width = across(nanos);
        if (width > 0) painter.rect(x, y, width, BAND, colour(part));
        // A line between parts, and their names where there is room: colours alone do not tell them in grey.
        if (width > 3) painter.rect(x + width - 1, y, 1, BAND, colours.paper);
        if (width > part.length * LETTER + 8) painter.text(part, x + 5, y + 16, onTop(colour(part)));
        x += width;
      }
    });
  });
}

export function label(whole: Whole, names: string[]): string {
  const name = names[whole.column] ?? "";
  return whole.label === "" ? name : `${name}: ${whole.label}`;
}
