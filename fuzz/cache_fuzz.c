// Fuzzes the file of a cache over lines of varying length. The first byte of the input chooses
// whether the file gets a valid beginning, and whether the checksums are corrected, so that the
// code after the checks is reached. An independent parser with 128-bit sums reads the elements
// again. The cache must return exactly the valid elements before the first invalid one.
#include "fuzz.h"

#include "base/hash.h"
#include "choir/source.h"
#include "data/data.h"

enum { BEGINNING = 32, HEAD = 24, BLOCKS = 128 << 10, MAX = 1 << 13 };

static uint64_t load(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

static uint64_t checksum(const uint8_t *bytes, uint64_t length)
{
	uint64_t sum = length;
	for (; length >= 8; length -= 8, bytes += 8)
		sum = chi_hash_mix(sum ^ load(bytes));
	uint8_t rest[8] = { 0 };
	memcpy(rest, bytes, (size_t) length);
	return chi_hash_mix(sum ^ load(rest));
}

// Returns the end of the element at a position of the file; 0: there is no complete element.
static size_t element_at(const uint8_t *file, size_t size, size_t at)
{
	if (size - at < HEAD || (wide) at + HEAD + load(file + at + 8) > size)
		return 0;
	return at + HEAD + (size_t) load(file + at + 8);
}

static void mend_sums(uint8_t *file, size_t size)
{
	for (size_t at = BEGINNING, end; (end = element_at(file, size, at)) > 0; at = end) {
		const uint64_t sum = checksum(file + at + HEAD, end - at - HEAD);
		memcpy(file + at + 16, &sum, sizeof sum);
	}
}

// Reads a pass and compares it with the file.
static void read_pass(choir_dataset *d, const uint8_t *file, size_t size)
{
	static chi_ragged_value cell;
	chi_element e = { .column = { &cell }, .capacity = 1 };
	size_t at = BEGINNING, end;
	for (;; at = end) {
		const choir_status status = chi_dataset_next(d, &e);
		if (size - at >= HEAD && load(file + at) == 0) { // the end mark
			demand(status == (size - at == HEAD ? CHOIR_END : CHOIR_CORRUPT), "another end");
			return;
		}
		end = element_at(file, size, at);
		const uint8_t *p = file + at + HEAD;
		const size_t bytes = end - at - HEAD;
		const int good = end > 0 && load(file + at) == 1 && bytes >= 8 && load(p) == bytes - 8 &&
				checksum(p, bytes) == load(file + at + 16);
		demand(status == (good ? CHOIR_OK : CHOIR_CORRUPT),
				"whole or not, the step says otherwise");
		if (!good)
			return;
		demand((size_t) cell.shape.dim[0] == bytes - 8, "another length");
		demand(bytes == 8 || memcmp(cell.data, p + 8, bytes - 8) == 0, "another line");
	}
}

static const char *lines_path(void)
{
	static int fd = -1;
	static char path[64];
	if (fd < 0) {
		fd = memfd_create("lines", 0);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	}
	return path;
}

static choir_dataset *cached(const char *path)
{
	return choir_dataset_cache(
			choir_text_lines_dataset_new(lines_path(), "line", CHOIR_BAD_RECORD_ERROR), path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t file[MAX];
	if (size < 1 || size + BEGINNING > sizeof file)
		return 0;
	const unsigned how = data[0];
	choir_dataset *d = cached(NULL);
	const uint64_t begin[] = { UINT64_C(0x32656863612d6368), chi_dataset_signature(d), 1, 0 };
	choir_dataset_free(d);
	const size_t before = how & 1 ? 0 : sizeof begin;
	memcpy(file, begin, before);
	memcpy(file + before, data + 1, size - 1);
	size += before - 1;
	if (how & 2 && size > BEGINNING)
		mend_sums(file, size);
	fuzz_largest = BLOCKS + 2 * size;
	const int good = size >= BEGINNING && memcmp(file, begin, 16) == 0;
	d = cached(fuzz_file(file, size));
	demand((d != NULL) == good, d ? "took another file" : "refused a cache");
	const int own = good && load(file + 16) == 1 && load(file + 24) == 0;
	for (int pass = 0; pass < 2 && own; pass++) {
		read_pass(d, file, size);
		chi_dataset_rewind(d);
	}
	choir_dataset_free(d);
	fuzz_largest = 0;
	return 0;
}
