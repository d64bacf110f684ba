// Servers' waits for streams of other servers: a stream's questions do not wait for each other,
// and may come before the stream is opened or after it is closed.
#include "base/clock.h"
#include "base/thread.h"
#include "device/device.h"
#include "device/remote/remote_device.h"
#include "serve/peer_transfer.h"
#include "serve/servers.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum { BYTES = 100000 };

// After a server that is stopped, the stream waits for another one, which is asked at once.
TEST(a_stream_asks_all_servers_at_once)
{
	char name[200];
	const char *address;
	unsigned char bytes[2] = { 7, 0 };
	uint64_t event[2];
	const pid_t stopped = servers_fork(&address, 0);
	snprintf(name, sizeof name, "remote:%s/cpu:0", address);
	servers_start();
	chi_stream *other[2] = { servers_stream(name), servers_stream(servers_device(0, 0)) };
	chi_stream *s = servers_stream(servers_device(1, 0));
	void *memory[2] = { servers_allocate(other[0], BYTES), servers_allocate(other[1], BYTES) },
		 *own = servers_allocate(s, BYTES);
	for (int i = 0; i < 2; i++) { // connects, when the memory is allocated
		assert_int_equal(chi_stream_copy(other[i], memory[i], bytes, 1), CHOIR_OK);
		assert_int_equal(chi_stream_wait(other[i]), CHOIR_OK);
		assert_int_equal(chi_stream_copy(s, own, memory[i], 1), CHOIR_OK);
	}
	assert_int_equal(chi_stream_wait(s), CHOIR_OK);
	assert_int_equal(kill(stopped, SIGSTOP), 0);
	const uint64_t before = chi_session_requests();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chi_stream_copy(other[i], memory[i], bytes, 1), CHOIR_OK);
		assert_int_equal(chi_stream_record_event(other[i], &event[i]), CHOIR_OK);
		assert_int_equal(chi_stream_wait_event(s, other[i], event[i]), CHOIR_OK);
	}
	const double until = chi_clock_deadline(10);
	while (chi_session_requests() < before + 2 && chi_clock_now() < until)
		chi_thread_nap(0.001);
	assert_int_equal(chi_session_requests() - before, 2);
	assert_int_equal(kill(stopped, SIGCONT), 0);
	assert_int_equal(chi_stream_copy(s, own, memory[0], 1), CHOIR_OK);
	assert_int_equal(chi_stream_fetch(s, &bytes[1], own, 1), CHOIR_OK);
	assert_int_equal(bytes[1], 7);
	kill(stopped, SIGKILL);
	assert_int_equal(waitpid(stopped, NULL, 0), stopped);
	chi_device_release(s->device, own, BYTES);
	chi_device_release(other[1]->device, memory[1], BYTES);
	chi_stream_free(s);
	chi_stream_free(other[1]);
	chi_stream_free(other[0]);
}

// ---- A program, and a server of its own, that dial by themselves

typedef struct {
	chi_connections *connections;
	chi_hello hello;
	chi_hub *hub;
	chi_peer *peer;
	bool joined, answered;
	choir_status status;
} stranger;

static void joined(void *user, chi_peer *peer)
{
	(void) peer;
	((stranger *) user)->joined = true;
}

static choir_status frame(void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	stranger *s = user;
	chi_unpack u = { .data = payload, .bytes = (size_t) f->bytes };
	(void) peer;
	if (f->kind != CHI_REMOTE_ANSWER)
		return CHOIR_OK;
	assert_int_equal(chi_unpack_u64(&u), 5);
	s->status = (choir_status) chi_unpack_u32(&u);
	s->answered = true;
	return CHOIR_OK;
}

static void lost(void *user, chi_peer *peer, choir_status status)
{
	(void) user, (void) peer;
	fail_msg("lost with status %d: %s", (int) status, choir_error());
}

static void dial(stranger *s, const char *address, const char *role, int index)
{
	const chi_hub_owner owner = { s, NULL, joined, frame, lost };
	s->connections = chi_connections_open(NULL, false);
	assert_non_null(s->connections);
	assert_int_equal(chi_remote_hello(&s->hello, role, index, 0), CHOIR_OK);
	s->hub = chi_hub_new(s->connections, &s->hello, &owner, &(chi_hub_options){ .max = 1 << 20 });
	s->peer = chi_hub_dial(s->hub, address, NULL);
	assert_non_null(s->peer);
	const double until = chi_hub_now(s->hub) + 10;
	while (!s->joined && chi_hub_now(s->hub) < until)
		assert_int_equal(chi_hub_step(s->hub, chi_hub_now(s->hub) + 1), CHOIR_OK);
	assert_true(s->joined);
}

static void hang_up(stranger *s)
{
	chi_hub_free(s->hub);
	chi_connections_free(s->connections);
}

static void send(stranger *s, uint16_t kind, chi_pack *p)
{
	assert_int_equal(chi_peer_send_pack(s->peer, kind, 0, p), CHOIR_OK);
	assert_int_equal(chi_hub_step(s->hub, chi_hub_now(s->hub)), CHOIR_OK);
	chi_pack_free(p);
}

static void wait_for_answer(stranger *s, double seconds)
{
	const double until = chi_hub_now(s->hub) + seconds;
	while (!s->answered && chi_hub_now(s->hub) < until)
		assert_int_equal(chi_hub_step(s->hub, until), CHOIR_OK);
}

static void add_command(chi_pack *p, uint32_t command, uint32_t stream, size_t bytes)
{
	chi_pack_u32(p, command);
	chi_pack_u32(p, stream);
	chi_pack_u32(p, (uint32_t) bytes);
	chi_pack_u32(p, 0);
}

static void ask(stranger *server, uint64_t incarnation, uint32_t stream)
{
	chi_pack p = { 0 };
	server->answered = false;
	chi_pack_u64(&p, 5); // token
	chi_pack_u64(&p, incarnation);
	chi_pack_u32(&p, stream);
	chi_pack_u64(&p, 1);
	send(server, CHI_REMOTE_AWAIT, &p);
}

static void add_fill(chi_pack *p, uint32_t stream, uint64_t memory)
{
	add_command(p, CHI_COMMAND_FILL, stream, 20);
	chi_pack_u64(p, memory);
	chi_pack_u64(p, 64);
	chi_pack_u32(p, 1);
}

static void open_and_fill(stranger *program, uint32_t stream, uint64_t memory)
{
	chi_pack p = { 0 };
	add_command(&p, CHI_COMMAND_OPEN, stream, 4);
	chi_pack_u32(&p, 0);
	add_command(&p, CHI_COMMAND_ALLOCATE, 0, 20);
	chi_pack_u32(&p, 0);
	chi_pack_u64(&p, memory);
	chi_pack_u64(&p, 64);
	add_fill(&p, stream, memory);
	add_command(&p, CHI_COMMAND_CLOSE, stream, 0);
	send(program, CHI_REMOTE_COMMANDS, &p);
}

// A question may be faster than the program's commands. If the program ends first, it is answered.
TEST(a_stream_that_is_not_yet_opened_is_waited_for)
{
	const char *address;
	stranger program = { 0 }, server = { 0 };
	const pid_t pid = servers_fork(&address, 0);
	dial(&program, address, CHI_REMOTE_ROLE, 0);
	dial(&server, address, CHI_REMOTE_SERVER_ROLE, CHOIR_NONE);
	for (uint32_t stream = 1; stream < 3; stream++) {
		ask(&server, program.hello.incarnation, stream);
		wait_for_answer(&server, 0.1);
		assert_false(server.answered);
		open_and_fill(&program, stream, ((uint64_t) 1 << 63) + 4096 * stream);
		wait_for_answer(&server, 10);
		assert_true(server.answered);
		assert_int_equal(server.status, CHOIR_OK);
	}
	ask(&server, program.hello.incarnation, 1); // it is closed
	wait_for_answer(&server, 10);
	assert_true(server.answered);
	assert_int_equal(server.status, CHOIR_OK);
	ask(&server, program.hello.incarnation, 3);
	wait_for_answer(&server, 0.1);
	assert_false(server.answered);
	hang_up(&program);
	wait_for_answer(&server, 10);
	assert_true(server.answered);
	assert_int_equal(server.status, CHOIR_PEER_LOST);
	hang_up(&server);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

// Stream 1 waits for stream 2, whose first command comes later.
static void open_and_follow(stranger *program, uint64_t memory)
{
	chi_pack p = { 0 };
	for (uint32_t stream = 1; stream < 3; stream++) {
		add_command(&p, CHI_COMMAND_OPEN, stream, 4);
		chi_pack_u32(&p, 0);
	}
	add_command(&p, CHI_COMMAND_ALLOCATE, 0, 20);
	chi_pack_u32(&p, 0);
	chi_pack_u64(&p, memory);
	chi_pack_u64(&p, 64);
	add_command(&p, CHI_COMMAND_FOLLOW, 1, 16);
	chi_pack_u32(&p, 0);
	chi_pack_u32(&p, 2);
	chi_pack_u64(&p, 1);
	send(program, CHI_REMOTE_COMMANDS, &p);
}

// The program may close it a minute after its last command. A server that has asked may be lost.
TEST(a_closed_stream_with_commands_is_waited_for)
{
	const uint64_t memory = ((uint64_t) 1 << 63) + 4096;
	const char *address;
	chi_pack p = { 0 };
	stranger program = { 0 }, server = { 0 }, gone = { 0 };
	const pid_t pid = servers_fork(&address, 0);
	dial(&program, address, CHI_REMOTE_ROLE, 0);
	dial(&server, address, CHI_REMOTE_SERVER_ROLE, CHOIR_NONE);
	dial(&gone, address, CHI_REMOTE_SERVER_ROLE, CHOIR_NONE);
	open_and_follow(&program, memory);
	ask(&gone, program.hello.incarnation, 1);
	wait_for_answer(&gone, 0.1);
	assert_false(gone.answered);
	add_command(&p, CHI_COMMAND_CLOSE, 1, 0);
	send(&program, CHI_REMOTE_COMMANDS, &p);
	wait_for_answer(&gone, 0.1);
	assert_false(gone.answered);
	hang_up(&gone);
	ask(&server, program.hello.incarnation, 1);
	wait_for_answer(&server, 0.2);
	assert_false(server.answered);
	add_fill(&p, 2, memory);
	send(&program, CHI_REMOTE_COMMANDS, &p);
	wait_for_answer(&server, 10);
	assert_true(server.answered);
	assert_int_equal(server.status, CHOIR_OK);
	hang_up(&program);
	hang_up(&server);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int forget(void **state)
{
	(void) state;
	servers_stop();
	return 0;
}

TEST_GROUP(NULL, forget)
