// A worker pushes gradients and assignments when they are made. Servers on this host read large
// ones from this process's memory.
#include "coordinator/worker_push.h"

#include "base/clock.h"

// pack: closure, ordinal and version, then the change; or an offer.
static choir_status send_change(chi_remote_worker *w, int i, uint16_t kind, chi_pack *pack)
{
	chi_mutex_lock(&w->network.lock);
	choir_status status = chi_worker_check(w);
	if (status == CHOIR_OK)
		status = chi_network_thread_send(&w->network, &w->server[i].peer, kind, pack);
	if (status == CHOIR_OK)
		w->server[i].awaited++;
	chi_mutex_unlock(&w->network.lock);
	chi_pack_free(pack);
	return status;
}

static choir_status begin_change(const chi_remote_worker *w, int i, chi_pack *pack)
{
	if (w->closure.id == 0)
		return choir_fail(CHOIR_STATE, "a worker changes variables only in closures");
	chi_pack_u64(pack, w->closure.id);
	chi_pack_u64(pack, w->server[i].ordinal);
	chi_pack_u64(pack, w->server[i].pulled);
	return CHOIR_OK;
}

static choir_status check_known(const chi_remote_worker *w, const choir_variable *v)
{
	if (chi_job_model_find(&w->model, v) < w->model.n)
		return CHOIR_OK;
	return choir_fail(CHOIR_STATE,
			"variable \"%s\" was not made by .build, so it is on no server; make it there",
			v->name);
}

static size_t awaited(const chi_remote_worker *w)
{
	size_t n = 0;
	for (int i = 0; i < w->servers; i++)
		n += w->server[i].awaited;
	return n;
}

static choir_status await_all(chi_remote_worker *w)
{
	chi_mutex_lock(&w->network.lock);
	choir_status status = chi_worker_check(w);
	while (status == CHOIR_OK && awaited(w) > 0) {
		(void) chi_network_thread_wait(&w->network, chi_clock_deadline(1));
		status = chi_worker_check(w);
	}
	chi_mutex_unlock(&w->network.lock);
	return status;
}

static choir_status offer(chi_remote_worker *w, int i, const chi_large_message *m)
{
	chi_pack pack = { 0 };
	chi_pack_u64(&pack, chi_atomic64_load(&w->token));
	chi_pack_u64(&pack, (uintptr_t) &w->token);
	chi_large_message_offer(m, &pack);
	return send_change(w, i, CHI_MESSAGE_OFFER, &pack);
}

static choir_status send_joined(chi_remote_worker *w, int i, const chi_large_message *m)
{
	chi_pack pack = { 0 };
	chi_large_message_join(m, &pack);
	return send_change(w, i, CHI_MESSAGE_PUSH, &pack);
}

// Offered messages must stay until all servers have answered.
static choir_status send_pushes(chi_remote_worker *w, const chi_large_message message[])
{
	enum { SMALL = 16384 }; // bytes
	choir_status status = CHOIR_OK;
	bool offered[CHI_SERVERS_MAX] = { 0 }, any = false;
	chi_atomic64_store(&w->token, w->task->hello.incarnation + ++w->tokens);
	for (int i = 0; i < w->servers && status == CHOIR_OK; i++) {
		const size_t bytes = chi_large_message_bytes(&message[i]);
		if (bytes == 0)
			continue;
		offered[i] = w->server[i].reads && bytes > SMALL;
		any |= offered[i];
		status = offered[i] ? offer(w, i, &message[i]) : send_joined(w, i, &message[i]);
	}
	if (status == CHOIR_OK && any)
		status = await_all(w);
	chi_atomic64_store(&w->token, 0);
	for (int i = 0; i < w->servers && status == CHOIR_OK; i++)
		if (offered[i] && !w->server[i].reads)
			status = send_joined(w, i, &message[i]);
	for (int i = 0; i < w->servers; i++)
		w->server[i].ordinal += chi_large_message_bytes(&message[i]) > 0;
	return status;
}

choir_status chi_worker_push(void *user, void *optimizer, size_t n, choir_variable *const v[],
		const chi_remote_gradient gradient[])
{
	chi_remote_worker *w = user;
	chi_large_message message[CHI_SERVERS_MAX] = { 0 };
	choir_status status = CHOIR_OK;
	for (size_t i = 0; i < n && status == CHOIR_OK; i++)
		status = check_known(w, v[i]);
	for (int i = 0; i < w->servers && status == CHOIR_OK; i++) {
		chi_large_message *m = &message[i];
		status = begin_change(w, i, &m->pack);
		if (status == CHOIR_OK &&
				chi_job_model_pack_push(&w->model, i, optimizer, n, v, gradient, m) == 0)
			chi_large_message_free(m);
	}
	if (status == CHOIR_OK)
		status = send_pushes(w, message);
	for (int i = 0; i < w->servers; i++)
		chi_large_message_free(&message[i]);
	return status;
}

choir_status chi_worker_assign(void *user, choir_variable *v, chi_assign_op op, choir_tensor *t)
{
	chi_remote_worker *w = user;
	chi_pack pack = { 0 };
	if (v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return CHOIR_OK;
	CHOIR_TRY(check_known(w, v));
	const int i = (int) (chi_job_model_find(&w->model, v) % (size_t) w->servers);
	CHOIR_TRY(begin_change(w, i, &pack));
	const choir_status status = chi_job_model_pack_assign(&w->model, v, op, t, &pack);
	if (status != CHOIR_OK) {
		chi_pack_free(&pack);
		return status;
	}
	CHOIR_TRY(send_change(w, i, CHI_MESSAGE_ASSIGN, &pack));
	w->server[i].ordinal++;
	return CHOIR_OK;
}

choir_status chi_worker_await_answers(chi_remote_worker *w)
{
	choir_status status = await_all(w);
	chi_mutex_lock(&w->network.lock);
	if (status == CHOIR_OK && w->answer.status != CHOIR_OK)
		status = chi_error_restore(&w->answer);
	w->answer = (chi_error){ .status = CHOIR_OK };
	chi_mutex_unlock(&w->network.lock);
	return status;
}
