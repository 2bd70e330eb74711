// highalloc: what succeeded and what it took against the share that was asked for, and how free memory is cut up.

import uPlot from "uplot";
import type { CellFigures } from "./cell";
import { values, type TableData } from "./data";
import { Figure } from "./figure";
import { show, time } from "./format";
import { Chart, type Line } from "./lines";

const DASHES: number[][] = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const percent = (share: number): string => show("share", share);

function pair(of: CellFigures, figure: Figure, name: string, all: ConstructorParameters<typeof Chart>[0][]): void {
  of.to.append(figure.element);
  figure.body.classList.add("pair");
  const sync = uPlot.sync(`${name}-${of.cell.place}`);
  const charts = all.map((data) => {
    const box = document.createElement("div");
    figure.body.append(box);
    return new Chart(data, box, sync);
  });
  for (const chart of charts) chart.draw();
  of.all.push(...charts);
  figure.pictures(`${name}-${of.cell.place}`, charts.map((chart) => ({ svg: () => chart.svg() })));
}

/** Success and latency against the share allocated so far, pass by pass. */
export async function asked(of: CellFigures): Promise<void> {
  const tables = of.last(/^attempts$/, "pass", "success", "asked", "mean-so-far", "deviation-so-far");
  if (tables.length === 0) return;
  const [success, latency]: [Line[], Line[]] = [[], []];
  const rows: string[][] = [];
  for (const table of tables) {
    const [pass, ok, share, mean, deviation] = await Promise.all(
      ["pass", "success", "asked", "mean-so-far", "deviation-so-far"].map((name) => values(table, name)!)) as [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];
    const passes = [...new Set(pass)];
    passes.forEach((number, nth) => {
      const at = Array.from(pass.keys()).filter((row) => pass[row] === number);
      const xs = at.map((row) => share[row]!);
      let succeeded = 0;
      const head = { name: `${of.name(table.column)}, pass ${nth + 1}`, colour: table.column, xs, dash: DASHES[nth % DASHES.length]! };
      success.push({ ...head, ys: at.map((row, n) => (succeeded += ok[row]!) / (n + 1)) });
      latency.push({ ...head, ys: at.map((row) => mean[row]!) });
      for (const sign of [-1, 1]) {
        latency.push({ ...head, name: `${head.name} ${sign < 0 ? "− deviation" : "+ deviation"}`, ys: at.map((row) => Math.max(0, mean[row]! + sign * deviation[row]!)), faint: true });
      }
      const end = at[at.length - 1];
      rows.push([head.name, String(at.length), percent(succeeded / Math.max(1, at.length)), end === undefined ? "–" : time(mean[end]!), end === undefined ? "–" : time(deviation[end]!)]);
    });
  }
  const figure = new Figure("asked", "Success and latency against the share allocated",
    "Left: share of the attempts so far that succeeded. Right: cumulative mean of their latency; thin lines are one standard deviation away. Both over the share of the attempts made.");
  const axis = { x: "share asked for", logX: false, logY: false, unitX: "share" as const };
  pair(of, figure, "asked", [
    { ...axis, title: "Success so far", y: "share that succeeded", unitY: "share", lines: success },
    { ...axis, title: "Mean latency so far", y: "latency", unitY: "nanos", lines: latency },
  ]);
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

/** How free memory is cut up, by order, at each moment it was looked at. */
export async function fragmentation(of: CellFigures): Promise<void> {
  const tables = of.cell.tables.filter((table) => table.name.startsWith("fragmentation-") && table.columns.some((c) => c.name === "free-blocks"));
  if (tables.length === 0) return;
  const moments = [...new Set(tables.map((table) => table.name.slice("fragmentation-".length)))];
  const byOrder: Line[] = [];
  const all = new Map<string, number[]>();
  for (const table of tables) {
    const moment = table.name.slice("fragmentation-".length);
    const shares = await unusable(table);
    all.set(`${table.column} ${moment}`, shares);
    byOrder.push({ name: `${of.name(table.column)}, ${moment}`, colour: table.column, xs: shares.map((_, order) => order), ys: shares, dash: DASHES[moments.indexOf(moment) % DASHES.length]! });
  }
  const columns = [...new Set(tables.map((table) => table.column))];
  const orders = Math.max(...[...all.values()].map((shares) => shares.length));
  // A huge page is of order 9; what is asked for most often lies below it.
  const watched = [2, 4, 9].filter((order) => order < orders);
  const overTime = columns.flatMap((column) => watched.map((order, nth): Line => ({
    name: `${of.name(column)}, order ${order}`, colour: column, xs: moments.map((_, at) => at),
    ys: moments.map((moment) => all.get(`${column} ${moment}`)?.[order] ?? null), dash: DASHES[nth % DASHES.length]!,
  })));
  const figure = new Figure("fragmentation", "Fragmentation by order, and over time",
    `Unusable free space: the share of free memory that lies in blocks too small for an order. Left: by order, at each moment; right: for some orders, from moment to moment (${moments.join(", ")}).`);
  const axis = { logX: false, logY: false, y: "unusable share of free memory", unitY: "share" as const };
  pair(of, figure, "fragmentation", [
    { ...axis, title: "By order", x: "order", unitX: "count", lines: byOrder },
    { ...axis, title: "From moment to moment", x: "moment", unitX: "count", places: moments, lines: overTime },
  ]);
  figure.exports(tables.map((table) => of.dump(table)));
  figure.table("Unusable share", ["variant and moment", ...Array.from({ length: orders }, (_, order) => `order ${order}`)],
    byOrder.map((line) => [line.name, ...Array.from(line.ys, (share) => percent(share ?? 0))]));
}
