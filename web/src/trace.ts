// Every access of a trial: an overview at once, single accesses when they are looked at.

import { blob, Reader, type TraceData } from "./data";

/** Bins of the overview, see `crates/report/src/html/accesses.rs`. */
export const BINS = 256;

/** Bin of a time. */
export function bin(nanos: number): number {
  if (nanos < 8) return nanos;
  const exponent = nanos < 2147483648 ? 31 - Math.clz32(nanos) : Math.floor(Math.log2(nanos));
  const within = Math.floor(nanos / 2 ** (exponent - 3)) & 7;
  return Math.min(255, 8 + (exponent - 3) * 8 + within);
}

/** Lowest time of a bin. */
export function binLow(bin: number): number {
  if (bin < 8) return bin;
  return (8 + ((bin - 8) & 7)) * 2 ** ((bin - 8) >> 3);
}

export class Trace {
  /** Minimum and maximum of each block. */
  least = new Float64Array(0);
  most = new Float64Array(0);
  /** Where each block's bins begin in `bins` and `counts`. */
  starts = new Uint32Array(0);
  bins: Uint8Array = new Uint8Array(0);
  counts = new Uint32Array(0);
  private chunks = new Map<number, Float64Array>();
  private codes = new Map<number, Uint8Array>();
  private asked = new Map<number, Promise<Float64Array>>();
  private places = new Map<number, Promise<Uint32Array>>();

  constructor(readonly data: TraceData) {}

  /** Reads the overview. */
  async open(): Promise<void> {
    const reader = new Reader(await blob(this.data.overview));
    const blocks = reader.varint();
    const sizes = reader.take(blocks);
    const starts = new Uint32Array(blocks + 1);
    for (let i = 0; i < blocks; i++) starts[i + 1] = starts[i]! + (sizes[i] === 0 ? 256 : sizes[i]!);
    this.starts = starts;
    this.bins = reader.take(starts[blocks]!);
    this.counts = new Uint32Array(starts[blocks]!);
    this.least = new Float64Array(blocks);
    this.most = new Float64Array(blocks);
    for (let i = 0; i < blocks; i++) {
      const least = reader.varint();
      this.least[i] = least;
      this.most[i] = least + reader.varint();
      for (let at = starts[i]!; at < starts[i + 1]!; at++) this.counts[at] = reader.varint();
    }
  }

  /** Times of a chunk, if they are there already. */
  ready(chunk: number): Float64Array | undefined {
    return this.chunks.get(chunk);
  }

  /** Bins of a chunk's times, if they are there already. */
  readyBins(chunk: number): Uint8Array | undefined {
    return this.codes.get(chunk);
  }

  /** Times of a chunk. */
  times(chunk: number): Promise<Float64Array> {
    let asked = this.asked.get(chunk);
    if (!asked) {
      asked = this.load(chunk);
      this.asked.set(chunk, asked);
      // Sixty-four chunks are four million accesses, 32 MiB.
      if (this.asked.size > 64) {
        const oldest = this.asked.keys().next().value!;
        this.asked.delete(oldest);
        this.chunks.delete(oldest);
        this.codes.delete(oldest);
      }
    }
    return asked;
  }

  private async load(chunk: number): Promise<Float64Array> {
    const reader = new Reader(await blob(this.data.times[chunk] ?? -1));
    const frequent = new Float64Array(reader.varint());
    let value = 0;
    for (let i = 0; i < frequent.length; i++) {
      value += reader.varint();
      frequent[i] = value;
    }
    const n = Math.min(this.data.chunk, this.data.n - chunk * this.data.chunk);
    const codes = reader.take(n);
    let others = 0;
    for (const code of codes) if (code === 255) others++;
    const planes = reader.take(others * 5);
    const out = new Float64Array(n);
    const bins = new Uint8Array(n);
    const binned = Uint8Array.from(frequent, bin);
    let other = 0;
    for (let i = 0; i < n; i++) {
      const code = codes[i]!;
      if (code < 255) {
        out[i] = frequent[code]!;
        bins[i] = binned[code]!;
        continue;
      }
      let time = 0;
      for (let plane = 4; plane >= 0; plane--) time = time * 256 + planes[plane * others + other]!;
      out[i] = time;
      bins[i] = bin(time);
      other++;
    }
    this.chunks.set(chunk, out);
    this.codes.set(chunk, bins);
    return out;
  }

  /** Pages of a chunk of kept pages. */
  pages(chunk: number): Promise<Uint32Array> {
    let known = this.places.get(chunk);
    if (!known) {
      known = blob(this.data.pages[chunk] ?? -1).then((bytes) => {
        const n = bytes.length / 4;
        const out = new Uint32Array(n);
        let page = 0;
        for (let i = 0; i < n; i++) {
          const zig = (bytes[i]! | (bytes[n + i]! << 8) | (bytes[2 * n + i]! << 16) | (bytes[3 * n + i]! << 24)) >>> 0;
          page += zig & 1 ? -((zig + 1) / 2) : zig / 2;
          out[i] = page;
        }
        return out;
      });
      this.places.set(chunk, known);
    }
    return known;
  }

  /** Page of an access; none where it is not kept. */
  async page(access: number): Promise<number | null> {
    if (access % this.data.stride !== 0) return null;
    const kept = access / this.data.stride;
    const chunk = Math.floor(kept / this.data.chunk);
    return (await this.pages(chunk))[kept - chunk * this.data.chunk] ?? null;
  }

  /** Counts by bin of the accesses in a range: from single accesses where they are there, else from whole blocks. */
  histogram(from: number, to: number): Float64Array {
    const out = new Float64Array(BINS);
    const first = Math.floor(from / this.data.block);
    const last = Math.min(this.least.length, Math.ceil(to / this.data.block));
    for (let at = this.starts[first] ?? 0; at < (this.starts[last] ?? 0); at++) {
      out[this.bins[at]!]! += this.counts[at]!;
    }
    return out;
  }
}

/** The time that a share of the accesses does not exceed, to within its bin. */
export function quantile(histogram: Float64Array, share: number): number {
  let all = 0;
  for (const count of histogram) all += count;
  let seen = 0;
  for (let at = 0; at < histogram.length; at++) {
    seen += histogram[at]!;
    if (seen >= share * all && seen > 0) return binLow(at);
  }
  return 0;
}
