// Fuzzes the source of text lines; the input is a file. Independent code reads it again byte by
// byte, with its own UTF-8 decoder. The source must return exactly those lines, and fail at lines
// that are not UTF-8 or skip them.
#include "fuzz.h"

#include "choir/source.h"
#include "data/data.h"

enum { BLOCKS = 128 << 10 };

// Returns the size of the character at p, of at most n bytes; 0: it is invalid (table 3-7 of the
// Unicode standard).
static size_t character(const uint8_t *p, size_t n)
{
	if (p[0] < 0x80)
		return 1;
	const size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || length > n)
		return 0;
	const uint8_t min = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
	const uint8_t max = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
	if (p[1] < min || p[1] > max)
		return 0;
	for (size_t i = 2; i < length; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return length;
}

static int is_text(const uint8_t *p, size_t n)
{
	size_t length;
	for (; n > 0; p += length, n -= length)
		if ((length = character(p, n)) == 0)
			return 0;
	return 1;
}

// Finds the next line in n bytes. *line: its length without the line end. Returns its length with
// it; 0: no line is left.
static size_t next_line(const uint8_t *p, size_t n, size_t *line)
{
	size_t end = 0;
	while (end < n && p[end] != '\n')
		end++;
	*line = end < n && end > 0 && p[end - 1] == '\r' ? end - 1 : end;
	return end < n ? end + 1 : end;
}

static void read_pass(choir_dataset *d, const uint8_t *data, size_t size, int skip)
{
	static chi_ragged_value cell;
	chi_element e = { .column = { &cell }, .capacity = 1 };
	size_t line, taken;
	choir_status expected = CHOIR_END;
	for (; (taken = next_line(data, size, &line)) > 0; data += taken, size -= taken) {
		if (is_text(data, line)) {
			demand(chi_dataset_next(d, &e) == CHOIR_OK, "a line is missing");
			demand((size_t) cell.shape.dim[0] == line, "a line of another length");
			demand(line == 0 || memcmp(cell.data, data, line) == 0, "another line");
		} else if (!skip) {
			expected = CHOIR_CORRUPT;
			break;
		}
	}
	demand(chi_dataset_next(d, &e) == expected, "another end");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 2 && data[0] == 0x1f && data[1] == 0x8b)
		return 0; // compressed: see gz_fuzz
	for (int skip = 0; skip < 2; skip++) {
		fuzz_largest = BLOCKS + 4 * size;
		choir_dataset *d = choir_text_lines_dataset_new(fuzz_file(data, size), "line",
				skip ? CHOIR_BAD_RECORD_SKIP : CHOIR_BAD_RECORD_ERROR);
		demand(d != NULL, "not opened");
		for (int pass = 0; pass < 2; pass++) {
			read_pass(d, data, size, skip);
			chi_dataset_rewind(d);
		}
		choir_dataset_free(d);
	}
	fuzz_largest = 0;
	return 0;
}
