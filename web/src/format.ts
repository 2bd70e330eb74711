// Quantities for people, and the ticks of axes.

import type { Unit } from "./data";

const TIMES: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const SIZES: [number, string][] = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"], [1, "B"]];

export function time(nanos: number): string {
  return scaled(nanos, TIMES);
}

function scaled(value: number, table: [number, string][]): string {
  const [divisor, unit] = table.find(([divisor]) => Math.abs(value) >= divisor) ?? table[table.length - 1]!;
  return `${short(value / divisor)} ${unit}`;
}

/** Three digits that count. */
export function short(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString("en").replace("-", "−");
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en");
}

export function show(unit: Unit, value: number): string {
  switch (unit) {
    case "nanos": return time(value);
    case "bytes": return scaled(value, SIZES);
    case "bytes-per-second": return `${scaled(value, SIZES)}/s`;
    case "share": return `${short(value * 100)} %`;
    case "per-second": return `${short(value)}/s`;
    default: return Number.isInteger(value) ? count(value) : short(value);
  }
}

/** Steps that are round in what is shown: binary ones for sizes, else 1, 2 and 5 of a power of ten; whole ones where asked. */
function step(raw: number, unit: Unit, whole: boolean): number {
  if (unit === "bytes" || unit === "bytes-per-second") return Math.max(1, 2 ** Math.ceil(Math.log2(raw)));
  const power = 10 ** Math.floor(Math.log10(raw));
  const found = [1, 2, 5, 10].map((m) => m * power).find((step) => step >= raw * (1 - 1e-9)) ?? raw;
  return whole ? Math.max(1, found) : found;
}

/** Round numbers from `from` to `to`, about `wanted` of them. */
export function ticks(from: number, to: number, wanted: number, whole = true, unit: Unit = "count"): number[] {
  const raw = (to - from) / Math.max(1, wanted);
  if (!(raw > 0)) return [from];
  const wide = step(raw, unit, whole);
  const out: number[] = [];
  for (let at = Math.ceil(from / wide - 1e-9); at * wide <= to + wide * 1e-9; at++) out.push(at * wide + 0);
  return out;
}

/** Steps between ticks that a chart may choose from. */
export function increments(unit: Unit): number[] {
  if (unit === "bytes" || unit === "bytes-per-second") return Array.from({ length: 50 }, (_, power) => 2 ** power);
  const all: number[] = [];
  for (let power = unit === "share" || unit === "ratio" ? -6 : 0; power < 16; power++) for (const m of [1, 2, 5]) all.push(m * 10 ** power);
  return all;
}

/** Names of ticks: one unit for all of an axis, and as many digits as tell neighbours apart. */
export function names(unit: Unit, all: (number | null)[]): string[] {
  const values = all.filter((value): value is number => value !== null);
  const most = Math.max(...values.map(Math.abs), 0);
  const table = unit === "nanos" ? TIMES : unit === "bytes" || unit === "bytes-per-second" ? SIZES : null;
  const [divisor, text] = table?.find(([divisor]) => most >= divisor) ?? (unit === "share" ? [0.01, "%"] : [1, ""]);
  const sorted = [...values].sort((a, b) => a - b);
  const gap = sorted.slice(1).reduce((least, value, at) => Math.min(least, value - sorted[at]!), Infinity) / divisor;
  const digits = Number.isFinite(gap) && gap > 0 ? Math.min(6, Math.max(0, Math.ceil(-Math.log10(gap) - 1e-9))) : 2;
  const rate = unit === "bytes-per-second" || unit === "per-second" ? "/s" : "";
  return all.map((value) => {
    if (value === null) return "";
    const exact = value / divisor;
    // Half of a binary step has a fraction that its distance to the next does not show.
    const fraction = Number.isInteger(exact * 10 ** digits) ? digits : Math.min(6, digits + 1);
    return `${exact.toLocaleString("en", { maximumFractionDigits: fraction }).replace("-", "−")}${text ? ` ${text}` : ""}${rate}`;
  });
}

/** Powers of ten from `from` to `to`. */
export function powers(from: number, to: number): number[] {
  const out: number[] = [];
  for (let at = Math.ceil(Math.log10(Math.max(1, from)) - 1e-9); 10 ** at <= to * 1.0001; at++) out.push(10 ** at);
  return out;
}
