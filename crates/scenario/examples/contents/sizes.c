/* Prints, for each page of a file, its size in zram with lz4, lzo-rle and zstd, and the number of lz4's sequences.
 *
 * The sizes are the same as those measured in a guest (zram.c), but need no guest: fit.py needs sizes of 100,000 pages.
 * lzo-rle exists in the kernel only; LINUX is a folder with its sources:
 *
 *   mkdir -p stubs/linux && touch stubs/linux/{module,kernel,unaligned,lzo}.h
 *   gcc -O2 -Istubs -I$LINUX/lib/lzo -o sizes sizes.c -llz4 -lzstd && ./sizes PAGES
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Definitions of the kernel's headers that the included source needs. */
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#define CONFIG_X86_64 1
#define CONFIG_HAVE_EFFICIENT_UNALIGNED_ACCESS 1
#define __LITTLE_ENDIAN 1
#define LZO1X_1_MEM_COMPRESS (8192 * sizeof(unsigned short))
#define LZO_E_OK 0
#define LZO_E_ERROR (-1)
#define LZO_E_OUTPUT_OVERRUN (-5)
#define EXPORT_SYMBOL_GPL(name)
#define BUILD_BUG_ON(condition)
#define noinline __attribute__((noinline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define get_unaligned(from) ({ __typeof__(*(from)) value_; memcpy((void *)&value_, from, sizeof(value_)); value_; })
#define put_unaligned(value, to) ({ __typeof__(*(to)) value_ = (value); memcpy(to, &value_, sizeof(value_)); })
#define get_unaligned_le32(from) get_unaligned((const u32 *)(from))
#define put_unaligned_le32(value, to) put_unaligned(value, (u32 *)(to))
#include "lzo1x_compress.c"

int LZ4_compress_default(const char *from, char *to, int length, int most);
size_t ZSTD_compress(void *to, size_t most, const void *from, size_t length, int level);

enum { PAGE = 4096, HUGE = 3264 /* zs_huge_class_size: larger ones are stored as they are */ };

static int stored(size_t size)
{
	return size > HUGE ? PAGE : (int)size;
}

static int sequences(const unsigned char *from, int length)
{
	int count = 0;
	for (int at = 0; at < length; count++) {
		int token = from[at++], literals = token >> 4, more = literals == 15;
		for (; more; more = from[at++] == 255)
			literals += from[at];
		at += literals;
		if (at >= length)
			break;
		at += 2;
		for (more = (token & 15) == 15; more; more = from[at++] == 255)
			;
	}
	return count;
}

int main(int count, char **words)
{
	static unsigned char page[PAGE], out[4 * PAGE], work[1 << 17];
	FILE *file = count == 2 ? fopen(words[1], "rb") : NULL;
	if (!file)
		return 1;
	while (fread(page, PAGE, 1, file) == 1) {
		if (!memcmp(page, page + 8, PAGE - 8)) {
			puts("0 0 0 0");
			continue;
		}
		int lz4 = LZ4_compress_default((char *)page, (char *)out, PAGE, sizeof(out));
		int pieces = sequences(out, lz4);
		size_t lzo = sizeof(out);
		memset(work, 0, sizeof(work));
		lzorle1x_1_compress(page, PAGE, out, &lzo, work);
		size_t zstd = ZSTD_compress(out, sizeof(out), page, PAGE, 3);
		printf("%d %d %d %d\n", stored(lz4), stored(lzo), stored(zstd), pieces);
	}
	return 0;
}
