// Memory for examples.
#pragma once

#include "data/data.h"

// out[i] = column[i] advanced. NULL stays NULL.
void chi_columns_move(const choir_dataset *d, void *const column[], int64_t examples, void *out[]);

// Each column begins on its own cache line.
typedef struct {
	void *memory;
	void *column[CHI_MAX_COLUMNS];
	int64_t examples;
	uint32_t ragged_columns;
} chi_row_buffer;
bool chi_row_buffer_new(const choir_dataset *d, int64_t examples, chi_row_buffer *rows);
// Keeps the first kept examples. A failure changes nothing.
bool chi_row_buffer_grow(
		const choir_dataset *d, chi_row_buffer *rows, int64_t kept, int64_t examples);
void chi_row_buffer_free(chi_row_buffer *rows);
choir_status chi_row_buffer_copy(const choir_dataset *d, void *const to[],
		const chi_row_buffer *from, int64_t first, int64_t examples);
// That fit in a core's caches.
int64_t chi_block_examples(const choir_dataset *d);
