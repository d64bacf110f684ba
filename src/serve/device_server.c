// A server of devices: the hub's owner, with at most one session. Its program's other servers may
// join at any time.
#include "choir/serve.h"

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/log.h"
#include "base/options.h"
#include "op/kernel/kernel.h"
#include "serve/peer_requests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct choir_server {
	choir_server_options o;
	int devices;
	choir_device *device[CHI_REMOTE_DEVICES];
	chi_connections *connections;
	chi_hello hello;
	chi_hub *hub;
	char address[128];
	chi_session *session;
	chi_atomic32 stops;
};

static bool is_program(const chi_peer *peer)
{
	return strcmp(peer->handshake.peer.role, CHI_REMOTE_ROLE) == 0;
}

// CPU devices share the memory of the machine.
static uint64_t memory_of(const choir_server *s, const choir_device *d, int *cores)
{
	choir_device_info info = { .size = sizeof info };
	uint64_t sharers = 0;
	if (choir_device_describe(d, &info) != CHOIR_OK)
		return 0;
	*cores = d->host_memory ? s->o.cores : info.cores;
	for (int i = 0; i < s->devices; i++)
		sharers += s->device[i]->host_memory;
	if (s->o.memory > 0)
		return s->o.memory;
	return d->host_memory ? info.memory_total / sharers : info.memory_total;
}

static choir_status welcome(choir_server *s, chi_peer *peer, chi_pack *to)
{
	char library[CHI_KERNEL_LIBRARY];
	if (s->session != NULL)
		return choir_fail(CHOIR_STATE, "the server works for %s; it has one program at a time",
				s->session->program->name);
	if (peer->handshake.peer.index < 0 || peer->handshake.peer.index >= CHI_REMOTE_SERVERS)
		return choir_fail(CHOIR_CORRUPT, "a program with %d servers", peer->handshake.peer.index);
	s->session = chi_session_new(s->hub, peer, s->devices, s->device, s->o.cores);
	CHOIR_TRY(chi_made(s->session));
	chi_pack_text(to, chi_kernel_library(library));
	chi_pack_u32(to, (uint32_t) s->devices);
	for (int i = 0; i < s->devices; i++) {
		int cores = 1;
		const uint64_t memory = memory_of(s, s->device[i], &cores);
		chi_pack_text(to, s->device[i]->name);
		chi_pack_u32(to, (uint32_t) cores);
		chi_pack_u64(to, memory);
	}
	return CHOIR_OK;
}

static choir_status admit(void *user, chi_peer *peer, chi_pack *to)
{
	if (is_program(peer))
		return welcome(user, peer, to);
	if (strcmp(peer->handshake.peer.role, CHI_REMOTE_SERVER_ROLE) == 0)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID, "this is a server of devices; a %s has no use for it",
			peer->handshake.peer.role);
}

static void joined(void *user, chi_peer *peer)
{
	choir_server *s = user;
	if (is_program(peer))
		chi_log(CHOIR_LOG_INFO, "serve: %s has joined", peer->name);
	else
		chi_session_peer_joined(s->session, peer);
}

static void end_session(choir_server *s)
{
	chi_session_free(s->session);
	s->session = NULL;
}

static void lost(void *user, chi_peer *peer, choir_status status)
{
	choir_server *s = user;
	if (s->session == NULL || s->session->program != peer) {
		chi_session_peer_lost(s->session, peer);
		return;
	}
	chi_log(CHOIR_LOG_INFO, "serve: %s has ended: %s (%s)", peer->name, choir_error(),
			choir_status_name(status));
	end_session(s);
}

static void send_away(choir_server *s, choir_status status)
{
	chi_peer *program = s->session->program;
	chi_log(CHOIR_LOG_WARNING, "serve: %s is sent away: %s", program->name, choir_error());
	chi_peer_end(program, status, choir_error());
	end_session(s);
}

static choir_status take_commands(choir_server *s, chi_peer *peer, size_t bytes)
{
	const choir_status status = chi_session_take(s->session, chi_link_take(&peer->link), bytes);
	if (status != CHOIR_OK)
		send_away(s, status);
	return CHOIR_OK;
}

static choir_status frame(void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	choir_server *s = user;
	if (!is_program(peer))
		return chi_session_peer_frame(s->session, peer, f, payload);
	if (s->session == NULL || s->session->program != peer || f->kind != CHI_REMOTE_COMMANDS)
		return choir_fail(CHOIR_CORRUPT, "a message of kind %d from a program", f->kind);
	return take_commands(s, peer, (size_t) f->bytes);
}

static choir_status find_devices(choir_server *s)
{
	if (s->o.devices != NULL)
		return chi_device_list(s->o.devices, CHI_REMOTE_DEVICES, s->device, &s->devices);
	CHOIR_TRY(chi_device_list_accelerators(CHI_REMOTE_DEVICES, s->device, &s->devices));
	const int cores = choir_device_count("cpu");
	for (int i = 0; s->devices == i && i < cores && i < CHI_REMOTE_DEVICES; i++) {
		char name[16];
		snprintf(name, sizeof name, "cpu:%d", i);
		s->device[i] = choir_device_find(name);
		CHOIR_TRY(chi_made(s->device[i]));
		s->devices++;
	}
	return CHOIR_OK;
}

static choir_status open_connections(choir_server *s)
{
	const char *file = s->o.key_file != NULL ? s->o.key_file : getenv("CHOIR_KEY_FILE");
	const bool has_key = file != NULL && file[0] != '\0';
	chi_key key;
	if (has_key)
		CHOIR_TRY(chi_key_read(file, &key));
	s->connections = chi_connections_open(has_key ? &key : NULL, false);
	if (has_key)
		chi_key_clear(&key);
	return chi_made(s->connections);
}

static choir_status open_server(choir_server *s, const choir_server_options *o)
{
	CHOIR_TRY(chi_options_take("serve: the options'", &s->o, sizeof s->o, o));
	if (s->o.address == NULL || s->o.address[0] == '\0')
		return choir_fail(CHOIR_INVALID, "serve: .address is missing");
	if (s->o.cores < 0 || s->o.cores > 1024)
		return choir_fail(CHOIR_INVALID, "serve: .cores is %d; 0 to 1024 is needed", s->o.cores);
	s->o.cores = s->o.cores > 0 ? s->o.cores : 1;
	CHOIR_TRY(find_devices(s));
	CHOIR_TRY(open_connections(s));
	CHOIR_TRY(
			chi_remote_hello(&s->hello, CHI_REMOTE_SERVER_ROLE, CHOIR_NONE, s->connections->job));
	const chi_hub_owner owner = { s, admit, joined, frame, lost };
	s->hub = chi_hub_new(
			s->connections, &s->hello, &owner, &(chi_hub_options){ .max = CHI_REMOTE_MAX });
	CHOIR_TRY(chi_made(s->hub));
	return chi_hub_listen(s->hub, s->o.address, s->address, sizeof s->address);
}

choir_server *choir_server_new(const choir_server_options *o)
{
	choir_server *s = chi_alloc(sizeof *s);
	if (s != NULL && open_server(s, o) == CHOIR_OK)
		return s;
	choir_server_free(s);
	return NULL;
}

const char *choir_server_address(const choir_server *s)
{
	return s == NULL ? "" : s->address;
}

choir_status choir_server_run(choir_server *s)
{
	if (s == NULL)
		return choir_fail(CHOIR_INVALID, "serve: the server is NULL");
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK && chi_atomic32_load(&s->stops) == 0) {
		if (s->session != NULL && chi_session_send(s->session) != CHOIR_OK)
			send_away(s, CHOIR_NO_MEMORY);
		status = chi_hub_step(s->hub, HUGE_VAL);
		if (status == CHOIR_NO_MEMORY) { // memory may be free soon
			chi_thread_nap(0.01);
			status = CHOIR_OK;
		}
	}
	chi_error failure;
	chi_error_save(&failure);
	end_session(s);
	chi_hub_end(s->hub, CHOIR_PEER_LOST, "the server of devices was stopped");
	chi_error_restore(&failure);
	return status;
}

void choir_server_stop(choir_server *s)
{
	if (s == NULL)
		return;
	chi_atomic32_store(&s->stops, 1);
	chi_hub_wake(s->hub);
}

void choir_server_free(choir_server *s)
{
	if (s == NULL)
		return;
	chi_error failure;
	chi_error_save(&failure);
	chi_session_free(s->session);
	chi_hub_free(s->hub);
	chi_connections_free(s->connections);
	chi_free(s);
	chi_error_restore(&failure);
}
