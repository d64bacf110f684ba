// The thread that sends and receives.
#include "coordinator/network_thread.h"

#include "base/alloc.h"

#include <math.h>

static choir_status admit(void *user, chi_peer *peer, chi_pack *welcome)
{
	chi_post *p = user;
	chi_mutex_lock(&p->lock);
	const choir_status status =
			p->owner.admit == NULL ? CHOIR_OK : p->owner.admit(p->owner.user, peer, welcome);
	chi_mutex_unlock(&p->lock);
	return status;
}

static void joined(void *user, chi_peer *peer)
{
	chi_post *p = user;
	chi_mutex_lock(&p->lock);
	if (p->owner.joined != NULL)
		p->owner.joined(p->owner.user, peer);
	chi_mutex_unlock(&p->lock);
}

static choir_status frame(void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	chi_post *p = user;
	chi_mutex_lock(&p->lock);
	const choir_status status = p->owner.frame(p->owner.user, peer, f, payload);
	chi_mutex_unlock(&p->lock);
	return status;
}

static void lost(void *user, chi_peer *peer, choir_status status)
{
	chi_post *p = user;
	chi_mutex_lock(&p->lock);
	p->owner.lost(p->owner.user, peer, status);
	chi_mutex_unlock(&p->lock);
}

choir_status chi_post_open(chi_post *p, chi_connections *connections, const chi_hello *own,
		const chi_hub_owner *owner, void (*turn)(void *user), const chi_hub_options *o)
{
	const chi_hub_owner locked = { p, admit, joined, frame, lost };
	*p = (chi_post){ .connections = connections, .owner = *owner, .turn = turn };
	p->last = &p->first;
	p->opened = true;
	chi_mutex_init(&p->lock, CHI_RANK_CLUSTER, "post");
	chi_cond_init(&p->changed);
	p->hub = chi_hub_new(connections, own, &locked, o);
	return p->hub == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
}

static void free_message(chi_outgoing *m)
{
	chi_pack_free(&m->pack);
	chi_free(m);
}

static void send_all(chi_post *p)
{
	while (p->first != NULL) {
		chi_outgoing *m = p->first;
		p->first = m->next;
		if (*m->to != NULL)
			(void) chi_peer_send_pack(*m->to, m->kind, 0, &m->pack);
		free_message(m);
	}
	p->last = &p->first;
}

static void work(void *arg)
{
	chi_post *p = arg;
	choir_status status = CHOIR_OK;
	bool stops = false;
	while (status == CHOIR_OK && !stops) {
		chi_mutex_lock(&p->lock);
		send_all(p);
		if (p->turn != NULL)
			p->turn(p->turn_user);
		stops = p->stops;
		if (p->wakes == NULL || p->wakes(p->turn_user))
			chi_cond_broadcast(&p->changed);
		chi_mutex_unlock(&p->lock);
		if (!stops)
			status = chi_hub_step(p->hub, HUGE_VAL);
	}
	chi_hub_end(p->hub, p->end.status, p->end.text);
	chi_mutex_lock(&p->lock);
	p->status = status;
	chi_error_save(&p->error);
	chi_cond_broadcast(&p->changed);
	chi_mutex_unlock(&p->lock);
}

choir_status chi_post_start(chi_post *p, const char *name)
{
	CHOIR_TRY(chi_thread_start(&p->thread, name, work, p));
	p->started = true;
	return CHOIR_OK;
}

void chi_post_close(chi_post *p, const chi_error *failed)
{
	if (!p->opened)
		return;
	if (p->started) {
		chi_mutex_lock(&p->lock);
		p->end = failed != NULL ? *failed : (chi_error){ CHOIR_END, "the job has ended" };
		p->stops = true;
		chi_mutex_unlock(&p->lock);
		chi_hub_wake(p->hub);
		chi_thread_join(&p->thread);
	}
	for (chi_outgoing *m = p->first, *next; m != NULL; m = next) {
		next = m->next;
		free_message(m);
	}
	chi_hub_free(p->hub);
	chi_cond_destroy(&p->changed);
	chi_mutex_destroy(&p->lock);
	*p = (chi_post){ 0 };
}

choir_status chi_post_send(chi_post *p, chi_peer **to, uint16_t kind, chi_pack *pack)
{
	chi_outgoing *m = pack->failed ? NULL : chi_alloc(sizeof *m);
	if (m == NULL) {
		chi_pack_free(pack);
		return CHOIR_NO_MEMORY;
	}
	*m = (chi_outgoing){ .to = to, .kind = kind, .pack = *pack };
	*pack = (chi_pack){ 0 };
	const bool first = p->first == NULL; // else the thread is awake
	*p->last = m;
	p->last = &m->next;
	if (first)
		chi_hub_wake(p->hub);
	return CHOIR_OK;
}

bool chi_post_wait(chi_post *p, double deadline)
{
	if (p->status != CHOIR_OK)
		return false;
	return chi_cond_wait(&p->changed, &p->lock, deadline);
}
