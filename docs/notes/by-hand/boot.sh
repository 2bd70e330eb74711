#!/bin/sh
# Boots a kernel of pagetide's cache on a machine without pagetide, and prints what the first process (init.c) says.
#
# boot.sh FOLDER MACHINE ARGUMENT…
#   FOLDER    the kernel's folder below kernels/ in the cache: it has `image` and `modules`
#   MACHINE   size of the machine in MiB; with 86, 16 MiB are free on 7.2.13
#   ARGUMENT  boot arguments, such as `h_swapbench h_mem=16 h_seed=1`
set -e
here=$(cd "$(dirname "$0")" && pwd)
kernel=$(realpath "$1") machine=$2
shift 2
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cd "$work"
mkdir proc sys dev
cc -O2 -static -o init "$here/init.c"
found=$(find "$kernel/modules" -name 'virtio_blk.ko*')
case $found in
    *.xz) xz -dc "$found" > virtio_blk.ko ;;
    *) cp "$found" virtio_blk.ko ;;
esac
# An archive in the format newc, as cpio writes it; not every machine has cpio.
python3 - proc sys dev init virtio_blk.ko > initrd <<'END'
import os, sys
def entry(number, name, mode, data=b""):
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)
for number, name in enumerate(sys.argv[1:], 1):
    data = b"" if os.path.isdir(name) else open(name, "rb").read()
    sys.stdout.buffer.write(entry(number, name, os.stat(name).st_mode, data))
sys.stdout.buffer.write(entry(0, "TRAILER!!!", 0))
END
dd if=/dev/zero of=disk bs=1M count=48 2> /dev/null
mkswap disk > /dev/null 2>&1
timeout 120 qemu-system-x86_64 -M pc-q35-7.2 -cpu max,-erms,-fsrm -m "${machine}M" -icount shift=0,sleep=off \
    -display none -nodefaults -no-reboot -serial stdio -kernel "$kernel/image" -initrd initrd \
    -drive file=disk,if=none,id=swap,format=raw -device virtio-blk-pci,drive=swap \
    -append "console=ttyS0 loglevel=4 panic=-1 nokaslr norandmaps mitigations=off rootfstype=ramfs swiotlb=noforce \
        cryptomgr.notests random.trust_cpu=on tsc=reliable zswap.enabled=1 zswap.compressor=lz4 $*" < /dev/null
