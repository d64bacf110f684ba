// Update context: a function writes one copy of a variable, or the non-slot variables on one
// device.
#pragma once

#include "choir/update.h"
#include "strategy/cross/cross.h"

typedef struct {
	choir_update base;
	chi_cross *cross; // has the arguments
	choir_variable *variable; // NULL: non-slot variables
	const choir_value *destination; // if variable is NULL
	// the sharded variable, if variable is its shard; or NULL
	const choir_variable *parent;
	int copy;
	int replica; // first reader of this copy
	choir_variable *written; // list of written variables
	bool elementwise;
	struct chi_chunk_context *chunk; // NULL: the whole copy
	int64_t first, count;
} chi_update;

// Calls an update's fn for each copy of u's variable, or each device of its destination; then
// clears the arguments. The caller has checked the context.
choir_status chi_update_run(chi_update *u, choir_update_fn *fn, void *user);

choir_status chi_update_call(chi_update *u, choir_frame *f, choir_update_fn *fn, void *user);

// Returns whether an elementwise update changes u's copy in chunks; chunks does so
// (elementwise_update.c).
bool chi_update_is_chunked(const chi_update *u);
choir_status chi_update_chunks(chi_update *u, choir_update_fn *fn, void *user);
// Returns an elementwise update's chunk of v, which is colocated with the target; NULL: v has
// another size. Any thread may call note_written.
void *chi_update_chunk_of(const chi_update *u, const choir_variable *v);
choir_tensor *chi_update_chunk_read(const chi_update *u, choir_variable *v);
choir_status chi_update_chunk_write(
		chi_update *u, choir_variable *v, chi_assign_op op, choir_tensor *t);
choir_tensor *chi_update_chunk_arg(const chi_update *u, size_t leaf);
void chi_update_chunk_note_written(chi_update *u, choir_variable *v);

// Returns the copy of v on the update's device. CHI_NO_COPY, recorded in the frame: v belongs to
// another strategy, or has another lock that this update must not wait for.
int chi_update_copy_of(const chi_update *u, const choir_variable *v);
// Replace a sharded variable in an update of shards: shard gives v's shard that is colocated with
// the current one, rows that shard's rows of t if t has the whole shape. Otherwise they return v
// and t.
choir_variable *chi_update_shard(const chi_update *u, choir_variable *v);
choir_tensor *chi_update_rows(const chi_update *u, choir_tensor *t);
// Writes the update's copy or a colocated variable.
choir_status chi_update_write(
		choir_update *u, choir_variable *v, chi_assign_op op, choir_tensor *t);
// Checks that an update may write rows of v. Errors are recorded in u's frame.
choir_status chi_update_may_scatter(choir_update *u, const choir_variable *v);
// Notes an update's write with this status, and returns it. v becomes undefined if the update
// fails.
choir_status chi_update_wrote(chi_update *u, choir_variable *v, choir_status status);

bool chi_strategy_is_non_slot_destination(const choir_strategy *s, const choir_value *destination);
