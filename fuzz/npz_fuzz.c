// Fuzzes the reader of npz archives; the input is a file. The source must give a message when it
// refuses, or return the promised number of examples, the same in each pass. It must not allocate
// more than the file can fill. Independent code multiplies the shapes with 128 bits. Incomplete
// examples must not be returned.
#include "fuzz.h"

#include "choir/source.h"
#include "data/data.h"
#include "data/source/gzip.h"
#include "tensor/tensor.h"

enum { MAX_EXAMPLE = 1 << 16, BLOCKS = 96 << 10 };

// Returns a checksum of the examples of a pass; *n becomes their number and *status the end.
static uint64_t sum_pass(choir_dataset *d, int64_t *n, choir_status *status)
{
	static uint8_t place[CHI_MAX_COLUMNS][MAX_EXAMPLE];
	const chi_spec *spec = chi_dataset_spec(d);
	chi_element e = { .capacity = 1 };
	size_t bytes[CHI_MAX_COLUMNS];
	uint64_t sum = 0;
	for (size_t i = 0; i < spec->n; i++) {
		demand(chi_shape_bytes(&spec->column[i].shape, spec->column[i].dtype, &bytes[i]),
				"a shape that is too large");
		if (bytes[i] > MAX_EXAMPLE)
			bytes[i] = 0;
		else
			e.column[i] = place[i];
	}
	*n = 0;
	while ((*status = chi_dataset_next(d, &e)) == CHOIR_OK) {
		++*n;
		for (size_t i = 0; i < spec->n; i++)
			for (size_t k = 0; k < bytes[i]; k++)
				sum = (sum << 7 | sum >> 57) ^ place[i][k];
	}
	return sum;
}

// Checks that no array is larger than the file can decompress to.
static void check_promise(choir_dataset *d, size_t size)
{
	const chi_spec *spec = chi_dataset_spec(d);
	for (size_t i = 0; i < spec->n; i++) {
		wide bytes = chi_dtype_size(spec->column[i].dtype);
		for (int k = 0; k < spec->column[i].shape.rank; k++)
			bytes *= (uint64_t) spec->column[i].shape.dim[k];
		demand(bytes <= INT64_MAX, "an example of too many bytes");
		demand(bytes * (uint64_t) spec->examples <= (wide) size * CHI_GZIP_RATIO,
				"more is promised than can be");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_file(data, size);
	fuzz_largest = BLOCKS + size * CHI_GZIP_RATIO;
	choir_dataset *d = choir_npz_dataset_new(path, 0, NULL);
	demand(d || choir_error()[0], "refused without a word");
	if (d) {
		int64_t n, again;
		choir_status first, second;
		check_promise(d, size);
		const uint64_t sum = sum_pass(d, &n, &first);
		demand(first != CHOIR_END || n == chi_dataset_spec(d)->examples,
				"not all examples were given");
		demand(first == CHOIR_END || choir_error()[0], "failed without a word");
		chi_dataset_rewind(d);
		demand(sum == sum_pass(d, &again, &second) && n == again && first == second,
				"two passes differ");
	}
	choir_dataset_free(d);
	fuzz_largest = 0;
	return 0;
}
