#!/usr/bin/env python3
"""Compresses pages by zram in a guest and prints ratio and instructions for each file and compressor.

guest.py KERNEL FILE...: KERNEL is a folder of the cache of kernels (`pagetide list kernels` names its digest) with
`image` and `modules`; each file holds whole pages. Needs gcc, xz, zstd and qemu-system-x86_64. The guest runs as those
of trials do: an instruction takes a nanosecond, so the times are exact and the same on every machine.
"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ["lz4", "lzo", "lzo_rle", "zstd", "zram"]


def module_files(folder):
    for place, _, names in os.walk(folder):
        for name in names:
            if ".ko" in name:
                yield name.split(".ko")[0].replace("-", "_"), os.path.join(place, name)


def unpacked(path):
    tool = {".xz": ["xz", "-dc"], ".zst": ["zstd", "-dc"]}.get(os.path.splitext(path)[1], ["cat"])
    return subprocess.run([*tool, path], stdout=subprocess.PIPE, check=True).stdout


def in_order(folder):
    """Names and bytes of the modules, each after those that it depends on."""
    known, done = dict(module_files(folder)), {}

    def add(name):
        if name in done or name not in known:
            return
        data = unpacked(known[name])
        at = data.find(b"\0depends=")
        needs = data[at + 9 : data.index(b"\0", at + 9)].decode() if at >= 0 else ""
        for need in filter(None, needs.replace("-", "_").split(",")):
            add(need)
        done[name] = data

    for name in MODULES:
        add(name)
    return done


def initrd(files):
    """A cpio archive in the form that kernels read (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    out = bytearray()
    for name, data in [*files.items(), ("TRAILER!!!", b"")]:
        word = name.encode() + b"\0"
        numbers = (0, 0o100755, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(word), 0)
        out += b"070701" + b"".join(b"%08x" % number for number in numbers) + word
        out += b"\0" * (-len(out) % 4) + data
        out += b"\0" * (-len(out) % 4)
    return out


def measure(kernel, pages):
    """For each compressor the size, write time and read time of each page."""
    with tempfile.TemporaryDirectory() as work:
        program, archive, result = (os.path.join(work, name) for name in ("init", "initrd", "result"))
        subprocess.run(["gcc", "-O2", "-static", "-o", program, f"{HERE}/zram.c"], check=True)
        modules = in_order(os.path.join(kernel, "modules"))
        files = {f"{name}.ko": data for name, data in modules.items()}
        files["order"] = "".join(f"/{name}.ko\n" for name in modules).encode()
        files["init"] = open(program, "rb").read()
        with open(archive, "wb") as out:
            out.write(initrd({**files, "pages": pages}))
        memory = 500 + 4 * (len(pages) >> 20)
        subprocess.run(
            ["qemu-system-x86_64", "-M", "q35", "-accel", "tcg", "-cpu", "max,-erms,-fsrm", "-smp", "1"]
            + ["-icount", "shift=0,sleep=off", "-seed", "42", "-rtc", "base=2026-01-01,clock=vm", "-m", f"{memory}M"]
            + ["-display", "none", "-serial", "none", "-nodefaults", "-no-user-config", "-no-reboot"]
            + ["-chardev", f"file,id=c,path={result}", "-device", "isa-debugcon,iobase=0x402,chardev=c"]
            + ["-kernel", os.path.join(kernel, "image"), "-initrd", archive]
            + ["-append", "quiet panic=-1 nokaslr norandmaps tsc=reliable"],
            check=True,
        )
        found, rows = {}, None
        for line in open(result, errors="replace"):
            words = line.split()
            if len(words) == 1 and words[0] in ("lz4", "lzo-rle", "zstd"):
                rows = found[words[0]] = []
            elif rows is not None and len(words) == 3 and all(word.isdigit() for word in words):
                rows.append(tuple(map(int, words)))
            elif words[:1] == ["cannot"] or words[-1:] == ["differs"]:
                sys.exit(line)
        return found


def main(kernel, *paths):
    data = [open(path, "rb").read() for path in paths]
    found = measure(kernel, b"".join(data))
    print("| file | compressor | compressed / original | write | read |\n|---|---|---|---|---|")
    first = 0
    for path, pages in zip(paths, data):
        count = len(pages) // 4096
        for name, rows in found.items():
            size, write, read = (sum(column) / count for column in zip(*rows[first : first + count]))
            print(f"| {os.path.basename(path)} | {name} | {size / 4096:.3f} | {write:.0f} | {read:.0f} |")
        first += count


main(*sys.argv[1:])
