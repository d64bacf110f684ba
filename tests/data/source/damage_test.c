// Damaged files of fixed records and of text: cut at every byte, every byte changed in three ways.
// What must come is worked out here from the bytes once more, row by row: the right rows, and
// behind them at most one failure, which names the file.
#include "data/elements.h"

#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { RECORD = 1 + 1 + 4 + 2, MAX_BYTES = 256, LABELS = 3 };

typedef struct {
	unsigned char bytes[MAX_BYTES];
	size_t n;
} content;

static content read_content(const char *path)
{
	content c;
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	c.n = fread(c.bytes, 1, sizeof c.bytes, f);
	assert_int_equal(fclose(f), 0);
	return c;
}

// The rows are those expected, and behind them is a failure or none.
static void compare(
		const char *how, const char *file, const char *found, const char *rows, bool fails)
{
	const size_t n = strlen(rows);
	const char *rest = found + n;
	if (strncmp(found, rows, n) != 0)
		fail_msg("%s: \"%s\", not \"%s\"", how, found, rows);
	if (fails ? strncmp(rest, "! CHOIR_CORRUPT ", 16) != 0 || !strstr(rest, file) : *rest != '\0')
		fail_msg("%s: behind the rows: \"%s\"", how, rest);
}

// ---- Fixed records: a label below 3, a bool, an i32 and two bytes.

static void check_records(const char *path, const char *how)
{
	static const choir_field fields[] = {
		{ .name = "label", .dtype = CHOIR_U8, .limit = LABELS },
		{ .name = "flag", .dtype = CHOIR_BOOL },
		{ .name = "x", .dtype = CHOIR_I32 },
		{ .name = "pair", .dtype = CHOIR_U8, .shape = { 1, { 2 } } },
	};
	const content c = read_content(path);
	char rows[1024] = "";
	bool fails = c.n % RECORD != 0;
	for (size_t at = 0; at + RECORD <= c.n && !fails; at += RECORD) {
		const unsigned char *r = c.bytes + at;
		const uint32_t x =
				r[2] | (uint32_t) r[3] << 8 | (uint32_t) r[4] << 16 | (uint32_t) r[5] << 24;
		fails = r[0] >= LABELS || r[1] > 1;
		if (!fails)
			sprintf(rows + strlen(rows), "%d %d %.9g [%d %d]\n", r[0], r[1], (double) (int32_t) x,
					r[6], r[7]);
	}
	choir_dataset *d = choir_fixed_length_record_dataset_new(path, 4, fields, NULL);
	compare(how, "t.bin", pass_in_words(d), rows, fails);
	choir_dataset_free(d);
}

TEST(fixed_records_are_right_or_refused)
{
	unsigned char records[4 * RECORD];
	for (size_t i = 0; i < 4; i++) {
		const unsigned char r[RECORD] = { (unsigned char) (i % LABELS), i % 2, (unsigned char) i,
			1, 0, 0, 7, (unsigned char) (200 + i) };
		memcpy(records + i * RECORD, r, sizeof r);
	}
	damage("t.bin", records, sizeof records, check_records);
}

// ---- Lines.

// The bytes of the character at p, by the table of RFC 3629; 0: there is none.
static size_t character(const unsigned char *p, size_t left)
{
	if (p[0] < 0x80)
		return 1;
	const size_t n = p[0] >= 0xc2 && p[0] <= 0xdf ? 2
			: p[0] >= 0xe0 && p[0] <= 0xef		  ? 3
			: p[0] >= 0xf0 && p[0] <= 0xf4		  ? 4
												  : 0;
	if (n == 0 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	const bool wrong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
			(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f);
	return wrong ? 0 : n;
}

static bool good(const unsigned char *line, size_t n)
{
	for (size_t at = 0, k; at < n; at += k)
		if ((k = character(line + at, n - at)) == 0)
			return false;
	return true;
}

static void check_lines(const char *path, const char *how)
{
	const content c = read_content(path);
	char rows[4096] = "";
	bool fails = false;
	for (size_t at = 0, n; at < c.n && !fails; at += n + 1) {
		const unsigned char *end = memchr(c.bytes + at, '\n', c.n - at);
		n = end ? (size_t) (end - c.bytes) - at : c.n - at;
		fails = !good(c.bytes + at, n);
		if (fails)
			break;
		strcat(rows, "[");
		for (size_t i = 0; i < n; i++)
			sprintf(rows + strlen(rows), "%s%d", i ? " " : "", c.bytes[at + i]);
		strcat(rows, "]\n");
	}
	choir_dataset *d = choir_text_lines_dataset_new(path, "line", CHOIR_BAD_RECORD_ERROR);
	compare(how, "t.txt", pass_in_words(d), rows, fails);
	choir_dataset_free(d);
}

TEST(lines_are_right_or_refused)
{
	// One, two, three and four bytes a character; nothing that one change makes a CR of.
	static const char text[] = "ab\n\xc3\xa4q\n\n\xe2\x82\xac\n\xf0\x9f\x8e\xb5z";
	damage("t.txt", text, sizeof text - 1, check_lines);
}

static void check_bytes(const char *path, const char *how)
{
	const content c = read_content(path);
	char rows[1024] = "";
	for (size_t i = 0; i < c.n; i++)
		sprintf(rows + strlen(rows), "%d\n", c.bytes[i]);
	choir_dataset *d = choir_text_bytes_dataset_new(path, "byte");
	compare(how, "t.txt", pass_in_words(d), rows, false);
	choir_dataset_free(d);
}

TEST(bytes_are_what_they_are)
{
	damage("t.txt", "any text", 8, check_bytes);
}

TEST_GROUP(NULL, scratch_leave)
