// Distributions: the share of values up to a time for each variant, how far these shares lie apart, and the tail.

import type { CellFigures } from "./cell";
import type { Shares } from "./data";
import { Figure, type Export } from "./figure";
import { count, time } from "./format";
import { Crosshair, Panels, valueAt, type Curve, type Mark } from "./panels";

/** Percentiles that are marked on the shares up to a value, and on the tail. */
const MARKED: [number[], number[]] = [[0.5, 0.9, 0.99], [0.9, 0.99, 0.999, 0.9999]];

/** Share of the values up to each: a bucket holds its values evenly. */
export function cumulative(one: Shares): { xs: number[]; ys: number[] } {
  const [xs, ys]: [number[], number[]] = [[], []];
  let below = 0;
  for (const [low, high, n] of one.buckets) {
    xs.push(Math.max(1, low));
    ys.push(below / one.count);
    below += n;
    xs.push(Math.max(1, high));
    ys.push(below / one.count);
  }
  return { xs, ys };
}

/** Where a share is reached. */
export function reached(curve: { xs: ArrayLike<number>; ys: ArrayLike<number> }, share: number): number {
  for (let at = 1; at < curve.xs.length; at++) {
    const [before, after] = [curve.ys[at - 1]!, curve.ys[at]!];
    if (after < share) continue;
    const part = after > before ? Math.max(0, share - before) / (after - before) : 0;
    return curve.xs[at - 1]! + part * (curve.xs[at]! - curve.xs[at - 1]!);
  }
  return curve.xs[curve.xs.length - 1] ?? 1;
}

/** The share of values below a place, which is less than that up to it where many are there. */
function below(curve: Curve, x: number): number {
  const { xs, ys } = curve;
  let at = 0;
  while (at < xs.length && xs[at]! < x) at++;
  if (at === xs.length) return 1;
  return xs[at] === x ? ys[at]! : valueAt(curve, x) ?? 0;
}

/** The share of B less that of A wherever either changes, in points; beyond its last value a share is whole. */
export function difference(a: Curve, b: Curve): { xs: number[]; ys: number[] } {
  const places = [...new Set([...Array.from(a.xs), ...Array.from(b.xs)])].sort((one, other) => one - other);
  const upTo = (curve: Curve, x: number): number => valueAt(curve, x) ?? (x < curve.xs[0]! ? 0 : 1);
  const [xs, ys]: [number[], number[]] = [[], []];
  for (const x of places) {
    xs.push(x, x);
    ys.push(below(b, x) - below(a, x), upTo(b, x) - upTo(a, x));
  }
  return { xs, ys };
}

export function distributions(of: CellFigures): void {
  const names = [...new Set(of.cell.histograms.map((one) => one.name))];
  for (const name of names) draw(of, name, of.cell.histograms.filter((one) => one.name === name));
}

function draw(of: CellFigures, name: string, all: Shares[]): void {
  const isTime = !name.includes("runs");
  const showX = isTime ? time : count;
  const trials = Math.max(...all.map((one) => one.trials));
  const marks = (curve: { xs: number[]; ys: number[] }, at: number, up: (share: number) => number, named: boolean): Mark[] =>
    MARKED[at]!.map((share) => ({ x: reached(curve, share), y: up(share), text: named ? `${Number((share * 100).toPrecision(6))} %` : "" }));
  const shares = all.map((one, nth): Curve => {
    const curve = cumulative(one);
    return { name: of.name(one.column), colour: one.column, ...curve, marks: marks(curve, 0, (share) => share, nth === 0) };
  });
  const tails = all.map((one, nth): Curve => {
    const curve = cumulative(one);
    const whole = curve.ys.map((share) => 1 - share);
    return {
      name: of.name(one.column), colour: one.column, xs: curve.xs, ys: whole.map((share) => (share < 0.5 / one.count ? 0 : share)),
      marks: marks(curve, 1, (share) => 1 - share, nth === 0).filter((mark) => mark.y * one.count >= 1),
    };
  });
  const first = shares[0]!;
  const apart = shares.slice(1).map((curve): Curve => ({ name: `${curve.name} less ${first.name}`, colour: curve.colour, ...difference(first, curve) }));
  const figure = new Figure("histogram", `Distribution: ${name}`,
    `Share of the values up to each ${isTime ? "time" : "length"}, over ${trials === 1 ? "one trial" : `${trials} trials`} of each variant: what lies farther left or higher is ${isTime ? "faster" : "shorter"}. ${
      apart.length > 0 ? "Below it how far the shares lie apart. " : ""}Right: the share that is larger, for the tail. Squares mark percentiles.`);
  of.to.append(figure.element);
  figure.body.classList.add("pair");
  const cross = new Crosshair();
  const axis = { x: isTime ? "time" : "length", unitX: isTime ? "nanos" as const : "count" as const, logX: true, columns: 1 };
  const box = (): HTMLDivElement => {
    const div = document.createElement("div");
    figure.body.append(div);
    return div;
  };
  const left = new Panels({
    ...axis, title: `${name}: share up to a ${axis.x}`,
    panels: [
      { title: "share up to", y: "share of values", unitY: "share", height: 200, curves: shares, fromY: 0, toY: 1 },
      ...(apart.length > 0 ? [{ title: "difference of shares", y: "difference", unitY: "share" as const, height: 84, curves: apart, zero: true }] : []),
    ],
  }, box(), cross);
  const right = new Panels({
    ...axis, title: `${name}: share that is larger`,
    panels: [{ title: "share that is larger", y: "share above", unitY: "share", height: apart.length > 0 ? 350 : 200, curves: tails, logY: true, toY: 1 }],
  }, box(), cross);
  for (const panels of [left, right]) panels.draw();
  of.all.push(left, right);
  figure.pictures(`histogram-${name}-${of.cell.place}`, [left, right].map((panels) => ({ svg: (width) => panels.svg(width) })));
  figure.exports(all.map((one): Export => ({ name: `histogram-${name}-${of.name(one.column)}`, head: ["low", "high", "count"], rows: () => one.buckets })));
  figure.table("Percentiles", ["variant", "values", "mean", "minimum", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "maximum"],
    all.map((one) => [of.name(one.column), count(one.count), showX(one.mean), showX(one.min), ...one.quantiles.map(showX), showX(one.max)]));
}
