// What servers ask each other: a transfer from memory that has been read before needs no question,
// and a stream's questions do not wait for each other.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/process_memory.h"
#include "base/thread.h"
#include "choir/layer.h"
#include "choir/op.h"
#include "choir/optimizer.h"
#include "choir/replica.h"
#include "choir/strategy.h"
#include "choir/tape.h"
#include "device/device.h"
#include "device/remote/remote_device.h"
#include "serve/peer_transfer.h"
#include "serve/servers.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { BYTES = 100000 };

static chi_stream *stream_of(const char *device)
{
	choir_device *d = choir_device_find(device);
	chi_stream *s = d == NULL ? NULL : chi_stream_new(d);
	if (s == NULL)
		fail_msg("%s", choir_error());
	return s;
}

// Allocated in the server, not in the program's pool.
static void *allocate(const chi_stream *s)
{
	void *memory;
	assert_int_equal(chi_device_allocate(s->device, BYTES, &memory), CHOIR_OK);
	return memory;
}

typedef struct {
	chi_stream *there, *here;
	void *target;
	unsigned char sent[BYTES], found[BYTES];
} transfer;

// Copies from memory of the other server. Gives the number of requests.
static uint64_t copy(transfer *t, void *from, int byte)
{
	memset(t->sent, byte, BYTES);
	assert_int_equal(chi_stream_copy(t->there, from, t->sent, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_wait(t->there), CHOIR_OK);
	const uint64_t before = chi_session_requests();
	assert_int_equal(chi_stream_copy(t->here, t->target, from, BYTES), CHOIR_OK);
	assert_int_equal(chi_stream_fetch(t->here, t->found, t->target, BYTES), CHOIR_OK);
	assert_memory_equal(t->sent, t->found, BYTES);
	return chi_session_requests() - before;
}

TEST(memory_is_located_once_until_its_server_frees_some)
{
	static transfer t;
	servers_start();
	t.there = stream_of(servers_device(0, 0));
	t.here = stream_of(servers_device(1, 0));
	t.target = allocate(t.here);
	void *first = allocate(t.there), *second = allocate(t.there);
	(void) copy(&t, first, 1); // connects
	assert_int_equal(copy(&t, first, 2), 1);
	assert_int_equal(copy(&t, second, 2), 1);
	const uint64_t read = chi_process_memory_bytes();
	for (int i = 0; i < 5; i++) {
		assert_int_equal(copy(&t, first, 3 + i), 0);
		assert_int_equal(copy(&t, second, 13 + i), 0);
	}
	assert_in_range(chi_process_memory_bytes() - read, 20 * BYTES, 20 * BYTES + 1000);
	for (int i = 0; i < 5; i++) { // the freed memory is used again
		chi_device_release(t.there->device, first, BYTES);
		first = allocate(t.there);
		assert_int_equal(copy(&t, second, 23 + i), 1);
		assert_int_equal(copy(&t, first, 33 + i), 1);
		assert_int_equal(copy(&t, second, 43 + i), 0);
	}
	chi_device_release(t.there->device, first, BYTES);
	chi_device_release(t.there->device, second, BYTES);
	chi_device_release(t.here->device, t.target, BYTES);
	chi_stream_free(t.there);
	chi_stream_free(t.here);
}

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
	chi_stream *other[2] = { stream_of(name), stream_of(servers_device(0, 0)) };
	chi_stream *s = stream_of(servers_device(1, 0));
	void *memory[2] = { allocate(other[0]), allocate(other[1]) }, *own = allocate(s);
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

typedef struct {
	choir_layer *net;
	choir_optimizer *adam;
} training;

static choir_status step(choir_replica *r, void *user)
{
	const training *t = user;
	static const float x[4 * 300] = { 1, 2, 3 };
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *in = choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(4, 300), x);
	choir_tensor *y = choir_layer_apply(t->net, in);
	return choir_optimizer_minimize(t->adam, choir_mean(choir_square(y), CHOIR_ALL_AXES), tape);
}

// Each half of the sum needs the other server's gradients, and is read by the other server. Both
// servers ask for each of these events, and where no memory lies.
TEST(a_step_asks_for_events_only)
{
	enum { STEPS = 10, EVENTS = 5 };
	training t = { 0 };
	servers_start();
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .devices = servers_pair(0, 0, 1, 0), .replicas = 2));
	CHOIR_SCOPE (s) {
		t.net = choir_dense_new("a", 300, 200, CHOIR_RELU);
		t.adam = choir_optimizer_new(CHOIR_ADAM, NULL);
	}
	uint64_t before = 0;
	for (int i = 0; i < 2 * STEPS; i++) {
		if (i == STEPS)
			before = chi_session_requests();
		if (choir_strategy_run(s, step, &t, NULL, NULL) != CHOIR_OK)
			fail_msg("%s", choir_error());
	}
	assert_in_range(chi_session_requests() - before, STEPS, 2 * EVENTS * STEPS);
	choir_strategy_free(s);
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

static void open_and_fill(stranger *program, uint32_t stream, uint64_t memory)
{
	chi_pack p = { 0 };
	add_command(&p, CHI_COMMAND_OPEN, stream, 4);
	chi_pack_u32(&p, 0);
	add_command(&p, CHI_COMMAND_ALLOCATE, 0, 20);
	chi_pack_u32(&p, 0);
	chi_pack_u64(&p, memory);
	chi_pack_u64(&p, 64);
	add_command(&p, CHI_COMMAND_FILL, stream, 20);
	chi_pack_u64(&p, memory);
	chi_pack_u64(&p, 64);
	chi_pack_u32(&p, 1);
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

static int forget(void **state)
{
	(void) state;
	servers_stop();
	return 0;
}

TEST_GROUP(NULL, forget)
