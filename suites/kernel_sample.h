// Random calls of kernels, for the suite of kernels: for each operation of kernel_table.h, inputs
// of random shapes with values for which the operation is defined, and how far results may be off.
#pragma once

#include <choir/extend/kernel_table.h>

enum { CHI_SAMPLE_INPUTS = 5, CHI_SAMPLE_ATTRIBUTES = 128 };

typedef struct chi_sample chi_sample;

typedef struct {
	const char *operation;
	void (*make)(chi_sample *s);
	double low, high; // range of the inputs
	double grid; // inputs are multiples of it; 0: any number
	// A result may differ by ulps times the dtype's epsilon times the expected value, or times
	// floor if this is larger. ulps 0: no difference. floor 0: the largest result of the call.
	double ulps, floor;
	int detail; // for make
} chi_kernel_row;

struct chi_sample {
	const chi_kernel_row *row;
	choir_device *cpu;
	choir_dtype dtype; // of the kernel
	uint64_t seed;
	bool large; // some dimensions are large
	size_t n;
	choir_buffer in[CHI_SAMPLE_INPUTS], out;
	bool takes_nan; // results for NAN are those of the plain kernel
	bool in_place; // out is in[0], and the kernel writes the inputs
	_Alignas(16) unsigned char attributes[CHI_SAMPLE_ATTRIBUTES];
	choir_status status; // of making it
};

// The operations; the last row has no operation.
extern const chi_kernel_row chi_kernel_rows[];

// Makes a random call. Also after a failure, the caller frees the sample. CHOIR_END: the operation
// has no such call.
choir_status chi_sample_make(
		chi_sample *s, const chi_kernel_row *row, choir_dtype dtype, uint64_t seed, bool large);
void chi_sample_free(chi_sample *s);

size_t chi_sample_bytes(const choir_buffer *b);
// Allocates memory of a buffer, aligned to 64 bytes.
choir_status chi_sample_allocate(choir_buffer *b);
// Converts from into to, which has from's shape. The plain kernel "cast" does it.
choir_status chi_sample_cast(choir_device *cpu, const choir_buffer *from, choir_buffer *to);
