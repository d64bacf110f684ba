// One update on its way, from the first gradient that is given to the last slice that is written.
#pragma once

#include "base/alloc.h"
#include "strategy/gradients/gradients.h"
#include "strategy/gradients/overlap.h"

// Elements: fixed, so that norms have the same bits everywhere, and squares are of what is summed.
enum { CHI_UPDATE_SLICE = CHI_CHUNK };

// What a replica gave as slices: the references are ours.
typedef struct {
	int replica;
	int64_t n;
	chi_buffer *buffer;
	void *values;
	chi_buffer *index_buffer;
	void *index;
	choir_dtype index_dtype;
} chi_sparse_gradient;

typedef struct {
	size_t n, capacity;
	chi_sparse_gradient *given;
} chi_sparse_gradients;

// The sum of what all replicas gave, in memory that is kept; where every row moves, a slice of
// memory for each lane, in which rows are laid among zeros.
typedef struct {
	int64_t n;
	int64_t *row; // ascending, each once
	char *values;
	char *laid;
	chi_scratch scratch; // of all of these
	int64_t *each; // rows of each replica of all workers
	size_t *bytes; // of each worker, of what is exchanged
} chi_merged_rows;

// How gradients were given, by any replica.
enum { CHI_GAVE_ROWS = 1, CHI_GAVE_TENSORS = 2 };

typedef struct chi_item {
	struct chi_instance *instance;
	choir_variable *variable;
	int lane;
	size_t index;
	chi_partial_sums fold;
	chi_sparse_gradients rows; // given in place of tensors
	choir_collective collective;
	uint64_t ticket;
	int last_giver; // the last replica that gave; CHOIR_NONE
	int place; // of that among its gradients
} chi_item;

typedef struct {
	size_t n, capacity; // items of this update; kept items
	chi_item **item;
	size_t cursor; // where the next gradient is expected
	chi_scratch squares; // fetched from the lane's device
	bool through; // the lane has done its part
	chi_stream *queued; // which makes the gradients, up to mark; NULL: they are made
	uint64_t event;
} chi_lane_items;

// Where the sum for a copy is kept: on the device of the lane that updates the copy, which is one
// that shares its memory, or, where none does, the first.
typedef struct {
	chi_buffer *sum; // NULL: it is not kept
	void *data; // where it begins there
	chi_buffer *away; // for a copy on a device that carries no replica: the sum there; NULL
	int lane;
} chi_landing;

typedef struct chi_bundle chi_bundle;

// What lanes share of an item.
typedef struct {
	choir_variable *variable;
	chi_landing *landing; // of each copy
	int landings;
	double *squares; // of each slice
	int64_t slices, slices_capacity;
	int64_t offset; // of its sum in a bundle, elements
	uint32_t first_piece;
	unsigned char kinds; // CHI_GAVE_..., one or both
	bool by_rows; // no sum but that of rows
	bool spread; // of these: an element without a gradient moves, too
	chi_merged_rows rows;
} chi_shared_item;

typedef enum { CHI_OPEN, CHI_BY_LANES, CHI_BY_ONE } chi_instance_stage;

typedef struct chi_instance {
	chi_apply *apply;
	choir_strategy *strategy; // the worker whose lanes do it
	void *state; // the optimizer's
	chi_run *run; // NULL: free for use
	int ordinal; // the how-manieth of its optimizer in this run
	chi_lane_items *lane;
	size_t n, shared_capacity;
	chi_shared_item *shared;
	choir_variable **variable; // of each shared item, for begin
	size_t variable_capacity;
	unsigned char *kinds; // room for what workers tell each other
	size_t kinds_capacity;
	bool rows; // may stay rows: not gated, and all memory is the host's
	bool keeps; // sums are kept: where rows may not, and of what other workers use
	bool gated;
	int64_t bundled; // elements of all items, if they are summed as one; 0: they are not
	chi_bundle *bundle; // of each lane
	bool alone; // one lane, whose sums are final as they are
	bool spread; // of some items
	chi_instance_stage stage; // under the run's lock
	chi_gate prepared;
	choir_status status; // of preparing
	chi_error error;
	chi_atomic32 all; // every replica has committed
	chi_atomic32 done;
	chi_atomic32 touched; // something was written
	chi_atomic32 next_piece, lanes_through, lanes_met;
	chi_atomic32 met; // all lanes have
	uint32_t pieces;
	chi_early early;
	bool open; // in its run's list of those that were given something
	struct chi_instance *next_open;
	struct chi_instance *next;
} chi_instance;

struct chi_apply {
	choir_strategy *strategy; // home
	chi_mutex lock; // which instances there are, and whose they are
	const chi_apply_table *table;
	void *user;
	chi_instance *instances;
};

// Whether who waits for others spins first: not outside of runs, where one does it all, and not
// where there are more lanes than cores.
static inline bool chi_instance_spins(const chi_instance *in)
{
	return in->run != NULL && in->run->spin;
}

// An instance for the ordinal-th update of a in run.
chi_instance *chi_instance_get(chi_apply *a, chi_run *run, int ordinal);
void chi_instance_forget(chi_instance *in);
void chi_instance_free(chi_instance *in);
// The item of v on a lane, made if it is new.
chi_item *chi_instance_item(chi_instance *in, int lane, choir_variable *v);

// Waits at the run's gate until *flag, of in, is not zero, for a lane whose replicas have all
// returned (collect.c). False: the run has failed.
bool chi_apply_wait(chi_instance *in, const chi_atomic32 *flag);

// Rows (sparse_gradients.c). Keeps what a replica gave; before the first write, all replicas' rows
// of item i are added up, or made tensors if one gave a tensor; and the update of those that were
// added up.
choir_status chi_sparse_gradients_add(
		chi_sparse_gradients *rows, int replica, const choir_tensor *slices);
bool chi_sparse_gradients_have(const chi_sparse_gradients *rows, int replica);
void chi_sparse_gradients_clear(chi_sparse_gradients *rows);
// The row numbers of g.
void chi_sparse_gradient_widen(const chi_sparse_gradient *g, int64_t *to);
// What workers tell each other (sparse_gradients_exchange.c), all of it by one thread: how the
// gradients were given; how many rows of item i each replica has, and all together; and all of
// these rows, in the order of replicas.
choir_status chi_sparse_gradients_exchange_kinds(chi_instance *in);
choir_status chi_sparse_gradients_count(chi_instance *in, size_t i, size_t *all);
choir_status chi_sparse_gradients_gather(
		chi_instance *in, size_t i, size_t row_bytes, int64_t *index, char *values);
// What a replica here gave of item i; NULL: no rows.
const chi_sparse_gradient *chi_sparse_gradient_of(const chi_instance *in, size_t i, int replica);
// by is the lane whose thread, and so whose stream, this is.
choir_status chi_sparse_gradients_prepare(chi_instance *in, size_t i, int by);
// Of items that are not spread, or that other workers use; and a slice of one that is spread, laid
// out for a lane among zeros.
choir_status chi_sparse_gradients_update(chi_instance *in, int by);
const void *chi_sparse_gradients_chunk(
		const chi_instance *in, int lane, size_t i, int64_t first, int64_t count);

// All items as one (bucket.c). Decides, before anything is kept; gives a landing its memory; joins
// for a lane by item 0; finds the sum of an item in host memory, to which all are fetched when the
// first is asked for; gives the memory back.
choir_status chi_bundle_prepare(chi_instance *in);
choir_status chi_bundle_land(chi_instance *in, const chi_shared_item *item, chi_landing *l);
choir_status chi_bundle_join(chi_instance *in, int lane);
choir_status chi_bundle_fetch(
		chi_instance *in, const chi_item *item, choir_device *host, const void **data);
void chi_bundle_forget(chi_instance *in);

// Calls the optimizer for elements of a copy (execute.c).
choir_status chi_item_write(const chi_item *item, int copy, int64_t first, int64_t count,
		const void *data, double factor);
// Does the parts of lanes from .. to - 1 (execute.c). One caller prepares for all; the last
// finishes.
choir_status chi_instance_execute(chi_instance *in, int from, int to, bool prepare_it);
