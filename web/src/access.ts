// Two maps of every access: its time over references, and its page over references.

import type { States } from "./data";
import type { Trace } from "./trace";
import { BINS, binLow } from "./trace";
import { count, time } from "./format";
import { dot, rgb, type Range, type Source, type Theme } from "./view";

/** Up to so many accesses are drawn one by one. */
export const SINGLE = 1 << 19;

/** Width of a stall in pixels of the image. */
const STALL = 5;

/** States of an access, in the order of `States.counts`; the later are drawn over the earlier. */
const STATES = [["hit", "hit"], ["minor fault", "minor"], ["major fault", "major"], ["stall", "stall"]] as const;

/** The place of an access's state in `STATES`; without counts of faults all are alike. */
export function state(states: States | null, nanos: number): number {
  if (!states) return 0;
  if (nanos >= states.stall_from) return 3;
  if (nanos >= states.major_from) return 2;
  return states.minor_from !== null && nanos >= states.minor_from ? 1 : 0;
}

/** The states that a trace has, with their colours. */
export function stateLegend(states: States | null): { name: string; colour: keyof Theme }[] {
  if (!states) return [];
  return STATES.map(([name, colour], at) => ({ name: at === 0 && states.minor_from === null ? "hit or minor fault" : name, colour, at }))
    .filter(({ at }) => states.counts[at]! > 0);
}

export class AccessTime implements Source {
  readonly x = "references";
  readonly y;

  constructor(readonly trace: Trace, readonly title: string, readonly column: number, least: number, most: number) {
    this.y = { from: Math.max(1, least / 1.4), to: Math.max(10, most * 1.3), log: true, label: "access time", show: time };
  }

  draw(image: ImageData, range: Range, y: (value: number) => number, theme: Theme, again: () => void): number {
    const colour = rgb(theme.series[this.column % 4]!);
    const { data } = this.trace;
    const [from, to] = [Math.max(0, Math.ceil(range.from)), Math.min(data.n, Math.floor(range.to))];
    const across = image.width / (range.to - range.from);
    const single = to - from <= SINGLE && this.ready(from, to, again);
    if (single && across >= 1) {
      const size = Math.max(3, Math.min(7, Math.round(across / 2)));
      for (let at = from; at < to; at++) {
        const stalls = state(data.states, this.time(at)) === 3;
        dot(image, Math.round((at - range.from) * across), y(this.time(at)), size, stalls ? rgb(theme.stall) : colour);
      }
      return to - from;
    }
    const points = single ? this.fromSingle(image, range, y, colour) : this.fromBlocks(image, range, y, colour);
    this.stalls(image, range, y, rgb(theme.stall), single);
    return points;
  }

  /** Every stall on top, at least three pixels large: where single accesses are not there, the bins of each block from the shortest stall on. */
  private stalls(image: ImageData, range: Range, y: (v: number) => number, colour: [number, number, number], single: boolean): void {
    const { data, starts, bins, most } = this.trace;
    if (!data.states || data.states.counts[3] === 0) return;
    const from = data.states.stall_from;
    const across = image.width / (range.to - range.from);
    const last = Math.min(most.length, Math.ceil(range.to / data.block));
    for (let block = Math.max(0, Math.floor(range.from / data.block)); block < last; block++) {
      if (most[block]! < from) continue;
      if (single) {
        const end = Math.min(data.n, range.to, (block + 1) * data.block);
        for (let at = Math.max(Math.ceil(range.from), block * data.block); at < end; at++) {
          if (this.time(at) >= from) dot(image, Math.round((at - range.from) * across), y(this.time(at)), STALL, colour);
        }
        continue;
      }
      const middle = Math.round(((block + 0.5) * data.block - range.from) * across);
      for (let at = starts[block]!; at < starts[block + 1]!; at++) if (binLow(bins[at]!) >= from) dot(image, middle, y(binLow(bins[at]!)), STALL, colour);
      dot(image, middle, y(most[block]!), STALL, colour);
    }
  }

  legend(): { name: string; colour: keyof Theme }[] {
    return stateLegend(this.trace.data.states).filter(({ colour }) => colour === "stall");
  }

  private ready(from: number, to: number, again: () => void): boolean {
    const { chunk } = this.trace.data;
    const missing: number[] = [];
    for (let at = Math.floor(from / chunk); at * chunk < to; at++) if (!this.trace.ready(at)) missing.push(at);
    if (missing.length > 0) void Promise.all(missing.map((at) => this.trace.times(at))).then(again);
    return missing.length === 0;
  }

  private time(access: number): number {
    const { chunk } = this.trace.data;
    const at = Math.floor(access / chunk);
    return this.trace.ready(at)?.[access - at * chunk] ?? 0;
  }

  private fromSingle(image: ImageData, range: Range, y: (v: number) => number, colour: [number, number, number]): number {
    const { data } = this.trace;
    const rows = Uint32Array.from({ length: BINS }, (_, code) => y(binLow(code)) * image.width);
    const cells = new Uint32Array(image.width * image.height);
    const across = image.width / (range.to - range.from);
    const right = image.width - 1;
    const first = Math.max(0, Math.ceil(range.from));
    const last = Math.min(data.n, Math.floor(range.to));
    for (let at = first; at < last;) {
      const chunk = Math.floor(at / data.chunk);
      const bins = this.trace.readyBins(chunk)!;
      const start = chunk * data.chunk;
      const end = Math.min(last, start + bins.length);
      for (; at < end; at++) cells[rows[bins[at - start]!]! + Math.min(right, ((at - range.from) * across) | 0)]!++;
    }
    const points = Math.max(0, last - first);
    shade(image, cells, colour, points / image.width);
    return points;
  }

  private fromBlocks(image: ImageData, range: Range, y: (v: number) => number, colour: [number, number, number]): number {
    const { data, starts, bins, counts, least, most } = this.trace;
    const across = image.width / (range.to - range.from);
    const first = Math.max(0, Math.floor(range.from / data.block));
    const last = Math.min(least.length, Math.ceil(range.to / data.block));
    const height = image.height;
    const cells = new Uint32Array(image.width * height);
    let points = 0;
    for (let block = first; block < last; block++) {
      const left = Math.max(0, Math.floor((block * data.block - range.from) * across));
      const right = Math.min(image.width, Math.max(left + 1, Math.floor(((block + 1) * data.block - range.from) * across)));
      const wide = Math.max(1, right - left);
      for (let at = starts[block]!; at < starts[block + 1]!; at++) {
        const top = y(binLow(bins[at]! + 1));
        const bottom = Math.max(top + 1, y(binLow(bins[at]!)));
        const number = counts[at]!;
        points += number;
        const each = Math.max(1, Math.round(number / wide / (bottom - top)));
        for (let row = top; row < bottom; row++) {
          for (let column = left; column < right; column++) cells[row * image.width + column]! += each;
        }
      }
      // The extremes are exact and always seen.
      for (const value of [least[block]!, most[block]!]) {
        const row = y(value);
        for (let column = left; column < right; column++) if (cells[row * image.width + column] === 0) cells[row * image.width + column] = 1;
      }
    }
    shade(image, cells, colour, points / image.width);
    return points;
  }

  lines(range: Range): { name: string; colour: keyof Theme; points: [number, number][] }[] {
    const { data, least } = this.trace;
    if (range.to - range.from < data.block * 8) return [];
    // At most two hundred points, each over whole blocks.
    const step = Math.max(1, Math.ceil((range.to - range.from) / data.block / 200));
    const shares: [string, number, keyof Theme][] = [["99 %", 0.99, "ink"], ["50 %", 0.5, "faint"]];
    const out = shares.map(([name, , colour]) => ({ name, colour, points: [] as [number, number][] }));
    for (let block = Math.floor(range.from / data.block); block < least.length && block * data.block < range.to; block += step) {
      const histogram = this.trace.histogram(block * data.block, (block + step) * data.block);
      let all = 0;
      for (const n of histogram) all += n;
      shares.forEach(([, share], at) => {
        let seen = 0;
        for (let code = 0; code < BINS; code++) {
          seen += histogram[code]!;
          if (seen >= share * all) {
            out[at]!.points.push([(block + step / 2) * data.block, Math.max(1, binLow(code))]);
            break;
          }
        }
      });
    }
    return out;
  }

  nearest(x: number, y: number, radius: number): number | null {
    const { data } = this.trace;
    if (radius > data.chunk) return null;
    const [from, to] = [Math.max(0, Math.floor(x - radius)), Math.min(data.n, Math.ceil(x + radius) + 1)];
    let best: number | null = null;
    let least = Infinity;
    for (let at = from; at < to; at++) {
      const chunk = Math.floor(at / data.chunk);
      const times = this.trace.ready(chunk);
      if (!times) continue;
      const far = Math.abs(Math.log(Math.max(1, times[at - chunk * data.chunk]!) / y)) + Math.abs(at - x) / (radius || 1) / 4;
      if (far < least) [best, least] = [at, far];
    }
    return best;
  }

  async tell(access: number): Promise<string> {
    const { data } = this.trace;
    const at = Math.round(access);
    if (at < 0 || at >= data.n) return "";
    const [times, page] = [await this.trace.times(Math.floor(at / data.chunk)), await this.trace.page(at)];
    const nanos = times[at % data.chunk]!;
    const about = data.bits > 0 ? "about " : "";
    const met = data.states ? `, ${STATES[state(data.states, nanos)]![0]}` : "";
    return `reference ${count(at)}: ${about}${time(nanos)} (${count(nanos)} ns)${page === null ? "" : `, page ${count(page)}`}${met}`;
  }
}

/** A colour as a word of pixels, in the order of bytes of this machine. */
function word([r, g, b]: [number, number, number], alpha: number): number {
  return new Uint32Array(new Uint8Array([r, g, b, alpha]).buffer)[0]!;
}

function shade(image: ImageData, cells: Uint32Array, [r, g, b]: [number, number, number], typical: number): void {
  const scale = 215 / Math.log1p(Math.max(1, typical));
  const pixels = new Uint32Array(image.data.buffer);
  // Most counts are small: their shades are made once.
  const shades = Uint32Array.from({ length: 1024 }, (_, n) => word([r, g, b], Math.min(255, 70 + Math.log1p(n) * scale)));
  for (let at = 0; at < cells.length; at++) {
    const n = cells[at]!;
    if (n > 0) pixels[at] = n < 1024 ? shades[n]! : word([r, g, b], Math.min(255, 70 + Math.log1p(n) * scale));
  }
}

/** Page over references; what each access met by colour. */
export class PageIndex implements Source {
  readonly x = "references";
  readonly y;
  private loaded: { pages: Uint32Array; states: Uint8Array } | null = null;
  private asked: Promise<void> | null = null;

  constructor(readonly trace: Trace, readonly title: string) {
    this.y = { from: 0, to: Math.max(1, trace.data.range), log: false, label: "page", show: count };
  }

  legend(): { name: string; colour: keyof Theme }[] {
    return stateLegend(this.trace.data.states);
  }

  prepare(): Promise<void> {
    this.asked ??= this.load();
    return this.asked;
  }

  private async load(): Promise<void> {
    const { data } = this.trace;
    const kept = Math.ceil(data.n / data.stride);
    const pages = new Uint32Array(kept);
    const times = new Float64Array(kept);
    for (let chunk = 0; chunk < data.pages.length; chunk++) pages.set(await this.trace.pages(chunk), chunk * data.chunk);
    for (let chunk = 0; chunk < data.times.length; chunk++) {
      const all = await this.trace.times(chunk);
      const start = chunk * data.chunk;
      for (let at = Math.ceil(start / data.stride); at * data.stride < start + all.length && at < kept; at++) {
        times[at] = all[at * data.stride - start]!;
      }
    }
    this.loaded = { pages, states: Uint8Array.from(times, (nanos) => state(data.states, nanos)) };
  }

  draw(image: ImageData, range: Range, y: (value: number) => number, theme: Theme, again: () => void): number {
    if (!this.loaded) {
      void this.prepare().then(again);
      return 0;
    }
    const { pages, states: met } = this.loaded;
    const { stride, states } = this.trace.data;
    const colours = STATES.map(([, colour]) => rgb(theme[colour]));
    const across = image.width / (range.to - range.from);
    const [from, to] = [Math.max(0, Math.ceil(range.from / stride)), Math.min(pages.length, Math.ceil(range.to / stride))];
    const few = to - from < image.width * 4;
    const words = colours.map((colour, at) => word(colour, at === 0 ? 140 : 235));
    const pixels = new Uint32Array(image.data.buffer);
    // A line in values is a line in pixels: two calls instead of hundreds of thousands.
    const [low, high] = [y(0), y(this.y.to)];
    const up = (high - low) / this.y.to;
    // The rarer a state, the later it is drawn, so that none hides it.
    for (let turn = 0; turn < STATES.length; turn++) {
      if (states ? states.counts[turn] === 0 : turn > 0) continue;
      for (let at = from; at < to; at++) {
        if (met[at] !== turn) continue;
        const column = Math.min(image.width - 1, Math.floor((at * stride - range.from) * across));
        if (few || turn === 3) dot(image, column, y(pages[at]!), 3, colours[turn]!, turn === 0 ? 140 : 235);
        else pixels[Math.round(low + pages[at]! * up) * image.width + column] = words[turn]!;
      }
    }
    return to - from;
  }
}
