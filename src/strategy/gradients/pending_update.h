// A pending update, from its first gradient to its last written chunk.
#pragma once

#include "base/alloc.h"
#include "base/gate.h"
#include "strategy/gradients/gradients.h"
#include "strategy/gradients/overlap_sum.h"

// Fixed, so that norms have the same bits everywhere.
enum { CHI_UPDATE_CHUNK = CHI_CHUNK };

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

// dense_scratch, if every row changes: a chunk per device.
typedef struct {
	int64_t n;
	int64_t *row;
	char *values;
	char *dense_scratch;
	chi_scratch scratch;
	int64_t *each; // per replica, all workers
} chi_merged_rows;

enum { CHI_GRADIENT_SPARSE = 1, CHI_GRADIENT_DENSE = 2 };

typedef struct chi_device_gradient {
	struct chi_pending_update *update;
	choir_variable *variable;
	int device;
	size_t index;
	chi_partial_sums partial_sums;
	chi_sparse_gradients sparse;
	choir_collective collective;
	uint64_t request;
	int last_replica;
	int position; // among that replica's gradients
} chi_device_gradient;

typedef struct {
	chi_buffer *memory;
	double *verdict;
	size_t n;
	chi_scratch ends;
	chi_staging_buffer *fetched;
} chi_device_gate;

typedef struct {
	size_t n, capacity;
	chi_device_gradient **gradient;
	size_t cursor;
	chi_scratch squares;
	chi_device_gate gate;
	bool has_sparse;
	bool done;
	chi_stream *queued; // gradients are complete there after event; may be NULL
	uint64_t event;
} chi_device_gradients;

// On the first device that shares the copy's memory, else device 0.
typedef struct {
	chi_buffer *sum;
	chi_buffer *wire; // the sum in the dtype of the wire, or NULL
	void *data;
	chi_buffer *away; // on a device without replicas, or NULL
	int device;
} chi_sum_buffer;

typedef struct chi_bucket chi_bucket;

typedef struct {
	choir_variable *variable;
	chi_sum_buffer *sum_buffer;
	int sum_buffers;
	double *squares;
	int64_t chunks, chunks_capacity;
	int64_t offset;
	uint32_t first_chunk;
	unsigned char kinds; // CHI_GRADIENT_*
	bool is_sparse;
	bool touches_all_rows; // sparse, but all elements change
	chi_merged_rows rows;
} chi_pending_variable;

typedef enum { CHI_OPEN, CHI_BY_DEVICES, CHI_BY_ONE } chi_pending_update_stage;

typedef struct chi_pending_update {
	chi_gradients *gradients;
	choir_strategy *strategy;
	void *state;
	chi_run *run; // NULL: unused
	int ordinal; // of its optimizer's in this run
	chi_device_gradients *device;
	size_t n, pending_capacity;
	chi_pending_variable *pending;
	choir_variable **variable;
	size_t variable_capacity;
	unsigned char *kinds;
	size_t kinds_capacity;
	bool sparse; // perhaps on other workers only
	bool allows_sparse;
	// Sums are kept first: gated, copies in other memory, or a shared variable.
	bool two_pass;
	bool gated;
	bool devices_decide; // no squares come to the host
	int64_t bucket_elements; // 0: no bucket
	chi_bucket *bucket;
	bool single_device; // its partial sums are the sums
	bool touches_all_rows;
	chi_pending_update_stage stage; // under the run's lock
	chi_gate prepared;
	choir_status status;
	chi_error error;
	chi_atomic32 all_applied;
	int32_t last; // the last replica's track, once all have applied
	chi_atomic32 done;
	chi_atomic32 written;
	chi_atomic32 spared; // queued work failed before the update, so its streams write nothing
	chi_atomic32 landed; // nevertheless those of a device have written, or may have
	chi_atomic32 next_chunk, devices_done, devices_arrived;
	chi_atomic32 arrived;
	uint32_t chunks;
	chi_overlap overlap;
	bool open;
	struct chi_pending_update *next_open;
	struct chi_pending_update *next;
} chi_pending_update;

struct chi_gradients {
	choir_strategy *strategy;
	chi_mutex lock; // of the updates and their runs
	const chi_gradients_table *table;
	void *user;
	chi_pending_update *updates;
};

// In runs with at most one device per core.
static inline bool chi_pending_update_spins(const chi_pending_update *u)
{
	return u->run != NULL && u->run->spin;
}

chi_pending_update *chi_pending_update_get(chi_gradients *a, chi_run *run, int ordinal);
void chi_pending_update_discard(chi_pending_update *u);
chi_device_gradient *chi_pending_update_gradient(chi_pending_update *u, int d, choir_variable *v);
