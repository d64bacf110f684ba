// Fuzzes the CSV source. The first byte of the input chooses options, the rest is a file. A plain
// file (no quotes, no carriage returns, only numbers) is parsed again by simple independent code.
// The source must return exactly the rows of numbers in it, as strtod or 128-bit arithmetic reads
// them, and fail at all others or skip them. For any file, two passes must give the same rows.
#include "fuzz.h"

#include "choir/source.h"
#include "data/data.h"

#include <math.h>

enum { BLOCKS = 300 << 10 };

// Returns whether text has the header a,b and otherwise only characters of plain numbers.
static int plain(const char *text, size_t size)
{
	if (size < 4 || memcmp(text, "a,b\n", 4) != 0)
		return 0;
	return strspn(text + 4, "0123456789.-e,\n") == size - 4;
}

// Reads text as a 64-bit integer, computed with 128 bits; returns 0 if it is not one.
static int whole_number(const char *text, int64_t *value)
{
	const int negative = *text == '-';
	wide sum = 0;
	text += negative;
	const size_t n = strlen(text);
	if (n == 0 || strspn(text, "0123456789") != n)
		return 0;
	for (; *text && sum <= (wide) UINT64_MAX; text++)
		sum = 10 * sum + (wide) (*text - '0');
	if (sum > (wide) INT64_MAX + (wide) negative)
		return 0;
	*value = negative ? (int64_t) - (__int128) sum : (int64_t) sum;
	return 1;
}

// Reads a field as an 8-byte number: i64 by whole_number, or as 1.0 and 1e3, or f64 by strtod.
// Returns 0 if it is not one.
static int read_field(const char *text, int whole, uint64_t *bits)
{
	char *end;
	int64_t number;
	double value;
	if (whole && !whole_number(text, &number)) {
		value = strtod(text, &end);
		if (*end || !(fabs(value) <= 0x1p53) || value != trunc(value))
			return 0;
		number = (int64_t) value;
	}
	if (whole) {
		memcpy(bits, &number, sizeof number);
		return 1;
	}
	value = strtod(text, &end);
	memcpy(bits, &value, sizeof value);
	return *end == '\0';
}

// How rows differ from the header, judged from the first two: they have a row name in front, or a
// comma at the end.
enum { SAME, NAMED, OPEN };

static int kind_of_rows(const char *p)
{
	int rows = 0, open = 0;
	for (size_t n; *p && rows < 2; p += n + p[n] / '\n') {
		int commas = 0;
		n = strcspn(p, "\n");
		for (size_t i = 0; i < n; i++)
			commas += p[i] == ',';
		if (n > 0 && commas != 2)
			return SAME;
		rows += n > 0;
		open += n > 0 && p[n - 1] == ',';
	}
	return rows < 2 ? SAME : open == 2 ? OPEN : NAMED;
}

// Reads the next row in which both fields are numbers; returns 0 at the end of the text.
static int next_row(const char **p, int kind, int whole, uint64_t row[2])
{
	while (**p) {
		char text[5000], *line = text;
		const size_t n = strcspn(*p, "\n");
		memcpy(line, *p, n);
		line[n] = '\0';
		*p += n + (*p)[n] / '\n';
		char *comma = strchr(line, ',');
		if (kind == NAMED && comma)
			comma = strchr(line = comma + 1, ',');
		if (kind == OPEN && comma && n > 0 && line[n - 1] == ',' && line + n - 1 != comma)
			line[n - 1] = '\0';
		if (!comma || strchr(comma + 1, ',') || comma == line || !comma[1] || n >= 1000)
			continue;
		*comma = '\0';
		if (read_field(line, whole, &row[0]) && read_field(comma + 1, whole, &row[1]))
			return 1;
	}
	return 0;
}

static void check_plain(const char *path, const char *text, int whole)
{
	const choir_dtype dtype = whole ? CHOIR_I64 : CHOIR_F64;
	const choir_csv_column ab[] = {
		{ .name = "a", .kind = CHOIR_CSV_NUMBER, .dtype = dtype },
		{ .name = "b", .kind = CHOIR_CSV_NUMBER, .dtype = dtype },
	};
	choir_dataset *d = choir_csv_dataset_new(path,
			CHOIR_OPTIONS(choir_csv_options, .columns = 2, .column = ab,
					.bad_record = CHOIR_BAD_RECORD_SKIP));
	demand(d != NULL, "refused a plain file");
	uint64_t found[2], expected[2];
	chi_element e = { .column = { &found[0], &found[1] }, .capacity = 1 };
	const char *p = text + 4;
	const int kind = kind_of_rows(p);
	while (next_row(&p, kind, whole, expected)) {
		demand(chi_dataset_next(d, &e) == CHOIR_OK, "a row is missing");
		demand(memcmp(found, expected, sizeof found) == 0, "a wrong number");
	}
	demand(chi_dataset_next(d, &e) == CHOIR_END, "a row too many");
	choir_dataset_free(d);
}

// Returns a checksum of all rows of a pass; *status becomes its end.
static uint64_t sum_pass(choir_dataset *d, choir_status *status)
{
	const chi_spec *spec = chi_dataset_spec(d);
	static double place[CHI_MAX_COLUMNS][2048];
	chi_element e = { .capacity = 1 };
	uint64_t sum = 0;
	for (size_t i = 0; i < spec->n; i++)
		e.column[i] = place[i];
	memset(place, 0, sizeof place);
	while ((*status = chi_dataset_next(d, &e)) == CHOIR_OK)
		for (size_t i = 0; i < spec->n; i++)
			for (size_t k = 0; k < 8; k++)
				sum = (sum << 5 | sum >> 59) ^ ((const uint8_t *) place[i])[k];
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[8192];
	if (size < 1 || size >= sizeof text)
		return 0;
	const unsigned how = data[0];
	memcpy(text, data + 1, --size);
	text[size] = '\0';
	const char *path = fuzz_file(text, size);
	fuzz_largest = BLOCKS + 8 * size; // one byte of text may become a number of eight bytes
	for (int whole = 0; whole < 2 && plain(text, size); whole++)
		check_plain(path, text, whole);
	chi_error_clear();
	choir_dataset *d = choir_csv_dataset_new(path,
			CHOIR_OPTIONS(choir_csv_options, .header = how & 1 ? CHOIR_OFF : CHOIR_ON,
					.other_columns = how & 2 ? "rest" : NULL,
					.missing = (choir_missing) (how >> 2 & 3) % 3,
					.bad_record = how & 16 ? CHOIR_BAD_RECORD_SKIP : CHOIR_BAD_RECORD_ERROR,
					.infer_rows = how >> 6,
					.separator = how & 32	? ';'
							: size % 4 == 3 ? '\0'
											: ',',
					.find_separator = true, .decimal = size % 4 == 1 ? ',' : '.'));
	demand(d || choir_error()[0], "refused without a word");
	if (d) {
		choir_status first, second;
		const uint64_t sum = sum_pass(d, &first);
		demand(first == CHOIR_END || choir_error()[0], "failed without a word");
		chi_dataset_rewind(d);
		demand(sum == sum_pass(d, &second) && first == second, "two passes differ");
	}
	choir_dataset_free(d);
	fuzz_largest = 0;
	return 0;
}
