// Series over the time of a trial: a figure for each source, one column of it at a time.

import uPlot from "uplot";
import type { CellFigures } from "./cell";
import { columnValues, values, type TableData } from "./data";
import { Figure } from "./figure";
import { show } from "./format";
import { Chart, type Line } from "./lines";

/** What is looked at first, in this order; else the first column that moves. */
const FIRST = ["pgscan_direct", "pgsteal_direct", "pgscan_kswapd", "pswpin", "memory-some", "memory-full", "MemFree", "nr_free_pages"];
const TITLES: Record<string, string> = {
  vmstat: "Kernel counters over time (vmstat)", pressure: "Pressure over time (PSI)", meminfo: "Memory over time (meminfo)", zram: "zram over time",
};

/** A column, as lines: one for each variant. A counter that only grows is shown from where it began. */
async function lines(of: CellFigures, tables: TableData[], column: string): Promise<{ lines: Line[]; grows: boolean }> {
  const out: Line[] = [];
  for (const table of tables) {
    const ys = values(table, column);
    if (ys) out.push({ name: of.name(table.column), colour: table.column, xs: await columnValues(table, table.columns[0]!), ys: await ys });
  }
  const grows = out.every(({ ys }) => Array.from(ys).every((y, at) => at === 0 || y! >= ys[at - 1]!));
  if (grows) for (const line of out) line.ys = Array.from(line.ys, (y) => y! - line.ys[0]!);
  return { lines: out, grows };
}

const moves = (line: Line): boolean => Array.from(line.ys).some((y) => y !== line.ys[0]);

export async function overTime(of: CellFigures): Promise<void> {
  const over = of.cell.tables.filter((table) => /^(time|at)$/.test(table.columns[0]?.name ?? "") && table.columns[0]!.unit === "nanos");
  for (const series of new Set(over.map((table) => table.name))) {
    const tables = over.filter((table) => table.name === series);
    const known: string[] = [];
    for (const name of new Set(tables.flatMap((table) => table.columns.slice(1).map((column) => column.name)))) {
      if ((await lines(of, tables, name)).lines.some(moves)) known.push(name);
    }
    if (known.length === 0) continue;
    const figure = new Figure("time", TITLES[series] ?? `${series} over time`,
      "From the start of the scenario of one trial of each variant. Counters that only grow are shown from where they began. Columns that never move are left out here; they are in the CSV.");
    of.to.append(figure.element);
    const choose = document.createElement("select");
    const label = document.createElement("label");
    label.append("Show ", choose);
    for (const name of known) choose.add(new Option(name));
    const box = document.createElement("div");
    if (known.length > 1) figure.body.append(label);
    figure.body.append(box);
    const sync = uPlot.sync(`time-${of.cell.place}`);
    let chart: Chart | null = null;
    const redraw = { draw: (): void => chart?.draw() };
    const change = async (): Promise<void> => {
      const column = choose.value;
      const unit = tables.flatMap((table) => table.columns).find((c) => c.name === column)!.unit;
      const found = await lines(of, tables, column);
      chart?.end();
      chart = new Chart({
        title: column, x: "time", y: found.grows ? `${column}, growth` : column,
        unitX: "nanos", unitY: unit, lines: found.lines,
      }, box, sync);
      chart.draw();
      figure.element.dataset.column = column;
    };
    choose.value = FIRST.find((name) => known.includes(name)) ?? known[0]!;
    choose.addEventListener("change", () => void change());
    await change();
    of.all.push(redraw);
    figure.pictures(`${series}-${of.cell.place}`, [{ svg: () => chart?.svg() ?? "" }]);
    figure.exports(tables.map((table) => of.dump(table)));
    const rows: string[][] = [];
    for (const name of known) {
      const unit = tables.flatMap((table) => table.columns).find((c) => c.name === name)!.unit;
      const found = await lines(of, tables, name);
      const ends = tables.map((table) => found.lines.find((line) => line.colour === table.column));
      rows.push([name, ...ends.flatMap((line) => (line ? [show(unit, line.ys[0] ?? 0), show(unit, line.ys[line.ys.length - 1] ?? 0)] : ["", ""]))]);
    }
    figure.table("First and last values", ["column", ...tables.flatMap((table) => [`${of.name(table.column)}: first`, "last"])], rows);
  }
}
