// The thread that sends and receives.
#include "coordinator/network_thread.h"

#include "base/alloc.h"

#include <math.h>

static choir_status admit(void *user, chi_peer *peer, chi_pack *welcome)
{
	chi_network_thread *t = user;
	chi_mutex_lock(&t->lock);
	const choir_status status =
			t->owner.admit == NULL ? CHOIR_OK : t->owner.admit(t->owner.user, peer, welcome);
	chi_mutex_unlock(&t->lock);
	return status;
}

static void joined(void *user, chi_peer *peer)
{
	chi_network_thread *t = user;
	chi_mutex_lock(&t->lock);
	if (t->owner.joined != NULL)
		t->owner.joined(t->owner.user, peer);
	chi_mutex_unlock(&t->lock);
}

static choir_status frame(void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	chi_network_thread *t = user;
	chi_mutex_lock(&t->lock);
	const choir_status status = t->owner.frame(t->owner.user, peer, f, payload);
	chi_mutex_unlock(&t->lock);
	return status;
}

static void lost(void *user, chi_peer *peer, choir_status status)
{
	chi_network_thread *t = user;
	chi_mutex_lock(&t->lock);
	t->owner.lost(t->owner.user, peer, status);
	chi_mutex_unlock(&t->lock);
}

choir_status chi_network_thread_open(chi_network_thread *t, chi_connections *connections,
		const chi_hello *own, const chi_hub_owner *owner, void (*turn)(void *user),
		const chi_hub_options *o)
{
	const chi_hub_owner locked = { t, admit, joined, frame, lost };
	*t = (chi_network_thread){ .connections = connections, .owner = *owner, .turn = turn };
	t->last = &t->first;
	t->opened = true;
	chi_mutex_init(&t->lock, CHI_RANK_CLUSTER, "network thread");
	chi_cond_init(&t->changed);
	t->hub = chi_hub_new(connections, own, &locked, o);
	return t->hub == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
}

static void free_message(chi_outgoing *m)
{
	chi_pack_free(&m->pack);
	chi_free(m);
}

static void send_all(chi_network_thread *t)
{
	while (t->first != NULL) {
		chi_outgoing *m = t->first;
		t->first = m->next;
		if (*m->to != NULL)
			(void) chi_peer_send_pack(*m->to, m->kind, 0, &m->pack);
		free_message(m);
	}
	t->last = &t->first;
}

static void work(void *arg)
{
	chi_network_thread *t = arg;
	choir_status status = CHOIR_OK;
	bool stops = false;
	while (status == CHOIR_OK && !stops) {
		chi_mutex_lock(&t->lock);
		send_all(t);
		if (t->turn != NULL)
			t->turn(t->turn_user);
		stops = t->stops;
		if (t->wakes == NULL || t->wakes(t->turn_user))
			chi_cond_broadcast(&t->changed);
		chi_mutex_unlock(&t->lock);
		if (!stops)
			status = chi_hub_step(t->hub, HUGE_VAL);
	}
	chi_hub_end(t->hub, t->end.status, t->end.text);
	chi_mutex_lock(&t->lock);
	t->status = status;
	chi_error_save(&t->error);
	chi_cond_broadcast(&t->changed);
	chi_mutex_unlock(&t->lock);
}

choir_status chi_network_thread_start(chi_network_thread *t, const char *name)
{
	CHOIR_TRY(chi_thread_start(&t->thread, name, work, t));
	t->started = true;
	return CHOIR_OK;
}

void chi_network_thread_close(chi_network_thread *t, const chi_error *failed)
{
	if (!t->opened)
		return;
	if (t->started) {
		chi_mutex_lock(&t->lock);
		t->end = failed != NULL ? *failed : (chi_error){ CHOIR_END, "the job has ended" };
		t->stops = true;
		chi_mutex_unlock(&t->lock);
		chi_hub_wake(t->hub);
		chi_thread_join(&t->thread);
	}
	for (chi_outgoing *m = t->first, *next; m != NULL; m = next) {
		next = m->next;
		free_message(m);
	}
	chi_hub_free(t->hub);
	chi_cond_destroy(&t->changed);
	chi_mutex_destroy(&t->lock);
	*t = (chi_network_thread){ 0 };
}

choir_status chi_network_thread_send(
		chi_network_thread *t, chi_peer **to, uint16_t kind, chi_pack *pack)
{
	chi_outgoing *m = pack->failed ? NULL : chi_alloc(sizeof *m);
	if (m == NULL) {
		chi_pack_free(pack);
		return CHOIR_NO_MEMORY;
	}
	*m = (chi_outgoing){ .to = to, .kind = kind, .pack = *pack };
	*pack = (chi_pack){ 0 };
	const bool first = t->first == NULL; // else the thread is awake
	*t->last = m;
	t->last = &m->next;
	if (first)
		chi_hub_wake(t->hub);
	return CHOIR_OK;
}

bool chi_network_thread_wait(chi_network_thread *t, double deadline)
{
	if (t->status != CHOIR_OK)
		return false;
	return chi_cond_wait(&t->changed, &t->lock, deadline);
}
