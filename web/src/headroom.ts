// Where along the string a trial lost what it lost: its faults window by window beside those of the ideal policy.

import type { CellFigures } from "./cell";
import { values, type TableData } from "./data";
import { Figure } from "./figure";
import { count } from "./format";
import { Panels, IDEAL, TEXTBOOK, type Curve } from "./panels";

interface Windows { table: TableData; start: Float64Array; faults: Float64Array; opt: Float64Array; lru: Float64Array }

/** Values added up, each less what the ideal policy has there. */
function beyond(of: Float64Array, opt: Float64Array): number[] {
  let sum = 0;
  return Array.from(of, (value, at) => (sum += value - opt[at]!));
}

export async function headroomFigure(of: CellFigures): Promise<void> {
  const tables = of.last(/^headroom$/, "first-reference", "faults", "opt", "lru");
  if (tables.length === 0) return;
  const data = await Promise.all(tables.map(async (table): Promise<Windows> => ({
    table, start: await values(table, "first-reference")!, faults: await values(table, "faults")!, opt: await values(table, "opt")!, lru: await values(table, "lru")!,
  })));
  const first = data[0]!;
  const figure = new Figure("headroom", "Where faults were lost along the references",
    "Faults of one trial of each variant in each part of its references, beside those of Belady's OPT and of LRU with the same memory. Right: faults beyond OPT's, added up; where a curve rises, the kernel lost what could have been kept.");
  of.to.append(figure.element);
  const curve = (name: string, colour: number, xs: Float64Array, ys: ArrayLike<number>): Curve => ({ name, colour, xs, ys });
  const chart = new Panels({
    title: "Faults along the references", x: "references", unitX: "count", logX: false, columns: 2,
    panels: [
      {
        title: "faults", y: "faults in each part", unitY: "count", height: 190, fromY: 0, labelled: true,
        curves: [...data.map((d) => curve(of.name(d.table.column), d.table.column, d.start, d.faults)), curve("OPT", IDEAL, first.start, first.opt), curve("LRU", TEXTBOOK, first.start, first.lru)],
      },
      {
        title: "beyond OPT, added up", y: "faults", unitY: "count", height: 190, labelled: true,
        curves: [...data.map((d) => curve(of.name(d.table.column), d.table.column, d.start, beyond(d.faults, d.opt))), curve("LRU", TEXTBOOK, first.start, beyond(first.lru, first.opt))],
      },
    ],
  }, figure.body);
  chart.draw();
  of.all.push(chart);
  figure.pictures(`headroom-${of.cell.place}`, [{ svg: (width) => chart.svg(width) }]);
  figure.exports(tables.map((table) => of.dump(table)));
  const sum = (all: Float64Array): string => count(all.reduce((a, b) => a + b, 0));
  figure.table("Faults of these trials", ["variant", "parts", "faults", "OPT", "LRU"],
    data.map((d) => [of.name(d.table.column), count(d.start.length), sum(d.faults), sum(d.opt), sum(d.lru)]));
}
