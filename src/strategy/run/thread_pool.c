// A task's sender returns the thread to the idle list, so the pool's lock stays in its cache. On
// shared devices a thread returns itself (scheduler.c).
#include "strategy/run/thread_pool.h"

#include "base/clock.h"
#include "base/processors.h"

#include <stdio.h>

struct chi_pool_call {
	chi_thread_pool_fn *fn;
	void *arg;
	chi_atomic32 left;
};

typedef struct {
	chi_run *run;
	struct chi_pool_call *pool_call;
	bool joins; // the device has parked replicas
} pool_task;

static void end_call(chi_pool_thread *t)
{
	chi_gate *returned = &t->pool->strategy->thread_pool[0].returned;
	t->call = NULL;
	chi_atomic32_add(&returned->word, 1); // pool_call may be gone now
	chi_gate_wake(returned);
}

static void serve_tasks(void *arg)
{
	chi_pool_thread *t = arg;
	chi_dlpack_hold(true);
	if (t->pool->pin)
		(void) chi_thread_pin(
				t->pool->device * t->pool->cores, t->pool->team != NULL ? 1 : t->pool->cores);
	for (uint32_t seen = 0;;) {
		while (chi_atomic32_load(&t->gate.word) == seen)
			(void) chi_gate_wait(&t->gate, seen, t->pool->spin, chi_clock_deadline(-1));
		seen++;
		if (t->call != NULL) {
			t->call->fn(t->call->arg);
			end_call(t);
		} else if (t->run == NULL) {
			return;
		} else {
			chi_scheduler_run(t->run, t->device, t->run->device[t->device].shared ? t : NULL);
		}
	}
}

static void leave(void *arg)
{
	chi_pool_thread *t = arg;
	t->ended = true;
	(void) chi_context_forget(t->pool->strategy->owner);
	if (t->call == NULL) {
		chi_run_left(t->run, t->device);
		return;
	}
	chi_atomic32_store(&t->call->left, 1);
	end_call(t);
}

static void work(void *arg)
{
	chi_thread_call(serve_tasks, leave, arg);
}

// Only by option: a strategy per thread would make too many threads.
static choir_status open_team(choir_strategy *s, struct chi_thread_pool *pool)
{
	if (s->options.cores_per_device < 2)
		return CHOIR_OK;
	char name[CHI_THREAD_NAME];
	snprintf(name, sizeof name, "choir %d core", pool->device);
	pool->team = chi_team_new(&(chi_team_options){ .name = name,
			.threads = pool->cores,
			.spin = s->devices * pool->cores <= chi_processor_count(),
			.pin = pool->pin,
			.first = pool->device * pool->cores });
	return chi_made(pool->team);
}

choir_status chi_thread_pool_open(choir_strategy *s)
{
	s->thread_pool = chi_alloc_lines((size_t) s->devices, sizeof *s->thread_pool);
	CHOIR_TRY(chi_made(s->thread_pool));
	const int cores = chi_processor_count();
	const int each = s->options.cores_per_device > 0 ? s->options.cores_per_device
			: cores / s->devices > 0				 ? cores / s->devices
													 : 1;
	const bool own_processors = chi_processor_mask_is_narrowed() &&
			(s->options.cluster == NULL || !s->options.cluster->shares_processors);
	const bool pin = s->options.pin == CHOIR_ON ||
			(s->options.pin == CHOIR_DEFAULT && own_processors && s->devices <= cores);
	for (int i = 0; i < s->devices; i++) {
		s->thread_pool[i] = (struct chi_thread_pool){
			.strategy = s, .spin = s->devices <= cores, .pin = pin, .cores = each, .device = i
		};
		chi_mutex_init(&s->thread_pool[i].lock, CHI_RANK_POOL, "thread_pool");
	}
	for (int i = 0; i < s->devices; i++)
		CHOIR_TRY(open_team(s, &s->thread_pool[i]));
	return CHOIR_OK;
}

static void wake_thread(chi_pool_thread *t)
{
	chi_atomic32_store_seq_cst(&t->gate.word, chi_atomic32_load(&t->gate.word) + 1);
	chi_gate_wake_one(&t->gate);
}

static void free_thread(chi_pool_thread *t, bool in_child)
{
	if (!in_child) {
		t->run = NULL;
		wake_thread(t);
		chi_thread_join(&t->thread);
	}
	chi_free(t);
}

void chi_thread_pool_close(choir_strategy *s)
{
	const bool in_child = s->fork_generation != chi_fork_generation();
	for (int i = 0; s->thread_pool != NULL && i < s->devices; i++) {
		while (s->thread_pool[i].all != NULL) {
			chi_pool_thread *t = s->thread_pool[i].all;
			s->thread_pool[i].all = t->next;
			free_thread(t, in_child);
		}
		chi_team_free(s->thread_pool[i].team);
		chi_mutex_destroy(&s->thread_pool[i].lock);
	}
	chi_free(s->thread_pool);
	s->thread_pool = NULL;
}

static chi_pool_thread *new_thread(struct chi_thread_pool *pool)
{
	char name[16];
	chi_pool_thread *t = chi_alloc_lines(1, sizeof *t);
	if (t == NULL)
		return NULL;
	t->pool = pool;
	snprintf(name, sizeof name, "choir %d", pool->device);
	if (chi_thread_start(&t->thread, name, work, t) != CHOIR_OK) {
		chi_free(t);
		return NULL;
	}
	chi_mutex_lock(&pool->lock);
	t->next = pool->all;
	pool->all = t;
	chi_mutex_unlock(&pool->lock);
	return t;
}

void chi_thread_pool_rest(chi_pool_thread *t)
{
	struct chi_thread_pool *pool = t->pool;
	if (t->ended)
		return;
	chi_mutex_lock(&pool->lock);
	t->later_idle = NULL;
	t->next_idle = pool->idle;
	*(pool->idle == NULL ? &pool->longest_idle : &pool->idle->later_idle) = t;
	pool->idle = t;
	chi_mutex_unlock(&pool->lock);
}

// The last to become idle, whose data may be cached. longest: the first, where the system begins
// to search its wait queues, for thousands of parked replicas. With the lock.
static chi_pool_thread *take_idle(struct chi_thread_pool *pool, bool longest)
{
	chi_pool_thread *t = longest ? pool->longest_idle : pool->idle;
	if (t == NULL)
		return NULL;
	*(t->later_idle == NULL ? &pool->idle : &t->later_idle->next_idle) = t->next_idle;
	*(t->next_idle == NULL ? &pool->longest_idle : &t->next_idle->later_idle) = t->later_idle;
	return t;
}

void chi_thread_pool_rest_all(chi_pool_thread *busy)
{
	while (busy != NULL) {
		chi_pool_thread *next = busy->next_idle;
		chi_thread_pool_rest(busy);
		busy = next;
	}
}

static choir_status send(choir_strategy *s, int d, const pool_task *j, chi_pool_thread **busy)
{
	struct chi_thread_pool *pool = &s->thread_pool[d];
	chi_mutex_lock(&pool->lock);
	chi_pool_thread *t = take_idle(pool, j->joins);
	chi_mutex_unlock(&pool->lock);
	if (t == NULL && (t = new_thread(pool)) == NULL)
		return choir_error_status();
	t->run = j->run;
	t->call = j->pool_call;
	t->device = d;
	if (busy != NULL) {
		t->next_idle = *busy;
		*busy = t;
	}
	wake_thread(t);
	return CHOIR_OK;
}

choir_status chi_thread_pool_send(choir_strategy *s, int d, chi_run *run)
{
	const pool_task j = { .run = run };
	return send(s, d, &j, run->device[d].shared ? NULL : &run->busy);
}

choir_status chi_thread_pool_join(choir_strategy *s, int d, chi_run *run)
{
	const pool_task j = { .run = run, .joins = true };
	return send(s, d, &j, NULL);
}

choir_status chi_thread_pool_call_all(choir_strategy *s, chi_thread_pool_fn *fn, void *arg)
{
	struct chi_pool_call call = { .fn = fn, .arg = arg };
	chi_gate *returned = &s->thread_pool[0].returned;
	const uint32_t before_all = chi_atomic32_load(&returned->word);
	uint32_t called = 0;
	chi_pool_thread *busy = NULL;
	chi_error before;
	chi_error_save(&before);
	for (int d = 1; d < s->devices; d++)
		called += send(s, d, &(pool_task){ .pool_call = &call }, &busy) == CHOIR_OK;
	chi_error_restore(&before);
	fn(arg);
	for (uint32_t now; (now = chi_atomic32_load(&returned->word)) - before_all < called;)
		(void) chi_gate_wait(returned, now, s->thread_pool[0].spin, chi_clock_deadline(-1));
	chi_thread_pool_rest_all(busy);
	return chi_atomic32_load(&call.left) == 0 ? CHOIR_OK
											  : choir_fail(CHOIR_STATE, "%s", CHI_WAS_LEFT);
}
