// Sharded variables: a parent without copies, and shards, variables that hold the parent's rows in
// order.
#pragma once

#include "value/variable.h"

// Makes v shard index of parent, which must have space for it.
void chi_shard_join(choir_variable *parent, int index, choir_variable *v, int64_t first_row);
// The index in the sharded variable of a shard's first element.
int64_t chi_shard_first(const choir_variable *shard);
// Takes the shard's rows of t, which has the parent's shape; returns a plain number as it is.
// NULL: recorded in t's frame.
choir_tensor *chi_shard_rows(const choir_variable *shard, choir_tensor *t);
// Joins shards' rows along axis 0 and overwrites the array. NULL: recorded.
choir_tensor *chi_shards_join_rows(int64_t n, choir_tensor *rows[]);

// Read and write a sharded variable as variable.h, through all shards.
choir_tensor *chi_shards_view(choir_variable *parent, choir_frame *f);
choir_status chi_shards_from_host(choir_variable *parent, const void *from);
choir_status chi_shards_to_host(choir_variable *parent, void *to);
