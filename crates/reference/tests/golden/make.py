#!/usr/bin/env python3
"""Writes counts.txt and strings.txt beside this script.

A second, deliberately naive implementation of the patterns, written from their formulas and sharing nothing with the
crate: lists instead of trees, floats added one by one, Python's own mathematics. Where the two agree to the last
reference, neither a slip in a formula nor a platform's sine is left to doubt.

Run it from anywhere: python3 make.py
"""

import hashlib
import math
import pathlib

HERE = pathlib.Path(__file__).parent
MASK = (1 << 64) - 1
PI = 3.14159265358979  # as VM Regress wrote it

# -- random numbers: SplitMix64, FNV-1a, xoshiro256**, Lemire


def splitmix(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def rotl(x, k):
    return ((x << k) | (x >> (64 - k))) & MASK


class Rng:
    def __init__(self, seed, label):
        fnv = 0xCBF29CE484222325
        for byte in label.encode():
            fnv = ((fnv ^ byte) * 0x100000001B3) & MASK
        words = splitmix(next(splitmix(seed)) ^ fnv)
        self.s = [next(words) for _ in range(4)]

    def next(self):
        s = self.s
        result = rotl(s[1] * 5 & MASK, 7) * 9 & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return result

    def unit(self):
        return (self.next() >> 11) / 2.0**53

    def below(self, bound):
        """32 bits; every product whose low half is in the biased part is drawn again."""
        biased = 2**32 % bound
        while True:
            product = (self.next() >> 32) * bound
            if product % 2**32 >= biased:
                return product >> 32


# -- patterns


def smooth_sin_counts(pages, refs, as_written):
    step = 1
    while True:
        s = [step + step * math.sin(3 * PI * i / pages) for i in range(pages)]
        count = sum(math.floor(x) for x in s)
        if count > refs / 2:
            break
        step *= 2
    i = 0
    while count < refs:
        s[i % pages] += 1
        count += 1
        i += 1
    floors = [math.floor(x) for x in s]
    i = 0
    while count > refs and not as_written:
        if floors[i % pages] > 0:
            floors[i % pages] -= 1
            count -= 1
        i += 1
    return floors


def linear(pages, refs, seed):
    return [n % pages for n in range(refs)]


def looping(pages, refs, seed):
    start = Rng(seed, "loop").below(pages)
    return [(start + n) % pages for n in range(refs)]


def random(pages, refs, seed):
    rng = Rng(seed, "random")
    return [n if n < pages else rng.below(pages) for n in range(refs)]


def smooth_sin(pages, refs, seed, as_written=False):
    counts = smooth_sin_counts(pages, refs, as_written)
    return [page for page, count in enumerate(counts) for _ in range(count)]


def smooth_sin_random(pages, refs, seed, as_written=False):
    rng = Rng(seed, "smooth-sin-random")
    remaining = smooth_sin(pages, refs, seed, as_written)  # sorted, and stays so
    return [remaining.pop(rng.below(len(remaining))) for _ in range(len(remaining))]


def zipf05(pages, refs, seed):
    rng = Rng(seed, "zipf05")
    string = []
    while len(string) < refs:
        k = math.floor(pages * rng.unit() ** 2 + 0.5)
        if k != 0 and k <= pages:
            string.append(k - 1)
    return string


def lognormal(pages, refs, seed):
    rng = Rng(seed, "lognormal")
    mu = 8.0
    sigma = math.log(pages + math.exp(mu)) - mu + 1
    string = []
    while len(string) < refs:
        z = -6.0
        for _ in range(6):
            bits = rng.next()
            z += (bits >> 32) / 2**32 + (bits % 2**32) / 2**32
        page = math.floor(math.exp(mu + sigma * abs(z)) - math.exp(mu) + 0.5)
        if 1 <= page <= pages - 1:
            string.append(page)
    return string


def zipf(pages, refs, seed, exponent=1.0):
    rng = Rng(seed, "zipf")

    def over(function, x, series):
        return function(x) / x if abs(x) > 1e-8 else series(x)

    def integral(x):
        y = (1 - exponent) * math.log(x)
        return over(math.expm1, y, lambda y: 1 + y / 2 * (1 + y / 3 * (1 + y / 4))) * math.log(x)

    def inverse(y):
        t = max(-1.0, y * (1 - exponent))
        return math.exp(over(math.log1p, t, lambda t: 1 - t * (1 / 2 - t * (1 / 3 - t / 4))) * y)

    def weight(x):
        return math.exp(-exponent * math.log(x))

    first = integral(1.5) - 1
    last = integral(pages + 0.5)
    squeeze = 2 - inverse(integral(2.5) - weight(2.0))
    string = []
    while len(string) < refs:
        u = last + rng.unit() * (first - last)
        x = inverse(u)
        k = min(max(1, math.floor(x + 0.5)), pages)
        if k - x <= squeeze or u >= integral(k + 0.5) - weight(float(k)):
            string.append(k - 1)
    return string


def zipf_scatter(pages, refs, seed, exponent):
    rng = Rng(seed, "scatter")
    keys = [rng.next() >> 32 for _ in range(4)]
    half = (max(1, (pages - 1).bit_length()) + 1) // 2
    mask = (1 << half) - 1

    def mix(x):
        x = x * 0x9E3779B1 % 2**32
        x = (x ^ (x >> 15)) * 0x85EBCA6B % 2**32
        return x ^ (x >> 13)

    def place(value):
        while True:
            left, right = value >> half, value & mask
            for key in keys:
                left, right = right, left ^ (mix(right ^ key) & mask)
            value = left << half | right
            if value < pages:
                return value

    return [place(page) for page in zipf(pages, refs, seed, exponent)]


def hot_cold(pages, refs, seed, hot=0.1, share=0.9, move=10_000, by=0.1):
    rng = Rng(seed, "hot-cold")
    hot = min(max(1, math.floor(pages * hot + 0.5)), pages - 1)
    shift = max(1, math.floor(hot * by + 0.5))
    start = rng.below(pages)
    string = []
    for n in range(refs):
        moved = shift * (n // move) if move else 0
        if rng.next() >> 11 < share * 2**53:
            offset = rng.below(hot)
        else:
            offset = hot + rng.below(pages - hot)
        string.append((start + moved + offset) % pages)
    return string


def scan(pages, refs, seed, core=0.1, share=0.5):
    rng = Rng(seed, "scan-with-hot-core")
    core = min(max(1, math.floor(pages * core + 0.5)), pages - 1)
    position = Rng(seed, "loop").below(pages - core)
    string = []
    for _ in range(refs):
        if rng.next() >> 11 < share * 2**53:
            string.append(rng.below(core))
        else:
            string.append(core + position)
            position = (position + 1) % (pages - core)
    return string


PATTERNS = {
    "linear": linear,
    "random": random,
    "smooth-sin": smooth_sin,
    "smooth-sin(as-written)": lambda *a: smooth_sin(*a, as_written=True),
    "smooth-sin-random": smooth_sin_random,
    "smooth-sin-random(as-written)": lambda *a: smooth_sin_random(*a, as_written=True),
    "zipf05": zipf05,
    "zipf(1)": zipf,
    "zipf(0.99)": lambda *a: zipf(*a, 0.99),
    "zipf(0.5)": lambda *a: zipf(*a, 0.5),
    "zipf(1.5)": lambda *a: zipf(*a, 1.5),
    "zipf(0)": lambda *a: zipf(*a, 0.0),
    "zipf(1.1,scatter)": lambda *a: zipf_scatter(*a, 1.1),
    "lognormal": lognormal,
    "hot-cold": hot_cold,
    "hot-cold(hot=0.05,share=0.8,move=137,by=1)": lambda *a: hot_cold(*a, 0.05, 0.8, 137, 1),
    "hot-cold(hot=0.3,share=1,move=0,by=0.5)": lambda *a: hot_cold(*a, 0.3, 1, 0, 0.5),
    "scan-with-hot-core": scan,
    "scan-with-hot-core(core=0.3,share=0.7)": lambda *a: scan(*a, 0.3, 0.7),
    "loop": looping,
}

SIZES = [(1000, 20_000, 1), (1000, 20_000, 2), (4097, 15_000, 12_345_678_901_234_567_890)]

CURVES = [
    (25_000, 2_000_000),
    (50_000, 2_000_000),
    (1000, 77_000),
    (1000, 77_001),
    (1, 1),
    (1, 1000),
    (2, 7),
    (3, 100),
    (6, 6),
    (18, 1800),
    (999, 998),
    (1000, 10),
    (12_345, 678_901),
    (16_384, 200_000),
    (32_768, 65_536),
    (200_000, 1_000_000),
]


def digest(lines):
    """SHA-256 of the text form: one item a line."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def main():
    with open(HERE / "counts.txt", "w") as out:
        print("# as-written pages refs total sha256-of-counts-file; made by make.py", file=out)
        for pages, refs in CURVES:
            for as_written in (False, True):
                counts = smooth_sin_counts(pages, refs, as_written)
                sha = digest(f"{page} {count}" for page, count in enumerate(counts))
                print(str(as_written).lower(), pages, refs, sum(counts), sha, file=out)
    with open(HERE / "strings.txt", "w") as out:
        print("# pattern pages refs seed sha256-of-text-file; made by make.py", file=out)
        for name, make in PATTERNS.items():
            for pages, refs, seed in SIZES:
                print(name, pages, refs, seed, digest(make(pages, refs, seed)), file=out)


if __name__ == "__main__":
    main()
