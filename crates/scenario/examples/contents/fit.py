#!/usr/bin/env python3
"""Fits a mixture of shapes to measured pages: fit.py REAL GRID SHAPES.

REAL and GRID are outputs of sizes.c for real pages and for those of `contents grid SHAPES`. Real pages that are all
zeros, and those that no compressor makes smaller, are classes of their own. The others are sorted by size and divided
into eight classes of equal number. Each gets the shape whose pages are nearest in the size with each compressor and in
the number of lz4's sequences (on which the time depends); among near ones, those with which the whole mixture has the
real sizes.
"""

import math
import sys

CLASSES = 8
PAGES_OF_SHAPE = 12
# Weights of the three sizes and of the number of sequences, and the number added to each before logarithms are taken.
WEIGHTS = (1, 1, 1, 0.2)
OFFSETS = (40, 40, 40, 20)


def load(path):
    return [tuple(map(int, line.split())) for line in open(path)]


def mean(rows):
    return [sum(column) / len(rows) for column in zip(*rows)]


def distance(a, b):
    logs = (math.log((x + offset) / (y + offset)) for x, y, offset in zip(a, b, OFFSETS))
    return sum(weight * log**2 for weight, log in zip(WEIGHTS, logs))


def fit(pages, shapes):
    zeros = [page for page in pages if page[:3] == (0, 0, 0)]
    hard = [page for page in pages if page[:3] == (4096,) * 3]
    rest = sorted((page for page in pages if page[:3] not in ((0, 0, 0), (4096,) * 3)), key=sum)
    count = CLASSES if len(rest) > 100 else min(len(rest), 1)
    classes = [rest[i * len(rest) // count : (i + 1) * len(rest) // count] for i in range(count)]
    targets = [mean(of_class) for of_class in classes]
    near = [sorted(shapes, key=lambda shape: distance(target, shapes[shape]))[:60] for target in targets]
    chosen = [shapes_near[0] for shapes_near in near]
    whole = [sum(column) for column in zip(*pages)]
    base = [sum(page[i] for page in zeros + hard) for i in range(4)]

    def sums(choice):
        made = [[len(pages) * size for size in shapes[shape]] for pages, shape in zip(classes, choice)]
        return [start + sum(row[i] for row in made) for i, start in enumerate(base)]

    def score(choice):
        total = sum(w * (found / real - 1) ** 2 for w, found, real in zip(WEIGHTS, sums(choice), whole))
        each = sum(len(p) * distance(t, shapes[s]) for p, t, s in zip(classes, targets, choice))
        return 100 * total + each / max(len(rest), 1)

    for _ in range(3):
        for i in range(count):
            chosen[i] = min(near[i], key=lambda shape: score([*chosen[:i], shape, *chosen[i + 1 :]]))
    return zeros, hard, list(zip(classes, chosen)), whole, sums(chosen)


def main(real, grid, shapes):
    pages, rows = load(real), load(grid)
    names = [tuple(map(int, line.split())) for line in open(shapes)]
    made = {name: mean(rows[i * PAGES_OF_SHAPE : (i + 1) * PAGES_OF_SHAPE]) for i, name in enumerate(names)}
    zeros, hard, classes, whole, found = fit(pages, made)
    print("real, of 1,000 pages:", *(f"{total / len(pages) / 4.096:.0f}" for total in whole[:3]))
    print("fitted, relative to it:", *(f"{100 * (a / b - 1):+.1f} %" for a, b in zip(found, whole)))
    print(f"zeros {1000 * len(zeros) / len(pages):.0f}, random {1000 * len(hard) / len(pages):.0f}")
    for of_class, shape in classes:
        print(f"class({1000 * len(of_class) / len(pages):.1f}, {', '.join(map(str, shape))})")


main(*sys.argv[1:])
