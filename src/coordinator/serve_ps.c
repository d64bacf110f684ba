// A parameter server: one thread receives and applies changes.
#include "coordinator/serve_ps.h"

#include "coordinator/dial.h"
#include "coordinator/ps_checkpoint.h"
#include "coordinator/ps_requests.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

#include <math.h>

typedef struct {
	chi_job_model model;
	chi_server server;
	chi_hub *hub;
	uint64_t *address; // of the variables' values
	bool joined;
} ps;

static choir_status change(void *user, uint16_t kind, chi_unpack *u)
{
	ps *p = user;
	return kind == CHI_MESSAGE_PUSH ? chi_job_model_push(&p->model, u)
									: chi_job_model_assign(&p->model, u);
}

static choir_status values(void *user, uint16_t kind, chi_unpack *u, chi_pack *to)
{
	const ps *p = user;
	return kind == CHI_MESSAGE_PULL ? chi_job_model_pack_asked(&p->model, u, to)
									: chi_job_model_pack_rows(&p->model, u, to);
}

static choir_status save(void *user, chi_pack *to)
{
	return chi_job_model_save(&((ps *) user)->model, to);
}

static choir_status restore(void *user, chi_unpack *u)
{
	const chi_pack state = { .data = (unsigned char *) (uintptr_t) u->data, .bytes = u->bytes };
	return chi_job_model_restore(&((ps *) user)->model, 1, &state);
}

static void locate(void *user)
{
	ps *p = user;
	for (size_t i = 0; i < p->model.n; i++)
		p->address[i] = (uintptr_t) p->model.variable[i]->copy[0].buffer->memory;
}

static bool are_in_host_memory(const chi_job_model *m)
{
	for (size_t i = 0; i < m->n; i++)
		if (!m->variable[i]->copy[0].device->host_memory)
			return false;
	return true;
}

static choir_status open_values(ps *p, const choir_task *t)
{
	p->address = chi_alloc_array(p->model.n + 1, sizeof *p->address);
	CHOIR_TRY(chi_made(p->address));
	p->server.open = (chi_open_values){ .incarnation = t->hello.incarnation,
		.version = p->server.version,
		.n = p->model.n,
		.address = p->address };
	if (!are_in_host_memory(&p->model))
		return CHOIR_OK;
	p->server.model.locate = locate;
	locate(p);
	return CHOIR_OK;
}

static choir_status admit(void *user, chi_peer *peer, chi_pack *welcome)
{
	return chi_server_admit(&((ps *) user)->server, peer, welcome);
}

static void joined(void *user, chi_peer *peer)
{
	ps *p = user;
	p->joined |= peer->handshake.dialled;
	chi_server_joined(&p->server, peer);
	if (!peer->handshake.dialled)
		return;
	chi_unpack u = { .data = peer->handshake.welcome, .bytes = peer->handshake.welcome_bytes };
	p->server.index = peer->handshake.index;
	p->model.servers = (int) chi_unpack_u32(&u);
}

static choir_status frame(void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	return chi_server_frame(&((ps *) user)->server, peer, f, payload);
}

static void lost(void *user, chi_peer *peer, choir_status status)
{
	chi_server_lost(&((ps *) user)->server, peer, status);
}

static choir_status join(ps *p, const choir_task *t)
{
	const double until = chi_clock_now() + t->o.start_timeout;
	while (!p->joined) {
		p->server.ended = false;
		choir_status status = CHOIR_OK;
		if (chi_hub_dial(p->hub, t->address, NULL) == NULL)
			status = choir_error_status();
		while (status == CHOIR_OK && !p->joined && !p->server.ended)
			CHOIR_TRY(chi_hub_step(p->hub, HUGE_VAL));
		if (p->server.ended)
			status = chi_error_restore(&p->server.end);
		if (status != CHOIR_OK && !chi_dial_again(status))
			return status;
		if (status != CHOIR_OK && chi_clock_now() > until)
			return choir_fail(CHOIR_TIMEOUT, "ps %d: no coordinator at %s within %g s: %.200s",
					t->o.index, t->address, t->o.start_timeout, choir_error());
		if (status != CHOIR_OK)
			chi_thread_nap(CHI_DIAL_PAUSE);
	}
	return CHOIR_OK;
}

static choir_status serve(ps *p, choir_task *t)
{
	CHOIR_TRY(chi_hub_listen(p->hub, t->ps_address, t->hello.address, sizeof t->hello.address));
	CHOIR_TRY(join(p, t));
	while (!p->server.ended)
		CHOIR_TRY(chi_hub_step(p->hub, HUGE_VAL));
	chi_hub_end(p->hub, p->server.end.status, p->server.end.text);
	chi_error_restore(&p->server.end);
	return p->server.end.status == CHOIR_END ? CHOIR_OK : p->server.end.status;
}

choir_status chi_serve_ps(choir_task *t, choir_strategy *s, const choir_coordinator_options *o)
{
	ps *p = chi_alloc(sizeof *p);
	CHOIR_TRY(chi_made(p));
	chi_server_init(&p->server,
			&(chi_server_model){ .user = p,
					.change = change,
					.values = values,
					.save = save,
					.restore = restore });
	choir_status status = chi_job_model_collect(&p->model, s, 1);
	if (status == CHOIR_OK)
		status = chi_task_introduce(t, o, chi_job_model_hash(&p->model));
	const chi_hub_owner owner = { p, admit, joined, frame, lost };
	const chi_hub_options options = chi_task_hub_options(t, p->model.bytes);
	p->server.max = (size_t) options.max;
	if (status == CHOIR_OK)
		status = open_values(p, t);
	if (status == CHOIR_OK) {
		p->hub = chi_hub_new(t->connections, &t->hello, &owner, &options);
		status = p->hub == NULL ? CHOIR_NO_MEMORY : serve(p, t);
	}
	chi_server_free(&p->server);
	chi_hub_free(p->hub);
	chi_free(p->address);
	chi_job_model_free(&p->model);
	chi_free(p);
	return status;
}
