// One run: its replicas, the lanes (devices) that carry them, and what they agree on. A lane is a
// baton: its replicas run one after another in the order of their ids; one that must wait parks on
// its own thread and hands the baton on. All of a run is kept for the next one.
#pragma once

#include "base/fpenv.h"
#include "strategy/context.h"
#include "trace/trace.h"

struct chi_meet;
struct chi_instance;
struct chi_worker;

typedef enum {
	CHI_WAITS_TO_START,
	CHI_RUNS,
	CHI_PARKED, // until *parked_for is not zero, or the run has failed
	CHI_MAY_GO_ON, // parked, and need not be any more
	CHI_RETURNED
} chi_replica_state;

typedef struct {
	const char *name;
	choir_tensor *tensor;
} chi_named;

typedef struct {
	size_t n, capacity;
	chi_named *item;
} chi_named_tensors;

// What a collective is about, where its tensor does not say it: the variable that is read, the
// tensors that are packed. Replicas that differ in it have diverged, however equal their tensors.
typedef struct {
	uint64_t hash; // 0: nothing
	const char *call; // what the program called, if it was not the collective; NULL
	char name[48]; // in messages
} chi_subject;

// What a run changes before it begins is in the first two lines of the cache, which go from one
// processor to the other and back in each run.
typedef struct chi_replica {
	_Alignas(CHI_LINE) choir_replica shown; // first, so that a choir_replica is one of these
	struct chi_run *run;
	int id, lane; // id: among those of this worker
	chi_replica_state state; // under the run's lock; only where the lane carries several
	chi_atomic32 gone; // has returned, or was never called
	const chi_atomic32 *parked_for;
	chi_gate baton; // opened by who hands the baton to this replica
	uint32_t sequence; // meetings so far
	uint32_t lights; // light sums so far
	int side; // where it shows them: another one in each run
	int commits; // of optimizers so far
	uint64_t gave; // hash of the variables whose gradients it gave since the last of them
	chi_call_order order; // of the tensors that it has given to collectives in this run
	int gives; // number of these gradients
	bool trains; // it gave some in this run
	bool cancelled; // was told to stop: what it returns is not the cause
	bool gives_own; // what Choir itself gives stands in for given
	chi_named_tensors given, returned;
	chi_named_tensors unkept; // names that it returned where the run has no results, on the heap
	chi_named_tensors own; // what Choir itself gives
	chi_subject subject; // of the collective it is about to make
	int64_t batch_bytes; // of the batch of collectives that it is in; 0: none
	choir_tensor *contribution; // to a collective that one replica does for all
	choir_reduce_op reduces; // how that is reduced
	choir_dtype summed; // given to the all_reduce that it is in, whatever is added up
	int64_t offset; // of its part in what was gathered last
} chi_replica;

// Lanes are written by different processors, and the one that waits for a lane polls its gate.
typedef struct {
	_Alignas(CHI_LINE) int next, last; // the next replica that never ran; one after the last
	int left; // replicas that have not returned
	bool shared; // carries several replicas
	bool held; // somebody has the baton, or is on the way to take it
	bool closed; // all have returned and somebody has seen to the rest
	int may; // no replica below it may go on, though parked
	uint32_t number; // of the run
	_Alignas(CHI_LINE) chi_gate through; // number of the last run that it is through with
} chi_lane;

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
	chi_lane *lane;
	chi_replica *replica;
	struct chi_light *light; // of each replica; NULL: there are no light sums
	bool spin; // no more lanes than cores
	bool alone; // of one replica: what it gives to optimizers is dropped
	bool within; // nested in one of those, and so one itself
	chi_atomic32 failed; // not zero: stop
	_Alignas(CHI_LINE) chi_mutex lock;
	// arrivals, and returns where lanes are shared: while there are some, nobody is too late
	chi_atomic32 moves;
	chi_atomic32 asked; // meetings that somebody has come to, or tried to
	chi_gate event; // its word moves whenever somebody who waits should look again
	struct chi_worker *sent; // to lanes that carry one replica; the caller's alone
	uint32_t number; // of runs; the caller's as well
	int failed_replica; // the lowest that failed by itself; replicas: a merge or update did
	chi_error error; // its failure
	struct chi_meet **meet; // a ring: meetings first_meet .. next_meet - 1
	uint32_t meet_capacity, first_meet, next_meet;
	struct chi_meet *spare_meets;
	struct chi_instance **pending; // updates asked for in this run, in order
	size_t n_pending, pending_capacity;
	struct chi_instance *open; // updates that were given something, asked for or not
	bool applied; // some update ran
	chi_atomic32 named; // not zero: a replica has returned a name that is not kept
	bool going; // chi_run_go is under way; the caller's
	choir_cross *cross; // of its merge calls
	struct chi_run *nested; // for runs inside its merge calls
	chi_fpenv host; // the caller's floating point
} chi_run;

chi_run *chi_run_new(choir_strategy *s);
void chi_run_free(chi_run *run);
// Runs fn once for each replica; the caller carries lane 0. results may be NULL.
choir_status chi_run_go(
		chi_run *run, choir_replica_fn *fn, void *user, choir_values *args, choir_values *results);
// Runs fn for one replica, on this thread, and applies nothing.
choir_status chi_run_alone(
		chi_run *run, int replica, choir_replica_fn *fn, void *user, choir_values *args);

// The thread that carries a lane of run has left the program's function that it was in and comes
// back no more: the run fails, the lane's replica has returned, and the calling thread does what
// is left of the lane.
void chi_run_left(chi_run *run, int lane);
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
bool chi_run_give_up(chi_replica *r, const struct chi_meet *m);
// The run for what a merge call of this run calls; made when first used. NULL after a failure.
chi_run *chi_run_nested(chi_run *run);
// Fails with CHOIR_CANCELLED naming who failed first.
choir_status chi_run_cancelled(chi_run *run);
// Somebody who waits should look again.
void chi_run_event(chi_run *run);

// Lanes (scheduler.c). Waits until *flag is not zero, handing the baton on meanwhile:
// CHOIR_CANCELLED if the run fails first, also if r itself has given up waiting for who has not
// come to m.
choir_status chi_lane_wait(chi_replica *r, const chi_atomic32 *flag, const struct chi_meet *m);
// With the run's lock held: hands the batons that nobody holds to who may go on.
void chi_lane_wake(chi_run *run);
// With the run's lock held: who keeps replica from going on: the one that has the baton of its
// lane, or replica itself.
int chi_lane_holder(const chi_run *run, int replica);
// Runs what the lane has to run, on this thread, until there is nothing or somebody else goes on.
// worker: who this thread is, if it is a worker that goes to rest by itself.
void chi_lane_go(chi_run *run, int lane, struct chi_worker *worker);

// Sees to updates that were asked for and have not run, for one lane whose replicas have all
// returned (collect.c).
void chi_lane_apply(chi_run *run, int lane);

// One replica's call of the run's function, from start to return (replica.c).
void chi_replica_call(chi_replica *r);
// Begins a span of lane's that is no replica's: on the track of the last one that it carries.
void chi_lane_trace(const chi_run *run, int lane, choir_trace_category category, const char *name);
// r is about to give t to a collective: one of the tensors whose order must be that of all
// replicas.
void chi_replica_gives(chi_replica *r, const choir_tensor *t);
// What r is called everywhere: its id among all replicas that are in step.
static inline int chi_replica_number(const chi_replica *r)
{
	return chi_strategy_id(r->run->strategy, r->id);
}
static inline chi_replica *chi_replica_of(const choir_replica *r)
{
	return (chi_replica *) (uintptr_t) r;
}
// Whether r is the default replica outside any run.
bool chi_replica_stands(const chi_replica *r);
// The replica whose context this thread is in must be r.
choir_status chi_replica_check(const choir_replica *r, const char *what);
// A leaf as r sees it: a variable stays one, a number is r's own, of all else its part or the
// nearest, as a view. what: the call, in messages. NULL: recorded in r's frame.
choir_tensor *chi_replica_see(
		const chi_replica *r, choir_value *v, const char *what, const char *name);
// Adds name to a list, replacing an equal one; the name is copied to f.
choir_status chi_named_tensors_put(
		chi_named_tensors *list, choir_frame *f, const char *name, choir_tensor *t);
choir_tensor *chi_named_tensors_find(const chi_named_tensors *list, const char *name);
// Frees a list of names that are on the heap.
void chi_named_tensors_free(chi_named_tensors *unkept);

// Threads that are kept (thread_pool.c): runs lane of run on a thread of lane's crew.
choir_status chi_crew_open(choir_strategy *s);
void chi_crew_close(choir_strategy *s);
choir_status chi_crew_send(choir_strategy *s, int lane, chi_run *run);
// The same, for a lane on which others are parked.
choir_status chi_crew_join(choir_strategy *s, int lane, chi_run *run);
// Calls fn on this thread and, at the same time, on a thread of every lane but the first; returns
// when all have returned. Where a thread cannot be made the others do its share. CHOIR_STATE: a
// function of the program's has ended a thread.
typedef void chi_crew_fn(void *arg);
choir_status chi_crew_all(choir_strategy *s, chi_crew_fn *fn, void *arg);
