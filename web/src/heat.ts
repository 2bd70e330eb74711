// Which pages a trial referenced when: used pages by address over exact time.

import type { CellFigures } from "./cell";
import { blob, Reader, type Heat } from "./data";
import { Figure } from "./figure";
import { count, time } from "./format";
import { Link, rgb, View, type Range, type Source, type Theme } from "./view";

/** What happened in one window of time. */
interface Window { references: number; pages: number; written: number; fresh: number }
interface Row { page: number; used: number[] }

/** Opacity of a place with one page of many, and of one with all. */
const [LEAST, MOST] = [45, 255];

async function read(heat: Heat): Promise<{ windows: Window[]; rows: Row[] }> {
  const reader = new Reader(await blob(heat.blob));
  const windows = Array.from({ length: heat.windows }, (): Window => ({ references: reader.varint(), pages: reader.varint(), written: reader.varint(), fresh: reader.varint() }));
  let page = 0;
  const rows = Array.from({ length: heat.rows }, (): Row => {
    page += reader.zigzag();
    return { page, used: Array.from({ length: heat.windows }, () => reader.varint()) };
  });
  return { windows, rows };
}

class HeatMap implements Source {
  readonly x = "time";
  readonly unit = "nanos";
  readonly y;
  private readonly length: number;

  constructor(readonly title: string, readonly heat: Heat, readonly windows: Window[], readonly rows: Row[]) {
    this.y = { from: 0, to: Math.max(1, heat.pages), log: false, label: "used pages, by address", show: count };
    this.length = Math.max(1, heat.until) / Math.max(1, heat.windows);
  }

  /** Number of used pages in a row of the map. */
  size(row: number): number {
    return Math.max(1, Math.min(this.heat.row_pages, this.heat.pages - row * this.heat.row_pages));
  }

  draw(image: ImageData, range: Range, y: (value: number) => number, theme: Theme): number {
    const [r, g, b] = rgb(theme.series[this.heat.column % 4]!);
    const across = (range.to - range.from) / image.width;
    const windowOf = Int32Array.from({ length: image.width }, (_, column) => Math.floor((range.from + (column + 0.5) * across) / this.length));
    this.rows.forEach(({ used }, row) => {
      const from = row * this.heat.row_pages;
      const [bottom, top] = [y(from), Math.min(y(from) - 1, y(from + this.size(row)))];
      for (let column = 0; column < image.width; column++) {
        const share = (used[windowOf[column]!] ?? 0) / this.size(row);
        if (share === 0) continue;
        const alpha = LEAST + Math.round(Math.min(1, share) * (MOST - LEAST));
        for (let line = Math.max(0, top); line < bottom; line++) {
          const at = (line * image.width + column) * 4;
          image.data[at] = r;
          image.data[at + 1] = g;
          image.data[at + 2] = b;
          image.data[at + 3] = alpha;
        }
      }
    });
    const [first, last] = [Math.max(0, Math.floor(range.from / this.length)), Math.min(this.windows.length, Math.ceil(range.to / this.length))];
    return this.windows.slice(first, last).reduce((sum, window) => sum + window.references, 0);
  }

  /** Pages referenced in each window, on the same axis. */
  lines(): { name: string; colour: keyof Theme; points: [number, number][] }[] {
    return [{ name: "working set", colour: "ink", points: this.windows.map(({ pages }, at): [number, number] => [(at + 0.5) * this.length, pages]) }];
  }

  tell(x: number): Promise<string> {
    const window = this.windows[Math.floor(x / this.length)];
    return Promise.resolve(window
      ? `${time(x)}: ${count(window.references)} references to ${count(window.pages)} pages within ${time(this.length)}, ${count(window.written)} written, ${count(window.fresh)} used for the first time`
      : "");
  }
}

export async function heats(of: CellFigures, views: (figure: Figure, link: Link, views: View[], name: string) => void): Promise<void> {
  const all = of.cell.heats;
  if (all.length === 0) return;
  const maps = await Promise.all(all.map(async (heat) => {
    const { windows, rows } = await read(heat);
    return new HeatMap(of.name(heat.column), heat, windows, rows);
  }));
  const cut = all.filter((heat) => heat.until < heat.elapsed);
  const missing = cut.length > 0 ? ` ${cut.map((heat) => `${of.name(heat.column)}: references after ${time(heat.until)} of ${time(heat.elapsed)} were not recorded.`).join(" ")}` : "";
  const figure = new Figure("heat", "Address space over time",
    `Which pages one profiled trial of each variant referenced when, seed ${[...new Set(all.map((heat) => heat.seed))].join(", ")}: all used pages in the order of their addresses, the lowest at the bottom, without the gaps between them. The darker, the larger the share of these pages that was referenced. The line is the working set.${missing}`);
  const link = new Link({ from: 0, to: Math.max(1, ...all.map((heat) => heat.until)) });
  views(figure, link, maps.map((map) => new View(link, map)), `address-space-${of.cell.place}`);
  figure.exports(maps.map((map) => ({
    name: `address-space-${map.title}`, head: ["time_ns", "first_address", "pages", "pages_referenced"],
    rows: function* () {
      for (const [row, { page, used }] of map.rows.entries()) {
        for (const [window, pages] of used.entries()) {
          if (pages > 0) yield [Math.round((window * map.heat.until) / map.heat.windows), `0x${(BigInt(page) << 12n).toString(16)}`, map.size(row), pages];
        }
      }
    },
  })));
  figure.table("Ranges of addresses", ["variant", "in the map from", "to", "addresses from", "memory", "address space", "pages", "used", "references"],
    all.flatMap((heat) => heat.ranges.map((range) => [
      of.name(heat.column), count(range.before), count(range.before + range.used), range.address, range.memory, String(range.space), count(range.pages), count(range.used), count(range.references),
    ])));
}
