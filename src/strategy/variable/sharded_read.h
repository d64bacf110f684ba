// Reads and writes of a whole sharded variable, shard by shard.
#pragma once

#include "strategy/strategy.h"

// Reads all shards as one tensor.
choir_tensor *chi_shards_read(choir_variable *parent, choir_frame *f);

// Row numbers grouped by shard: shard i has entries first[i] .. first[i + 1] - 1, in their
// original order.
typedef struct {
	int64_t n;
	int64_t *first;
	int64_t *place; // index among the given row numbers
	int64_t *row; // within the shard
} chi_dealt_rows;
// Groups n rows by shard, in f's arena.
choir_status chi_shards_deal(choir_frame *f, const choir_variable *parent, int64_t n,
		const int64_t rows[], chi_dealt_rows *d);
