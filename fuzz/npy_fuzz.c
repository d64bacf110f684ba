// Fuzzes the reader of npy files; the input is a file. Independent code with 128-bit products
// computes the contents of files in the plainest form (rank 2, u8, the header exactly as numpy
// writes it). The reader must accept such a file exactly if its size is right, and return its
// bytes. For any other file it must return the promised number of whole examples or give a
// message. It must not allocate more than the file can fill.
#include "fuzz.h"

#include "choir/source.h"
#include "data/data.h"
#include "data/source/gzip.h"
#include "tensor/tensor.h"

enum { BLOCKS = 96 << 10 };

// Reads a u8 file in the plainest form. Returns 1: valid; 0: invalid; -1: another form.
static int plain(const uint8_t *data, size_t size, size_t *header)
{
	static const char form[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (%llu, %llu), }";
	char text[200], again[200];
	unsigned long long rows, columns;
	if (size < 10 || memcmp(data, "\x93NUMPY\1\0", 8) != 0)
		return -1;
	const size_t length = data[8] | (size_t) data[9] << 8;
	if (length >= sizeof text || size < 10 + length)
		return -1;
	memcpy(text, data + 10, length);
	text[length] = '\0';
	*header = 10 + length;
	if (strlen(text) != length || sscanf(text, form, &rows, &columns) != 2)
		return -1;
	snprintf(again, sizeof again, form, rows, columns);
	if (strcmp(text, again) != 0)
		return -1;
	const wide promised = (wide) rows * columns;
	return columns > 0 && columns <= INT64_MAX && rows <= INT64_MAX && promised <= INT64_MAX &&
			promised == size - *header;
}

// Reads all examples and returns the number of their bytes; -1: an error.
static long long read_all(choir_dataset *d, const uint8_t *expected)
{
	const chi_spec *spec = chi_dataset_spec(d);
	size_t bytes, at = 0;
	demand(chi_shape_bytes(&spec->column[0].shape, spec->column[0].dtype, &bytes),
			"a shape too large");
	uint8_t *example = malloc(spec->examples ? bytes : 1);
	demand(example != NULL, "no memory for an example");
	chi_element e = { .column = { example }, .capacity = 1 };
	choir_status status;
	int64_t n = 0;
	while ((status = chi_dataset_next(d, &e)) == CHOIR_OK) {
		demand(!expected || memcmp(example, expected + at, bytes) == 0, "a wrong value");
		at += bytes;
		n++;
	}
	free(example);
	demand(status != CHOIR_END || n == spec->examples, "another number of examples than promised");
	return status == CHOIR_END ? (long long) at : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_file(data, size);
	const int compressed = size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
	size_t header = 0;
	const int good = plain(data, size, &header);
	fuzz_largest = BLOCKS + size * (compressed ? CHI_GZIP_RATIO : 1);
	choir_dataset *d = choir_npy_dataset_new(path, "x");
	demand(d || choir_error()[0], "refused without a word");
	demand(good < 0 || (d != NULL) == good, d ? "took a bad file" : "refused a good file");
	for (int pass = 0; pass < 2 && d; pass++) {
		const long long n = read_all(d, good > 0 ? data + header : NULL);
		demand(good < 0 || n == (long long) (size - header), "not all bytes were given");
		demand(n >= 0 || choir_error()[0], "failed without a word");
		chi_dataset_rewind(d);
	}
	choir_dataset_free(d);
	fuzz_largest = 0;
	return 0;
}
