// One run: its replicas, the devices that carry them, and what they agree on. A device
// is a baton: its replicas run one after another in the order of their ids; one that must wait
// parks on its own thread and hands the baton on. All of a run is kept for the next one.
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
	CHI_PARKED, // until *parked_for is not zero, or the run has failed
	CHI_MAY_GO_ON, // parked, and need not be any more
	CHI_RETURNED
} chi_replica_state;

// What a collective is about, where its tensor does not say it: the variable that is read, the
// tensors that are packed. Replicas that differ in it have diverged, however equal their tensors.
typedef struct {
	uint64_t hash; // 0: nothing
	const char *call; // what the program called, if it was not the collective; NULL
	char name[48]; // in messages
} chi_label;

// What a run changes before it begins is in the first two lines of the cache, which go from one
// processor to the other and back in each run.
typedef struct chi_replica {
	_Alignas(CHI_LINE) choir_replica base; // first, so that a choir_replica is one of these
	struct chi_run *run;
	int id, device; // id: among those of this worker
	chi_replica_state state; // under the run's lock; only where the device carries several
	chi_atomic32 has_returned; // has returned, or was never called
	const chi_atomic32 *parked_for;
	chi_gate baton; // opened by who hands the baton to this replica
	uint32_t sequence; // sync points so far
	uint32_t small_all_reduces; // so far
	int side; // where it shows them: another one in each run
	int updates; // of optimizers so far
	uint64_t gradient_hash; // hash of the variables whose gradients it gave since the last of them
	chi_call_order order; // of the tensors that it has given to collectives in this run
	int gradients; // number of these gradients
	bool trains; // it gave some in this run
	bool cancelled; // was told to stop: what it returns is not the cause
	bool uses_own_args; // what Choir itself gives stands in for call_args
	chi_named_tensors call_args, returned;
	chi_named_tensors unkept; // names that it returned where the run has no results, on the heap
	chi_named_tensors own_args; // what Choir itself gives
	chi_label label; // of the collective it is about to make
	int64_t batch_bytes; // of the batch of collectives that it is in; 0: none
	choir_tensor *contribution; // to a collective that one replica does for all
	choir_reduce_op reduces; // how that is reduced
	choir_dtype summed; // given to the all_reduce that it is in, whatever is added up
	int64_t offset; // of its part in what was gathered last
} chi_replica;

// Devices are written by different processors, and the one that waits for a device polls its gate.
typedef struct {
	_Alignas(CHI_LINE) int next, last; // the next replica that never ran; one after the last
	int left; // replicas that have not returned
	bool shared; // carries several replicas
	bool held; // somebody has the baton, or is on the way to take it
	bool closed; // all have returned and somebody has seen to the rest
	int may; // no replica below it may go on, though parked
	uint32_t number; // of the run
	_Alignas(CHI_LINE) chi_gate done; // number of the last run that it is through with
} chi_run_device;

// What a run is asked to do.
typedef struct {
	choir_replica_fn *fn;
	void *user;
	choir_values *args, *results;
	uint64_t step; // keys of random numbers
} chi_run_task;

// Its first lines are read by all and seldom change: lines of the cache go from processor to
// processor only for what one of them has to learn.
typedef struct chi_run {
	choir_strategy *strategy;
	chi_run_task task;
	chi_run_device *device;
	chi_replica *replica;
	// Of each replica; NULL: there are no small all-reduces.
	struct chi_small_all_reduce *small_all_reduce;
	bool spin; // no more devices than cores
	bool isolated; // of one replica: what it gives to optimizers is dropped
	bool nested_in_isolated; // nested in one of those, and so one itself
	chi_atomic32 failed; // not zero: stop
	_Alignas(CHI_LINE) chi_mutex lock;
	// arrivals, and returns where devices are shared: while there are some, nobody is too late
	chi_atomic32 progress;
	chi_atomic32 arrivals; // sync points that somebody has come to, or tried to
	chi_gate wakeup; // its word moves whenever somebody who waits should look again
	struct chi_pool_thread *busy; // to devices that carry one replica; the caller's alone
	uint32_t number; // of runs; the caller's as well
	int failed_replica; // the lowest that failed by itself; replicas: a merge or update did
	chi_error error; // its failure
	// A ring: sync points first_sync_point .. next_sync_point - 1.
	struct chi_sync_point **sync_point;
	uint32_t sync_point_capacity, first_sync_point, next_sync_point;
	struct chi_sync_point *spare_sync_points;
	struct chi_pending_update **pending; // updates asked for in this run, in order
	size_t n_pending, pending_capacity;
	struct chi_pending_update *open; // updates that were given something, asked for or not
	bool applied; // some update ran
	chi_atomic32 named; // not zero: a replica has returned a name that is not kept
	bool going; // chi_run_go is under way; the caller's
	choir_cross *cross; // of its merge calls
	struct chi_run *nested; // for runs inside its merge calls
	chi_fpenv host; // the caller's floating point
} chi_run;

chi_run *chi_run_new(choir_strategy *s);
void chi_run_free(chi_run *run);
// Runs fn once for each replica; the caller carries device 0. results may be NULL.
choir_status chi_run_go(
		chi_run *run, choir_replica_fn *fn, void *user, choir_values *args, choir_values *results);
// Runs fn for one replica, on this thread, and applies nothing.
choir_status chi_run_isolated(
		chi_run *run, int replica, choir_replica_fn *fn, void *user, choir_values *args);

// The thread that carries a device of run has left the program's function that it was in and comes
// back no more: the run fails, the device's replica has returned, and the calling thread does what
// is left of the device.
void chi_run_left(chi_run *run, int d);
// Ends a run whose caller has left it, as far as it is under way. back: this is the thread that
// called it, whose floating point is the caller's again.
void chi_run_abandon(chi_run *run, bool back);

// The default replica outside any run is in a run that never ends: after a merge call or an update
// of its, done or failed, that run is as if it began. Nothing happens to other runs.
void chi_run_renew(chi_run *run);

// Records a failure, the thread's last, and wakes everybody. replica: whose it is; the number of
// replicas: a merge's, an update's.
void chi_run_fail(chi_run *run, int replica);
// r has waited for as long as it may. True: the run fails now, naming the replica that has not
// come. False: nobody is behind r, so somebody works on what r waits for, with r's tensors, and r
// must stay.
bool chi_run_abort_wait(chi_replica *r, const struct chi_sync_point *point);
// The run for what a merge call of this run calls; made when first used. NULL after a failure.
chi_run *chi_run_nested(chi_run *run);
// Fails with CHOIR_CANCELLED naming who failed first.
choir_status chi_run_cancelled(chi_run *run);
// Somebody who waits should look again.
void chi_run_wake_up(chi_run *run);

// Devices (scheduler.c). Waits until *flag is not zero, handing the baton on meanwhile:
// CHOIR_CANCELLED if the run fails first, also if r itself has given up waiting for who has not
// come to m.
choir_status chi_scheduler_wait(
		chi_replica *r, const chi_atomic32 *flag, const struct chi_sync_point *point);
// With the run's lock held: hands the batons that nobody holds to who may go on.
void chi_scheduler_wake(chi_run *run);
// With the run's lock held: who keeps replica from going on: the one that has the baton of its
// device, or replica itself.
int chi_scheduler_holder(const chi_run *run, int replica);
// Runs what the device has to run, on this thread, until there is nothing or somebody else goes
// on. thread: which this is, if it is one that goes to rest by itself.
void chi_scheduler_run(chi_run *run, int d, struct chi_pool_thread *thread);

// Begins a span of a device that is no replica's: on the track of the last one that it carries.
void chi_run_trace_device(
		const chi_run *run, int d, choir_trace_category category, const char *name);
// What r is called everywhere: its id among all replicas that are in step.
static inline int chi_replica_number(const chi_replica *r)
{
	return chi_strategy_id(r->run->strategy, r->id);
}
static inline chi_replica *chi_replica_of(const choir_replica *r)
{
	return (chi_replica *) (uintptr_t) r;
}

// Threads that are kept (thread_pool.c): runs device d of run on a thread of its pool.
choir_status chi_thread_pool_open(choir_strategy *s);
void chi_thread_pool_close(choir_strategy *s);
choir_status chi_thread_pool_send(choir_strategy *s, int d, chi_run *run);
// The same, for a device on which others are parked.
choir_status chi_thread_pool_join(choir_strategy *s, int d, chi_run *run);
// Calls fn on this thread and, at the same time, on a thread of every device but the first;
// returns when all have returned. Where a thread cannot be made the others do its share.
// CHOIR_STATE: a function of the program's has ended a thread.
typedef void chi_thread_pool_fn(void *arg);
choir_status chi_thread_pool_call_all(choir_strategy *s, chi_thread_pool_fn *fn, void *arg);
