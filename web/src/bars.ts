// Bars with intervals, and stacks: how much of a time went where.

import type { Bars, Whole } from "./data";
import { names as tickNames, ticks } from "./format";
import { Sheet } from "./sheet";
import { theme } from "./view";

const LEFT = 150;
const RIGHT = 16;
const BAR = 16;

/** Groups below each other, in each a bar for every variant: the estimate, its interval, and a dot for every trial. */
export function bars(data: Bars, names: string[]): Sheet {
  const sides = Math.max(1, names.length);
  const group = sides * BAR + 12;
  const height = 28 + data.groups.length * group + 26;
  return new Sheet(data.title, height, (painter) => {
    const colours = theme();
    let most = 0;
    for (const { sides } of data.groups) for (const bar of sides) if (bar) most = Math.max(most, bar.high, bar.value, ...bar.values);
    const left = Math.min(LEFT, painter.width * 0.3);
    const across = (value: number): number => left + (value / (most || 1)) * (painter.width - left - RIGHT);
    const bottom = height - 26;
    painter.rect(0, 0, painter.width, height, colours.paper);
    legend(names.map((name, at) => [name, colours.series[at % 4]!]), painter, left, colours.ink);
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
        painter.rect(left, y + 2, Math.max(1, across(bar.value) - left), BAR - 4, colour);
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

/** Colours of parts, in the order of the legend: those of work warm, those of waiting cold. */
const PARTS: Record<string, [string, string]> = {
  "user mode": ["#4a7a1c", "#9ccc65"],
  "faults and system calls": ["#b48a0a", "#e7bf62"],
  "direct reclaim": ["#c2410c", "#fb8b4b"],
  "waits in reclaim": ["#f0a882", "#a85a2c"],
  "compaction": ["#7b3fa0", "#c79be8"],
  "waits in compaction": ["#cfaee2", "#7d5a92"],
  "blocked (I/O, locks)": ["#0f62a8", "#6cb0f2"],
  "waits for a CPU": ["#7fb3de", "#3c6f9e"],
  "unexplained": ["#56606b", "#a3adb8"],
};

/** What is not drawn: a process that sleeps waits for nothing that reclaim could give it. */
const SLEEP = "sleep";

/** Wholes below each other, each a bar of parts. */
export function stacks(wholes: Whole[], names: string[]): Sheet {
  const parts = [...new Set(wholes.flatMap((whole) => whole.parts.filter(([name, nanos]) => nanos > 0 && name !== SLEEP).map(([name]) => name)))];
  const row = 34;
  const legends = Math.ceil(parts.length / 5);
  const height = legends * 18 + 12 + wholes.length * row + 26;
  return new Sheet("Where time went", height, (painter) => {
    const colours = theme();
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark" ? 1 : 0;
    const colour = (part: string): string => PARTS[part]?.[dark] ?? colours.faint;
    const most = Math.max(1, ...wholes.map((whole) => whole.parts.reduce((sum, [name, nanos]) => sum + (name === SLEEP ? 0 : nanos), 0)));
    const left = Math.min(Math.max(...wholes.map((whole) => label(whole, names).length * 6.8)) + 16, painter.width * 0.45);
    const across = (nanos: number): number => (nanos / most) * (painter.width - left - RIGHT);
    const first = legends * 18 + 8;
    const bottom = height - 26;
    painter.rect(0, 0, painter.width, height, colours.paper);
    for (let line = 0; line < legends; line++) {
      legend(parts.slice(line * 5, line * 5 + 5).map((part) => [part, colour(part)]), painter, 4, colours.ink, 14 + line * 18);
    }
    const axis = ticks(0, most, Math.max(2, (painter.width - left) / 130), false, "nanos");
    const axisNames = tickNames("nanos", axis);
    axis.forEach((at, nth) => {
      painter.line([[left + across(at), first], [left + across(at), bottom]], colours.grid);
      painter.text(axisNames[nth]!, Math.min(left + across(at), painter.width - 24), bottom + 16, colours.faint, "middle");
    });
    wholes.forEach((whole, at) => {
      const y = first + 4 + at * row;
      painter.text(label(whole, names), left - 8, y + 16, colours.ink, "end");
      let x = left;
      for (const part of parts) {
        const nanos = whole.parts.find(([name]) => name === part)?.[1] ?? 0;
        const width = across(nanos);
        if (width > 0) painter.rect(x, y, width, row - 10, colour(part));
        x += width;
      }
    });
  });
}

export function label(whole: Whole, names: string[]): string {
  const name = names[whole.column] ?? "";
  return whole.label === "" ? name : `${name}: ${whole.label}`;
}

function legend(all: [string, string][], painter: import("./paint").Painter, left: number, ink: string, y = 14): void {
  let x = left;
  for (const [name, colour] of all) {
    painter.rect(x, y - 9, 10, 10, colour);
    painter.text(name, x + 14, y, ink);
    x += 14 + name.length * 6.6 + 18;
  }
}
