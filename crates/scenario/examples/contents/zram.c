/* PID 1 of a guest: writes each page of /pages to zram with each compressor and reads it back (see guest.py).
 *
 * For each compressor it prints a line with the compressor's name, then a line for each page: compressed size,
 * instructions of writing the page, and instructions of reading it. An instruction is a nanosecond of virtual time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void print(const char *format, ...)
{
	char text[512];
	va_list values;
	va_start(values, format);
	int length = vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	for (int i = 0; i < length; i++)
		outb(text[i], 0x402);
}

static long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void load(const char *path)
{
	int file = open(path, O_RDONLY);
	if (syscall(SYS_finit_module, file, "", 0))
		print("cannot load %s\n", path);
	close(file);
}

/* Writes a text to an attribute file of the zram device. Returns 1 if the kernel accepted it, otherwise 0. */
static int put(const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "/sys/block/zram0/%s", name);
	int file = open(path, O_WRONLY);
	int taken = file >= 0 && write(file, text, strlen(text)) >= 0;
	close(file);
	return taken;
}

/* Total compressed size in bytes: compr_data_size in Documentation/admin-guide/blockdev/zram.rst. */
static long compressed(void)
{
	char text[256] = {0};
	long size = 0;
	int file = open("/sys/block/zram0/mm_stat", O_RDONLY);
	if (read(file, text, sizeof(text) - 1) > 0)
		sscanf(text, "%*d %ld", &size);
	close(file);
	return size;
}

int main(void)
{
	/* The first round is not printed: the kernel uses memory for the first time in it, which costs more. */
	static const char *const names[] = {"lz4", "lz4", "lzo-rle", "zstd"};
	char line[256], size[32];
	struct stat stat;
	iopl(3);
	mkdir("/proc", 0755), mkdir("/sys", 0755), mkdir("/dev", 0755);
	mount("p", "/proc", "proc", 0, 0), mount("s", "/sys", "sysfs", 0, 0), mount("d", "/dev", "devtmpfs", 0, 0);
	FILE *order = fopen("/order", "r");
	while (order && fgets(line, sizeof(line), order)) {
		line[strcspn(line, "\n")] = 0;
		load(line);
	}
	int file = open("/pages", O_RDONLY);
	fstat(file, &stat);
	long count = stat.st_size / PAGE;
	char *pages = mmap(0, stat.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
	char *page = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	long(*found)[3] = calloc(count, sizeof(*found));
	snprintf(size, sizeof(size), "%ld", (count + 1) * PAGE);
	for (int which = 0; which < 4; which++) {
		put("reset", "1");
		if (!put("comp_algorithm", names[which]) || !put("disksize", size))
			continue;
		int device = open("/dev/zram0", O_RDWR | O_DIRECT);
		long before = compressed();
		for (long i = 0; i < count; i++) {
			memcpy(page, pages + i * PAGE, PAGE);
			long start = now();
			if (pwrite(device, page, PAGE, i * PAGE) != PAGE)
				print("cannot write page %ld\n", i);
			found[i][1] = now() - start;
			long after = compressed();
			found[i][0] = after - before;
			before = after;
		}
		for (long i = 0; i < count; i++) {
			long start = now();
			if (pread(device, page, PAGE, i * PAGE) != PAGE)
				print("cannot read page %ld\n", i);
			found[i][2] = now() - start;
			if (memcmp(page, pages + i * PAGE, PAGE))
				print("page %ld differs\n", i);
		}
		close(device);
		if (which == 0)
			continue;
		print("%s\n", names[which]);
		for (long i = 0; i < count; i++)
			print("%ld %ld %ld\n", found[i][0], found[i][1], found[i][2]);
	}
	reboot(RB_POWER_OFF);
}
