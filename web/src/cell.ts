// The figures of one cell.

import { columnValues, values, type Bars, type Cell, type Page, type States, type TableData, type Unit } from "./data";
import { AccessTime, PageIndex } from "./access";
import { bars, label, stacks } from "./bars";
import { Figure, type Export } from "./figure";
import { count, show, short, time } from "./format";
import { flames } from "./flame";
import { headroomFigure } from "./headroom";
import { heats } from "./heat";
import { asked, fragmentation } from "./highalloc";
import { makeUps } from "./makeup";
import { overTime } from "./over";
import { PageState, Scatter } from "./pages";
import { Panels, type Curve, type Panel } from "./panels";
import { presenceFigure } from "./presence";
import { distributions } from "./shares";
import type { Sheet } from "./sheet";
import { Trace, quantile } from "./trace";
import { Link, View } from "./view";

/** What can be redrawn when colours change. */
export interface Redraw { draw(): void; prepare?(): Promise<void> }

export class CellFigures {
  readonly all: Redraw[] = [];
  constructor(private readonly page: Page, readonly cell: Cell, readonly to: HTMLElement) {}

  name(column: number): string {
    return this.page.columns[column] ?? "";
  }

  async draw(): Promise<void> {
    await makeUps(this);
    await this.accesses();
    distributions(this);
    await this.states();
    await headroomFigure(this);
    await this.swap();
    await asked(this);
    await this.attempts();
    await fragmentation(this);
    this.bars();
    await this.processes();
    this.wholes();
    await flames(this);
    await heats(this, (...of) => this.views(...of));
    await overTime(this);
  }

  private views(figure: Figure, link: Link, views: View[], name: string): void {
    this.to.append(figure.element);
    // Side by side where there is room.
    figure.body.classList.add("maps");
    for (const view of views) {
      const box = document.createElement("div");
      figure.body.append(box);
      view.mount(box);
    }
    figure.button("Zoom in", "Show half as much", () => link.zoom(0.5));
    figure.button("Zoom out", "Show twice as much", () => link.zoom(2));
    figure.button("All", "Show all", () => link.reset());
    figure.pictures(name, views.map((view) => ({ svg: (...of) => view.svg(...of) })));
    this.all.push(...views);
  }

  private async accesses(): Promise<void> {
    if (this.cell.traces.length === 0) return;
    const traces = this.cell.traces.map((data) => new Trace(data));
    await Promise.all(traces.map((trace) => trace.open()));
    const n = Math.max(...traces.map((trace) => trace.data.n));
    const [least, most] = [Math.min(...traces.map((t) => t.data.min)), Math.max(...traces.map((t) => t.data.max))];
    const link = new Link({ from: 0, to: n });
    const bits = Math.max(...traces.map((trace) => trace.data.bits));
    const rounding = bits > 0 ? ` Times keep ${bits} leading bits (to within ${short(100 / 2 ** bits)} %) so that the file stays small; the records hold them exactly.` : "";
    const figure = new Figure("access", "Access time over references",
      `Every access of one trial of each variant, seed ${[...new Set(traces.map((t) => t.data.seed))].join(", ")}. Drag to zoom, down to the single access; the axes are linked.${rounding}`);
    const views = traces.map((trace) => new View(link, new AccessTime(trace, this.name(trace.data.column), trace.data.column, least, most)));
    this.views(figure, link, views, `access-time-${this.cell.place}`);
    figure.exports(traces.map((trace): Export => ({ name: `accesses-${this.name(trace.data.column)}`, head: ["reference", "page", "time_ns"], rows: () => rows(trace) })));
    const shares = [0.5, 0.9, 0.99, 0.999, 0.9999];
    figure.table("Percentiles of these accesses", ["variant", "accesses", "minimum", ...shares.map((s) => `${short(s * 100)} %`), "maximum"],
      traces.map((trace) => {
        const histogram = trace.histogram(0, trace.data.n);
        return [this.name(trace.data.column), count(trace.data.n), time(trace.data.min), ...shares.map((s) => time(quantile(histogram, s))), time(trace.data.max)];
      }));
    const stride = Math.max(...traces.map((trace) => trace.data.stride));
    const map = new Figure("pages", "Page index over time",
      `Which page each reference touched, and what it met.${statesText(traces.map((trace) => [this.name(trace.data.column), trace.data.states]))}${stride > 1 ? ` One access in ${count(stride)} is shown.` : ""} Linked with the figure above.`);
    const maps = traces.map((trace) => new View(link, new PageIndex(trace, this.name(trace.data.column))));
    this.views(map, link, maps, `page-index-${this.cell.place}`);
    map.table("These traces", ["variant", "accesses", "hits", "minor faults", "major faults", "stalls", "pages", "record"], traces.map(({ data }) =>
      [this.name(data.column), count(data.n), ...(data.states ? data.states.counts.map(count) : ["", "", "", ""]), count(data.range), data.record]));
  }

  /** Tables of this name's last moment, one for each variant. */
  last(pattern: RegExp, ...columns: string[]): TableData[] {
    const found = new Map<number, TableData>();
    for (const table of this.cell.tables) {
      if (pattern.test(table.name) && columns.every((name) => table.columns.some((column) => column.name === name))) found.set(table.column, table);
    }
    return [...found.values()];
  }

  dump(table: TableData): Export {
    return { name: `${table.name}-${this.name(table.column)}`, head: table.columns.map((column) => column.name), rows: () => tableRows(table) };
  }

  private async states(): Promise<void> {
    const tables = this.last(/^pages-\d+$/, "page", "present", "age", "uses");
    if (tables.length === 0) return;
    const data = await Promise.all(tables.map(async (table) => ({
      table, page: await values(table, "page")!, present: await values(table, "present")!, age: await values(table, "age")!, uses: await values(table, "uses")!,
    })));
    presenceFigure(this, data);
    const link = new Link({ from: 0, to: Math.max(1, ...data.map(({ page }) => (page[page.length - 1] ?? 0) + 1)) });
    for (const [kind, title, what, text] of [
      ["uses", "Reference count against presence", "references", "How often each page was referenced, and below the curve the share of pages still in memory at the end."],
      ["age", "Page age against presence", "references since its own", "How long ago each page was referenced last, and below it the share still in memory at the end."],
    ] as const) {
      const figure = new Figure(kind, title, `${text} Full colour: present; pale: not.`);
      const views = data.map((d) => new View(link, new PageState(this.name(d.table.column), d.page, d.present, d[kind], what)));
      this.views(figure, link, views, `${kind}-${this.cell.place}`);
      figure.exports(data.map(({ table }) => this.dump(table)));
      figure.table(`Presence by tenths of ${kind}`, ["tenth", ...data.map(({ table }) => `${this.name(table.column)}: up to, present`)],
        Array.from({ length: 10 }, (_, tenth) => [`${tenth + 1}`, ...data.map((d) => presence(d[kind], d.present, tenth))]));
    }
  }

  private async swap(): Promise<void> {
    const tables = this.last(/^swap-offsets$/, "page", "offset");
    if (tables.length === 0) return;
    const data = await Promise.all(tables.map(async (table) => ({ table, page: await values(table, "page")!, offset: await values(table, "offset")! })));
    const most = data.reduce((most, { offset }) => offset.reduce((a, b) => Math.max(a, b), most), 1);
    const link = new Link({ from: 0, to: Math.max(1, ...data.map(({ page }) => page.length)) });
    const figure = new Figure("swap", "Virtual page against swap offset", "Where each page lies on the swap device. Rising lines are pages that follow each other there too. Pages in memory have no place.");
    const views = data.map((d) => new View(link, new Scatter(this.name(d.table.column), "page",
      { from: 0, to: most * 1.02, log: false, label: "swap offset (pages)", show: count }, d.page, d.offset, () => "fast")));
    this.views(figure, link, views, `swap-${this.cell.place}`);
    figure.exports(data.map(({ table }) => this.dump(table)));
    figure.table("Layout", ["variant", "pages in swap", "neighbours there too"], data.map(({ table, offset }) => {
      let [swapped, pairs, near] = [0, 0, 0];
      for (let at = 0; at < offset.length; at++) {
        if (offset[at]! < 0) continue;
        swapped++;
        if (at > 0 && offset[at - 1]! >= 0) {
          pairs++;
          if (offset[at]! === offset[at - 1]! + 1) near++;
        }
      }
      return [this.name(table.column), count(swapped), pairs > 0 ? `${short((near / pairs) * 100)} %` : "–"];
    }));
  }

  private async attempts(): Promise<void> {
    const tables = this.last(/^attempts$/, "success").filter((table) => latency(table));
    if (tables.length === 0) return;
    const data = await Promise.all(tables.map(async (table) => ({ table, success: await values(table, "success")!, time: await columnValues(table, latency(table)!) })));
    const link = new Link({ from: 0, to: Math.max(1, ...data.map(({ time }) => time.length)) });
    const most = data.reduce((most, { time }) => time.reduce((a, b) => Math.max(a, b), most), 10);
    const least = data.reduce((least, { time }) => time.reduce((a, b) => Math.min(a, b), least), most);
    const figure = new Figure("attempts", "Latency of every attempt", "Attempts in their order; those that failed are crosses.");
    const views = data.map((d) => new View(link, new Scatter(this.name(d.table.column), "attempt",
      { from: Math.max(1, least / 1.4), to: most * 1.3, log: true, label: "latency", show: time }, d.time.map((_, at) => at), d.time, (row) => (d.success[row]! > 0 ? "fast" : "slow"), [{ name: "succeeded", colour: "fast" }, { name: "failed", colour: "slow", isCross: true }])));
    this.views(figure, link, views, `attempts-${this.cell.place}`);
    figure.exports(data.map(({ table }) => this.dump(table)));
    figure.table("Attempts", ["variant", "attempts", "successes"], data.map(({ table, success }) => [this.name(table.column), count(success.length), count(success.reduce((a, b) => a + b, 0))]));
  }

  /** Times of processes, sorted: each step is one process. */
  private async processes(): Promise<void> {
    const tables = this.last(/^processes$/);
    // swapbench times writing and reading of each process; usemem writing and giving back.
    const kinds: [string, string, number | null][] = [
      ["time", "write", 0], ["time", "read", 1], ["write", "write", null], ["free", "free", null], ["throughput", "throughput", null],
    ];
    const panels: Panel[] = [];
    const rows: string[][] = [];
    for (const [column, what, isRead] of kinds) {
      const curves: Curve[] = [];
      let unit: Unit = "nanos";
      for (const table of tables) {
        const found = table.columns.find((one) => one.name === column);
        const flags = isRead === null ? null : await values(table, "is-read");
        if (!found || (isRead !== null && !flags)) continue;
        unit = found.unit;
        const ys = Array.from(await columnValues(table, found)).filter((_, row) => flags === null || flags[row] === isRead).sort((a, b) => a - b);
        if (ys.length === 0) continue;
        curves.push({ name: this.name(table.column), colour: table.column, xs: ys.map((_, at) => (at + 0.5) / ys.length), ys, dots: ys.length <= 40 });
        rows.push([what, this.name(table.column), count(ys.length), ...[0, 0.25, 0.5, 0.75, 1].map((share) => show(unit, ys[Math.round(share * (ys.length - 1))] ?? 0))]);
      }
      if (curves.length > 0) panels.push({ title: what, y: what, unitY: unit, height: 170, curves, fromY: 0, scale: unit, labelled: true });
    }
    if (panels.length === 0) return;
    const figure = new Figure("processes", `Processes: ${panels.map(({ title }) => title).join(" and ")}`,
      "All processes and passes of one trial of each variant, from the least to the most.");
    this.to.append(figure.element);
    const chart = new Panels({ title: "Processes, from the least to the most", x: "share of processes", unitX: "share", logX: false, columns: 2, panels }, figure.body);
    chart.draw();
    this.all.push(chart);
    figure.pictures(`processes-${this.cell.place}`, [{ svg: (width) => chart.svg(width) }]);
    figure.exports(tables.map((table) => this.dump(table)));
    figure.table("Processes", ["what", "variant", "values", "least", "25 %", "median", "75 %", "most"], rows);
  }

  /** Ways to do the same, with intervals over trials. */
  private bars(): void {
    for (const data of this.cell.bars) {
      const figure = new Figure("bars", data.title, `Bar: Hodges-Lehmann estimate over the trials of each variant; line: ${levels(data)}; points: single trials.`);
      this.sheet(figure, bars(data, this.page.columns), `${data.title}-${this.cell.place}`);
      const all = data.groups.flatMap(({ label, sides }) => sides.flatMap((bar, side) => (bar ? [{ label, side, bar }] : [])));
      figure.exports([{
        name: `${data.title}-${this.cell.place}`, head: ["way", "variant", "trial", "value"],
        rows: () => all.flatMap(({ label, side, bar }) => bar.values.map((value, trial) => [label, this.name(side), trial, value])),
      }]);
      figure.table(data.title, ["way", "variant", "trials", "estimate", "from", "to"],
        all.map(({ label, side, bar }) => [label, this.name(side), count(bar.values.length), ...[bar.value, bar.low, bar.high].map((v) => show(data.unit, v))]));
    }
  }

  /** Where time went, in parts that add up to the whole. */
  private wholes(): void {
    const { wholes } = this.cell;
    if (wholes.length === 0) return;
    const figure = new Figure("wholes", "Where time went", "From the trace of the observed trial of each variant, which carries the observer's cost. The parts add up to the elapsed time of the processes; sleep, which nobody waits for, is in the table alone.");
    this.sheet(figure, stacks(wholes, this.page.columns), `where-time-went-${this.cell.place}`);
    figure.exports([{
      name: `where-time-went-${this.cell.place}`, head: ["variant", "of", "part", "time_ns"],
      rows: () => wholes.flatMap((whole) => whole.parts.map(([part, nanos]) => [this.name(whole.column), whole.label, part, nanos])),
    }]);
    const parts = wholes[0]!.parts.map(([part]) => part);
    figure.table("Parts", ["part", ...wholes.map((whole) => label(whole, this.page.columns))],
      [...parts.map((part) => [part, ...wholes.map((whole) => {
        const nanos = whole.parts.find(([name]) => name === part)?.[1] ?? 0;
        return `${time(nanos)} (${short((nanos / Math.max(1, whole.elapsed)) * 100)} %)`;
      })]), ["elapsed", ...wholes.map((whole) => time(whole.elapsed))]]);
  }

  private sheet(figure: Figure, sheet: Sheet, name: string): void {
    this.to.append(figure.element);
    figure.body.append(sheet.canvas);
    sheet.draw();
    this.all.push(sheet);
    figure.pictures(name, [{ svg: (width) => sheet.svg(width) }]);
  }
}

/** What the intervals of bars are, as few trials allow. */
function levels(data: Bars): string {
  const all = data.groups.flatMap(({ sides }) => sides.flatMap((bar) => (bar ? [bar.level] : [])));
  const [low, high] = [Math.min(...all), Math.max(...all)];
  if (all.length === 0 || high === 0) return "none, for so few trials allow no interval";
  const text = (level: number): string => `${short(level * 100)} %`;
  if (low === 0) return `its interval (up to ${text(high)}) where there are enough trials`;
  return `its interval of ${low === high ? text(low) : `${text(low)} to ${text(high)}`}`;
}

/** How states are told apart. */
function statesText(all: [string, States | null][]): string {
  if (all.every(([, states]) => states === null)) return " The record does not count faults, so states are not told apart.";
  const stalls = all.flatMap(([name, states]) => (states && states.counts[3] > 0 ? [`${name} ${time(states.stall_from)}`] : []));
  return ` The record counts the faults: so many of the longest accesses are major ones, the next longest minor ones.${
    stalls.length > 0 ? ` A stall takes ten times as long as the median major fault (${stalls.join(", ")}).` : ""}`;
}

function latency(table: TableData): TableData["columns"][number] | undefined {
  return table.columns.find((column) => column.unit === "nanos" && /time|latency/.test(column.name));
}

async function* rows(trace: Trace): AsyncGenerator<(number | null)[]> {
  const { data } = trace;
  const pages: (Uint32Array | undefined)[] = [];
  for (let chunk = 0; chunk < data.times.length; chunk++) {
    const times = await trace.times(chunk);
    for (let at = 0; at < times.length; at++) {
      const access = chunk * data.chunk + at;
      let page: number | null = null;
      if (access % data.stride === 0) {
        const kept = access / data.stride;
        const from = Math.floor(kept / data.chunk);
        pages[from] ??= await trace.pages(from);
        page = pages[from]![kept - from * data.chunk] ?? null;
      }
      yield [access, page, times[at]!];
    }
  }
}

async function* tableRows(table: TableData): AsyncGenerator<number[]> {
  const columns = await Promise.all(table.columns.map((column) => columnValues(table, column)));
  for (let row = 0; row < table.rows; row++) yield columns.map((column) => column[row]!);
}

function presence(value: Float64Array, present: Float64Array, tenth: number): string {
  const order = Array.from(value.keys()).sort((a, b) => value[a]! - value[b]!);
  const part = order.slice(Math.floor((order.length * tenth) / 10), Math.floor((order.length * (tenth + 1)) / 10));
  if (part.length === 0) return "–";
  const here = part.reduce((sum, row) => sum + present[row]!, 0);
  return `${count(value[part[part.length - 1]!]!)}, ${short((here / part.length) * 100)} %`;
}
