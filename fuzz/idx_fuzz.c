// Fuzzes the reader of IDX files; the input is a file, plain or compressed. Independent code
// computes the contents of a plain file with 128-bit products. The reader must accept exactly the
// valid files, return exactly their bytes, and give a message when it refuses. For a compressed
// file it must return whole examples or an error.
#include "fuzz.h"

#include "choir/source.h"
#include "data/data.h"
#include "data/source/gzip.h"

enum { BLOCKS = 96 << 10 };

// Returns the size of a value of this type; 0: the type is not supported.
static size_t value_bytes(uint8_t type)
{
	return type == 0x08 ? 1 : type == 0x0c || type == 0x0d ? 4 : type == 0x0e ? 8 : 0;
}

// Returns the header's size of a valid plain file; 0: it is not valid.
static size_t good_header(const uint8_t *data, size_t size)
{
	if (size < 8 || data[0] || data[1] || !value_bytes(data[2]) || data[3] < 1 || data[3] > 8)
		return 0;
	size_t header = 4 + 4 * (size_t) data[3];
	if (size < header)
		return 0;
	wide promised = value_bytes(data[2]);
	for (int i = data[3] - 1; i >= 0; i--) {
		const uint8_t *d = data + 4 + 4 * i;
		uint32_t dim = (uint32_t) d[0] << 24 | (uint32_t) d[1] << 16 | (uint32_t) d[2] << 8 | d[3];
		if (i > 0 && dim == 0)
			return 0;
		promised *= dim;
		if (promised > INT64_MAX) // also if a later factor is 0
			return 0;
	}
	return promised == size - header ? header : 0;
}

// Reads all examples and returns the number of their bytes; -1: an error. expected: the bytes in
// the file's byte order; NULL: any. turned: size of a value.
static long long read_all(choir_dataset *d, const uint8_t *expected, size_t turned)
{
	const choir_column *c = &chi_dataset_spec(d)->column[0];
	size_t bytes = (size_t) choir_shape_elements(&c->shape) * turned, at = 0;
	// If the file has no examples, their size may be too large to allocate.
	uint8_t *example = malloc(chi_dataset_spec(d)->examples ? bytes : 1);
	demand(example != NULL, "no memory for an example");
	chi_element e = { .column = { example }, .capacity = 1 };
	choir_status status;
	while ((status = chi_dataset_next(d, &e)) == CHOIR_OK) {
		for (size_t i = 0; i < bytes && expected; i++) {
			size_t there = i - i % turned + (turned - 1 - i % turned);
			demand(example[i] == expected[at + there], "a wrong value");
		}
		at += bytes;
	}
	free(example);
	return status == CHOIR_END ? (long long) at : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_file(data, size);
	bool compressed = size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
	size_t header = good_header(data, size);
	fuzz_largest = BLOCKS + size * (compressed ? CHI_GZIP_RATIO : 1);
	choir_dataset *d = choir_idx_dataset_new(path, "x");
	if (!d)
		demand(choir_error()[0] != '\0', "refused without a word");
	if (!compressed)
		demand((d != NULL) == (header != 0), d ? "took a bad file" : "refused a good file");
	for (int pass = 0; pass < 2 && d; pass++) {
		long long n = compressed ? read_all(d, NULL, 1)
								 : read_all(d, data + header, value_bytes(data[2]));
		if (!compressed)
			demand(n == (long long) (size - header), "not all bytes were given");
		if (n < 0)
			demand(choir_error()[0] != '\0', "failed without a word");
		chi_dataset_rewind(d);
	}
	choir_dataset_free(d);
	fuzz_largest = 0;
	return 0;
}
