// The supervisor's connections: agents, and `choir status`.
#include "supervisor/supervisor.h"

#include "base/alloc.h"
#include "base/directory.h"
#include "base/fs.h"
#include "base/status.h"
#include "supervisor/agent_message.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_PART = 32768 };

choir_status chi_job_directory(char *out, size_t size)
{
	const char *own = getenv("XDG_RUNTIME_DIR");
	if (own != NULL && own[0] == '/' && strlen(own) < CHI_JOB_PATH / 2 && access(own, W_OK) == 0)
		snprintf(out, size, "%s/choir", own);
	else
		snprintf(out, size, "/tmp/choir-%ld", (long) geteuid());
	return chi_directory_make_private(out);
}

static choir_status admit(void *user, chi_peer *peer, chi_pack *welcome)
{
	(void) user, (void) welcome;
	const char *role = peer->handshake.peer.role;
	return strcmp(role, "agent") == 0 || strcmp(role, "status") == 0
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID,
					  "supervisor: a peer of role \"%s\"; agent or status needed", role);
}

static void joined(void *user, chi_peer *peer)
{
	choir_supervisor *s = user;
	chi_job_peer *p = chi_alloc(sizeof *p);
	if (p == NULL || !chi_grow(&s->agents, &s->peer_capacity, s->peer_count + 1, sizeof(void *))) {
		chi_free(p);
		chi_peer_end(peer, CHOIR_NO_MEMORY, "the supervisor has no memory");
		return;
	}
	p->peer = peer;
	peer->user = p;
	p->asks = strcmp(peer->handshake.peer.role, "status") == 0;
	s->agents[s->peer_count++] = p;
}

static void answer(choir_supervisor *s, chi_peer *peer, bool json)
{
	chi_text t = { 0 };
	chi_restart_policy_describe(s->policy, chi_hub_now(s->hub), json, &t);
	for (size_t at = 0; !t.failed && at < t.length; at += ANSWER_PART) {
		const size_t left = t.length - at;
		const choir_connection_part part = { t.data + at,
			left < ANSWER_PART ? left : ANSWER_PART };
		if (chi_peer_send(peer, CHI_STATUS_TEXT, 0, &part, 1) != CHOIR_OK)
			break;
	}
	(void) chi_peer_send(peer, CHI_STATUS_TEXT, 0, NULL, 0);
	chi_text_free(&t);
}

static choir_status take_join(choir_supervisor *s, chi_job_peer *p, chi_unpack *u)
{
	chi_agent_join j;
	char clean[4 * CHI_HOST_NAME];
	CHOIR_TRY(chi_agent_join_unpack(u, &j));
	if (p->has_joined || j.worker < 0 || j.worker >= s->o.workers)
		return choir_fail(CHOIR_INVALID, "an agent of worker %d; 0 to %d needed", j.worker,
				s->o.workers - 1);
	p->attempt = j.attempt;
	p->worker = j.worker;
	chi_text_clean(j.host, clean, sizeof clean);
	clean[CHI_HOST_NAME - 1] = '\0';
	const char *host = chi_hosts_name(&s->hosts, clean, j.worker);
	const bool starts = chi_restart_policy_joined(
			s->policy, chi_hub_now(s->hub), j.attempt, j.worker, host, j.pid);
	p->has_joined = starts;
	return chi_peer_send(p->peer, starts ? CHI_AGENT_START : CHI_AGENT_KILL, 0, NULL, 0);
}

static choir_status take_report(
		choir_supervisor *s, const chi_job_peer *p, chi_unpack *u, bool ended)
{
	chi_worker_report r;
	chi_process_end end = { 0 };
	chi_report_unpack(u, &r);
	if (ended)
		chi_end_unpack(u, &end);
	CHOIR_TRY(chi_unpack_end(u, "an agent's report"));
	const double now = chi_hub_now(s->hub);
	if (ended)
		chi_restart_policy_ended(s->policy, now, p->attempt, p->worker, &r, &end);
	else
		chi_restart_policy_heard(s->policy, now, p->attempt, p->worker, &r);
	return CHOIR_OK;
}

static void flush_lines(const choir_supervisor *s, chi_job_peer *p)
{
	for (int i = 0; i < 2; i++) {
		if (p->line[i].length > 0)
			chi_job_lines(s, i == 0 ? CHOIR_SUPERVISOR_OUTPUT : CHOIR_SUPERVISOR_ERROR, p->worker,
					&p->line[i], "\n", 1);
		chi_text_free(&p->line[i]);
	}
}

static choir_status take_frame(
		choir_supervisor *s, chi_job_peer *p, const chi_net_frame *f, chi_unpack *u)
{
	if (p->asks) {
		answer(s, p->peer, chi_unpack_u32(u) != 0);
		return CHOIR_OK;
	}
	if (f->kind == CHI_AGENT_JOIN)
		return take_join(s, p, u);
	if (!p->has_joined)
		return choir_fail(CHOIR_INVALID, "an agent's message before its start");
	if (f->kind == CHI_AGENT_OUTPUT) {
		const int i = f->stream == 1 ? 0 : 1;
		chi_job_lines(s, i == 0 ? CHOIR_SUPERVISOR_OUTPUT : CHOIR_SUPERVISOR_ERROR, p->worker,
				&p->line[i], (const char *) u->data, u->bytes);
		return CHOIR_OK;
	}
	if (f->kind == CHI_AGENT_ENDED)
		flush_lines(s, p);
	return take_report(s, p, u, f->kind == CHI_AGENT_ENDED);
}

static choir_status frame(void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	choir_supervisor *s = user;
	chi_job_peer *p = peer->user;
	chi_unpack u = { .data = payload, .bytes = (size_t) f->bytes };
	if (p == NULL)
		return CHOIR_OK;
	CHOIR_TRY(take_frame(s, p, f, &u));
	// An agent of an earlier attempt has been cut off, and is back.
	if (p->has_joined && p->attempt != chi_restart_policy_attempt(s->policy))
		(void) chi_peer_send(peer, CHI_AGENT_KILL, 0, NULL, 0);
	return CHOIR_OK;
}

static void lost(void *user, chi_peer *peer, choir_status status)
{
	choir_supervisor *s = user;
	chi_job_peer *p = peer->user;
	if (p == NULL)
		return;
	chi_error reason;
	chi_error_save(&reason);
	flush_lines(s, p);
	p->peer = NULL;
	for (size_t i = 0; i < s->peer_count; i++)
		if (s->agents[i] == p)
			s->agents[i] = s->agents[--s->peer_count];
	if (p->has_joined)
		chi_restart_policy_gone(
				s->policy, chi_hub_now(s->hub), p->attempt, p->worker, status, reason.text);
	chi_free(p);
}

void chi_job_tell(choir_supervisor *s, int attempt, uint16_t kind, const chi_pack *pack)
{
	for (size_t i = 0; i < s->peer_count; i++) {
		chi_job_peer *p = s->agents[i];
		if (!p->has_joined || p->attempt != attempt)
			continue;
		if (pack != NULL)
			(void) chi_peer_send_pack(p->peer, kind, 0, pack);
		else
			(void) chi_peer_send(p->peer, kind, 0, NULL, 0);
	}
}

void chi_job_release(choir_supervisor *s, int attempt, int worker)
{
	for (size_t i = 0; i < s->peer_count; i++) {
		chi_job_peer *p = s->agents[i];
		if (!p->has_joined || p->attempt != attempt || p->worker != worker)
			continue;
		flush_lines(s, p);
		p->has_joined = false;
		(void) chi_peer_send(p->peer, CHI_AGENT_KILL, 0, NULL, 0);
	}
}

// Agents on other hosts use TCP and prove the key, `choir status` the Unix socket.
static choir_status listen_at(choir_supervisor *s)
{
	char wanted[CHI_JOB_ADDRESS], bound[CHI_JOB_ADDRESS];
	snprintf(wanted, sizeof wanted, "unix:%s", s->path);
	CHOIR_TRY(chi_hub_listen(s->hub, wanted, bound, sizeof bound));
	if (s->remote) {
		const char *host = s->o.address != NULL ? s->o.address : s->hello.host;
		snprintf(wanted, sizeof wanted, "%.100s:0", host);
		CHOIR_TRY(chi_hub_listen(s->hub, wanted, bound, sizeof bound));
	}
	memcpy(s->address, bound, sizeof s->address);
	return CHOIR_OK;
}

choir_status chi_job_open_hub(choir_supervisor *s)
{
	char directory[CHI_JOB_PATH - 24];
	if (s->remote)
		CHOIR_TRY(chi_job_key_make(&s->key));
	CHOIR_TRY(chi_job_directory(directory, sizeof directory));
	snprintf(s->name, sizeof s->name, "%ld", (long) getpid());
	snprintf(s->path, sizeof s->path, "%s/%.20s", directory, s->name);
	s->connections = chi_connections_open(s->remote ? &s->key : NULL, false);
	CHOIR_TRY(chi_made(s->connections));
	CHOIR_TRY(chi_hello_make(&s->hello, "supervisor", 0, 0, CHI_JOB_PROTOCOL));
	const chi_hub_owner owner = { s, admit, joined, frame, lost };
	// The restart policy times silence itself, so the connection's limit is longer.
	s->hub = chi_hub_new(s->connections, &s->hello, &owner,
			&(chi_hub_options){
					.heartbeat = s->o.lost_after / 8, .lost_after = 4 * s->o.lost_after });
	return s->hub == NULL ? CHOIR_NO_MEMORY : listen_at(s);
}

// Of a killed coordinator and its servers.
static void remove_task_sockets(const choir_supervisor *s)
{
	char path[CHI_JOB_ADDRESS];
	for (int i = 0; i <= s->o.servers && s->o.servers > 0 && !s->remote && s->hub != NULL; i++) {
		chi_job_task_socket(s->path, i, path, sizeof path);
		(void) chi_fs_remove(AT_FDCWD, path);
	}
}

void chi_job_close_hub(choir_supervisor *s)
{
	remove_task_sockets(s);
	chi_hub_free(s->hub);
	for (size_t i = 0; i < s->peer_count; i++) {
		chi_text_free(&s->agents[i]->line[0]);
		chi_text_free(&s->agents[i]->line[1]);
		chi_free(s->agents[i]);
	}
	chi_free(s->agents);
	chi_connections_free(s->connections);
	chi_key_clear(&s->key);
}
