// A run: the replicas, the devices that carry them, and the state they share. If a device carries
// several replicas, they take turns: the replica that holds the device's baton runs, in the order
// of ids. A replica that must wait parks on its own thread and passes the baton on. All memory of
// a run is kept for the next run.
#pragma once

#include "base/fpenv.h"
#include "strategy/context.h"
#include "strategy/run/results.h"
#include "trace/trace.h"

struct chi_sync_point;
struct chi_pending_update;
struct chi_pool_thread;

typedef enum {
	CHI_WAITS_TO_START,
	CHI_RUNS,
	CHI_PARKED, // waits until *parked_for is not zero or the run has failed
	CHI_MAY_GO_ON, // parked, and its wait is over
	CHI_RETURNED
} chi_replica_state;

// What a collective is about, if its tensor does not say it: for example a variable that is read.
// Replicas with different labels have diverged, even if their tensors are alike.
typedef struct {
	uint64_t hash; // 0: no label
	const char *call; // the program's call, if it is not the collective itself; else NULL
	char name[48]; // for messages
} chi_label;

// The fields that a run resets lie in the first two cache lines, which move between cores twice
// in each run.
typedef struct chi_replica {
	_Alignas(CHI_LINE) choir_replica base; // first: a choir_replica points to its chi_replica
	struct chi_run *run;
	int id, device; // id: within this worker
	// under the run's lock; used only if its device carries several replicas
	chi_replica_state state;
	chi_atomic32 has_returned; // also set if it was never called
	const chi_atomic32 *parked_for;
	chi_gate baton; // changes when the baton is passed to this replica
	uint32_t sequence; // sync points so far
	uint32_t small_all_reduces; // number so far
	int side; // which half of run->small_all_reduce this run uses, 0 or 1
	int updates; // optimizer updates so far
	uint64_t gradient_hash; // hash of the variables of its gradients since its last update
	chi_call_order order; // of the tensors that it passed to collectives in this run
	int gradients; // how many gradients that hash covers
	bool trains; // it added gradients in this run
	bool cancelled; // another failure stopped it: what it returns is not the cause
	bool uses_own_args; // the library's own_args replace call_args
	chi_named_tensors call_args, returned;
	chi_named_tensors unkept; // returned names if the run keeps no results, on the heap
	chi_named_tensors own_args; // arguments that the library passes
	chi_label label; // of the collective that it is about to enter
	int64_t batch_bytes; // of the batch of collectives that it is in; 0: none
	choir_tensor *contribution; // its tensor, for a collective that one replica does for all
	choir_reduce_op reduces; // the reduction of that collective
	choir_dtype summed; // dtype that it passed to all_reduce, whatever dtype is summed
	int64_t offset; // of its part in the last gathered tensor
} chi_replica;

// Padded to cache lines: different cores write devices, and waiting threads poll done.
typedef struct {
	_Alignas(CHI_LINE) int next, last; // next replica that has not started; one after the last
	int left; // replicas that have not returned
	bool shared; // carries several replicas
	bool held; // a replica holds the baton or is about to take it
	bool closed; // all replicas have returned, and one thread does the rest
	int may; // no parked replica below this one may go on
	uint32_t number; // of the run
	_Alignas(CHI_LINE) chi_gate done; // number of the last run that the device has completed
} chi_run_device;

// The task of a run.
typedef struct {
	choir_replica_fn *fn;
	void *user;
	choir_values *args, *results;
	uint64_t step; // for the keys of random numbers
} chi_run_task;

// The first lines are read by all threads and seldom written. Only a line that carries news moves
// between cores.
typedef struct chi_run {
	choir_strategy *strategy;
	chi_run_task task;
	chi_run_device *device;
	chi_replica *replica;
	// Two entries for each replica; NULL: no small all-reduces.
	struct chi_small_all_reduce *small_all_reduce;
	bool spin; // true if there are no more devices than cores
	bool isolated; // one replica runs by itself: its gradients are dropped
	bool nested_in_isolated; // nested in an isolated run, so isolated itself
	chi_atomic32 failed; // not zero: all replicas stop
	_Alignas(CHI_LINE) chi_mutex lock;
	// Counts arrivals at sync points, and returns on shared devices. While it grows, no wait
	// times out.
	chi_atomic32 progress;
	chi_atomic32 arrivals; // sync points that some replica has reached or tried to
	chi_gate wakeup; // its word changes whenever waiting replicas must check again
	struct chi_pool_thread *busy; // on devices that carry one replica; only the caller uses it
	uint32_t number; // of runs; only the caller writes it
	int failed_replica; // the lowest failed one; number of replicas: a merge or update failed
	chi_error error; // of failed_replica
	// A ring of the sync points first_sync_point .. next_sync_point - 1.
	struct chi_sync_point **sync_point;
	uint32_t sync_point_capacity, first_sync_point, next_sync_point;
	struct chi_sync_point *spare_sync_points;
	struct chi_pending_update **pending; // updates requested in this run, in order
	size_t n_pending, pending_capacity;
	struct chi_pending_update *open; // updates with gradients, requested or not
	bool applied; // some update was applied
	chi_atomic32 named; // not zero: a replica returned a name although results are not kept
	bool going; // chi_run_go is active; only the caller uses it
	choir_cross *cross; // of the run's merge calls
	struct chi_run *nested; // for runs inside its merge calls
	chi_fpenv host; // the caller's floating-point environment
} chi_run;

chi_run *chi_run_new(choir_strategy *s);
void chi_run_free(chi_run *run);
// Runs fn once for each replica. The calling thread carries device 0. results may be NULL.
choir_status chi_run_go(
		chi_run *run, choir_replica_fn *fn, void *user, choir_values *args, choir_values *results);
// Runs fn for one replica on this thread. Its gradients are dropped.
choir_status chi_run_isolated(
		chi_run *run, int replica, choir_replica_fn *fn, void *user, choir_values *args);

// Ends device d's part of the run after its thread has left the program's function by a non-local
// exit. The run fails, the replica counts as returned, and the calling thread finishes the
// device's work.
void chi_run_left(chi_run *run, int d);
// Ends a run if its caller left it while it was active. back: the thread that called the run is
// executing, so its floating-point environment is restored.
void chi_run_abandon(chi_run *run, bool back);

// Resets the default run to its beginning. The default replica outside any run belongs to this
// run, which never ends; it is reset after each merge call or update, successful or not. Other
// runs are unaffected.
void chi_run_renew(chi_run *run);

// Makes the run fail with the thread's last error and wakes all waiting threads. replica: the
// failed one, or the number of replicas for a merge or an update.
void chi_run_fail(chi_run *run, int replica);
// Decides what happens when r has waited for its timeout. True: the run fails, and the error
// names the replica that has not come. False: no replica is missing, so some thread is still
// working with r's tensors, and r must go on waiting.
bool chi_run_abort_wait(chi_replica *r, const struct chi_sync_point *point);
// The run for runs inside a merge call of this run, made at first use. NULL after a failure.
chi_run *chi_run_nested(chi_run *run);
// Fails with CHOIR_CANCELLED; the text names the first failure.
choir_status chi_run_cancelled(chi_run *run);
// Makes waiting threads check their conditions again.
void chi_run_wake_up(chi_run *run);

// The scheduler (scheduler.c). Waits until *flag is not zero, and lets other replicas of the
// device run meanwhile. CHOIR_CANCELLED: the run failed first. That includes a timeout of r,
// which waits for the replicas missing at point (NULL: an update).
choir_status chi_scheduler_wait(
		chi_replica *r, const chi_atomic32 *flag, const struct chi_sync_point *point);
// With the run's lock held: gives each free baton to a replica that may go on.
void chi_scheduler_wake(chi_run *run);
// With the run's lock held: the replica that keeps replica from running. It is the holder of the
// device's baton, or else replica itself.
int chi_scheduler_holder(const chi_run *run, int replica);
// Runs the device's replicas on this thread until none is left or another thread goes on. thread:
// the pool thread this is, if it must return itself to the idle list; else NULL.
void chi_scheduler_run(chi_run *run, int d, struct chi_pool_thread *thread);

// Begins a trace span of a device, on the track of the last replica that it carries.
void chi_run_trace_device(
		const chi_run *run, int d, choir_trace_category category, const char *name);
// The id of r in messages: among all replicas in step, of all workers.
static inline int chi_replica_number(const chi_replica *r)
{
	return chi_strategy_id(r->run->strategy, r->id);
}
static inline chi_replica *chi_replica_of(const choir_replica *r)
{
	return (chi_replica *) (uintptr_t) r;
}

// The thread pool (thread_pool.c). Send runs device d of run on a thread of the device's pool.
choir_status chi_thread_pool_open(choir_strategy *s);
void chi_thread_pool_close(choir_strategy *s);
choir_status chi_thread_pool_send(choir_strategy *s, int d, chi_run *run);
// The same for a device that has parked replicas.
choir_status chi_thread_pool_join(choir_strategy *s, int d, chi_run *run);
// Calls fn on this thread and at the same time on one thread of every other device, and returns
// when all calls have returned. If a thread cannot be made, fn is called on fewer threads, which
// must share its work. CHOIR_STATE: a function of the program ended a thread.
typedef void chi_thread_pool_fn(void *arg);
choir_status chi_thread_pool_call_all(choir_strategy *s, chi_thread_pool_fn *fn, void *arg);
