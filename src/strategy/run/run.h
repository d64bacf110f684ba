// The replicas, their devices, and their shared state. A device's replicas take turns in the order
// of ids: the one with the baton runs. One that must wait parks on its thread and passes the
// baton.
#pragma once

#include "base/fpenv.h"
#include "base/gate.h"
#include "strategy/context.h"
#include "strategy/run/merge_results.h"
#include "trace/trace.h"

struct chi_sync_point;
struct chi_pending_update;
struct chi_pool_thread;

typedef enum {
	CHI_WAITS_TO_START,
	CHI_RUNS,
	CHI_PARKED, // until *parked_for or run->failed is set
	CHI_MAY_GO_ON,
	CHI_RETURNED
} chi_replica_state;

// Replicas with different labels have diverged.
typedef struct {
	uint64_t hash;
	const char *call;
	char name[48];
} chi_label;

// A run resets the first two cache lines.
typedef struct chi_replica {
	_Alignas(CHI_LINE) choir_replica base;
	struct chi_run *run;
	int id, device; // id: in this worker
	// Under the run's lock; only on shared devices.
	chi_replica_state state;
	chi_atomic32 has_returned;
	const chi_atomic32 *parked_for;
	chi_gate baton;
	uint32_t sequence; // sync points so far
	uint32_t small_all_reduces;
	int side;
	int updates;
	uint64_t gradient_hash;
	chi_call_order order;
	struct chi_pending_update *adds_to; // until applied; or NULL
	int gradients;
	bool trains;
	bool cancelled; // its failure is not the cause
	bool ends_later; // its queue is waited for after its update, which follows it
	bool uses_own_args;
	chi_named_tensors call_args, returned;
	chi_named_tensors unkept; // on the heap, if results are not kept
	chi_named_tensors own_args;
	chi_label label;
	int64_t batch_bytes;
	choir_tensor *contribution; // for a reduction by one replica
	choir_reduce_op reduces;
	choir_dtype summed; // before casts
	int64_t offset;
} chi_replica;

// Different cores write different devices, and waiting threads poll done.
typedef struct {
	_Alignas(CHI_LINE) int next, last; // replica to start; one after the last
	int left;
	bool shared;
	bool held; // the baton is or will be taken
	bool closed;
	int may; // no lower parked replica may continue
	uint32_t number;
	_Alignas(CHI_LINE) chi_gate done; // number of the last run
} chi_run_device;

typedef struct {
	choir_replica_fn *fn;
	void *user;
	choir_values *args, *results;
	uint64_t step;
} chi_run_task;

typedef struct chi_run {
	choir_strategy *strategy;
	chi_run_task task;
	int64_t examples; // of all workers; CHOIR_UNKNOWN also if there is one
	chi_run_device *device;
	chi_replica *replica;
	// Two per replica; or NULL.
	struct chi_small_all_reduce *small_all_reduce;
	bool spin;
	bool isolated;
	bool nested_in_isolated;
	chi_atomic32 failed;
	_Alignas(CHI_LINE) chi_mutex lock;
	// Arrivals, and returns on shared devices. While it grows, no wait times out.
	chi_atomic32 progress;
	chi_atomic32 arrivals; // sync points that a replica has tried to reach
	chi_gate wakeup;
	struct chi_pool_thread *busy;
	uint32_t number;
	int failed_replica; // the lowest; replicas: a merge or update failed
	chi_error error;
	struct chi_sync_point **sync_point; // a ring
	uint32_t sync_point_capacity, first_sync_point, next_sync_point;
	struct chi_sync_point *spare_sync_points;
	struct chi_pending_update **pending; // requested, in order
	size_t n_pending, pending_capacity;
	struct chi_pending_update *open; // with gradients, requested or not
	bool applied;
	chi_atomic32 named; // a name was returned although results are not kept
	bool going;
	choir_cross *cross;
	struct chi_run *nested;
	chi_fpenv host;
} chi_run;

chi_run *chi_run_new(choir_strategy *s);
void chi_run_free(chi_run *run);
choir_status chi_run_go(
		chi_run *run, choir_replica_fn *fn, void *user, choir_values *args, choir_values *results);
choir_status chi_run_isolated(
		chi_run *run, int local_replica, choir_replica_fn *fn, void *user, choir_values *args);

// After a non-local exit from the program's function: fails the run, and finishes the device's
// work.
void chi_run_left(chi_run *run, int d);
void chi_run_abandon(chi_run *run, bool back);

// For the default replica's run, which never ends.
void chi_run_renew(chi_run *run);

// Records the thread's last error. local_replica: replicas for a merge or update.
void chi_run_fail(chi_run *run, int local_replica);
// After r's timeout. True: the run fails, naming the missing replica. False: r must wait on: its
// tensors are in use.
bool chi_run_abort_wait(chi_replica *r, const struct chi_sync_point *point);
choir_status chi_run_cancelled(chi_run *run);
void chi_run_wake_up(chi_run *run);

// Schedules the device's other replicas until *flag is set. CHOIR_CANCELLED: the run failed,
// perhaps by r's timeout. point NULL: an update.
choir_status chi_scheduler_wait(
		chi_replica *r, const chi_atomic32 *flag, const struct chi_sync_point *point);
// Gives free batons to replicas that may go on. With the run's lock.
void chi_scheduler_wake(chi_run *run);
// The replica with its device's baton, else local_replica. With the run's lock.
int chi_scheduler_holder(const chi_run *run, int local_replica);
// Until no replica is left or another thread continues. thread: this one if it returns itself to
// the idle list, or NULL.
void chi_scheduler_run(chi_run *run, int d, struct chi_pool_thread *thread);

void chi_run_trace_device(
		const chi_run *run, int d, choir_trace_category category, const char *name);
static inline int chi_replica_number(const chi_replica *r)
{
	return chi_strategy_id(r->run->strategy, r->id);
}
static inline chi_replica *chi_replica_of(const choir_replica *r)
{
	return (chi_replica *) (uintptr_t) r;
}

// join: device d has parked replicas.
choir_status chi_thread_pool_open(choir_strategy *s);
void chi_thread_pool_close(choir_strategy *s);
choir_status chi_thread_pool_send(choir_strategy *s, int d, chi_run *run);
choir_status chi_thread_pool_join(choir_strategy *s, int d, chi_run *run);
// On this thread and one per other device (fewer if one cannot be made). CHOIR_STATE: a function
// of the program ended one.
typedef void chi_thread_pool_fn(void *arg);
choir_status chi_thread_pool_call_all(choir_strategy *s, chi_thread_pool_fn *fn, void *arg);

// CHOIR_CANCELLED: another worker has failed.
choir_status chi_strategy_check_not_stopped(const choir_strategy *s);
