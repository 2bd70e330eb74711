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
  return Number(value.toPrecision(3)).toLocaleString("en");
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

/** Round numbers from `from` to `to`, about `wanted` of them; whole ones. */
export function ticks(from: number, to: number, wanted: number, whole = true): number[] {
  const raw = (to - from) / Math.max(1, wanted);
  if (!(raw > 0)) return [from];
  const power = 10 ** Math.floor(Math.log10(raw));
  let step = [1, 2, 5, 10].map((m) => m * power).find((step) => step >= raw) ?? raw;
  if (whole) step = Math.max(1, step);
  const out: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to + step * 1e-9; at += step) out.push(at);
  return out;
}

/** Powers of ten from `from` to `to`. */
export function powers(from: number, to: number): number[] {
  const out: number[] = [];
  for (let at = Math.ceil(Math.log10(Math.max(1, from)) - 1e-9); 10 ** at <= to * 1.0001; at++) out.push(10 ** at);
  return out;
}
