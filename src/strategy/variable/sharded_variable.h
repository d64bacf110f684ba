// A sharded variable as a whole.
#pragma once

#include "strategy/strategy.h"

choir_tensor *chi_shards_read(choir_variable *parent, choir_frame *f);
// Until the release, f's reads of variables on servers are of one moment: closures may run between
// reads. False: f has failed.
bool chi_shards_hold(choir_variable *parent, choir_frame *f, bool *held);
void chi_shards_release(choir_variable *parent, bool held);
// Reads of the shards, in the frame's arena.
choir_tensor **chi_shards_read_each(choir_variable *parent, choir_frame *f);

// Shard i has first[i] .. first[i + 1] - 1, in their original order.
typedef struct {
	int64_t n;
	int64_t *first;
	int64_t *place; // among the given row numbers
	int64_t *row;
} chi_dealt_rows;
choir_status chi_shards_deal(choir_frame *f, const choir_variable *parent, int64_t n,
		const int64_t rows[], chi_dealt_rows *d);
