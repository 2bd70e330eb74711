// What the page's writer left in the file: `crates/report/src/html/data.rs` has the same shapes.

export interface Page { columns: string[]; cells: Cell[] }
export interface Cell { label: string; place: number; traces: TraceData[]; tables: TableData[]; makeups: MakeUp[]; histograms: Shares[]; bars: Bars[]; wholes: Whole[]; flames: Flame[]; heats: Heat[] }
export interface TraceData {
  column: number; record: string; seed: number; n: number; bits: number; min: number; max: number; range: number;
  block: number; overview: number; chunk: number; times: number[]; stride: number; pages: number[];
  states: States | null;
}
/** From which time on an access is of a state; the numbers of hits, minor faults, major faults and stalls. */
export interface States { minor_from: number | null; major_from: number; stall_from: number; counts: [number, number, number, number] }
export interface TableData {
  column: number; record: string; name: string; rows: number; stride: number; columns: TableColumn[];
}
/** Memory by kind over time; `crates/report/src/html/makeup.rs` says what is in it. */
export interface MakeUp { of: string; table: TableData; stacked: number; kills: [number, string][] }
export interface TableColumn { name: string; unit: Unit; float: boolean; blob: number }
export interface Shares {
  name: string; column: number; trials: number; count: number; mean: number; min: number; max: number;
  quantiles: number[]; buckets: [number, number, number][];
}
export interface Bar { value: number; low: number; high: number; level: number; values: number[] }
export interface Bars { title: string; unit: Unit; groups: { label: string; sides: (Bar | null)[] }[] }
export interface Whole { column: number; label: string; record: string; elapsed: number; parts: [string, number][] }
/** Call stacks of a profiled trial; `crates/report/src/html/flames.rs` writes the blob. */
export interface Flame { column: number; record: string; seed: number; names: string[]; nodes: number; blob: number }
/** Pages that a trial referenced over time; `crates/report/src/html/heats.rs` writes the blob. */
export interface Heat {
  column: number; record: string; seed: number; until: number; elapsed: number; pages: number; row_pages: number; rows: number; windows: number; blob: number;
  ranges: { address: string; memory: string; space: number; before: number; used: number; pages: number; references: number }[];
}
export type Unit = "nanos" | "bytes" | "pages" | "count" | "share" | "bytes-per-second" | "per-second" | "ratio";

/** The page's data; none where the page has no figures. */
export function page(): Page | null {
  const text = document.getElementById("figures-data")?.textContent;
  return text ? (JSON.parse(text) as Page) : null;
}

const DIGITS = new Uint8Array(128);
for (const [value, digit] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries()) {
  DIGITS[digit.charCodeAt(0)] = value;
}

function base64(text: string): Uint8Array<ArrayBuffer> {
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === 61) end--;
  const out = new Uint8Array(Math.floor((end * 3) / 4));
  let bits = 0;
  let held = 0;
  let at = 0;
  for (let i = 0; i < end; i++) {
    held = ((held << 6) | DIGITS[text.charCodeAt(i) & 127]!) & 0xffffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out[at++] = (held >> bits) & 255;
    }
  }
  return out;
}

/** Unpacks a blob. */
export async function blob(number: number): Promise<Uint8Array> {
  const packed = base64(document.getElementById(`b${number}`)?.textContent ?? "");
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads numbers of seven-bit groups, the lowest first. */
export class Reader {
  at = 0;
  constructor(readonly bytes: Uint8Array) {}

  varint(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  }

  /** A signed number. Numbers beyond 2^53 lose their last digits, as all numbers here do. */
  zigzag(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  take(length: number): Uint8Array {
    const part = this.bytes.subarray(this.at, this.at + length);
    this.at += length;
    return part;
  }
}

const columns = new Map<number, Promise<Float64Array>>();

/** Values of a column of a series. */
export function values(table: TableData, name: string): Promise<Float64Array> | null {
  const column = table.columns.find((column) => column.name === name);
  return column ? columnValues(table, column) : null;
}

/** Values of a column, unpacked once. */
export function columnValues(table: TableData, column: TableColumn): Promise<Float64Array> {
  let known = columns.get(column.blob);
  if (!known) {
    known = blob(column.blob).then((bytes) => {
      if (column.float) {
        const copy = bytes.slice(0, table.rows * 8);
        return new Float64Array(copy.buffer, 0, table.rows);
      }
      const out = new Float64Array(table.rows);
      const reader = new Reader(bytes);
      let value = 0;
      for (let row = 0; row < table.rows; row++) {
        value += reader.zigzag();
        out[row] = value;
      }
      return out;
    });
    columns.set(column.blob, known);
  }
  return known;
}
