// Update context: a function writes one copy of a variable, or a device's non-slot variables.
#pragma once

#include "choir/update.h"
#include "strategy/cross/cross.h"

typedef struct {
	choir_update base;
	chi_cross *cross;
	choir_variable *variable; // NULL: non-slot
	const choir_value *destination;
	// variable is its shard; or NULL
	const choir_variable *parent;
	int copy;
	int replica; // first reader of this copy
	choir_variable *written;
	bool elementwise;
	struct chi_chunk_context *chunk; // NULL: the whole copy
	int64_t first, count;
} chi_update;

choir_status chi_update_run(chi_update *u, choir_update_fn *fn, void *user);
choir_status chi_update_call(chi_update *u, choir_frame *f, choir_update_fn *fn, void *user);

bool chi_update_is_chunked(const chi_update *u);
choir_status chi_update_chunks(chi_update *u, choir_update_fn *fn, void *user);
// NULL: v has another size. note_written: on any thread.
void *chi_update_chunk_of(const chi_update *u, const choir_variable *v);
choir_tensor *chi_update_chunk_read(const chi_update *u, choir_variable *v);
choir_status chi_update_chunk_write(
		chi_update *u, choir_variable *v, chi_assign_op op, choir_tensor *t);
choir_tensor *chi_update_chunk_arg(const chi_update *u, size_t leaf);
void chi_update_chunk_note_written(chi_update *u, choir_variable *v);

// CHI_NO_COPY, recorded in the frame: v has another strategy, or another lock, for which this
// update must not wait.
int chi_update_copy_of(const chi_update *u, const choir_variable *v);
// In an update of shards: v's colocated shard, and its rows of t if t has the whole shape.
// Otherwise v and t.
choir_variable *chi_update_shard(const chi_update *u, choir_variable *v);
choir_tensor *chi_update_rows(const chi_update *u, choir_tensor *t);
// The update's copy or a colocated variable.
choir_status chi_update_write(
		choir_update *u, choir_variable *v, chi_assign_op op, choir_tensor *t);
choir_status chi_update_may_scatter(choir_update *u, const choir_variable *v);
// Returns status. v becomes undefined if the update fails.
choir_status chi_update_wrote(chi_update *u, choir_variable *v, choir_status status);

bool chi_strategy_is_non_slot_destination(const choir_strategy *s, const choir_value *destination);
