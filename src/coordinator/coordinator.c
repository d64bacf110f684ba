// The program's calls on the main thread, and the dispatch of closures on the network thread. The
// strategy's variables are copies of the servers'.
#include "coordinator/coordinator.h"

#include "coordinator/ps_checkpoint.h"
#include "coordinator/closure_message.h"
#include "coordinator/remote_value.h"
#include "base/clock.h"
#include "trace/health.h"

#include <string.h>

// With the lock: fails if the job has failed or has no workers.
static choir_status wait_for(choir_coordinator *c, bool (*holds)(const choir_coordinator *c))
{
	double alone = chi_clock_now();
	for (;;) {
		if (c->dispatch.failed)
			return chi_error_restore(&c->dispatch.error);
		if (c->network.status != CHOIR_OK) {
			chi_error_restore(&c->network.error);
			return c->network.status;
		}
		if (holds(c))
			return CHOIR_OK;
		if (c->dispatch.workers > 0)
			alone = chi_clock_now();
		if (chi_clock_now() > alone + c->task->o.start_timeout)
			return choir_fail(CHOIR_TIMEOUT,
					"coordinator: there has been no worker for %g s; %zu closures wait",
					c->task->o.start_timeout, c->dispatch.closures.waiting.n);
		(void) chi_network_thread_wait(&c->network, chi_clock_now() + 0.25);
	}
}

static choir_status wait_until(choir_coordinator *c, bool (*holds)(const choir_coordinator *c))
{
	c->awaited = holds;
	const choir_status status = wait_for(c, holds);
	c->awaited = NULL;
	return status;
}

// On the network thread.
static bool wakes(void *user)
{
	const choir_coordinator *c = user;
	return c->awaited != NULL && (c->dispatch.failed || c->awaited(c));
}

static bool is_idle(const choir_coordinator *c)
{
	return chi_closures_idle(&c->dispatch.closures);
}

static bool nothing_runs(const choir_coordinator *c)
{
	return c->dispatch.closures.running == 0;
}

static bool is_full(const choir_coordinator *c)
{
	return c->dispatch.closures.waiting.n >= (size_t) c->o.queue && !c->dispatch.closures.failed;
}

// A waiting program continues when several closures have space.
static bool has_space(const choir_coordinator *c)
{
	return c->dispatch.closures.waiting.n < (size_t) (c->o.queue - c->o.queue / 4) ||
			c->dispatch.closures.failed;
}

static bool has_answers(const choir_coordinator *c)
{
	return c->dispatch.awaited == 0;
}

static bool is_complete(const choir_coordinator *c)
{
	return chi_dispatch_ready(&c->dispatch) && c->dispatch.workers > 0;
}

static choir_status check_answer(choir_coordinator *c)
{
	if (c->dispatch.answer.status == CHOIR_OK)
		return CHOIR_OK;
	return chi_error_restore(&c->dispatch.answer);
}

static choir_status pause_closures(choir_coordinator *c)
{
	chi_mutex_lock(&c->network.lock);
	c->dispatch.paused = true;
	const choir_status status = wait_until(c, nothing_runs);
	chi_mutex_unlock(&c->network.lock);
	return status;
}

static void continue_closures(choir_coordinator *c, bool fresh)
{
	chi_mutex_lock(&c->network.lock);
	c->stale = !fresh || !is_idle(c);
	c->holds = false;
	c->dispatch.paused = false;
	chi_mutex_unlock(&c->network.lock);
	chi_hub_wake(c->network.hub);
}

// restores NULL: asks for states.
static choir_status ask(choir_coordinator *c, const chi_pack *restores)
{
	chi_mutex_lock(&c->network.lock);
	c->restores = restores;
	c->asks = true;
	c->dispatch.awaited = c->dispatch.servers;
	chi_hub_wake(c->network.hub);
	choir_status status = wait_until(c, has_answers);
	if (status == CHOIR_OK)
		status = check_answer(c);
	c->asks = false;
	chi_mutex_unlock(&c->network.lock);
	return status;
}

static choir_status give_state(choir_coordinator *c)
{
	chi_pack state = { 0 };
	choir_status status = chi_job_model_save(&c->model, &state);
	if (status == CHOIR_OK)
		status = ask(c, &state);
	chi_pack_free(&state);
	if (status == CHOIR_OK)
		c->versions = chi_job_model_versions(&c->model);
	return status;
}

static choir_status fetch_state(choir_coordinator *c)
{
	CHOIR_TRY(ask(c, NULL));
	CHOIR_TRY(chi_job_model_restore(&c->model, c->dispatch.servers, c->dispatch.state));
	c->versions = chi_job_model_versions(&c->model);
	return CHOIR_OK;
}

// No worker has a closure while the servers are asked, so all states are of one step.
static choir_status while_paused(
		choir_coordinator *c, choir_status (*exchange)(choir_coordinator *c))
{
	choir_status status = pause_closures(c);
	if (status == CHOIR_OK)
		status = exchange(c);
	continue_closures(c, status == CHOIR_OK);
	return status;
}

static choir_status give_changes(choir_coordinator *c)
{
	if (chi_job_model_versions(&c->model) != c->versions)
		return while_paused(c, give_state);
	if (c->holds)
		continue_closures(c, true);
	return CHOIR_OK;
}

static choir_status let_closures_run(choir_coordinator *c)
{
	return c->holds ? give_changes(c) : CHOIR_OK;
}

// Lets closures run: a program may read until it sees their updates.
static choir_status refresh(void *user)
{
	choir_coordinator *c = user;
	CHOIR_TRY(let_closures_run(c));
	return c->stale ? while_paused(c, fetch_state) : CHOIR_OK;
}

static choir_status refresh_to_write(void *user)
{
	choir_coordinator *c = user;
	if (c->holds || !c->stale)
		return CHOIR_OK;
	choir_status status = pause_closures(c);
	if (status == CHOIR_OK)
		status = fetch_state(c);
	if (status != CHOIR_OK) {
		continue_closures(c, false);
		return status;
	}
	c->stale = false;
	c->holds = true;
	return CHOIR_OK;
}

static void turn(void *user)
{
	choir_coordinator *c = user;
	if (c->asks) {
		c->asks = false;
		if (c->restores != NULL)
			chi_dispatch_restore(&c->dispatch, c->restores);
		else
			chi_dispatch_snapshot(&c->dispatch);
	}
	if (c->call != NULL) {
		chi_call *call = c->call;
		c->call = NULL;
		if (chi_dispatch_call_all(&c->dispatch, call->function, call->capacity, call->closure,
					&call->n) != CHOIR_OK)
			chi_error_save(&call->error);
	}
	chi_dispatch_turn(&c->dispatch);
}

static choir_status open_coordinator(choir_coordinator *c)
{
	choir_task *t = c->task;
	const chi_hub_owner owner = { &c->dispatch, chi_dispatch_admit, NULL, chi_dispatch_frame,
		chi_dispatch_lost };
	char bound[128];
	CHOIR_TRY(chi_task_introduce(t, &c->o, chi_job_model_hash(&c->model)));
	const chi_hub_options options = chi_task_hub_options(t, c->model.bytes);
	CHOIR_TRY(chi_network_thread_open(
			&c->network, t->connections, &t->hello, &owner, turn, &options));
	c->network.turn_user = c;
	c->network.wakes = wakes;
	CHOIR_TRY(chi_hub_listen(c->network.hub, t->address, bound, sizeof bound));
	return chi_network_thread_start(&c->network, "coordinator");
}

static choir_status wait_for_all(choir_coordinator *c)
{
	chi_mutex_lock(&c->network.lock);
	c->dispatch.paused = true;
	choir_status status = wait_until(c, is_complete);
	if (status == CHOIR_TIMEOUT) {
		int servers = 0;
		for (int i = 0; i < c->dispatch.servers; i++)
			servers += c->dispatch.server[i] != NULL;
		choir_fail(CHOIR_TIMEOUT,
				"coordinator: %d of %d ps and %d workers came to %s within %g s; all ps and 1 "
				"worker "
				"are needed",
				servers, c->dispatch.servers, c->dispatch.workers, c->task->address,
				c->task->o.start_timeout);
	}
	chi_mutex_unlock(&c->network.lock);
	if (status == CHOIR_OK)
		status = give_state(c);
	continue_closures(c, true);
	return status;
}

static choir_status check_strategy(const choir_strategy *s, const choir_task *t)
{
	if (s == NULL || t == NULL)
		return choir_fail(
				CHOIR_INVALID, "coordinator: the %s is NULL", s == NULL ? "strategy" : "task");
	if (strcmp(t->type, "coordinator") != 0)
		return choir_fail(
				CHOIR_STATE, "coordinator: this task is a %s (choir_task_serve)", t->type);
	if (strcmp(s->kind, "parameter_server") != 0 || s->workers != 1)
		return choir_fail(CHOIR_INVALID,
				"coordinator: a strategy of kind \"%s\" with %d workers; parameter_server with 1 "
				"is "
				"needed",
				s->kind, s->workers);
	if (s->remote != NULL || s->variables != NULL)
		return choir_fail(CHOIR_STATE, "coordinator: the strategy has %s already",
				s->remote != NULL ? "a coordinator" : "variables");
	return CHOIR_OK;
}

choir_coordinator *choir_coordinator_new(
		choir_strategy *s, choir_task *t, const choir_coordinator_options *o)
{
	if (check_strategy(s, t) != CHOIR_OK)
		return NULL;
	choir_coordinator *c = chi_alloc(sizeof *c);
	if (c == NULL)
		return NULL;
	c->strategy = s;
	c->task = t;
	chi_health_open();
	choir_status status = chi_task_take_options(t, o, &c->o);
	chi_dispatch_init(&c->dispatch, t->o.servers, 1 + c->o.window, c->o.attempts);
	c->dispatch.adapts = o != NULL && o->window == 0;
	if (status == CHOIR_OK)
		status = chi_task_build(s, &c->o);
	if (status == CHOIR_OK)
		status = chi_job_model_collect(&c->model, s, t->o.servers);
	if (status == CHOIR_OK)
		status = open_coordinator(c);
	if (status == CHOIR_OK)
		status = wait_for_all(c);
	if (status != CHOIR_OK) {
		chi_health_fail(status, choir_error(), status == CHOIR_PEER_LOST);
		choir_coordinator_free(c);
		return NULL;
	}
	c->made = true;
	c->remote =
			(chi_remote){ .user = c, .refresh = refresh, .refresh_to_write = refresh_to_write };
	s->remote = &c->remote;
	return c;
}

void choir_coordinator_free(choir_coordinator *c)
{
	if (c == NULL)
		return;
	chi_error before;
	chi_error_save(&before);
	if (c->strategy->remote == &c->remote)
		c->strategy->remote = NULL;
	chi_error failure = { .status = CHOIR_OK };
	if (c->network.opened) {
		chi_mutex_lock(&c->network.lock);
		failure = c->dispatch.failed ? c->dispatch.error : failure;
		chi_mutex_unlock(&c->network.lock);
	}
	chi_network_thread_close(&c->network, failure.status == CHOIR_OK ? NULL : &failure);
	if (failure.status != CHOIR_OK)
		chi_health_fail(failure.status, failure.text, true);
	chi_health_close(!c->made || failure.status != CHOIR_OK);
	chi_dispatch_free(&c->dispatch);
	chi_job_model_free(&c->model);
	chi_free(c);
	chi_error_restore(&before);
}

static choir_status check_call(const choir_coordinator *c, const char *what)
{
	if (c == NULL)
		return choir_fail(CHOIR_INVALID, "%s: the coordinator is NULL", what);
	return chi_context_need_cross(c->strategy, what);
}

static choir_status find_function(const choir_coordinator *c, const char *name, int *function)
{
	*function = chi_task_find(&c->o, name);
	if (*function != CHOIR_NONE && c->o.functions[*function].fn != NULL)
		return CHOIR_OK;
	return choir_fail(CHOIR_NOT_FOUND, "schedule: \"%.80s\" is no closure's function in the table",
			name == NULL ? "NULL" : name);
}

// With the lock.
static choir_status add(choir_coordinator *c, chi_closure *closure)
{
	if (is_full(c) || c->dispatch.failed || c->network.status != CHOIR_OK)
		CHOIR_TRY(wait_until(c, has_space));
	chi_closures_add(&c->dispatch.closures, closure);
	c->stale = true;
	if (c->dispatch.closures.hungry != CHOIR_NONE)
		chi_hub_wake(c->network.hub);
	if (!c->dispatch.closures.failed)
		return CHOIR_OK;
	CHOIR_TRY(wait_until(c, nothing_runs));
	return chi_closures_take_error(&c->dispatch.closures);
}

choir_status choir_coordinator_schedule(
		choir_coordinator *c, const char *name, choir_values *args, choir_remote_value **value)
{
	int function;
	chi_pack pack = { 0 };
	if (value != NULL)
		*value = NULL;
	CHOIR_TRY(check_call(c, "schedule"));
	CHOIR_TRY(find_function(c, name, &function));
	CHOIR_TRY(give_changes(c));
	choir_status status = chi_values_pack(args, &pack);
	if (status != CHOIR_OK) {
		chi_pack_free(&pack);
		return status;
	}
	choir_remote_value *v = value == NULL ? NULL : chi_alloc(sizeof *v);
	chi_closure *closure = chi_closure_new(function, &pack);
	if (closure == NULL || (value != NULL && v == NULL)) {
		chi_closure_drop(closure);
		chi_free(v);
		return CHOIR_NO_MEMORY;
	}
	chi_mutex_lock(&c->network.lock);
	status = add(c, closure);
	if (v != NULL && closure->id != 0) {
		*v = (choir_remote_value){ .coordinator = c, .closure = closure };
		*value = v;
	} else {
		chi_closure_drop(closure);
		chi_free(v);
	}
	chi_mutex_unlock(&c->network.lock);
	return status;
}

choir_status choir_coordinator_join(choir_coordinator *c)
{
	CHOIR_TRY(check_call(c, "join"));
	CHOIR_TRY(let_closures_run(c));
	chi_mutex_lock(&c->network.lock);
	choir_status status = wait_until(c, is_idle);
	if (status == CHOIR_OK)
		status = chi_closures_take_error(&c->dispatch.closures);
	chi_mutex_unlock(&c->network.lock);
	return status;
}

choir_status choir_coordinator_done(choir_coordinator *c, bool *done)
{
	CHOIR_TRY(check_call(c, "done"));
	CHOIR_TRY(let_closures_run(c));
	chi_mutex_lock(&c->network.lock);
	choir_status status = CHOIR_OK;
	if (c->dispatch.failed)
		status = chi_error_restore(&c->dispatch.error);
	*done = is_idle(c);
	if (status == CHOIR_OK)
		status = chi_closures_take_error(&c->dispatch.closures);
	chi_mutex_unlock(&c->network.lock);
	return status;
}

static bool is_fetched(const choir_coordinator *c)
{
	return c->fetches->state == CHI_CLOSURE_FINISHED;
}

choir_status choir_coordinator_fetch(
		choir_coordinator *c, choir_remote_value *value, choir_values **result)
{
	CHOIR_TRY(check_call(c, "fetch"));
	CHOIR_TRY(let_closures_run(c));
	if (value == NULL || value->coordinator != c || result == NULL)
		return choir_fail(CHOIR_INVALID, "fetch: the value is not of this coordinator, or NULL");
	chi_mutex_lock(&c->network.lock);
	c->fetches = value->closure;
	choir_status status = is_fetched(c) ? CHOIR_OK : wait_until(c, is_fetched);
	if (status == CHOIR_OK && value->closure->status != CHOIR_OK)
		status = choir_fail(value->closure->status, "%s",
				value->closure->error != NULL ? value->closure->error : "out of memory");
	chi_mutex_unlock(&c->network.lock);
	if (status == CHOIR_OK && value->set == NULL)
		status = chi_remote_value_unpack(value);
	*result = status == CHOIR_OK ? value->set : NULL;
	return status;
}

static bool is_called(const choir_coordinator *c)
{
	return c->call == NULL;
}

static choir_status call_all(choir_coordinator *c, chi_call *call)
{
	chi_mutex_lock(&c->network.lock);
	c->call = call;
	c->stale = true;
	chi_hub_wake(c->network.hub);
	choir_status status = wait_until(c, is_called);
	c->call = NULL;
	if (status == CHOIR_OK && call->error.status != CHOIR_OK)
		status = chi_error_restore(&call->error);
	chi_mutex_unlock(&c->network.lock);
	return status;
}

choir_status choir_coordinator_read_all(
		choir_coordinator *c, const char *name, int capacity, choir_values *sets[], int *n)
{
	int function;
	if (n != NULL)
		*n = 0;
	CHOIR_TRY(check_call(c, "read_all"));
	CHOIR_TRY(find_function(c, name, &function));
	if (sets == NULL || n == NULL || capacity < 1)
		return choir_fail(CHOIR_INVALID, "read_all: capacity %d, or NULL", capacity);
	CHOIR_TRY(give_changes(c));
	chi_call call = { .function = function, .capacity = capacity };
	call.closure = chi_alloc_array((size_t) capacity, sizeof(chi_closure *));
	CHOIR_TRY(chi_made(call.closure));
	choir_status status = call_all(c, &call);
	for (int i = 0; i < call.n; i++) {
		choir_remote_value v = { .coordinator = c, .closure = call.closure[i] };
		choir_values *set;
		const choir_status fetched = choir_coordinator_fetch(c, &v, &set);
		chi_mutex_lock(&c->network.lock);
		if (fetched == CHOIR_OK)
			sets[(*n)++] = set;
		else if (status == CHOIR_OK && (fetched != CHOIR_PEER_LOST || c->dispatch.failed))
			status = fetched;
		chi_closure_drop(v.closure);
		chi_mutex_unlock(&c->network.lock);
		if (fetched != CHOIR_OK)
			choir_values_free(v.set);
	}
	chi_free(call.closure);
	while (status != CHOIR_OK && *n > 0)
		choir_values_free(sets[--*n]);
	return status;
}

void choir_coordinator_staleness(const choir_coordinator *c, double *mean, int64_t *max)
{
	chi_staleness all = { 0 };
	if (c != NULL) {
		chi_mutex *lock = (chi_mutex *) (uintptr_t) &c->network.lock;
		chi_mutex_lock(lock);
		all = c->dispatch.staleness;
		chi_mutex_unlock(lock);
	}
	*mean = all.pushes == 0 ? 0 : (double) all.sum / (double) all.pushes;
	*max = (int64_t) all.max;
}

int choir_coordinator_workers(const choir_coordinator *c)
{
	if (c == NULL)
		return 0;
	chi_mutex *lock = (chi_mutex *) (uintptr_t) &c->network.lock;
	chi_mutex_lock(lock);
	const int workers = c->dispatch.workers;
	chi_mutex_unlock(lock);
	return workers;
}
