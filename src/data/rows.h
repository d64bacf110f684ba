// Memory for examples, and copies between columns.
#pragma once

#include "data/data.h"

// Copies examples of the columns that to wants.
choir_status chi_columns_copy(
		const choir_dataset *d, void *const to[], void *const from[], int64_t examples);
// out[i] = column[i] moved on by so many examples; NULL stays NULL.
void chi_columns_move(const choir_dataset *d, void *const column[], int64_t examples, void *out[]);

// Memory for some examples of each column, every column on a cache line of its own.
typedef struct {
	void *memory;
	void *column[CHI_MAX_COLUMNS];
	int64_t examples;
	uint32_t ragged_columns; // bit i: column i varies
} chi_row_buffer;
// False: recorded.
bool chi_row_buffer_new(const choir_dataset *d, int64_t examples, chi_row_buffer *rows);
// Room for more examples, with the first so many kept; rows may be all zeros. On failure nothing
// changes.
bool chi_row_buffer_grow(
		const choir_dataset *d, chi_row_buffer *rows, int64_t kept, int64_t examples);
void chi_row_buffer_free(chi_row_buffer *rows);
// Copies examples of all columns that to wants.
choir_status chi_row_buffer_copy(const choir_dataset *d, void *const to[],
		const chi_row_buffer *from, int64_t first, int64_t examples);
// How many examples of d are worth reading at once: what fits in a core's nearer caches.
int64_t chi_block_examples(const choir_dataset *d);
