// The thread costs a wake-up per large gradient, and a core while it waits for messages.
#include "strategy/gradients/overlap_workers.h"

#include "base/clock.h"
#include "base/processors.h"
#include "base/thread.h"
#include "collective/tree.h"
#include "strategy/run/run.h"
#include "strategy/gradients/wire_precision.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

enum { HANDOVERS = 9 };
static const double ASLEEP = 200e-6; // seconds after which the thread surely sleeps

struct chi_overlap_workers {
	choir_strategy *strategy;
	chi_process_group process_group;
	chi_thread thread;
	chi_pending_update *update; // NULL: only an answer is needed
	chi_gate requested, completed;
	chi_gate wakeup; // changes whenever the thread must check again
	chi_atomic32 leave, end;
	chi_atomic32 exchanging;
	bool failed;
	chi_error error;
	chi_tree_nodes nodes; // if this worker has several devices
	char *scratch;
	double handover;
};

static choir_status find_nodes(
		chi_overlap_workers *o, const chi_overlap_sum *s, const choir_partial_sum **nodes)
{
	const choir_collective *c = s->c[0];
	if (o->strategy->devices == 1) {
		*nodes = c->partial_sums;
		return c->n == (size_t) o->nodes.n
				? CHOIR_OK
				: choir_fail(CHOIR_INTERNAL, "%s: the parts of this worker are not its nodes",
						  c->name);
	}
	CHOIR_TRY(chi_tree_nodes_reserve(&o->nodes, c));
	for (int64_t first = 0; first < c->elements; first += CHI_CHUNK)
		CHOIR_TRY(chi_tree_nodes_sum(&o->nodes, s->c, o->strategy->devices, first, o->scratch));
	*nodes = o->nodes.node;
	return CHOIR_OK;
}

static choir_status sum(chi_overlap_workers *o, const choir_collective *c,
		const choir_partial_sum *nodes, void *to)
{
	chi_atomic32_store(&o->exchanging, 1);
	const choir_status status = chi_process_group_all_reduce(&o->process_group, 0, c, nodes, to);
	chi_atomic32_store(&o->exchanging, 0);
	return status;
}

static choir_status exchange(chi_overlap_workers *o, chi_pending_update *u, size_t index)
{
	chi_overlap_sum *s = &u->overlap.sum[index];
	const choir_variable *v = s->variable;
	const choir_partial_sum *nodes = NULL;
	chi_trace_begin(CHOIR_TRACE_REDUCE, v->name);
	choir_status status = find_nodes(o, s, &nodes);
	if (status == CHOIR_OK &&
			(s->buffer = chi_buffer_new(u->strategy->device[0], chi_wire_bytes(s->gradient[0]))) ==
					NULL)
		status = choir_error_status();
	if (status == CHOIR_OK)
		status = sum(o, s->c[0], nodes, s->buffer->memory);
	chi_trace_end_communication();
	CHOIR_TRY(status);
	s->whole = (choir_partial_sum){ 0, u->strategy->in_sync, s->buffer->memory };
	chi_overlap_release_parts(u, s);
	chi_gate_open(&s->done, CHI_OVERLAP_SUMMED);
	return CHOIR_OK;
}

// False: the gradient will not come. If replicas never return, their run ends this wait.
static bool wait_for_replicas(
		chi_overlap_workers *o, const chi_pending_update *u, const chi_overlap_sum *s)
{
	for (;;) {
		const uint32_t word = chi_atomic32_load(&o->wakeup.word);
		const bool over = chi_atomic32_load(&u->all_applied) != 0;
		if (chi_atomic32_load(&o->leave) != 0)
			return false;
		if (over || chi_atomic32_load(&s->open) != 0)
			return chi_atomic32_load(&s->open) != 0;
		(void) chi_gate_wait(&o->wakeup, word, false, chi_clock_deadline(-1));
	}
}

// The run fails later: replicas must not leave a merge call that uses their tensors.
static void fail(chi_overlap_workers *o, const chi_pending_update *u, size_t from)
{
	chi_process_group_abort(&o->process_group);
	chi_error_save(&o->error);
	o->failed = true;
	for (size_t i = from; i < u->overlap.n; i++)
		chi_gate_open(&u->overlap.sum[i].done, CHI_OVERLAP_FAILED);
}

static void serve(chi_overlap_workers *o, chi_pending_update *u)
{
	for (size_t i = 0; i < u->overlap.n; i++) {
		const chi_overlap_sum *s = &u->overlap.sum[i];
		if (!s->eligible || !wait_for_replicas(o, u, s))
			continue;
		if (exchange(o, u, i) != CHOIR_OK) {
			fail(o, u, i);
			return;
		}
	}
}

static void work(void *arg)
{
	chi_overlap_workers *o = arg;
	chi_thread_stand_back();
	for (uint32_t seen = 0;;) {
		const uint32_t requested = chi_atomic32_load(&o->requested.word);
		if (requested == seen) {
			(void) chi_gate_wait(&o->requested, seen, false, chi_clock_deadline(-1));
			continue;
		}
		if (chi_atomic32_load(&o->end) != 0)
			return;
		if (o->update != NULL)
			serve(o, o->update);
		seen = requested;
		chi_gate_open(&o->completed, seen);
	}
}

static void request(chi_overlap_workers *o, chi_pending_update *u)
{
	o->update = u;
	chi_gate_open(&o->requested, chi_atomic32_load(&o->requested.word) + 1);
}

static void wait_until_completed(chi_overlap_workers *o)
{
	const uint32_t requested = chi_atomic32_load(&o->requested.word);
	for (uint32_t now; (now = chi_atomic32_load(&o->completed.word)) != requested;)
		(void) chi_gate_wait(&o->completed, now, false, chi_clock_deadline(-1));
}

void chi_overlap_workers_begin(chi_pending_update *u)
{
	chi_overlap_workers *o = u->strategy->overlap_workers;
	if (u->run != u->strategy->run || u->overlap.n == 0)
		return;
	u->overlap.with_workers = true;
	request(o, u);
}

void chi_overlap_workers_wake(const choir_strategy *s)
{
	chi_atomic32_add(&s->overlap_workers->wakeup.word, 1);
	chi_gate_wake(&s->overlap_workers->wakeup);
}

static choir_status report(const chi_overlap_workers *o)
{
	return chi_error_restore(&o->error);
}

choir_status chi_overlap_workers_finish(chi_pending_update *u)
{
	for (size_t i = 0; i < u->overlap.n; i++) {
		chi_overlap_sum *s = &u->overlap.sum[i];
		if (chi_atomic32_load(&s->open) == 0)
			continue;
		chi_trace_begin(CHOIR_TRACE_WAIT, "other workers");
		while (chi_atomic32_load(&s->done.word) == 0)
			(void) chi_gate_wait(&s->done, 0, chi_pending_update_spins(u), chi_clock_deadline(-1));
		chi_trace_end_wait(chi_cluster_last(u->strategy->overlap_workers->process_group.cluster));
		if (chi_atomic32_load(&s->done.word) == CHI_OVERLAP_FAILED)
			return report(u->strategy->overlap_workers);
	}
	return CHOIR_OK;
}

// The other workers may never come to a run that failed here.
static void end_exchange(chi_overlap_workers *o, const chi_run *run)
{
	if (chi_atomic32_load(&run->failed) == 0 || chi_atomic32_load(&o->exchanging) == 0)
		return;
	chi_error_restore(&run->error);
	chi_process_group_abort(&o->process_group);
}

void chi_overlap_workers_rest(const choir_strategy *s)
{
	chi_overlap_workers *o = s->overlap_workers;
	end_exchange(o, s->run);
	if (chi_atomic32_load(&o->completed.word) != chi_atomic32_load(&o->requested.word)) {
		chi_atomic32_store(&o->leave, 1);
		chi_overlap_workers_wake(s);
		wait_until_completed(o);
		chi_atomic32_store(&o->leave, 0);
	}
	if (!o->failed)
		return;
	o->failed = false;
	(void) report(o);
	chi_run_fail(s->run, s->replicas);
}

choir_status chi_overlap_workers_choose(choir_strategy *s)
{
	const char *name = getenv("CHOIR_OVERLAP");
	choir_toggle *overlap = &s->options.overlap;
	if (*overlap != CHOIR_DEFAULT || name == NULL || name[0] == '\0')
		return CHOIR_OK;
	if (strcmp(name, "on") != 0 && strcmp(name, "off") != 0)
		return choir_fail(CHOIR_INVALID, "CHOIR_OVERLAP: '%s' is unknown; known: on, off", name);
	*overlap = strcmp(name, "on") == 0 ? CHOIR_ON : CHOIR_OFF;
	return CHOIR_OK;
}

typedef struct {
	int possible, threads, processors;
} offer;

static bool has_a_core(const choir_cluster *c, const offer all[], int worker)
{
	const char *name = choir_cluster_worker_name(c, worker);
	const size_t host = strcspn(name, ",") + 1;
	int needed = 0;
	for (int w = 0; w < choir_cluster_workers(c); w++)
		if (strncmp(name, choir_cluster_worker_name(c, w), host) == 0)
			needed += all[w].threads + 1;
	return needed <= all[worker].processors;
}

static choir_status agree(choir_strategy *s, bool *wanted)
{
	const int cores = s->options.cores_per_device;
	const offer own = { .possible = s->all_host && s->all_here &&
				s->concurrency == CHI_EXCLUSIVE && !s->options.cluster->one_thread,
		.threads = s->devices * (cores > 0 ? cores : 1),
		.processors = chi_processor_count() };
	offer *all = chi_alloc_array((size_t) s->process_group->workers, sizeof *all);
	CHOIR_TRY(chi_made(all));
	const choir_status status =
			chi_process_group_all_gather(s->process_group, &own, sizeof own, all, "overlap");
	*wanted = s->process_group->host;
	for (int w = 0; status == CHOIR_OK && w < s->process_group->workers; w++)
		*wanted = *wanted && all[w].possible != 0 &&
				(s->options.overlap == CHOIR_ON || has_a_core(s->options.cluster, all, w));
	chi_free(all);
	return status;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *) a, y = *(const double *) b;
	return (x > y) - (x < y);
}

static void measure(chi_overlap_workers *o)
{
	double seconds[HANDOVERS];
	for (int i = 0; i < HANDOVERS; i++) {
		chi_thread_nap(ASLEEP);
		const double begun = chi_clock_now();
		request(o, NULL);
		wait_until_completed(o);
		seconds[i] = chi_clock_now() - begun;
	}
	qsort(seconds, HANDOVERS, sizeof *seconds, compare);
	o->handover = seconds[HANDOVERS / 2];
}

static choir_status open_overlap(chi_overlap_workers *o)
{
	const choir_strategy *s = o->strategy;
	chi_process_group *p = &o->process_group;
	CHOIR_TRY(chi_process_group_open(p, s->options.cluster, CHI_TAG_OVERLAP, s->replicas));
	CHOIR_TRY(chi_tree_nodes_open(&o->nodes, chi_process_group_node_count(p, p->worker),
			p->partial_sum + p->first_node[p->worker]));
	o->scratch = chi_alloc_aligned(chi_tree_scratch(s->in_sync));
	CHOIR_TRY(chi_made(o->scratch));
	CHOIR_TRY(chi_thread_start(&o->thread, "choir exchange", work, o));
	measure(o);
	return CHOIR_OK;
}

choir_status chi_overlap_workers_open(choir_strategy *s)
{
	bool wanted = false;
	if (s->process_group == NULL || s->options.overlap == CHOIR_OFF)
		return CHOIR_OK;
	CHOIR_TRY(agree(s, &wanted));
	if (!wanted)
		return CHOIR_OK;
	s->overlap_workers = chi_alloc(sizeof *s->overlap_workers);
	CHOIR_TRY(chi_made(s->overlap_workers));
	s->overlap_workers->strategy = s;
	return open_overlap(s->overlap_workers);
}

void chi_overlap_workers_close(choir_strategy *s)
{
	chi_overlap_workers *o = s->overlap_workers;
	if (o == NULL)
		return;
	if (s->fork_generation == chi_fork_generation()) {
		chi_atomic32_store(&o->end, 1);
		request(o, NULL);
		chi_thread_join(&o->thread);
	}
	chi_process_group_close(&o->process_group);
	chi_tree_nodes_close(&o->nodes);
	chi_free(o->scratch);
	chi_free(o);
	s->overlap_workers = NULL;
}

double choir_strategy_overlap_latency(const choir_strategy *s)
{
	return s == NULL || s->overlap_workers == NULL ? 0 : s->overlap_workers->handover;
}
