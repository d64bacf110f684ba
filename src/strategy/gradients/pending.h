// One update on its way, from the first gradient that is given to the last chunk that is written.
#pragma once

#include "base/alloc.h"
#include "strategy/gradients/gradients.h"
#include "strategy/gradients/overlap.h"

// Elements: fixed, so that norms have the same bits everywhere, and squares are of what is summed.
enum { CHI_UPDATE_CHUNK = CHI_CHUNK };

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
	chi_sparse_gradient *gradient;
} chi_sparse_gradients;

// The sum of what all replicas gave, in memory that is kept; where every row moves, a chunk of
// memory for each device, in which rows are laid among zeros.
typedef struct {
	int64_t n;
	int64_t *row; // ascending, each once
	char *values;
	char *dense_scratch;
	chi_scratch scratch; // of all of these
	int64_t *each; // rows of each replica of all workers
} chi_merged_rows;

// How gradients were given, by any replica.
enum { CHI_GRADIENT_SPARSE = 1, CHI_GRADIENT_DENSE = 2 };

typedef struct chi_device_gradient {
	struct chi_pending_update *update;
	choir_variable *variable;
	int device;
	size_t index;
	chi_partial_sums partial_sums;
	chi_sparse_gradients sparse; // given in place of tensors
	choir_collective collective;
	uint64_t request;
	int last_replica; // the last replica that gave; CHOIR_NONE
	int position; // of that among its gradients
} chi_device_gradient;

typedef struct {
	size_t n, capacity; // gradients of this update; kept ones
	chi_device_gradient **gradient;
	size_t cursor; // where the next gradient is expected
	chi_scratch squares; // fetched from the device
	bool done; // the device has done its part
	chi_stream *queued; // which makes the gradients, up to mark; NULL: they are made
	uint64_t event;
} chi_device_gradients;

// Where the sum for a copy is kept: on the device that updates the copy, which is
// one that shares its memory, or, where none does, the first.
typedef struct {
	chi_buffer *sum; // NULL: it is not kept
	void *data; // where it begins there
	chi_buffer *away; // for a copy on a device that carries no replica: the sum there; NULL
	int device;
} chi_sum_buffer;

typedef struct chi_bucket chi_bucket;

// What devices share of a gradient.
typedef struct {
	choir_variable *variable;
	chi_sum_buffer *sum_buffer; // of each copy
	int sum_buffers;
	double *squares; // of each chunk
	int64_t chunks, chunks_capacity;
	int64_t offset; // of its sum in a bucket, elements
	uint32_t first_chunk;
	unsigned char kinds; // CHI_GRADIENT_..., one or both
	bool is_sparse; // no sum but that of rows
	bool touches_all_rows; // of these: an element without a gradient moves, too
	chi_merged_rows rows;
} chi_pending_variable;

typedef enum { CHI_OPEN, CHI_BY_DEVICES, CHI_BY_ONE } chi_pending_update_stage;

typedef struct chi_pending_update {
	chi_gradients *gradients;
	choir_strategy *strategy; // the worker whose devices do it
	void *state; // the optimizer's
	chi_run *run; // NULL: free for use
	int ordinal; // the how-manieth of its optimizer in this run
	chi_device_gradients *device;
	size_t n, pending_capacity;
	chi_pending_variable *pending;
	choir_variable **variable; // of each pending variable, for begin
	size_t variable_capacity;
	unsigned char *kinds; // room for what workers tell each other
	size_t kinds_capacity;
	bool allows_sparse; // may stay rows: not gated, and all memory is the host's
	bool two_pass; // sums are kept: where rows may not, and of what other workers use
	bool gated;
	// Elements of all gradients, if they are summed as one; 0: they are not.
	int64_t bucket_elements;
	chi_bucket *bucket; // of each device
	bool single_device; // one device, whose sums are final as they are
	bool touches_all_rows; // of some variables
	chi_pending_update_stage stage; // under the run's lock
	chi_gate prepared;
	choir_status status; // of preparing
	chi_error error;
	chi_atomic32 all_applied; // every replica has asked for it
	chi_atomic32 done;
	chi_atomic32 written; // something was written
	chi_atomic32 next_chunk, devices_done, devices_arrived;
	chi_atomic32 arrived; // all devices have
	uint32_t chunks;
	chi_overlap overlap;
	bool open; // in its run's list of those that were given something
	struct chi_pending_update *next_open;
	struct chi_pending_update *next;
} chi_pending_update;

struct chi_gradients {
	choir_strategy *strategy; // owner
	chi_mutex lock; // which updates there are, and whose they are
	const chi_gradients_table *table;
	void *user;
	chi_pending_update *updates;
};

// Whether who waits for others spins first: not outside of runs, where one does it all, and not
// where there are more devices than cores.
static inline bool chi_pending_update_spins(const chi_pending_update *u)
{
	return u->run != NULL && u->run->spin;
}

// The pending update for the ordinal-th update of a in run.
chi_pending_update *chi_pending_update_get(chi_gradients *a, chi_run *run, int ordinal);
void chi_pending_update_discard(chi_pending_update *u);
void chi_pending_update_free(chi_pending_update *u);
// The gradient of v on a device, made if it is new.
chi_device_gradient *chi_pending_update_gradient(chi_pending_update *u, int d, choir_variable *v);
