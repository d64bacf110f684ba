// Update context from inside: one copy of a variable, or of all that lies where the strategy's
// non-slot variables do, being written on its device.
#pragma once

#include "choir/update.h"
#include "strategy/cross/cross.h"

typedef struct {
	choir_update base; // first, so that a choir_update is one of these
	chi_cross *cross; // who gave the arguments
	choir_variable *variable; // NULL: of the non-slot variables
	const choir_value *destination; // where these lie, if there is no variable
	const choir_variable *parent; // what was to be updated, if variable is a shard of it; NULL
	int copy;
	int replica; // the first that reads this copy
	choir_variable *written; // the first of those that it wrote
	bool elementwise; // may be called on chunks
	struct chi_chunk_context *chunk; // this is one of them; NULL: the whole copy
	int64_t first, count; // elements of the chunk
} chi_update;

// Calls fn once for each copy of u's variable, or device of its destination, with what was given
// to the cross-replica context; afterwards nothing is given any more. The context has been
// checked.
choir_status chi_update_run(chi_update *u, choir_update_fn *fn, void *user);

// One call of fn in u's context, with f as its frame.
choir_status chi_update_call(chi_update *u, choir_frame *f, choir_update_fn *fn, void *user);

// Slices (elementwise_update.c). Whether u's copy is updated in chunks, and doing that.
bool chi_update_is_chunked(const chi_update *u);
choir_status chi_update_chunks(chi_update *u, choir_update_fn *fn, void *user);
// In a chunk: v's elements of it, where v is colocated with the target; NULL: v has another size.
// Reading what may lie anywhere, writing, a leaf that was given, and noting that v is written,
// whichever thread this is.
void *chi_update_chunk_of(const chi_update *u, const choir_variable *v);
choir_tensor *chi_update_chunk_read(const chi_update *u, choir_variable *v);
choir_status chi_update_chunk_write(
		chi_update *u, choir_variable *v, chi_assign_op op, choir_tensor *t);
choir_tensor *chi_update_chunk_arg(const chi_update *u, size_t leaf);
void chi_update_chunk_note_written(chi_update *u, choir_variable *v);

// The copy of v that lies with the one being updated; CHI_NO_COPY: v is of another strategy, or
// this update may not wait for it.
int chi_update_copy_of(const chi_update *u, const choir_variable *v);
// What v stands for in an update of shards: of what is cut alike, beside the target, the shard
// that lies there. And the rows of t that belong to the shard being updated, if t is as large as
// the whole. Else v and t.
choir_variable *chi_update_shard(const chi_update *u, choir_variable *v);
choir_tensor *chi_update_rows(const chi_update *u, choir_tensor *t);
// A write inside the update: the target's copy, or what is colocated with it.
choir_status chi_update_write(
		choir_update *u, choir_variable *v, chi_assign_op op, choir_tensor *t);
// Whether rows of v may be written inside the update; recorded in u's frame.
choir_status chi_update_may_scatter(choir_update *u, const choir_variable *v);
// After a write inside the update, which gave status: v is undefined if the update fails. Returns
// status.
choir_status chi_update_wrote(chi_update *u, choir_variable *v, choir_status status);

// Whether a destination is where s's non-slot variables lie.
bool chi_strategy_is_non_slot_destination(const choir_strategy *s, const choir_value *destination);
