// Lanes and batons. On a lane one replica runs at a time, on whatever thread it began; who must
// wait parks there, keeping its frame and stack, and the next runs: on this thread if it never
// ran, on its own if it was parked. A lane that carries one replica needs no baton: it waits at
// the run's gate.
#include "base/clock.h"
#include "strategy/run/thread_pool.h"
#include "strategy/run/sync_point.h"

static void grant(chi_replica *r)
{
	r->state = CHI_RUNS;
	chi_atomic32_add(&r->baton.word, 1);
	chi_gate_wake_one(&r->baton);
}

// With the lock held: the lowest replica of the lane that may go on, or NULL. It looks from where
// it was last found: so all replicas that wait for the same are found by going over them once.
static chi_replica *lowest(const chi_run *run, chi_lane *l)
{
	for (; l->may < l->last; l->may++)
		if (run->replica[l->may].state == CHI_MAY_GO_ON)
			return &run->replica[l->may];
	return NULL;
}

// With the lock held, after a failure: replicas that never ran return at once, but for those below
// the one that failed, so that the failure of the lowest is reported whoever was quicker.
static void skip_unstarted(chi_run *run, chi_lane *l)
{
	const bool all = run->failed_replica == run->strategy->replicas;
	while (l->next < l->last && (all || l->next > run->failed_replica)) {
		chi_replica *r = &run->replica[l->next++];
		r->state = CHI_RETURNED;
		r->cancelled = true;
		chi_atomic32_store_seq_cst(&r->gone, 1);
		l->left--;
	}
}

// With the lock held and the baton free: who is next. Somebody who was parked gets the baton here
// (NULL is returned); one who never ran is returned, to be run by this thread. held tells whether
// the baton is taken.
static chi_replica *pass(chi_run *run, int lane)
{
	chi_lane *l = &run->lane[lane];
	if (chi_atomic32_load(&run->failed) != 0)
		skip_unstarted(run, l);
	chi_replica *parked = lowest(run, l);
	l->held = true;
	if (parked != NULL) {
		grant(parked);
		return NULL;
	}
	if (l->next < l->last) {
		chi_replica *r = &run->replica[l->next++];
		r->state = CHI_RUNS;
		return r;
	}
	l->held = false;
	return NULL;
}

void chi_lane_wake(chi_run *run)
{
	const bool failed = chi_atomic32_load(&run->failed) != 0;
	for (int lane = 0; lane < run->strategy->lanes; lane++) {
		chi_lane *l = &run->lane[lane];
		if (!l->shared)
			continue;
		for (int i = run->strategy->first[lane]; i < run->strategy->first[lane + 1]; i++) {
			chi_replica *r = &run->replica[i];
			if (r->state != CHI_PARKED || (!failed && chi_atomic32_load(r->parked_for) == 0))
				continue;
			r->state = CHI_MAY_GO_ON;
			if (i < l->may)
				l->may = i;
		}
		if (!l->held && lowest(run, l) != NULL)
			(void) pass(run, lane);
	}
}

int chi_lane_holder(const chi_run *run, int replica)
{
	const int lane = run->replica[replica].lane;
	if (run->lane[lane].shared)
		for (int i = run->strategy->first[lane]; i < run->strategy->first[lane + 1]; i++)
			if (run->replica[i].state == CHI_RUNS)
				return i;
	return replica;
}

// How long a replica waits: until nothing has happened in the run for so many seconds.
typedef struct {
	const chi_meet *m;
	uint32_t moves;
	double deadline;
} wait_limit;

static void begin_again(const chi_run *run, wait_limit *p)
{
	p->moves = chi_atomic32_load(&run->moves);
	p->deadline = chi_clock_deadline(run->strategy->timeout);
}

// The deadline has passed: gives up, or sets the next one.
static void be_late(chi_replica *r, wait_limit *p)
{
	if (p->moves != chi_atomic32_load(&r->run->moves) || !chi_run_give_up(r, p->m))
		begin_again(r->run, p);
	else
		p->deadline = chi_clock_deadline(-1); // the run has failed, which ends every wait
}

static choir_status wait_alone(chi_replica *r, const chi_atomic32 *flag, wait_limit *p)
{
	chi_run *run = r->run;
	for (;;) {
		const uint32_t word = chi_atomic32_load(&run->event.word);
		if (chi_atomic32_load(flag) != 0)
			return CHOIR_OK;
		if (chi_atomic32_load(&run->failed) != 0)
			return chi_run_cancelled(run);
		if (!chi_gate_wait(&run->event, word, run->spin, p->deadline))
			be_late(r, p);
	}
}

// Parks with the lock held and gives the baton away; returns without the lock when the baton is
// back.
static void park(chi_replica *r, const chi_atomic32 *flag, wait_limit *p)
{
	chi_run *run = r->run;
	r->state = CHI_PARKED;
	r->parked_for = flag;
	const uint32_t word = chi_atomic32_load(&r->baton.word);
	chi_replica *next = pass(run, r->lane);
	if (next != NULL) { // it never ran: a thread of the crew will run it
		next->state = CHI_WAITS_TO_START;
		run->lane[r->lane].next--;
	}
	chi_mutex_unlock(&run->lock);
	if (next != NULL && chi_crew_join(run->strategy, r->lane, run) != CHOIR_OK) {
		chi_mutex_lock(&run->lock);
		run->lane[r->lane].held = false;
		chi_mutex_unlock(&run->lock);
		chi_run_fail(run, run->strategy->replicas);
	}
	while (chi_atomic32_load(&r->baton.word) == word)
		if (!chi_gate_wait(&r->baton, word, false, p->deadline))
			be_late(r, p);
}

// Whether a replica that waits may go on. No lock is needed: who woke it may still have it.
static bool is_over(const chi_run *run, const chi_atomic32 *flag)
{
	return chi_atomic32_load(flag) != 0 || chi_atomic32_load(&run->failed) != 0;
}

static choir_status wait_with_baton(chi_replica *r, const chi_atomic32 *flag, wait_limit *p)
{
	chi_run *run = r->run;
	while (!is_over(run, flag)) {
		chi_mutex_lock(&run->lock);
		// A replica that wakes others looks at flag with the lock held, too.
		if (is_over(run, flag))
			chi_mutex_unlock(&run->lock);
		else
			park(r, flag, p);
	}
	return chi_atomic32_load(flag) != 0 ? CHOIR_OK : chi_run_cancelled(run);
}

choir_status chi_lane_wait(chi_replica *r, const chi_atomic32 *flag, const chi_meet *m)
{
	if (chi_atomic32_load(flag) != 0)
		return CHOIR_OK;
	wait_limit p = { .m = m };
	begin_again(r->run, &p);
	chi_trace_begin(CHOIR_TRACE_WAIT, m == NULL ? "update" : m->name);
	const choir_status status =
			r->run->lane[r->lane].shared ? wait_with_baton(r, flag, &p) : wait_alone(r, flag, &p);
	chi_trace_end();
	if (status != CHOIR_OK)
		r->cancelled = true;
	return status;
}

// With the lock held: a worker that will find nothing to run rests before the baton is given away,
// since whoever gets it may end the run, and the next run is to find this worker.
static void rest_in_time(chi_run *run, int lane, chi_worker **worker)
{
	chi_lane *l = &run->lane[lane];
	if (chi_atomic32_load(&run->failed) != 0)
		skip_unstarted(run, l);
	if (*worker == NULL || l->left == 0)
		return;
	if (l->next < l->last && lowest(run, l) == NULL)
		return;
	chi_crew_rest(*worker);
	*worker = NULL;
}

// What this thread is to run next on the lane; NULL: nothing. *close: the lane's replicas have all
// returned and this thread sees to the rest.
static chi_replica *take(chi_run *run, int lane, chi_worker **worker, bool *close)
{
	chi_lane *l = &run->lane[lane];
	chi_replica *r;
	const bool lock = l->shared || chi_atomic32_load(&run->failed) != 0;
	if (lock) {
		chi_mutex_lock(&run->lock);
		rest_in_time(run, lane, worker);
		r = pass(run, lane);
	} else {
		r = l->next < l->last ? &run->replica[l->next++] : NULL;
	}
	*close = r == NULL && l->left == 0 && !l->closed;
	l->closed = l->closed || *close;
	if (lock)
		chi_mutex_unlock(&run->lock);
	return r;
}

void chi_lane_trace(const chi_run *run, int lane, choir_trace_category category, const char *name)
{
	const int last = run->strategy->first[lane + 1] - 1;
	chi_trace_begin_replica(run->strategy->first_replica + chi_strategy_id(run->strategy, last),
			last, category, name);
}

// What the caller of run has written of the lane, and this thread is to write, comes at once and
// not one line after the other.
static void fetch(const chi_run *run, int lane)
{
	const char *first = (const char *) &run->replica[run->strategy->first[lane]];
	chi_fetch_to_write(&run->lane[lane]);
	for (size_t i = 0; i < sizeof *run->replica; i += CHI_LINE)
		chi_fetch_to_write(first + i);
}

void chi_lane_go(chi_run *run, int lane, chi_worker *worker)
{
	bool close = false;
	chi_replica *r;
	fetch(run, lane);
	chi_team *before = chi_team_use(run->strategy->crew[lane].team);
	while ((r = take(run, lane, &worker, &close)) != NULL)
		chi_replica_call(r);
	if (close)
		chi_lane_apply(run, lane);
	(void) chi_team_use(before);
	if (worker != NULL)
		chi_crew_rest(worker);
	if (close)
		chi_gate_open(&run->lane[lane].through, run->lane[lane].number);
}
