#!/usr/bin/env python3
"""Makes the golden files from scipy, statsmodels and definitions written out in plain Python.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install numpy scipy statsmodels
    /tmp/venv/bin/python make.py        # writes scipy.json beside this script

What R says stands in r.json, made by make.R. Inputs are drawn here with a fixed seed and stored with the answers.
"""

import itertools
import json
import math
import pathlib
from fractions import Fraction

import numpy
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests

random = numpy.random.default_rng(20261120)
EVERYTHING = stats.PermutationMethod(n_resamples=numpy.inf)


def untied(n):
    return [float(x) for x in random.normal(0.3, 1.0, n)]


def tied(n, spread=3):
    return [float(x) for x in random.integers(-spread, spread + 2, n)]


def enumerated_signed_rank(d, zeros):
    """Exact conditional p-value over all signs, with whole numbers: twice the smaller tail of the positive rank sum."""
    d = numpy.array(d)
    if zeros == "drop":
        d = d[d != 0]
    ranks = [int(round(2 * r)) for r in stats.rankdata(abs(d))] if len(d) else []
    pairs = [(r, x > 0) for r, x in zip(ranks, d) if x != 0]
    ways = {0: 1}
    for r, _ in pairs:
        new = dict(ways)
        for total, count in ways.items():
            new[total + r] = new.get(total + r, 0) + count
        ways = new
    observed = sum(r for r, up in pairs if up)
    below = sum(count for total, count in ways.items() if total <= observed)
    above = sum(count for total, count in ways.items() if total >= observed)
    return float(min(Fraction(1), Fraction(2 * min(below, above), 2 ** len(pairs))))


def signed_rank():
    cases = []

    def add(d, zeros, p, source):
        cases.append(dict(d=list(d), zeros=zeros, p=float(p), source=source))

    scipy_name = dict(pratt="pratt", drop="wilcox")
    for n in range(1, 51):
        for scale in (1.0, 1e-300, 1e300) if n % 10 == 7 else (1.0,):
            d = [x * scale for x in untied(n)]
            add(d, "pratt", stats.wilcoxon(d, method="exact").pvalue, "scipy exact")
        d = tied(n)
        for zeros in ("pratt", "drop"):
            add(d, zeros, enumerated_signed_rank(d, zeros), "whole numbers")
            if n <= 13 and any(x != 0 for x in d):
                p = stats.wilcoxon(d, zero_method=scipy_name[zeros], method=EVERYTHING).pvalue
                add(d, zeros, p, "scipy, all permutations")
        add([2.5] * n, "pratt", min(1.0, 2.0 ** (1 - n)), "all equal: one pattern of 2^n each way")
        add([0.0] * n, "pratt", 1.0, "all zero: nothing to reject")
    for n in (51, 60, 100, 1000):
        for make in (untied, tied):
            d = make(n)
            for zeros in ("pratt", "drop"):
                if zeros == "drop" and sum(x != 0 for x in d) <= 50:
                    continue
                p = stats.wilcoxon(d, zero_method=scipy_name[zeros], method="asymptotic", correction=True).pvalue
                add(d, zeros, p, "scipy asymptotic, continuity correction")
    return cases


def rank_sum():
    cases = []

    def add(a, b, p, source):
        cases.append(dict(a=list(a), b=list(b), p=float(p), source=source))

    for n, m in [(1, 1), (1, 5), (2, 2), (3, 7), (4, 4), (8, 8), (5, 20), (13, 11), (20, 20), (30, 30), (10, 50), (1, 50)]:
        for scale in (1.0, 1e-300, 1e300):
            a = [x * scale for x in untied(n)]
            b = [x * scale for x in untied(m)]
            add(a, b, stats.mannwhitneyu(b, a, method="exact").pvalue, "scipy exact")
    for n, m in [(2, 2), (2, 3), (4, 4), (6, 5), (7, 7), (3, 12), (8, 7)]:
        a, b = tied(n), tied(m)
        add(a, b, stats.mannwhitneyu(b, a, method=EVERYTHING).pvalue, "scipy, all permutations")
    for n, m in [(31, 30), (50, 50), (5, 100), (200, 300)]:
        for make in (untied, tied):
            a, b = make(n), make(m)
            p = stats.mannwhitneyu(b, a, method="asymptotic", use_continuity=True).pvalue
            add(a, b, p, "scipy asymptotic, continuity correction")
    add([4.0] * 6, [4.0] * 9, 1.0, "all equal")
    return cases


def sign_flip():
    cases = []
    for n in range(1, 17):
        for d in (untied(n), tied(n), [x * 1e-290 for x in untied(n)], [1.5] * n):
            if n == 1:
                p = 1.0
            else:
                scale = max(abs(x) for x in d) or 1.0
                p = stats.permutation_test(
                    ([x / scale for x in d],),
                    lambda x, axis: numpy.sum(x, axis=axis),
                    permutation_type="samples",
                    vectorized=True,
                    n_resamples=numpy.inf,
                ).pvalue
            cases.append(dict(d=d, p=float(p)))
    return cases


def inverted(points, accepted):
    """Ends of the set of shifts that a test does not reject, tried between all neighbouring `points`."""
    points = sorted(set(points))
    middles = [points[0] - 1] + [(x + y) / 2 for x, y in zip(points, points[1:])] + [points[-1] + 1]
    kept = [i for i, theta in enumerate(middles) if accepted(theta)]
    low = points[kept[0] - 1] if kept[0] > 0 else -math.inf
    high = points[kept[-1]] if kept[-1] < len(points) else math.inf
    return low, high


def paired_estimates():
    """Median of Walsh averages, and the interval found by asking scipy's exact test about every shift."""
    cases = []
    for n in list(range(6, 17)) + [20, 25]:
        d = untied(n)
        walsh = [(x + y) / 2 for x, y in itertools.combinations_with_replacement(d, 2)]
        for level in (0.9, 0.95, 0.99):
            accepted = lambda theta: (
                stats.wilcoxon([x - theta for x in d], method="exact").pvalue > (1 - level) * (1 + 1e-12)
            )
            low, high = inverted(walsh, accepted)
            if math.isinf(low) or math.isinf(high):
                continue
            cases.append(dict(d=d, level=level, value=float(numpy.median(walsh)), low=low, high=high))
    return cases


def unpaired_estimates():
    cases = []
    for n, m in [(4, 5), (5, 5), (6, 8), (9, 7), (12, 12)]:
        a, b = untied(n), untied(m)
        shifts = [y - x for x in a for y in b]
        for level in (0.9, 0.95):
            accepted = lambda theta: (
                stats.mannwhitneyu([y - theta for y in b], a, method="exact").pvalue > (1 - level) * (1 + 1e-12)
            )
            low, high = inverted(shifts, accepted)
            if math.isinf(low) or math.isinf(high):
                continue
            cases.append(dict(a=a, b=b, level=level, value=float(numpy.median(shifts)), low=low, high=high))
    return cases


def wilson():
    cases = []
    for n in (1, 2, 7, 30, 50, 1000, 10**6):
        for k in sorted({0, 1, n // 3, n - 1, n}):
            for level in (0.9, 0.95, 0.99):
                ci = stats.binomtest(k, n).proportion_ci(level, method="wilson")
                cases.append(dict(successes=k, attempts=n, level=level, low=ci.low, high=ci.high))
    return cases


def fisher():
    tables = [(8, 10, 2, 10), (3, 7, 4, 7), (0, 5, 5, 5), (9, 30, 21, 31), (0, 3, 0, 9), (100, 1000, 140, 1000), (1, 1, 0, 1), (50000, 100000, 50500, 100000)]
    return [
        dict(a=[a, n], b=[b, m], p=float(stats.fisher_exact([[a, n - a], [b, m - b]]).pvalue)) for a, n, b, m in tables
    ]


def adjustments():
    cases = []
    for n in (1, 2, 5, 20):
        p = [float(x) for x in random.uniform(0, 1, n) ** 3]
        if n == 20:
            p[3] = p[7]
        cases.append(
            dict(
                p=p,
                holm=[float(x) for x in multipletests(p, method="holm")[1]],
                bh=[float(x) for x in stats.false_discovery_control(p, method="bh")],
            )
        )
    return cases


def distributions():
    levels = [1e-300, 1e-100, 1e-17, 1e-10, 1e-6, 0.001, 0.02425, 0.025, 0.3, 0.5, 0.7, 0.975, 0.9999, 1 - 1e-12]
    return dict(
        quantile=[dict(p=p, z=float(stats.norm.ppf(p))) for p in levels],
        cdf=[dict(z=z, p=float(stats.norm.cdf(z))) for z in (-37.0, -20.0, -8.0, -3.0, -1.0, -0.1, 0.0, 0.5, 2.0, 6.0)],
        student=[
            dict(p=p, freedom=f, t=float(stats.t.ppf(p, f)))
            for p in (1e-6, 0.005, 0.025, 0.2, 0.5, 0.9, 0.975, 0.9999)
            for f in (1, 2, 3, 7, 29, 100, 1000)
        ],
    )


def outliers():
    cases = []
    for values in (untied(9), tied(12), untied(8) + [40.0], [x * 1e300 for x in (1.0, 1.1, 0.9, 1.05, -0.7)]):
        scale = max(abs(x) for x in values)
        x = numpy.array(values) / scale
        mad = stats.median_abs_deviation(x, scale=1.0)
        if mad == 0:
            continue
        cases.append(dict(values=values, scores=[float(s) for s in 0.6745 * (x - numpy.median(x)) / mad]))
    return cases


def quantiles():
    cases = []
    for n in (1, 2, 10, 99, 100, 1000):
        values = [float(x) for x in numpy.round(random.lognormal(3, 1, n), 1)]
        for q in (0.5, 0.9, 0.99, 0.999, 0.9999):
            cases.append(dict(values=values, q=q, value=float(numpy.quantile(values, q, method="inverted_cdf"))))
    return cases


def energy(x, y):
    """Matteson and James (2014), equations 5 and 6 with alpha = 1: the scaled sample divergence of two segments."""
    n, m = len(x), len(y)
    between = sum(abs(a - b) for a in x for b in y) * 2 / (n * m)
    inside = lambda v: sum(abs(a - b) for a, b in itertools.combinations(v, 2)) / math.comb(len(v), 2)
    return n * m / (n + m) * (between - inside(x) - inside(y))


def change_points():
    cases = []
    for n, at, shift in [(12, 6, 3.0), (30, 11, 2.0), (40, 33, 4.0), (25, 12, 0.0)]:
        values = [float(x) + (shift if i >= at else 0.0) for i, x in enumerate(random.normal(0, 1, n))]
        scores = [(energy(values[:k], values[k:]), k) for k in range(3, n - 2)]
        best, where = max(scores)
        cases.append(dict(values=values, least=3, at=where, statistic=best))
    return cases


def components():
    """One-way analysis of variance: mean squares by scipy's F, written out."""
    cases = []
    for sizes in ([3, 3, 3, 3], [2, 5, 4]):
        units = [[float(x) for x in random.normal(random.normal(0, 2), 1, k)] for k in sizes]
        n, g = sum(sizes), len(sizes)
        within = sum(sum((x - numpy.mean(u)) ** 2 for x in u) for u in units) / (n - g)
        f = stats.f_oneway(*units).statistic
        k0 = (n - sum(k * k for k in sizes) / n) / (g - 1)
        cases.append(dict(units=units, within=float(within), between=float(max(0.0, (f - 1) * within / k0))))
    return cases


golden = dict(
    made_by=f"make.py with scipy {scipy.__version__}, numpy {numpy.__version__}, statsmodels {statsmodels.__version__}",
    signed_rank=signed_rank(),
    rank_sum=rank_sum(),
    sign_flip=sign_flip(),
    paired_estimates=paired_estimates(),
    unpaired_estimates=unpaired_estimates(),
    wilson=wilson(),
    fisher=fisher(),
    adjustments=adjustments(),
    distributions=distributions(),
    outliers=outliers(),
    quantiles=quantiles(),
    change_points=change_points(),
    components=components(),
)
path = pathlib.Path(__file__).with_name("scipy.json")
lines = []
for key, value in golden.items():
    if isinstance(value, list):
        body = ",\n".join("  " + json.dumps(case) for case in value)
        lines.append(f'"{key}": [\n{body}\n]')
    else:
        lines.append(f'"{key}": {json.dumps(value)}')
path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
