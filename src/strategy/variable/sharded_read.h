// Variables in shards, as the strategy's replicas and programs see them: reads and writes of the
// whole are reads and writes of the shards, each by the rules of the context.
#pragma once

#include "strategy/strategy.h"

// The whole in f, by a read of each shard. NULL: recorded in f.
choir_tensor *chi_shards_read(choir_variable *parent, choir_frame *f);

// Row numbers, dealt to the shards that have them: shard i's are those from first[i] to
// first[i + 1] - 1, in the order in which they came.
typedef struct {
	int64_t n;
	int64_t *first; // shards + 1
	int64_t *place; // which of the row numbers
	int64_t *row; // the row of the shard
} chi_dealt_rows;
// In f's arena. rows are n rows of the whole.
choir_status chi_shards_deal(choir_frame *f, const choir_variable *parent, int64_t n,
		const int64_t rows[], chi_dealt_rows *d);
