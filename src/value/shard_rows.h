// A parent without copies, and shards, variables that hold its rows in order.
#pragma once

#include "value/variable.h"

void chi_shard_join(choir_variable *parent, int index, choir_variable *v, int64_t first_row);
// Its first row in the parent.
int64_t chi_shard_first(const choir_variable *shard);
// Of t, which has the parent's shape or is a plain number. NULL: recorded in t's frame.
choir_tensor *chi_shard_rows(const choir_variable *shard, choir_tensor *t);
// Along axis 0; overwrites the array. NULL: recorded.
choir_tensor *chi_shards_join_rows(int64_t n, choir_tensor *rows[]);

// As in variable.h, through all shards.
choir_tensor *chi_shards_view(choir_variable *parent, choir_frame *f);
choir_status chi_shards_from_host(choir_variable *parent, const void *from);
choir_status chi_shards_to_host(choir_variable *parent, void *to);
