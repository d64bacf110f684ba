// A worker: the main thread runs closures, and network_thread.h sends and receives. Changes are
// sent when made, and a closure is done when the servers have answered all.
#include "coordinator/serve_worker.h"

#include "coordinator/dial.h"
#include "coordinator/closure_message.h"
#include "coordinator/worker_push.h"
#include "coordinator/worker_pull.h"
#include "strategy/context.h"
#include "strategy/remote_variables.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

#include <string.h>

static bool all_connected(const chi_remote_worker *w)
{
	int n = 0;
	for (int i = 0; i < w->servers; i++)
		n += w->server[i].peer != NULL;
	return w->welcome && n == w->servers;
}

static void end(chi_remote_worker *w, choir_status status)
{
	if (w->ended)
		return;
	chi_error_save(&w->end);
	w->end.status = status;
	w->ended = true;
}

static void take_server(const chi_remote_worker *w, chi_remote_server *s, chi_peer *peer)
{
	const chi_hello *hello = &peer->handshake.peer;
	chi_unpack u = { .data = peer->handshake.welcome, .bytes = peer->handshake.welcome_bytes };
	s->peer = peer;
	s->pid = hello->pid;
	s->incarnation = hello->incarnation;
	if (strcmp(hello->host, w->task->hello.host) == 0)
		s->open = chi_unpack_u64(&u);
	s->reads = s->open != 0;
}

static void joined(void *user, chi_peer *peer)
{
	chi_remote_worker *w = user;
	if (strcmp(peer->handshake.peer.role, "ps") == 0) {
		take_server(w, &w->server[(intptr_t) peer->user], peer);
		return;
	}
	char address[128];
	chi_unpack u = { .data = peer->handshake.welcome, .bytes = peer->handshake.welcome_bytes };
	w->coordinator = peer;
	w->number = peer->handshake.index;
	w->servers = (int) chi_unpack_u32(&u);
	if (w->servers < 1 || w->servers > CHI_SERVERS_MAX)
		end(w, choir_fail(CHOIR_CORRUPT, "a welcome with %d servers", w->servers));
	for (int i = 0; i < w->servers && !w->ended; i++) {
		chi_unpack_text(&u, address, sizeof address);
		if (chi_hub_dial(w->network.hub, address, (void *) (intptr_t) i) == NULL)
			end(w, choir_error_status());
	}
	w->model.servers = w->servers;
	w->welcome = true;
}

static choir_status take_run(chi_remote_worker *w, const void *payload, size_t bytes)
{
	chi_waiting_closure *c = chi_alloc(sizeof *c);
	CHOIR_TRY(chi_made(c));
	chi_pack_raw(&c->pack, payload, bytes);
	if (c->pack.failed) {
		chi_free(c);
		return CHOIR_NO_MEMORY;
	}
	*w->last = c;
	w->last = &c->next;
	return CHOIR_OK;
}

static choir_status take_values(chi_remote_server *s, const void *payload, size_t bytes)
{
	if (!s->pulls)
		return choir_fail(CHOIR_CORRUPT, "values that nobody awaits");
	s->values.bytes = 0;
	chi_pack_raw(&s->values, payload, bytes);
	s->pulls = false;
	return s->values.failed ? CHOIR_NO_MEMORY : CHOIR_OK;
}

static choir_status take_answer(chi_remote_worker *w, chi_remote_server *s, chi_unpack *u)
{
	chi_error e = { .status = (choir_status) chi_unpack_u32(u) };
	chi_unpack_text(u, e.text, sizeof e.text);
	const uint64_t stale = chi_unpack_u64(u);
	CHOIR_TRY(chi_unpack_end(u, "ANSWER"));
	if (s->awaited == 0)
		return choir_fail(CHOIR_CORRUPT, "an answer that nobody awaits");
	s->awaited--;
	if (stale != CHI_NO_STALENESS) {
		w->staleness.pushes++;
		w->staleness.sum += stale;
		w->staleness.max = stale > w->staleness.max ? stale : w->staleness.max;
	}
	if (e.status != CHOIR_OK && w->answer.status == CHOIR_OK)
		w->answer = e;
	return CHOIR_OK;
}

static choir_status frame(void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	chi_remote_worker *w = user;
	chi_unpack u = { .data = payload, .bytes = (size_t) f->bytes };
	if (peer == w->coordinator && f->kind == CHI_MESSAGE_RUN)
		return take_run(w, payload, (size_t) f->bytes);
	chi_remote_server *s = peer == w->coordinator ? NULL : &w->server[(intptr_t) peer->user];
	if (s != NULL && f->kind == CHI_MESSAGE_VALUES)
		return take_values(s, payload, (size_t) f->bytes);
	if (s != NULL && f->kind == CHI_MESSAGE_ANSWER)
		return take_answer(w, s, &u);
	if (s != NULL && f->kind == CHI_MESSAGE_DECLINED && s->awaited > 0) {
		s->awaited--;
		s->reads = false;
		return CHOIR_OK;
	}
	return choir_fail(CHOIR_CORRUPT, "a message of kind %d", f->kind);
}

static void lost(void *user, chi_peer *peer, choir_status status)
{
	chi_remote_worker *w = user;
	chi_error why;
	chi_error_save(&why);
	if (status != CHOIR_END)
		choir_fail(status, "%s: %.300s", peer->name, why.text);
	end(w, status);
	if (peer == w->coordinator)
		w->coordinator = NULL;
	for (int i = 0; i < w->servers; i++)
		if (w->server[i].peer == peer)
			w->server[i].peer = NULL;
}

static choir_status call(chi_remote_worker *w, uint32_t function, chi_unpack *args)
{
	choir_closure *c = &w->closure;
	if (function >= (uint32_t) w->task->functions || w->o->functions[function].fn == NULL)
		return choir_fail(CHOIR_CORRUPT, "message RUN: function %u", (unsigned) function);
	choir_values_clear(c->args);
	choir_values_clear(c->results);
	if (args->bytes > 0)
		CHOIR_TRY(chi_values_unpack(c->args, args));
	chi_error_clear();
	chi_context inside;
	chi_context *entry = chi_context_enter(&inside, CHI_IN_CROSS, w->strategy, NULL);
	return chi_context_leave(entry, w->o->functions[function].fn(c, w->o->user), "function \"%s\"",
			w->o->functions[function].name);
}

static choir_status send_done(chi_remote_worker *w, choir_status status)
{
	chi_pack done = { 0 }, result = { 0 };
	if (status == CHOIR_OK)
		status = chi_values_pack(w->closure.results, &result);
	chi_pack_u64(&done, w->closure.id);
	chi_pack_u32(&done, (uint32_t) status);
	chi_pack_text(&done, status == CHOIR_OK ? "" : choir_error());
	chi_pack_bytes(&done, result.data, status == CHOIR_OK ? result.bytes : 0);
	chi_pack_u64(&done, w->staleness.pushes);
	chi_pack_u64(&done, w->staleness.sum);
	chi_pack_u64(&done, w->staleness.max);
	uint64_t changes = 0;
	for (int i = 0; i < w->servers; i++)
		changes += w->server[i].ordinal;
	chi_pack_u64(&done, changes);
	w->staleness = (chi_staleness){ 0 };
	chi_pack_free(&result);
	chi_mutex_lock(&w->network.lock);
	const choir_status sent =
			chi_network_thread_send(&w->network, &w->coordinator, CHI_MESSAGE_DONE, &done);
	chi_mutex_unlock(&w->network.lock);
	return sent;
}

static choir_status run_closure(chi_remote_worker *w, const chi_pack *pack)
{
	chi_unpack u = { .data = pack->data, .bytes = pack->bytes };
	w->closure.id = chi_unpack_u64(&u);
	w->closure.attempt = (int) chi_unpack_u32(&u);
	const uint32_t function = chi_unpack_u32(&u);
	chi_unpack args = { 0 };
	args.data = chi_unpack_bytes(&u, &args.bytes);
	CHOIR_TRY(chi_unpack_end(&u, "RUN"));
	for (int i = 0; i < w->servers; i++)
		w->server[i].ordinal = 0;
	choir_status status = call(w, function, &args);
	chi_error why;
	chi_error_save(&why);
	const choir_status answers = chi_worker_await_answers(w);
	if (status != CHOIR_OK)
		chi_error_restore(&why);
	chi_mutex_lock(&w->network.lock);
	const bool ended = w->ended;
	chi_mutex_unlock(&w->network.lock);
	if (ended)
		return CHOIR_OK; // the loop reports it
	const choir_status sent = send_done(w, status != CHOIR_OK ? status : answers);
	w->closure.id = 0;
	return sent;
}

static chi_waiting_closure *next_closure(chi_remote_worker *w)
{
	chi_mutex_lock(&w->network.lock);
	while (w->first == NULL && chi_worker_check(w) == CHOIR_OK)
		(void) chi_network_thread_wait(&w->network, chi_clock_deadline(1));
	chi_waiting_closure *c = chi_worker_check(w) == CHOIR_OK ? w->first : NULL;
	if (c != NULL) {
		w->first = c->next;
		w->last = w->first == NULL ? &w->first : w->last;
	}
	chi_mutex_unlock(&w->network.lock);
	return c;
}

static void free_waiting(chi_waiting_closure *c)
{
	chi_pack_free(&c->pack);
	chi_free(c);
}

static choir_status work(chi_remote_worker *w)
{
	choir_status status = CHOIR_OK;
	for (chi_waiting_closure *c; status == CHOIR_OK && (c = next_closure(w)) != NULL;
			free_waiting(c))
		status = run_closure(w, &c->pack);
	CHOIR_TRY(status);
	chi_mutex_lock(&w->network.lock);
	const chi_error why = w->ended ? w->end : w->network.error;
	status = w->ended ? w->end.status : w->network.status;
	chi_mutex_unlock(&w->network.lock);
	chi_error_restore(&why);
	return status == CHOIR_END ? CHOIR_OK : status;
}

// Opens the network thread, which the caller closes.
static choir_status join_once(chi_remote_worker *w, double until)
{
	const chi_hub_options options = chi_task_hub_options(w->task, w->model.bytes);
	const chi_hub_owner owner = { w, NULL, joined, frame, lost };
	w->welcome = w->ended = false;
	w->servers = 0;
	memset(w->server, 0, sizeof w->server);
	CHOIR_TRY(chi_network_thread_open(
			&w->network, w->task->connections, &w->task->hello, &owner, NULL, &options));
	if (chi_hub_dial(w->network.hub, w->task->address, NULL) == NULL)
		return choir_error_status();
	CHOIR_TRY(chi_network_thread_start(&w->network, "worker"));
	chi_mutex_lock(&w->network.lock);
	choir_status status = chi_worker_check(w);
	while (status == CHOIR_OK && !all_connected(w) && chi_clock_now() < until) {
		(void) chi_network_thread_wait(&w->network, chi_clock_deadline(0.25));
		status = chi_worker_check(w);
	}
	if (status == CHOIR_OK && !all_connected(w))
		status = choir_fail(CHOIR_TIMEOUT, "not all servers answered");
	chi_mutex_unlock(&w->network.lock);
	return status;
}

static void close_post(chi_remote_worker *w)
{
	chi_error why;
	chi_error_save(&why);
	chi_network_thread_close(&w->network, NULL);
	for (int i = 0; i < CHI_SERVERS_MAX; i++)
		chi_pack_free(&w->server[i].values);
	while (w->first != NULL) {
		chi_waiting_closure *c = w->first;
		w->first = c->next;
		free_waiting(c);
	}
	w->last = &w->first;
	chi_error_restore(&why);
}

static choir_status join(chi_remote_worker *w)
{
	const double begin = chi_clock_now(), seconds = w->task->o.start_timeout;
	for (;;) {
		const choir_status status = join_once(w, begin + seconds);
		if (status == CHOIR_OK || !chi_dial_again(status))
			return status;
		if (chi_clock_now() > begin + seconds)
			return choir_fail(CHOIR_TIMEOUT, "worker: no coordinator at %s within %g s: %.200s",
					w->task->address, seconds, choir_error());
		close_post(w);
		chi_thread_nap(CHI_DIAL_PAUSE);
	}
}

// The job may end before this worker has connected to all servers.
static bool has_ended_in_order(chi_remote_worker *w)
{
	chi_mutex_lock(&w->network.lock);
	const bool in_order = w->ended && w->end.status == CHOIR_END;
	chi_mutex_unlock(&w->network.lock);
	return in_order;
}

static choir_status serve(chi_remote_worker *w)
{
	w->closure.args = choir_values_new(w->strategy);
	w->closure.results = choir_values_new(w->strategy);
	if (w->closure.args == NULL || w->closure.results == NULL)
		return choir_error_status();
	CHOIR_TRY(chi_job_model_collect(&w->model, w->strategy, 1));
	w->part = chi_alloc_array(w->model.n + 1, sizeof *w->part);
	w->address = chi_alloc_array(w->model.n + 1, sizeof *w->address);
	if (w->part == NULL || w->address == NULL)
		return CHOIR_NO_MEMORY;
	CHOIR_TRY(chi_task_introduce(w->task, w->o, chi_job_model_hash(&w->model)));
	const choir_status joined = join(w);
	if (joined != CHOIR_OK && !has_ended_in_order(w))
		return joined;
	w->remote = (chi_remote){ .user = w,
		.refresh = chi_worker_refresh,
		.fetch = chi_worker_fetch,
		.push = chi_worker_push,
		.assign = chi_worker_assign };
	w->strategy->remote = &w->remote;
	return work(w);
}

choir_status chi_serve_worker(choir_task *t, choir_strategy *s, const choir_coordinator_options *o)
{
	chi_remote_worker *w = chi_alloc(sizeof *w);
	CHOIR_TRY(chi_made(w));
	w->task = t;
	w->o = o;
	w->strategy = s;
	w->last = &w->first;
	w->closure.worker = w;
	const choir_status status = serve(w);
	s->remote = NULL;
	close_post(w);
	for (chi_named_dataset *d = w->datasets, *next; d != NULL; d = next) {
		next = d->next;
		chi_free(d); // the strategy frees the data
	}
	for (chi_named_values *v = w->values, *next; v != NULL; v = next) {
		next = v->next;
		choir_values_free(v->set);
		chi_free(v);
	}
	choir_values_free(w->closure.args);
	choir_values_free(w->closure.results);
	for (size_t i = 0; w->part != NULL && i < w->model.n; i++)
		chi_free(w->part[i].row);
	chi_free(w->part);
	chi_free(w->address);
	chi_free(w->memory);
	chi_job_model_free(&w->model);
	chi_free(w);
	return status;
}
