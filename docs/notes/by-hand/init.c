// The first process of a machine without pagetide: swap on a virtio disk behind zswap, and the steps of `swapbench` or
// `hot-cold` with their default parameters. See ../memory-size.md; boot.sh beside this file builds and boots it.
//
// Boot arguments: h_mem=MIB (the memory that sizes are a share of), h_seed=N, h_swapbench (otherwise hot-cold),
// h_noboost (watermarks are never boosted). An argument that is not there is zero.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PROCESSES = 4 };

static char arguments[4096];
static uint64_t state = 88172645463325252;

// Value of a boot argument, or 0.
static long argument(const char *name) {
    char *found = strstr(arguments, name);
    return found ? atol(found + strlen(name)) : 0;
}

// Prints the lines of a file that contain `part`.
static void show(const char *path, const char *part) {
    char line[512];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, part)) fputs(line, stdout);
    if (file) fclose(file);
}

static void set(const char *path, const char *value) {
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, value, strlen(value)) < 0) printf("cannot set %s\n", path);
    close(file);
}

// Free pages of all zones, including those on per-CPU lists.
static long free_pages(void) {
    char line[512], *at;
    long all = 0, count;
    set("/proc/sys/vm/stat_refresh", "1");
    FILE *file = fopen("/proc/zoneinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, " nr_free_pages %ld", &count) == 1) all += count;
        if ((at = strstr(line, "count:")) && sscanf(at, "count: %ld", &count) == 1) all += count;
    }
    if (file) fclose(file);
    return all;
}

// xorshift64
static uint64_t number(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

// Fills a page that compresses to 0.35 of its size: random words, then zeros.
static void fill(char *page) {
    uint64_t *words = (uint64_t *)page;
    for (int i = 0; i < 512; i++) words[i] = i < 512 * 35 / 100 ? number() : 0;
}

static char *map(long size) {
    char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, size, MADV_NOHUGEPAGE);
    return memory;
}

// A parent locks 0.4 of the memory; four processes write, wait for each other, and read 1.1 of it together.
static int swapbench(long memory) {
    long locked = memory * 4 / 10 / PAGE * PAGE, size = memory * 11 / 10 / PROCESSES / PAGE * PAGE;
    int arrived[2], write_gate[2], read_gate[2], died = 0, status;
    char *own = map(locked), token;
    madvise(own, locked, MADV_DONTFORK);
    for (long at = 0; at < locked; at += PAGE) fill(own + at);
    if (mlock(own, locked)) puts("cannot lock");
    if (pipe(arrived) || pipe(write_gate) || pipe(read_gate)) puts("no pipe");
    for (int process = 0; process < PROCESSES; process++) {
        if (fork()) continue;
        state += process * 77777;
        char *pages = map(size);
        if (write(arrived[1], "x", 1) + read(write_gate[0], &token, 1) != 2) _exit(1);
        for (long at = 0; at < size; at += PAGE) fill(pages + at);
        if (write(arrived[1], "x", 1) + read(read_gate[0], &token, 1) != 2) _exit(1);
        for (long at = 0; at < size; at += PAGE) (void)*(volatile char *)(pages + at);
        _exit(0);
    }
    int written = 0;
    for (int i = 0; i < PROCESSES; i++) written += read(arrived[0], &token, 1);
    written = write(write_gate[1], "xxxx", PROCESSES) - PROCESSES;
    close(arrived[1]);
    for (int i = 0; i < PROCESSES; i++) written += read(arrived[0], &token, 1);
    printf("processes that wrote all: %d\n", written);
    if (write(read_gate[1], "xxxx", PROCESSES) != PROCESSES) return 1;
    while (wait(&status) > 0) died += status != 0;
    return died;
}

// Fills twice the memory. Then nine of ten references read a fifth of the pages, which moves.
static int hot_cold(long memory) {
    long pages = 2 * memory / PAGE, hot = pages / 5, start = 0;
    char *own = map(pages * PAGE);
    for (long page = 0; page < pages; page++) fill(own + page * PAGE);
    for (long i = 0; i < 8 * pages; i++) {
        if (i % 10000 == 9999) start += hot / 10;
        int is_hot = (number() >> 11) % 10 < 9;
        long page = is_hot ? (number() >> 11) % hot : hot + (number() >> 11) % (pages - hot);
        (void)*(volatile char *)(own + (page + start) % pages * PAGE);
    }
    return 0;
}

int main(void) {
    int status, file;
    mount("proc", "/proc", "proc", 0, 0);
    mount("sysfs", "/sys", "sysfs", 0, 0);
    mount("devtmpfs", "/dev", "devtmpfs", 0, 0);
    file = open("/dev/ttyS0", O_RDWR);
    dup2(file, 1);
    setvbuf(stdout, 0, _IOLBF, 0);
    file = open("/proc/cmdline", O_RDONLY);
    if (read(file, arguments, sizeof arguments - 1) < 0) puts("no arguments");
    close(file);
    file = open("/virtio_blk.ko", O_RDONLY);
    if (syscall(SYS_finit_module, file, "", 0)) puts("no driver of the disk");
    close(file);
    unlink("/virtio_blk.ko");
    for (int i = 0; i < 200 && access("/dev/vda", F_OK); i++) usleep(10000);
    if (swapon("/dev/vda", 0)) puts("no swap");
    mlockall(MCL_CURRENT);
    set("/proc/sys/vm/overcommit_memory", "1");
    if (strstr(arguments, "h_noboost")) set("/proc/sys/vm/watermark_boost_factor", "0");
    state += argument("h_seed=") * 1234567891;
    sleep(1);
    set("/proc/sys/vm/drop_caches", "3");
    show("/proc/meminfo", "MemTotal");
    printf("free at the start: %.2f MiB\n", free_pages() / 256.0);
    show("/proc/zoneinfo", "pages free");
    if (!fork()) {
        long memory = argument("h_mem=") << 20;
        _exit(strstr(arguments, "h_swapbench") ? swapbench(memory) : hot_cold(memory));
    }
    wait(&status);
    printf("ended with status %d\n", status);
    for (const char **name = (const char *[]){"zswpout", "zswpwb", "pswpout", "oom_kill ", 0}; *name; name++)
        show("/proc/vmstat", *name);
    show("/proc/zoneinfo", "boost");
    fflush(stdout);
    reboot(RB_POWER_OFF);
}
