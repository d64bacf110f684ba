// A worker's agent starts the program, shares the page of health.h with it, and reports to the
// supervisor. It kills the program when the supervisor is silent, so that an unreachable worker
// does not go on.
#include "supervisor/agent_message.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/options.h"
#include "base/shared_memory.h"
#include "base/thread.h"
#include "base/descriptor_watch.h"
#include "choir/supervisor.h"
#include "net/hub.h"
#include "supervisor/job_key.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUTPUT = 32768, OUTPUT_WAITING = 1 << 18, PIPES = 2 };
static const double LOOK = 0.1, REPORT = 0.25; // seconds
static const double END_SECONDS = 2; // to kill the program, to say goodbye

typedef struct {
	choir_agent_options o;
	chi_key key;
	chi_connections *connections;
	chi_hello hello;
	chi_hub *hub;
	chi_peer *peer; // NULL: lost
	chi_watch *watch;
	bool joined, may_start, released, signalled;
	chi_process program;
	int page_fd, out[PIPES];
	chi_health *page;
	chi_health_note note; // the last look
	double beat_at, changed_at, looked_at, reported_at;
	uint64_t kills; // of count_kills when the program started
	bool ended;
	chi_process_end end;
	choir_status status;
	char bytes[OUTPUT]; // being passed on
} agent;

static void joined(void *user, chi_peer *peer)
{
	agent *a = user;
	(void) peer;
	a->joined = true;
}

static choir_status frame(void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	agent *a = user;
	(void) peer;
	chi_unpack u = { .data = payload, .bytes = (size_t) f->bytes };
	if (f->kind == CHI_AGENT_STOP)
		chi_process_signal(&a->program, (int) chi_unpack_u32(&u));
	else if (f->kind == CHI_AGENT_START)
		a->may_start = true;
	else if (f->kind == CHI_AGENT_KILL)
		a->released = true;
	return CHOIR_OK;
}

static void lost(void *user, chi_peer *peer, choir_status status)
{
	agent *a = user;
	(void) peer;
	a->peer = NULL;
	a->status = status == CHOIR_OK || status == CHOIR_END ? CHOIR_PEER_LOST : status;
	if (choir_error_status() == CHOIR_OK)
		choir_fail(CHOIR_PEER_LOST, "agent: the supervisor has ended");
}

static void wake(void *user)
{
	chi_hub_wake(((agent *) user)->hub);
}

static choir_status open_hub(agent *a)
{
	const bool keyed = strncmp(a->o.address, "unix:", 5) != 0;
	if (keyed)
		CHOIR_TRY(chi_job_key_take(&a->key));
	const chi_key *key = keyed ? &a->key : NULL;
	a->connections = chi_connections_open(key, false);
	CHOIR_TRY(chi_made(a->connections));
	CHOIR_TRY(chi_hello_make(&a->hello, "agent", a->o.worker, 0, CHI_JOB_PROTOCOL));
	const chi_hub_owner owner = { a, NULL, joined, frame, lost };
	a->hub = chi_hub_new(a->connections, &a->hello, &owner,
			&(chi_hub_options){ .heartbeat = a->o.lost_after / 8, .lost_after = a->o.lost_after });
	CHOIR_TRY(chi_made(a->hub));
	a->peer = chi_hub_dial(a->hub, a->o.address, NULL);
	CHOIR_TRY(chi_made(a->peer));
	const double until = chi_hub_now(a->hub) + CHI_HUB_HANDSHAKE_SECONDS + END_SECONDS;
	while (a->peer != NULL && !a->joined && chi_hub_now(a->hub) < until)
		CHOIR_TRY(chi_hub_step(a->hub, until));
	if (a->joined)
		return CHOIR_OK;
	return a->peer == NULL ? a->status
						   : choir_fail(CHOIR_TIMEOUT, "agent: the supervisor does not answer");
}

static choir_status start_program(agent *a)
{
	char page[32], worker[32], key[sizeof CHI_JOB_KEY + 1];
	int write_end[PIPES] = { -1, -1 };
	a->page_fd = chi_shared_memory(sizeof *a->page);
	if (a->page_fd < 0)
		return choir_error_status();
	a->page = chi_shared_map(a->page_fd, sizeof *a->page);
	if (a->page == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "agent: the shared page cannot be mapped");
	a->page->magic = CHI_HEALTH_MAGIC;
	memcpy(a->page->key, a->key.bytes, CHI_HEALTH_KEY); // zeros on this machine
	snprintf(page, sizeof page, "%s=%d", CHI_HEALTH_VARIABLE, a->page_fd);
	snprintf(worker, sizeof worker, "CHOIR_WORKER=%d", a->o.worker);
	snprintf(key, sizeof key, "%s=", CHI_JOB_KEY);
	const char *const environment[] = { page, worker, key, NULL };
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < PIPES; i++)
		status = chi_pipe_open(&a->out[i], &write_end[i]);
	if (status == CHOIR_OK)
		status = chi_process_start(&a->program,
				&(chi_process_options){ .arguments = a->o.program,
						.environment = environment,
						.in = -1,
						.out = write_end[0],
						.err = write_end[1],
						.keep = a->page_fd,
						.with_parent = SIGKILL });
	for (int i = 0; i < PIPES; i++)
		chi_pipe_close(&write_end[i]);
	return status;
}

// Also ends the program's descendants in other process groups and sessions.
static void kill_program(agent *a)
{
	const double until = chi_clock_deadline(END_SECONDS);
	chi_process_signal_group(&a->program, SIGKILL);
	do {
		(void) chi_process_has_ended(&a->program, &a->end);
		chi_process_reap_orphans(NULL, 0);
		if (chi_process_kill_descendants(NULL, 0) == 0 && a->program.pid == 0)
			return;
		chi_thread_nap(0.002);
	} while (chi_clock_now() < until);
}

static bool can_send(const agent *a)
{
	return a->peer != NULL && chi_link_waiting(&a->peer->link) < OUTPUT_WAITING;
}

static bool pass_on(agent *a, int i)
{
	char *bytes = a->bytes;
	size_t got = 0;
	bool ended = false;
	if (a->out[i] < 0 || !can_send(a))
		return false;
	if (chi_pipe_read(a->out[i], bytes, OUTPUT, &got, &ended) != CHOIR_OK || ended)
		chi_pipe_close(&a->out[i]);
	if (got == 0)
		return false;
	const choir_connection_part part = { bytes, got };
	(void) chi_peer_send(a->peer, CHI_AGENT_OUTPUT, (uint32_t) i + 1, &part, 1);
	return true;
}

static void pass_all_on(agent *a)
{
	for (int i = 0; i < PIPES; i++)
		while (pass_on(a, i))
			;
}

// Processes that the host has killed for lack of memory.
static uint64_t count_kills(agent *a)
{
	const int fd = chi_fs_open(AT_FDCWD, "/proc/vmstat", O_RDONLY);
	const struct iovec to = { a->bytes, sizeof a->bytes - 1 };
	const ssize_t got = fd < 0 ? 0 : chi_fs_read(fd, &to, 1, 0);
	if (fd >= 0)
		chi_fs_close(fd);
	a->bytes[got > 0 ? got : 0] = '\0';
	const char *at = strstr(a->bytes, "\noom_kill ");
	return at == NULL ? 0 : strtoull(at + sizeof "\noom_kill", NULL, 10);
}

// Counts only seconds in which this agent ran: the machine may be suspended.
static void look(agent *a)
{
	static const double MAX = 0.5; // between two looks
	chi_health_note now;
	const double time = chi_clock_now(), slept = time - a->looked_at - MAX;
	if (slept > 0) {
		a->beat_at += slept;
		a->changed_at += slept;
	}
	a->looked_at = time;
	chi_health_read(a->page, &now);
	if (now.beats != a->note.beats || now.state != a->note.state)
		a->beat_at = time;
	if (now.step != a->note.step || now.since != a->note.since)
		a->changed_at = time;
	if (now.state != a->note.state || (now.steps > 0 && a->note.steps == 0))
		a->reported_at = 0; // at once
	a->note = now;
}

static void send_report(agent *a, uint16_t kind)
{
	chi_pack p = { 0 };
	const double time = chi_clock_now();
	chi_worker_report r = { .health = a->note,
		.silence = time - a->beat_at,
		.unchanged = time - a->changed_at,
		.out_of_memory = kind == CHI_AGENT_ENDED && count_kills(a) > a->kills };
	if (r.health.pid == 0) // no cluster yet
		r.health.pid = a->program.pid;
	chi_report_pack(&r, &p);
	if (kind == CHI_AGENT_ENDED)
		chi_end_pack(&a->end, &p);
	if (a->peer != NULL)
		(void) chi_peer_send_pack(a->peer, kind, 0, &p);
	chi_pack_free(&p);
	a->reported_at = time;
}

// The supervisor may have begun another attempt meanwhile.
static choir_status join(agent *a)
{
	chi_pack p = { 0 };
	chi_agent_join j = { .attempt = a->o.attempt, .worker = a->o.worker, .pid = getpid() };
	snprintf(j.host, sizeof j.host, "%s", a->hello.host);
	chi_agent_join_pack(&j, &p);
	const choir_status status = chi_peer_send_pack(a->peer, CHI_AGENT_JOIN, 0, &p);
	chi_pack_free(&p);
	CHOIR_TRY(status);
	const double until = chi_hub_now(a->hub) + a->o.lost_after;
	while (a->peer != NULL && !a->may_start && !a->released && chi_hub_now(a->hub) < until)
		CHOIR_TRY(chi_hub_step(a->hub, until));
	if (a->peer == NULL)
		return a->status;
	return a->may_start || a->released
			? CHOIR_OK
			: choir_fail(CHOIR_TIMEOUT, "agent: the supervisor does not answer");
}

static void turn(agent *a)
{
	if (a->o.signal != NULL && *a->o.signal != 0 && !a->signalled) {
		a->signalled = true; // a second signal would end most programs at once
		chi_process_signal(&a->program, *a->o.signal);
	}
	pass_all_on(a);
	look(a);
	const bool ended = !a->ended && chi_process_has_ended(&a->program, &a->end);
	if (ended) {
		a->ended = true;
		pass_all_on(a); // the last output comes before the end
		look(a);
		send_report(a, CHI_AGENT_ENDED);
	} else if (!a->ended && chi_clock_now() >= a->reported_at + REPORT) {
		send_report(a, CHI_AGENT_REPORT);
	}
}

static void run(agent *a)
{
	while (a->peer != NULL && !a->released) {
		turn(a);
		const bool open = can_send(a);
		const int fds[] = { a->program.watch, open ? a->out[0] : -1, open ? a->out[1] : -1 };
		const bool watched = a->ended || a->program.watch >= 0;
		chi_watch_set(a->watch, fds, sizeof fds / sizeof fds[0]);
		if (a->peer == NULL || a->released)
			break;
		if (chi_hub_step(a->hub, chi_hub_now(a->hub) + (watched ? LOOK : LOOK / 10)) != CHOIR_OK)
			break;
	}
}

// Listening replaces a killed process's socket, and the hub's end removes it. A process that still
// runs keeps its socket.
static void remove_socket(agent *a, const char *address)
{
	char bound[160]; // longer than a socket's path may be
	struct stat s;
	if (chi_fs_stat_at(AT_FDCWD, address + strlen("unix:"), &s) == 0)
		(void) chi_hub_listen(a->hub, address, bound, sizeof bound);
}

// Of a killed supervisor, coordinator or parameter server (coordinator/task.c).
static void remove_sockets(agent *a)
{
	char task[160];
	if (a->peer != NULL || a->released || strncmp(a->o.address, "unix:", 5) != 0)
		return;
	remove_socket(a, a->o.address);
	chi_job_task_socket(a->o.address, a->o.worker, task, sizeof task);
	remove_socket(a, task);
}

static void say_goodbye(agent *a)
{
	const double until = chi_hub_now(a->hub) + END_SECONDS;
	if (a->peer == NULL)
		return;
	chi_peer_end(a->peer, CHOIR_END, "");
	while (chi_hub_open_connections(a->hub) > 0 && chi_hub_now(a->hub) < until)
		if (chi_hub_step(a->hub, until) != CHOIR_OK)
			return;
}

static choir_status open_agent(agent *a, const choir_agent_options *o)
{
	CHOIR_TRY(chi_options_take("agent: the options'", &a->o, sizeof a->o, o));
	if (a->o.address == NULL || a->o.program == NULL || a->o.program[0] == NULL)
		return choir_fail(CHOIR_INVALID, "agent: no address or no program given; both are needed");
	if (a->o.worker < 0)
		a->o.worker = chi_launcher_rank();
	if (a->o.worker < 0)
		return choir_fail(CHOIR_INVALID,
				"agent: no worker is given, and the environment has no rank of a launcher");
	CHOIR_TRY(open_hub(a));
	a->watch = chi_watch_new(wake, a);
	CHOIR_TRY(chi_made(a->watch));
	a->kills = count_kills(a);
	CHOIR_TRY(join(a));
	chi_process_adopt_orphans();
	a->beat_at = a->changed_at = a->looked_at = chi_clock_now();
	return a->released ? CHOIR_OK : start_program(a);
}

static void close_agent(agent *a)
{
	chi_watch_free(a->watch);
	chi_hub_free(a->hub);
	chi_connections_free(a->connections);
	chi_shared_unmap(a->page, sizeof *a->page);
	chi_pipe_close(&a->page_fd);
	for (int i = 0; i < PIPES; i++)
		chi_pipe_close(&a->out[i]);
	chi_key_clear(&a->key);
	chi_free(a);
}

choir_status choir_agent_run(const choir_agent_options *o)
{
	agent *a = chi_alloc(sizeof *a);
	CHOIR_TRY(chi_made(a));
	a->page_fd = a->out[0] = a->out[1] = a->program.watch = -1;
	choir_status status = open_agent(a, o);
	if (status == CHOIR_OK) {
		run(a);
		kill_program(a);
		if (a->peer != NULL && a->page != NULL && !a->ended) { // saves since the last report
			look(a);
			send_report(a, CHI_AGENT_REPORT);
		}
		status = a->released ? CHOIR_OK : CHOIR_PEER_LOST;
	}
	chi_error kept;
	chi_error_save(&kept);
	if (a->peer != NULL && !a->released) // the reason for the supervisor
		chi_peer_end(a->peer, kept.status, kept.text);
	if (a->hub != NULL) {
		say_goodbye(a);
		remove_sockets(a);
	}
	close_agent(a);
	chi_error_restore(&kept);
	return status;
}
