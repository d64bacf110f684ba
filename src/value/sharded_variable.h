// Variables in shards. The parent has no copies; its shards are variables that hold its rows, in
// order.
#pragma once

#include "value/variable.h"

// Makes v shard index of parent, which has room for it.
void chi_shard_join(choir_variable *parent, int index, choir_variable *v, int64_t first_row);
// The parent's element that is the first of a shard.
int64_t chi_shard_first(const choir_variable *shard);
// The rows of a shard out of t, which has the parent's shape; a plain number as it is. NULL:
// recorded in t's frame.
choir_tensor *chi_shard_rows(const choir_variable *shard, choir_tensor *t);
// Joins n tensors along axis 0; the array is overwritten. NULL: recorded.
choir_tensor *chi_shards_join_rows(int64_t n, choir_tensor *rows[]);

// As the functions of variable.h, of all shards.
choir_tensor *chi_shards_view(choir_variable *parent, choir_frame *f);
choir_status chi_shards_from_host(choir_variable *parent, const void *from);
choir_status chi_shards_to_host(choir_variable *parent, void *to);
