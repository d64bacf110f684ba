// When a replica parks, the next one runs: on the same thread if it has not started, else on its
// own. A device with one replica needs no baton.
#include "base/clock.h"
#include "strategy/gradients/gradients.h"
#include "strategy/replica/replica.h"
#include "strategy/run/sync_point.h"
#include "strategy/run/thread_pool.h"

// From dev->may, so releasing all replicas visits each once. With the lock.
static chi_replica *lowest(const chi_run *run, chi_run_device *dev)
{
	for (; dev->may < dev->last; dev->may++)
		if (run->replica[dev->may].state == CHI_MAY_GO_ON)
			return &run->replica[dev->may];
	return NULL;
}

// After a failure. Lower replicas still run: the lowest failure is reported. With the lock.
static void skip_unstarted(chi_run *run, chi_run_device *dev)
{
	const bool all = run->failed_replica == run->strategy->replicas;
	while (dev->next < dev->last && (all || dev->next > run->failed_replica)) {
		chi_replica *r = &run->replica[dev->next++];
		r->state = CHI_RETURNED;
		r->cancelled = true;
		chi_atomic32_store_seq_cst(&r->has_returned, 1);
		dev->left--;
	}
}

// To a parked replica (NULL), or to one that this thread must start. With the lock.
static chi_replica *pass(chi_run *run, int d)
{
	chi_run_device *dev = &run->device[d];
	if (chi_atomic32_load(&run->failed) != 0)
		skip_unstarted(run, dev);
	chi_replica *parked = lowest(run, dev);
	dev->held = true;
	if (parked != NULL) {
		parked->state = CHI_RUNS;
		chi_atomic32_add(&parked->baton.word, 1);
		chi_gate_wake_one(&parked->baton);
		return NULL;
	}
	if (dev->next < dev->last) {
		chi_replica *r = &run->replica[dev->next++];
		r->state = CHI_RUNS;
		return r;
	}
	dev->held = false;
	return NULL;
}

void chi_scheduler_wake(chi_run *run)
{
	const bool failed = chi_atomic32_load(&run->failed) != 0;
	for (int d = 0; d < run->strategy->devices; d++) {
		chi_run_device *dev = &run->device[d];
		if (!dev->shared)
			continue;
		for (int i = run->strategy->first[d]; i < run->strategy->first[d + 1]; i++) {
			chi_replica *r = &run->replica[i];
			if (r->state != CHI_PARKED || (!failed && chi_atomic32_load(r->parked_for) == 0))
				continue;
			r->state = CHI_MAY_GO_ON;
			if (i < dev->may)
				dev->may = i;
		}
		if (!dev->held && lowest(run, dev) != NULL)
			(void) pass(run, d);
	}
}

int chi_scheduler_holder(const chi_run *run, int local_replica)
{
	const int d = run->replica[local_replica].device;
	if (run->device[d].shared)
		for (int i = run->strategy->first[d]; i < run->strategy->first[d + 1]; i++)
			if (run->replica[i].state == CHI_RUNS)
				return i;
	return local_replica;
}

// A wait ends when run->progress has been unchanged for the timeout.
typedef struct {
	const chi_sync_point *point;
	uint32_t progress;
	double deadline;
} wait_limit;

static void begin_again(const chi_run *run, wait_limit *p)
{
	p->progress = chi_atomic32_load(&run->progress);
	p->deadline = chi_clock_deadline(run->strategy->timeout);
}

static void pass_deadline(chi_replica *r, wait_limit *p)
{
	if (p->progress != chi_atomic32_load(&r->run->progress) || !chi_run_abort_wait(r, p->point))
		begin_again(r->run, p);
	else
		p->deadline = chi_clock_deadline(-1); // the run's failure ends every wait
}

static choir_status wait_without_baton(chi_replica *r, const chi_atomic32 *flag, wait_limit *p)
{
	chi_run *run = r->run;
	for (;;) {
		const uint32_t word = chi_atomic32_load(&run->wakeup.word);
		if (chi_atomic32_load(flag) != 0)
			return CHOIR_OK;
		if (chi_atomic32_load(&run->failed) != 0)
			return chi_run_cancelled(run);
		if (!chi_gate_wait(&run->wakeup, word, run->spin, p->deadline))
			pass_deadline(r, p);
	}
}

// With the lock; returns without it when the baton is back.
static void park(chi_replica *r, const chi_atomic32 *flag, wait_limit *p)
{
	chi_run *run = r->run;
	r->state = CHI_PARKED;
	r->parked_for = flag;
	const uint32_t word = chi_atomic32_load(&r->baton.word);
	chi_replica *next = pass(run, r->device);
	if (next != NULL) {
		next->state = CHI_WAITS_TO_START;
		run->device[r->device].next--;
	}
	chi_mutex_unlock(&run->lock);
	if (next != NULL && chi_thread_pool_join(run->strategy, r->device, run) != CHOIR_OK) {
		chi_mutex_lock(&run->lock);
		run->device[r->device].held = false;
		chi_mutex_unlock(&run->lock);
		chi_run_fail(run, run->strategy->replicas);
	}
	while (chi_atomic32_load(&r->baton.word) == word)
		if (!chi_gate_wait(&r->baton, word, false, p->deadline))
			pass_deadline(r, p);
}

static bool is_over(const chi_run *run, const chi_atomic32 *flag)
{
	return chi_atomic32_load(flag) != 0 || chi_atomic32_load(&run->failed) != 0;
}

static choir_status wait_with_baton(chi_replica *r, const chi_atomic32 *flag, wait_limit *p)
{
	chi_run *run = r->run;
	while (!is_over(run, flag)) {
		chi_mutex_lock(&run->lock);
		// chi_scheduler_wake checks flag under this lock, so no wake-up is lost.
		if (is_over(run, flag))
			chi_mutex_unlock(&run->lock);
		else
			park(r, flag, p);
	}
	return chi_atomic32_load(flag) != 0 ? CHOIR_OK : chi_run_cancelled(run);
}

choir_status chi_scheduler_wait(
		chi_replica *r, const chi_atomic32 *flag, const chi_sync_point *point)
{
	if (chi_atomic32_load(flag) != 0)
		return CHOIR_OK;
	wait_limit p = { .point = point };
	begin_again(r->run, &p);
	chi_trace_begin(CHOIR_TRACE_WAIT, point == NULL ? "update" : point->name);
	const choir_status status = r->run->device[r->device].shared ? wait_with_baton(r, flag, &p)
																 : wait_without_baton(r, flag, &p);
	chi_trace_end_wait(
			point == NULL ? CHI_LAST_UNKNOWN : (int32_t) chi_atomic32_load(&point->last));
	if (status != CHOIR_OK)
		r->cancelled = true;
	return status;
}

// A thread without further work becomes idle before it passes the baton: the next owner may end
// the run, and the next run must find it idle. With the lock.
static void rest_in_time(chi_run *run, int d, chi_pool_thread **thread)
{
	chi_run_device *dev = &run->device[d];
	if (chi_atomic32_load(&run->failed) != 0)
		skip_unstarted(run, dev);
	if (*thread == NULL || dev->left == 0)
		return;
	if (dev->next < dev->last && lowest(run, dev) == NULL)
		return;
	chi_thread_pool_rest(*thread);
	*thread = NULL;
}

static chi_replica *take(chi_run *run, int d, chi_pool_thread **thread, bool *close)
{
	chi_run_device *dev = &run->device[d];
	chi_replica *r;
	const bool lock = dev->shared || chi_atomic32_load(&run->failed) != 0;
	if (lock) {
		chi_mutex_lock(&run->lock);
		rest_in_time(run, d, thread);
		r = pass(run, d);
	} else {
		r = dev->next < dev->last ? &run->replica[dev->next++] : NULL;
	}
	*close = r == NULL && dev->left == 0 && !dev->closed;
	dev->closed = dev->closed || *close;
	if (lock)
		chi_mutex_unlock(&run->lock);
	return r;
}

void chi_run_trace_device(
		const chi_run *run, int d, choir_trace_category category, const char *name)
{
	const int last = run->strategy->first[d + 1] - 1;
	chi_trace_begin_replica(run->strategy->first_replica + chi_strategy_id(run->strategy, last),
			last, category, name);
}

// The caller wrote these lines, and this thread will.
static void fetch(const chi_run *run, int d)
{
	const char *first = (const char *) &run->replica[run->strategy->first[d]];
	chi_fetch_to_write(&run->device[d]);
	for (size_t i = 0; i < sizeof *run->replica; i += CHI_LINE)
		chi_fetch_to_write(first + i);
}

void chi_scheduler_run(chi_run *run, int d, chi_pool_thread *thread)
{
	bool close = false;
	chi_replica *r;
	fetch(run, d);
	chi_team *before = chi_team_use(run->strategy->thread_pool[d].team);
	while ((r = take(run, d, &thread, &close)) != NULL)
		chi_replica_call(r);
	if (close) {
		chi_gradients_run_updates(run, d);
		chi_replica_end(&run->replica[run->strategy->first[d]]);
	}
	(void) chi_team_use(before);
	if (thread != NULL)
		chi_thread_pool_rest(thread);
	if (close)
		chi_gate_open(&run->device[d].done, run->device[d].number);
}
