// Presence against age and use counts: which pages were kept, by how long ago and how often they were referenced.

import type { CellFigures } from "./cell";
import type { TableData } from "./data";
import { Figure } from "./figure";
import { count, show } from "./format";
import { Crosshair, Panels, type Curve } from "./panels";

export interface PageStates { table: TableData; present: Float64Array; age: Float64Array; uses: Float64Array }
interface Group { low: number; high: number; middle: number; pages: number; here: number }

/** Fewest pages of a group: of fewer a share says little. */
const FEWEST = 24;
/** Most groups. */
const MOST = 60;

/** Pages in groups of about the same size by their value; pages of one value are not parted. */
export function groups(value: Float64Array, present: Float64Array): Group[] {
  const order = Array.from(value.keys()).sort((a, b) => value[a]! - value[b]!);
  const wanted = Math.max(FEWEST, Math.ceil(order.length / MOST));
  const out: Group[] = [];
  for (const row of order) {
    const v = value[row]!;
    let group = out[out.length - 1];
    if (!group || (group.pages >= wanted && v !== group.high)) {
      group = { low: v, high: v, middle: 0, pages: 0, here: 0 };
      out.push(group);
    }
    group.high = v;
    group.middle += v;
    group.pages++;
    group.here += present[row]!;
  }
  for (const group of out) group.middle /= group.pages;
  return out;
}

/** The interval of a share, by Wilson (1927), at 95 %. */
export function wilson(here: number, pages: number): [number, number] {
  const z = 1.96;
  const share = here / pages;
  const centre = (share + (z * z) / (2 * pages)) / (1 + (z * z) / pages);
  const far = (z * Math.sqrt((share * (1 - share)) / pages + (z * z) / (4 * pages * pages))) / (1 + (z * z) / pages);
  return [Math.max(0, centre - far), Math.min(1, centre + far)];
}

/** Both figures of VM Regress in one: a curve for each variant, in a ribbon of its interval. */
export function presenceFigure(of: CellFigures, data: PageStates[]): void {
  const figure = new Figure("presence", "Presence against age and use counts",
    "Share of the pages that were in memory at the end: left by how long ago they were referenced last, right by how often they were referenced. A policy that keeps what is used falls on the left and rises on the right. Ribbons are intervals of 95 % for the number of pages.");
  of.to.append(figure.element);
  figure.body.classList.add("pair");
  const kinds = [["age", "references since the last"], ["uses", "references"]] as const;
  const grouped = kinds.map(([kind]) => data.map((d) => groups(d[kind], d.present)));
  const charts = kinds.map(([kind, x], at) => {
    const curves = data.map((d, nth): Curve => {
      const all = grouped[at]![nth]!;
      const ends = all.map((group) => wilson(group.here, group.pages));
      return {
        name: of.name(d.table.column), colour: d.table.column, xs: all.map((group) => Math.max(group.middle, kind === "uses" ? 0 : 1)),
        ys: all.map((group) => group.here / group.pages), low: ends.map(([low]) => low), high: ends.map(([, high]) => high), dots: all.length < 4,
      };
    });
    const box = document.createElement("div");
    figure.body.append(box);
    const panels = new Panels({
      title: `Presence by ${kind}`, x, unitX: "count", logX: kind === "age", columns: 1,
      panels: [{ title: kind === "age" ? "by age" : "by use count", y: "in memory", unitY: "share", height: 190, curves, fromY: 0, toY: 1 }],
    }, box, new Crosshair());
    panels.draw();
    return panels;
  });
  of.all.push(...charts);
  figure.pictures(`presence-${of.cell.place}`, charts.map((panels) => ({ svg: (width) => panels.svg(width) })));
  figure.exports([{
    name: `presence-${of.cell.place}`, head: ["variant", "by", "from", "to", "pages", "present"],
    rows: () => kinds.flatMap(([kind], at) => data.flatMap((d, nth) => grouped[at]![nth]!.map((group) => [of.name(d.table.column), kind, group.low, group.high, group.pages, group.here]))),
  }]);
  figure.table("Presence by age and uses", ["by", "variant", "from", "to", "pages", "in memory"],
    kinds.flatMap(([kind], at) => data.flatMap((d, nth) => grouped[at]![nth]!.map((group) =>
      [kind, of.name(d.table.column), count(group.low), count(group.high), count(group.pages), show("share", group.here / group.pages)]))));
}
