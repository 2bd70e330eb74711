"""Evenly chosen pages of files, as a program holds them that has read them: files.py text|compressed FILE [PAGES]."""

import glob
import gzip
import os
import sys

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "..", "..")
TEXT = [
    "/usr/share/doc/*/copyright", f"{SOURCES}/**/*.md", f"{SOURCES}/crates/**/*.rs", "/usr/include/**/*.h",
    "/usr/share/perl/*/**/*.pod", "/var/log/*.log", "/usr/share/doc/*/changelog*.gz",
]  # fmt: skip
COMPRESSED = [
    "/usr/share/doc/**/*.gz", "/usr/share/**/*.png", "/usr/share/man/**/*.gz",
    os.path.expanduser("~/.cargo/registry/cache/*/*.crate"), "/var/cache/apt/archives/*.deb",
]  # fmt: skip


def text():
    for pattern in TEXT:
        taken = 0
        for path in sorted(glob.glob(pattern, recursive=True)):
            data = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
            yield data
            taken += len(data)
            if taken > 4 << 20:
                break


def compressed():
    for pattern in COMPRESSED:
        for path in sorted(glob.glob(pattern, recursive=True)):
            if os.path.getsize(path) > 40000:
                yield open(path, "rb").read(1 << 20)


def main(kind, path, most=2048):
    data = b"".join({"text": text, "compressed": compressed}[kind]())
    count = len(data) >> 12
    with open(path, "wb") as out:
        for i in range(most):
            at = i * count // most << 12
            out.write(data[at : at + 4096])


main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
