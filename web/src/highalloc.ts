// highalloc: what succeeded and what it took against the share that was asked for, pass by pass, and how free memory is cut up.

import type { CellFigures } from "./cell";
import { values, type TableData } from "./data";
import { Figure } from "./figure";
import { show, time } from "./format";
import { Panels, type Curve, type Panel, type PanelsData } from "./panels";

const percent = (share: number): string => show("share", share);

function put(of: CellFigures, figure: Figure, name: string, data: PanelsData): void {
  of.to.append(figure.element);
  const panels = new Panels(data, figure.body);
  panels.draw();
  of.all.push(panels);
  figure.pictures(`${name}-${of.cell.place}`, [{ svg: (width) => panels.svg(width) }]);
}

/** Success and latency against the share allocated so far: a panel for each pass. */
export async function asked(of: CellFigures): Promise<void> {
  const tables = of.last(/^attempts$/, "pass", "success", "asked", "mean-so-far", "deviation-so-far");
  if (tables.length === 0) return;
  const [success, latency]: [Curve[][], Curve[][]] = [[], []];
  const rows: string[][] = [];
  for (const table of tables) {
    const [pass, ok, share, mean, deviation] = await Promise.all(
      ["pass", "success", "asked", "mean-so-far", "deviation-so-far"].map((name) => values(table, name)!)) as [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];
    const passes = [...new Set(pass)];
    passes.forEach((number, nth) => {
      const at = Array.from(pass.keys()).filter((row) => pass[row] === number);
      let succeeded = 0;
      const head = { name: of.name(table.column), colour: table.column, xs: at.map((row) => share[row]!) };
      (success[nth] ??= []).push({ ...head, ys: at.map((row, n) => (succeeded += ok[row]!) / (n + 1)) });
      (latency[nth] ??= []).push({
        ...head, ys: at.map((row) => mean[row]!),
        low: at.map((row) => Math.max(0, mean[row]! - deviation[row]!)), high: at.map((row) => mean[row]! + deviation[row]!),
      });
      const end = at[at.length - 1];
      rows.push([`${head.name}, pass ${nth + 1}`, String(at.length), percent(succeeded / Math.max(1, at.length)), end === undefined ? "–" : time(mean[end]!), end === undefined ? "–" : time(deviation[end]!)]);
    });
  }
  const figure = new Figure("asked", "Success and latency against the share allocated",
    "Above: share of the attempts so far that succeeded. Below: cumulative mean of their latency, in a ribbon of one standard deviation. Both over the share of the attempts made; all passes have the same scale.");
  const title = (nth: number, what: string): string => (success.length > 1 ? `pass ${nth + 1}: ${what}` : what);
  put(of, figure, "asked", {
    title: "Success and latency so far, pass by pass", x: "share asked for", logX: false, unitX: "share", columns: success.length,
    panels: [
      ...success.map((curves, nth): Panel => ({ title: title(nth, "succeeded so far"), y: "succeeded", unitY: "share", height: 150, curves, fromY: 0, toY: 1, labelled: true })),
      ...latency.map((curves, nth): Panel => ({ title: title(nth, "mean latency so far"), y: "latency", unitY: "nanos", height: 170, curves, fromY: 0, scale: "latency", labelled: true })),
    ],
  });
  figure.exports(tables.map((table) => of.dump(table)));
  figure.table("At the end of each pass", ["variant and pass", "attempts", "succeeded", "mean", "deviation"], rows);
}

/** Share of free memory in blocks too small for an order, all zones together. */
async function unusable(table: TableData): Promise<number[]> {
  const [order, blocks] = await Promise.all([values(table, "order")!, values(table, "free-blocks")!]);
  const free: number[] = [];
  order.forEach((order, row) => { free[order] = (free[order] ?? 0) + blocks[row]! * 2 ** order; });
  const all = free.reduce((a, b) => a + b, 0);
  let small = 0;
  return free.map((pages) => {
    const share = all > 0 ? small / all : 0;
    small += pages;
    return share;
  });
}

/** How free memory is cut up, by order: a panel for each moment it was looked at. */
export async function fragmentation(of: CellFigures): Promise<void> {
  const tables = of.cell.tables.filter((table) => table.name.startsWith("fragmentation-") && table.columns.some((c) => c.name === "free-blocks"));
  if (tables.length === 0) return;
  const moments = [...new Set(tables.map((table) => table.name.slice("fragmentation-".length)))];
  const curves = new Map<string, Curve[]>(moments.map((moment) => [moment, []]));
  for (const table of tables) {
    const shares = await unusable(table);
    curves.get(table.name.slice("fragmentation-".length))!.push({ name: of.name(table.column), colour: table.column, xs: shares.map((_, order) => order), ys: shares, dots: true });
  }
  const orders = Math.max(...[...curves.values()].flat().map((curve) => curve.ys.length));
  const figure = new Figure("fragmentation", "Fragmentation by order",
    `Unusable free space: the share of free memory that lies in blocks too small for an order (a huge page is of order 9). One panel for each moment it was looked at: ${moments.join(", ")}.`);
  put(of, figure, "fragmentation", {
    title: "Unusable share of free memory by order", x: "order", logX: false, unitX: "count", columns: moments.length === 4 ? 2 : 3,
    panels: moments.map((moment): Panel => ({ title: moment, y: "unusable share", unitY: "share", height: 150, curves: curves.get(moment)!, fromY: 0, scale: "all", labelled: true })),
  });
  figure.exports(tables.map((table) => of.dump(table)));
  figure.table("Unusable share", ["variant and moment", ...Array.from({ length: orders }, (_, order) => `order ${order}`)],
    moments.flatMap((moment) => curves.get(moment)!.map((curve) => [`${curve.name}, ${moment}`, ...Array.from(curve.ys, (share) => percent(share ?? 0))])));
}
