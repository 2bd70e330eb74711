#!/usr/bin/env python3
"""Writes evenly chosen pages of a process's anonymous memory to a file: dump.py PID FILE [PAGES]. Needs root."""

import re
import struct
import sys


def addresses(pid):
    """Addresses of the pages that are in memory and neither shared nor of a file."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/pagemap", "rb") as pagemap:
        for line in maps:
            start, end, access = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            start, end = int(start, 16) >> 12, int(end, 16) >> 12
            if access[0] != "r" or access[3] == "s" or "[v" in line or start >> 40:
                continue
            pagemap.seek(start * 8)
            entries = struct.iter_unpack("<Q", pagemap.read((end - start) * 8))
            for at, (entry,) in enumerate(entries):
                # Bit 63: present. Bit 61: page of a file, or shared. Source: Documentation/admin-guide/mm/pagemap.rst.
                if entry >> 63 and not entry >> 61 & 1:
                    yield (start + at) << 12


def main(pid, path, most=2048):
    found = list(addresses(pid))
    chosen = [found[i * len(found) // most] for i in range(most)] if len(found) > most else found
    with open(f"/proc/{pid}/mem", "rb", 0) as memory, open(path, "wb") as out:
        for address in chosen:
            memory.seek(address)
            out.write(memory.read(4096))
    print(f"{path}: {len(chosen)} of {len(found)} pages")


main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
