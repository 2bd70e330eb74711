#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

@DEFINES@

/* Not every machine's headers have these. */
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define UNUSED __attribute__((unused))
#define PAGE 4096UL
#define SUB 16
#define BUCKETS (SUB * 44)
#define POOL 4096

/* What all processes share. */
struct slot {
	pid_t pid;
	int process;
	int number;
	int killed;
	int ended;
	uint64_t passed;
};

struct board {
	uint32_t ready, open;
	uint32_t left[MARKS];
	uint64_t start, latency[BUCKETS], accesses, sum, longest;
	uint64_t minor, major, killed, forking, asked, taken;
	uint32_t forks;
	pid_t forked[FORKED];
	struct slot slots[PROCESSES];
};

static struct board *board;
static struct slot *self;
static const char *folder = ".";
static const char *groups = "/sys/fs/cgroup";
static int use_groups = 1;
static uint64_t random_state = 1;
static uint64_t pool[POOL];

UNUSED static void die(const char *what)
{
	fprintf(stderr, "case: cannot %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000UL + (uint64_t)time.tv_nsec;
}

UNUSED static void pause_for(uint64_t nanos)
{
	struct timespec time = { (time_t)(nanos / 1000000000UL), (long)(nanos % 1000000000UL) };

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

UNUSED static void wait_word(uint32_t *word, uint32_t seen)
{
	struct timespec time = { 0, 200000000 };

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, NULL, 0);
}

static void wake_word(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* xorshift64*: the same numbers on every machine. */
static uint64_t random_word(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dUL;
}

UNUSED static uint64_t below(uint64_t bound)
{
	return (uint64_t)(((unsigned __int128)random_word() * bound) >> 64);
}

UNUSED static double unit(void)
{
	return (double)(random_word() >> 11) / 9007199254740992.0;
}

/* Marks: each process passes a mark once; others wait until all have passed it. */
static void pass(struct slot *slot, int mark)
{
	uint64_t bit = 1UL << mark;

	if (__atomic_fetch_or(&slot->passed, bit, __ATOMIC_ACQ_REL) & bit)
		return;
	__atomic_fetch_sub(&board->left[mark], 1, __ATOMIC_ACQ_REL);
	wake_word(&board->left[mark]);
}

UNUSED static int is_passed(int mark)
{
	return mark >= 0 && __atomic_load_n(&board->left[mark], __ATOMIC_ACQUIRE) == 0;
}

UNUSED static void wait_for(int mark)
{
	uint32_t left;

	while ((left = __atomic_load_n(&board->left[mark], __ATOMIC_ACQUIRE)))
		wait_word(&board->left[mark], left);
}

UNUSED static void wait_turn(int mark)
{
	struct slot *before = self - 1;

	while (!(__atomic_load_n(&before->passed, __ATOMIC_ACQUIRE) & (1UL << mark)))
		pause_for(1000000);
}

/* Segments. */
enum kind { ANONYMOUS, SHARED, ON_DISK, IN_TMPFS };
enum pages { SMALL, HUGE, DEFAULT };

struct segment {
	char *at;
	uint64_t pages;
	int file;
	double content;
};

UNUSED static uint64_t share(uint64_t hundredths)
{
	uint64_t pages = (uint64_t)((unsigned __int128)MEMORY * hundredths / 10000 / PAGE);

	return pages ? pages : 1;
}

UNUSED static uint64_t bytes(uint64_t size)
{
	return size < PAGE ? 1 : size / PAGE;
}

/* Fills a page with its content: one repeated word, then random words, so that it compresses to the given share. */
UNUSED static void content(char *at, uint64_t page, double compressed)
{
	uint64_t *words = (uint64_t *)(void *)at;
	uint64_t word = (page + 1) * 0x9e3779b97f4a7c15UL * 0x2545f4914f6cdd1dUL | 1;
	double part = (compressed - 0.008) / 0.992;
	unsigned count = part <= 0 ? 0 : part >= 1 ? 512 : (unsigned)(part * 512 + 0.5);
	unsigned from = (unsigned)(word >> 40) % (POOL - 512);
	unsigned i;

	for (i = 0; i < 512 - count; i++)
		words[i] = word;
	for (; i < 512; i++)
		words[i] = pool[from++] ^ word;
}

UNUSED static int open_file(const char *name, uint64_t pages, double compressed, int is_empty, int must_make)
{
	char path[512], page[PAGE] __attribute__((aligned(8)));
	uint64_t i;
	int file;

	snprintf(path, sizeof(path), "%s/case-%s", folder, name);
	file = open(path, must_make ? O_RDWR | O_CREAT | O_TRUNC : O_RDWR, 0600);
	if (file < 0)
		die("open a file");
	if (!must_make)
		return file;
	for (i = 0; !is_empty && i < pages; i++) {
		content(page, i, compressed);
		if (write(file, page, PAGE) != (ssize_t)PAGE)
			die("write a file");
	}
	if (ftruncate(file, (off_t)(pages * PAGE)) || fsync(file))
		die("make a file");
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	close(file);
	return -1;
}

UNUSED static int open_tmpfs(uint64_t pages)
{
	int file = memfd_create("case", 0);

	if (file < 0 || ftruncate(file, (off_t)(pages * PAGE)))
		die("make a file in tmpfs");
	return file;
}

UNUSED static struct segment map(enum kind kind, uint64_t pages, double compressed, enum pages size, int file)
{
	struct segment segment = { NULL, pages, file, compressed };
	int flags = kind == ANONYMOUS ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE :
		    kind == SHARED ? MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	uint64_t room = pages * PAGE + (size == HUGE ? 2UL << 20 : 0);

	segment.at = mmap(NULL, room, PROT_READ | PROT_WRITE, flags, file, 0);
	if (segment.at == MAP_FAILED)
		die("map a segment");
	if (size == HUGE) {
		segment.at = (char *)(((uintptr_t)segment.at + (2UL << 20) - 1) & ~((2UL << 20) - 1));
		madvise(segment.at, pages * PAGE, MADV_HUGEPAGE);
	} else if (kind == ANONYMOUS && size == SMALL) {
		madvise(segment.at, pages * PAGE, MADV_NOHUGEPAGE);
	}
	return segment;
}

/* The pages of a part, at least one. Shares are rounded to millionths, so that 0.29 of 100 pages are 29. */
UNUSED static void span(const struct segment *segment, double begin, double end, uint64_t *first, uint64_t *last)
{
	*first = segment->pages * (uint64_t)(begin * 1e6 + 0.5) / 1000000;
	*last = segment->pages * (uint64_t)(end * 1e6 + 0.5) / 1000000;
	if (*first >= segment->pages)
		*first = segment->pages - 1;
	if (*last <= *first)
		*last = *first + 1;
}

UNUSED static void fill(struct segment *segment, double begin, double end, int by_call)
{
	char buffer[PAGE] __attribute__((aligned(8)));
	uint64_t page, last;

	span(segment, begin, end, &page, &last);
	for (; page < last; page++) {
		if (!by_call) {
			content(segment->at + page * PAGE, page, segment->content);
			continue;
		}
		content(buffer, page, segment->content);
		if (pwrite(segment->file, buffer, PAGE, (off_t)(page * PAGE)) != (ssize_t)PAGE)
			die("write a page");
	}
}

UNUSED static void lock(struct segment *segment)
{
	fill(segment, 0, 1, 0);
	if (mlock(segment->at, segment->pages * PAGE))
		die("lock a segment (ulimit -l)");
}

UNUSED static void copy(struct segment *from, struct segment *to)
{
	uint64_t page;

	for (page = 0; page < from->pages; page++)
		if (pwrite(to->file, from->at + page * PAGE, PAGE, (off_t)(page * PAGE)) != (ssize_t)PAGE)
			die("copy a page");
}

UNUSED static void advise(struct segment *segment, double begin, double end, int advice)
{
	uint64_t first, last;

	span(segment, begin, end, &first, &last);
	if (madvise(segment->at + first * PAGE, (last - first) * PAGE, advice))
		die("give advice");
}

UNUSED static void drop_cache(struct segment *segment, double begin, double end)
{
	uint64_t first, last;

	span(segment, begin, end, &first, &last);
	if (posix_fadvise(segment->file, (off_t)(first * PAGE), (off_t)((last - first) * PAGE), POSIX_FADV_DONTNEED))
		die("drop the page cache of a file");
}

/* Patterns. Logarithm, power and sine are here so that the file needs no other library. */
enum pattern { LINEAR, LOOP, RANDOM, ZIPF, ZIPF05, LOGNORMAL, HOT_COLD, COLD_FIRST, SCAN, SINE, SINE_RANDOM };

struct reference {
	enum pattern pattern;
	double a, b, c, d;
	uint64_t count, passes, pages, done, next, start;
	double *sums;
	int is_scattered;
};

static double ln(double x)
{
	double sum = 0, y, power;
	int k, i;

	for (k = 0; x >= 1.5; k++)
		x /= 2;
	for (; x < 0.75; k--)
		x *= 2;
	y = (x - 1) / (x + 1);
	power = y;
	for (i = 1; i < 40; i += 2, power *= y * y)
		sum += power / i;
	return 2 * sum + k * 0.6931471805599453;
}

static double exponential(double x)
{
	double sum = 1, term = 1;
	int k = (int)(x / 0.6931471805599453), i;

	x -= k * 0.6931471805599453;
	for (i = 1; i < 24; i++) {
		term *= x / i;
		sum += term;
	}
	for (; k > 0; k--)
		sum *= 2;
	for (; k < 0; k++)
		sum /= 2;
	return sum;
}

static double sine(double x)
{
	double sum, term;
	int i;

	while (x > 3.141592653589793)
		x -= 2 * 3.141592653589793;
	sum = term = x;
	for (i = 3; i < 28; i += 2) {
		term *= -x * x / (i * (i - 1));
		sum += term;
	}
	return sum;
}

UNUSED static void begin_references(struct reference *r)
{
	uint64_t i;
	double sum = 0;

	r->done = r->next = 0;
	r->start = below(r->pages);
	if (r->pattern == LOOP)
		r->next = r->start;
	if (r->pattern != ZIPF && r->pattern != SINE && r->pattern != SINE_RANDOM)
		return;
	r->sums = malloc(r->pages * sizeof(double));
	if (!r->sums)
		die("hold a table");
	for (i = 0; i < r->pages; i++) {
		sum += r->pattern == ZIPF ? exponential(-r->a * ln((double)i + 1)) :
		       1 + sine(3 * 3.141592653589793 * (double)i / (double)r->pages);
		r->sums[i] = sum;
	}
	for (i = 0; i < r->pages; i++)
		r->sums[i] /= sum;
}

static uint64_t by_weight(const struct reference *r, double x)
{
	uint64_t low = 0, high = r->pages - 1;

	while (low < high) {
		uint64_t middle = (low + high) / 2;

		if (r->sums[middle] > x)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* A permutation of the pages, so that popular pages lie everywhere. */
static uint64_t scatter(uint64_t page, uint64_t pages)
{
	uint64_t size = 1;

	while (size < pages)
		size *= 2;
	do {
		page = (page * 0x9e3779b97f4a7c15UL + 0x7f4a7c15UL) & (size - 1);
		page ^= page >> 7;
	} while (page >= pages);
	return page;
}

static uint64_t part(const struct reference *r, double share_of)
{
	uint64_t pages = (uint64_t)(share_of * (double)r->pages + 0.5);

	return pages < 1 ? 1 : pages >= r->pages ? r->pages - 1 : pages;
}

static uint64_t next_page(struct reference *r)
{
	uint64_t hot, page, n = r->pages, done = r->done++;
	double x, z;
	int i;

	switch (r->pattern) {
	case RANDOM:
		return done < n ? done : below(n);
	case ZIPF:
		page = by_weight(r, unit());
		return r->is_scattered ? scatter(page, n) : page;
	case ZIPF05:
		x = unit();
		page = (uint64_t)((double)n * x * x + 0.5);
		return page ? page - 1 : 0;
	case LOGNORMAL:
		do {
			for (z = -6, i = 0; i < 12; i++)
				z += unit();
			x = ln((double)n + 2980.957987) - 7;
			page = (uint64_t)(exponential(8 + x * (z < 0 ? -z : z)) - 2980.957987 + 0.5);
		} while (page < 1 || page >= n);
		return page;
	case HOT_COLD:
		hot = part(r, r->a);
		if (r->c > 0 && done && done % (uint64_t)r->c == 0) {
			page = (uint64_t)((double)hot * r->d + 0.5);
			r->start = (r->start + (page ? page : 1)) % n;
		}
		if (unit() < r->b)
			return (r->start + below(hot)) % n;
		return (r->start + hot + below(n - hot)) % n;
	case COLD_FIRST:
		hot = part(r, r->a);
		return hot + below(n - hot);
	case SCAN:
		hot = part(r, r->a);
		if (unit() < r->b)
			return below(hot);
		page = hot + r->next;
		r->next = (r->next + 1) % (n - hot);
		return page;
	case SINE:
		return by_weight(r, (double)done / (double)r->count);
	case SINE_RANDOM:
		return by_weight(r, unit());
	default:
		page = r->next;
		r->next = (r->next + 1) % n;
		return page;
	}
}

static void count_latency(uint64_t nanos)
{
	uint64_t old = __atomic_load_n(&board->longest, __ATOMIC_RELAXED);
	unsigned power = 63 - (unsigned)__builtin_clzl(nanos | SUB), bucket;

	bucket = power * SUB + (unsigned)((nanos >> (power - 4)) & (SUB - 1));
	if (bucket >= BUCKETS)
		bucket = BUCKETS - 1;
	__atomic_fetch_add(&board->latency[bucket], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&board->accesses, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&board->sum, nanos, __ATOMIC_RELAXED);
	while (nanos > old && !__atomic_compare_exchange_n(&board->longest, &old, nanos, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

UNUSED static void access_pages(struct segment *segment, double begin, double end, struct reference r, double writes,
				int whole, int by_call, uint64_t pause_nanos, uint64_t every, int until)
{
	static char buffer[PAGE] __attribute__((aligned(8)));
	uint64_t first, last, i;
	size_t length = whole ? PAGE : 8;

	span(segment, begin, end, &first, &last);
	r.pages = last - first;
	if (!r.count)
		r.count = r.pages * r.passes / 100;
	if (!r.count)
		r.count = 1;
	begin_references(&r);
	for (i = 0; i < r.count; i++) {
		uint64_t page = first + next_page(&r), start;
		volatile char *at = segment->at + page * PAGE;
		int is_write = writes > 0 && unit() < writes;

		if (until >= 0 && i % 256 == 0 && is_passed(until))
			break;
		start = now();
		if (by_call && is_write) {
			content(buffer, page, segment->content);
			if (pwrite(segment->file, buffer, length, (off_t)(page * PAGE)) < 0)
				die("write a page");
		} else if (by_call) {
			if (pread(segment->file, buffer, length, (off_t)(page * PAGE)) < 0)
				die("read a page");
		} else if (whole && is_write) {
			content(segment->at + page * PAGE, page, segment->content);
		} else if (whole) {
			memcpy(buffer, segment->at + page * PAGE, PAGE);
			__asm__ volatile("" : : "r"(buffer) : "memory");
		} else if (is_write) {
			*(volatile uint64_t *)(volatile void *)at = page | 1UL << 31;
		} else {
			(void)*at;
		}
		count_latency(now() - start);
		if (pause_nanos && (i + 1) % every == 0)
			pause_for(pause_nanos);
	}
	free(r.sums);
}

/* Groups: memory control groups, version 2. */
UNUSED static int write_group(const char *group, const char *file, const char *text)
{
	char path[512];
	int to, done;

	snprintf(path, sizeof(path), "%s/%s/%s", groups, group, file);
	to = open(path, O_WRONLY);
	if (to < 0)
		return -1;
	done = (int)write(to, text, strlen(text));
	close(to);
	return done < 0 ? -1 : 0;
}

/*
 * Enables limits for groups below `groups`. The kernel refuses this while `groups` itself has processes. So if this
 * process is in it, as in a container, it moves to a group of its own.
 */
static void enable_memory(void)
{
	char path[512];

	if (!write_group(".", "cgroup.subtree_control", "+memory") || errno != EBUSY)
		return;
	snprintf(path, sizeof(path), "%s/case-start", groups);
	if ((mkdir(path, 0755) && errno != EEXIST) || write_group("case-start", "cgroup.procs", "0"))
		die("leave the group in which groups are to be made");
	write_group(".", "cgroup.subtree_control", "+memory");
}

UNUSED static void make_group(const char *group)
{
	static int is_enabled;
	char path[512];

	if (!use_groups)
		return;
	if (!is_enabled++)
		enable_memory();
	snprintf(path, sizeof(path), "%s/%s", groups, group);
	if (mkdir(path, 0755) && errno != EEXIST)
		die("make a memory group (run as root, or see --groups and --no-groups)");
}

UNUSED static void limit_group(const char *group, const char *file, uint64_t size)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)size);
	if (use_groups && write_group(group, file, text))
		die("limit a memory group (is memory in cgroup.controllers of its parent?)");
}

UNUSED static void join_group(const char *group)
{
	if (use_groups && write_group(group, "cgroup.procs", "0"))
		die("join a memory group");
}

static uint64_t stolen(const char *group)
{
	char path[512], line[256];
	unsigned long long value = 0;
	FILE *stat;

	snprintf(path, sizeof(path), "%s/%s/memory.stat", groups, group);
	stat = fopen(path, "r");
	if (!stat)
		return 0;
	while (fgets(line, sizeof(line), stat))
		if (sscanf(line, "pgsteal %llu", &value) == 1)
			break;
	fclose(stat);
	return value;
}

UNUSED static void reclaim_group(const char *group, uint64_t pages)
{
	char text[32];
	uint64_t before;

	if (!use_groups)
		return;
	before = stolen(group);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(pages * PAGE));
	if (write_group(group, "memory.reclaim", text) && errno != EAGAIN)
		die("reclaim from a memory group (Linux 5.19 or newer)");
	__atomic_fetch_add(&board->asked, pages * PAGE, __ATOMIC_RELAXED);
	__atomic_fetch_add(&board->taken, (stolen(group) - before) * PAGE, __ATOMIC_RELAXED);
}

/* Processes. */
static void leave(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	__atomic_fetch_add(&board->minor, (uint64_t)usage.ru_minflt, __ATOMIC_RELAXED);
	__atomic_fetch_add(&board->major, (uint64_t)usage.ru_majflt, __ATOMIC_RELAXED);
	_exit(0);
}

UNUSED static pid_t child(uint64_t seed)
{
	uint64_t start = now();
	uint32_t number = __atomic_fetch_add(&board->forks, 1, __ATOMIC_RELAXED);
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid > 0 && number < FORKED)
		board->forked[number] = pid;
	if (pid == 0)
		random_state = (random_state ^ (seed + 1) * 0x9e3779b97f4a7c15UL) | 1;
	else
		__atomic_fetch_add(&board->forking, now() - start, __ATOMIC_RELAXED);
	return pid;
}

static void count_end(pid_t pid, int status)
{
	uint32_t i;

	for (i = 0; i < FORKED; i++)
		if (board->forked[i] == pid)
			board->forked[i] = 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		__atomic_fetch_add(&board->killed, 1, __ATOMIC_RELAXED);
}

UNUSED static void join_children(void)
{
	int status;
	pid_t pid;

	while ((pid = wait(&status)) > 0)
		count_end(pid, status);
}

static void arrive(void)
{
	__atomic_fetch_add(&board->ready, 1, __ATOMIC_ACQ_REL);
	while (!__atomic_load_n(&board->open, __ATOMIC_ACQUIRE))
		wait_word(&board->open, 0);
}

@PROCESSES@

static uint64_t quantile(double share_of)
{
	uint64_t seen = 0, rank = (uint64_t)(share_of * (double)board->accesses);
	unsigned i, power;

	for (i = 0; i < BUCKETS; i++) {
		seen += board->latency[i];
		if (seen > rank)
			break;
	}
	power = i / SUB;
	return power < 4 ? SUB : ((uint64_t)(SUB + i % SUB + 1) << (power - 4)) - 1;
}

static void end_of(struct slot *slot)
{
	int mark;

	slot->ended = 1;
	for (mark = 0; mark < MARKS; mark++)
		if (marks_of[slot->process] & (1UL << mark))
			pass(slot, mark);
}

int main(int count, char **words)
{
	uint64_t seed = 1, limit = TIME_LIMIT, last = 0;
	int i, status, unfinished = 0, is_over = 0;
	pid_t pid;

	for (i = 1; i < count; i++) {
		if (!strcmp(words[i], "--no-groups"))
			use_groups = 0;
		else if (!strcmp(words[i], "--groups") && i + 1 < count)
			groups = words[++i];
		else if (!strcmp(words[i], "--seed") && i + 1 < count)
			seed = strtoull(words[++i], NULL, 10);
		else if (words[i][0] != '-')
			folder = words[i];
		else {
			fprintf(stderr, "usage: %s [--seed N] [--no-groups] [--groups FOLDER] [FOLDER-OF-FILES]\n", words[0]);
			return 2;
		}
	}
	random_state = seed * 0x9e3779b97f4a7c15UL | 1;
	for (i = 0; i < POOL; i++)
		pool[i] = random_word();
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (board == MAP_FAILED)
		die("share memory");
	mlock(board, sizeof(*board));
	prepare();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fflush(stdout);
	for (i = 0; i < PROCESSES; i++) {
		self = &board->slots[i];
		describe(self, i);
		pid = fork();
		if (pid < 0)
			die("start a process");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			/* What is in use now stays in memory, where the machine allows it: only segments are reclaimed. */
			mlockall(MCL_CURRENT | MCL_ONFAULT);
			random_state = (random_state ^ (uint64_t)(i + 1) * 0xbf58476d1ce4e5b9UL) | 1;
			run(self);
			end_of(self);
			leave();
		}
		self->pid = pid;
	}
	while (__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE) < PROCESSES) {
		if (waitpid(-1, &status, WNOHANG) > 0) {
			fprintf(stderr, "case: a process ended before the start\n");
			return 2;
		}
		pause_for(1000000);
	}
	board->start = now();
	__atomic_store_n(&board->open, 1, __ATOMIC_RELEASE);
	wake_word(&board->open);
	for (;;) {
		struct rusage usage;

		pid = wait4(-1, &status, WNOHANG, &usage);
		if (pid < 0)
			break;
		if (pid == 0) {
			if (now() - board->start > limit && !is_over) {
				is_over = 1;
				for (i = 0; i < PROCESSES; i++)
					if (!board->slots[i].ended && !kill(board->slots[i].pid, SIGKILL))
						unfinished++;
			} else if (is_over) {
				for (i = 0; i < FORKED; i++)
					if (board->forked[i] > 0 && !kill(board->forked[i], SIGKILL))
						unfinished++, board->forked[i] = 0;
			}
			pause_for(2000000);
			continue;
		}
		last = now();
		for (i = 0; i < PROCESSES; i++) {
			if (board->slots[i].pid != pid)
				continue;
			if (!is_over)
				count_end(pid, status);
			if (WIFSIGNALED(status)) {
				board->minor += (uint64_t)usage.ru_minflt;
				board->major += (uint64_t)usage.ru_majflt;
			}
			end_of(&board->slots[i]);
			break;
		}
		if (i == PROCESSES && !is_over)
			count_end(pid, status);
		if (!is_over && WIFEXITED(status) && WEXITSTATUS(status)) {
			fprintf(stderr, "case: a process failed\n");
			return 2;
		}
	}
	printf("time %llu ns\n", (unsigned long long)(last - board->start));
	printf("accesses %llu\n", (unsigned long long)board->accesses);
	if (board->accesses) {
		printf("access-mean %llu ns\n", (unsigned long long)(board->sum / board->accesses));
		printf("access-p50 %llu ns\n", (unsigned long long)quantile(0.5));
		printf("access-p99 %llu ns\n", (unsigned long long)quantile(0.99));
		printf("access-max %llu ns\n", (unsigned long long)board->longest);
	}
	printf("minor-faults %llu\n", (unsigned long long)board->minor);
	printf("major-faults %llu\n", (unsigned long long)board->major);
	printf("killed %llu\n", (unsigned long long)board->killed);
	printf("unfinished %d\n", unfinished);
	printf("fork %llu ns\n", (unsigned long long)board->forking);
	printf("reclaim-asked %llu bytes\n", (unsigned long long)board->asked);
	printf("reclaim-taken %llu bytes\n", (unsigned long long)board->taken);
	return 0;
}
