// A server on this host reads what a program writes from the program's memory; if it may not, the
// bytes travel in messages. What a program says about its memory is not trusted.
#include "choir/op.h"
#include "choir/replica.h"
#include "choir/strategy.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/process_memory.h"
#include "base/thread.h"
#include "device/device.h"
#include "device/remote/remote_device.h"
#include "serve/servers.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void end(pid_t server)
{
	kill(server, SIGKILL);
	assert_int_equal(waitpid(server, NULL, 0), server);
}

static choir_device *find(const char *address, const chi_remote_server **server)
{
	char name[200];
	snprintf(name, sizeof name, "remote:%s/cpu:0", address);
	choir_device *d = choir_device_find(name);
	if (d == NULL)
		fail_msg("%s", choir_error());
	*server = ((chi_remote_self *) d->self)->server;
	return d;
}

static int loans(const chi_remote_server *r)
{
	int n = 0;
	for (int i = 0; i < CHI_REMOTE_LOANS; i++)
		n += r->loan[i].memory != NULL;
	return n;
}

// Writes more pieces than there are loans from one memory, which changes between them. The server
// is stopped meanwhile, and reads nothing; server 0: it goes on. Then all must be there.
static void write_pieces(choir_device *d, pid_t server)
{
	enum { PIECES = CHI_REMOTE_LOANS + 8, PIECE = 300001 };
	const size_t bytes = (size_t) PIECES * PIECE;
	unsigned char *from = chi_alloc(PIECE), *found = chi_alloc(bytes);
	chi_buffer *b = chi_buffer_new(d, bytes);
	chi_stream *s = chi_stream_new(d);
	assert_true(from != NULL && found != NULL && b != NULL && s != NULL);
	for (int round = 1; round < 3; round++) {
		if (server != 0)
			assert_int_equal(kill(server, SIGSTOP), 0);
		for (int i = 0; i < PIECES; i++) {
			memset(from, i + 100 * round, PIECE);
			if (chi_stream_copy(s, (char *) b->memory + (size_t) i * PIECE, from, PIECE) !=
					CHOIR_OK)
				fail_msg("%s", choir_error());
		}
		memset(from, 0, PIECE);
		if (server != 0)
			assert_int_equal(kill(server, SIGCONT), 0);
		if (chi_stream_fetch(s, found, b->memory, bytes) != CHOIR_OK)
			fail_msg("%s", choir_error());
		for (size_t i = 0; i < bytes; i++)
			if (found[i] != (unsigned char) (i / PIECE + 100 * (size_t) round))
				fail_msg("round %d, piece %zu has %d", round, i / PIECE, found[i]);
	}
	chi_stream_free(s);
	chi_buffer_release(b);
	chi_free(found);
	chi_free(from);
}

TEST(what_is_written_stays_until_it_is_read)
{
	for (int refuses = 0; refuses < 2; refuses++) {
		const char *address;
		const chi_remote_server *r;
		chi_process_memory_refuse(refuses);
		const pid_t server = servers_fork(&address, 0);
		chi_process_memory_refuse(false);
		choir_device *d = find(address, &r);
		for (int i = 0; !refuses && !r->reads && i < 5000; i++)
			chi_thread_nap(0.001);
		write_pieces(d, refuses ? 0 : server);
		assert_int_equal(r->reads, !refuses);
		assert_int_equal(loans(r), refuses ? 0 : CHI_REMOTE_LOANS);
		end(server);
	}
}

static choir_status negate(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(r, "y", choir_negate(choir_replica_arg(r, "x")));
}

// Arguments stay until the run's end, so the server needs no loan of them.
static void run_with_argument(const char *address, const chi_remote_server *r)
{
	enum { ELEMENTS = CHI_REMOTE_PIECE / 4 * 2 + 9001 };
	char name[200];
	float *sent = chi_alloc(ELEMENTS * sizeof *sent), *found = chi_alloc(ELEMENTS * sizeof *found);
	snprintf(name, sizeof name, "remote:%s/cpu:0", address);
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .devices = name, .replicas = 1));
	choir_values *args = choir_values_new(s), *results = NULL;
	for (int run = 0; run < 3; run++) {
		for (int i = 0; i < ELEMENTS; i++)
			sent[i] = (float) (i % 1000 + run);
		if (run == 0)
			assert_int_equal(choir_values_split(args, "x",
									 choir_borrow(choir_values_frame(args), CHOIR_F32,
											 CHOIR_SHAPE(ELEMENTS), sent)),
					CHOIR_OK);
		if (choir_strategy_run(s, negate, NULL, args, &results) != CHOIR_OK)
			fail_msg("%s", choir_error());
		memset(sent, 0, ELEMENTS * sizeof *sent);
		assert_int_equal(
				choir_tensor_to_host(choir_value_local(choir_values_find(results, "y"), 0), found,
						ELEMENTS * sizeof *found),
				CHOIR_OK);
		for (int i = 0; i < ELEMENTS; i++)
			if (found[i] != -(float) (i % 1000 + run))
				fail_msg("run %d, element %d is %g", run, i, (double) found[i]);
	}
	assert_int_equal(loans(r), 0);
	choir_values_free(results);
	choir_values_free(args);
	choir_strategy_free(s);
	chi_free(found);
	chi_free(sent);
}

TEST(a_runs_arguments_are_read_where_they_lie)
{
	for (int refuses = 0; refuses < 2; refuses++) {
		const char *address;
		const chi_remote_server *r;
		chi_process_memory_refuse(refuses);
		const pid_t server = servers_fork(&address, 0);
		chi_process_memory_refuse(false);
		(void) find(address, &r);
		for (int i = 0; !refuses && !r->reads && i < 5000; i++)
			chi_thread_nap(0.001);
		run_with_argument(address, r);
		end(server);
	}
}

// Between servers: one reads the other's memory, whichever makes the copy.
TEST(servers_read_each_others_memory)
{
	enum { BYTES = (9 << 20) + 5 };
	choir_device *device[2];
	chi_buffer *buffer[2];
	unsigned char *sent = chi_alloc(BYTES), *found = chi_alloc(BYTES);
	servers_start();
	for (int i = 0; i < 2; i++) {
		device[i] = choir_device_find(servers_device(i, 0));
		assert_non_null(device[i]);
		assert_non_null(buffer[i] = chi_buffer_new(device[i], BYTES));
	}
	for (int by = 0; by < 4; by++) { // the first copy of each connects it
		const size_t bytes = by < 2 ? 1 : BYTES;
		chi_stream *first = chi_stream_new(device[0]), *s = chi_stream_new(device[by % 2]),
				   *last = chi_stream_new(device[1]);
		memset(sent, 7 + by, BYTES);
		assert_int_equal(chi_stream_copy(first, buffer[0]->memory, sent, bytes), CHOIR_OK);
		assert_int_equal(chi_stream_wait(first), CHOIR_OK);
		const uint64_t before = chi_process_memory_bytes();
		assert_int_equal(
				chi_stream_copy(s, buffer[1]->memory, buffer[0]->memory, bytes), CHOIR_OK);
		if (chi_stream_wait(s) != CHOIR_OK)
			fail_msg("%s", choir_error());
		if (by >= 2)
			assert_in_range(chi_process_memory_bytes() - before, bytes, bytes + 64);
		assert_int_equal(chi_stream_fetch(last, found, buffer[1]->memory, bytes), CHOIR_OK);
		assert_memory_equal(sent, found, bytes);
		chi_stream_free(last);
		chi_stream_free(s);
		chi_stream_free(first);
	}
	chi_buffer_release(buffer[0]);
	chi_buffer_release(buffer[1]);
	chi_free(sent);
	chi_free(found);
}

// ---- A program that dials by itself

typedef struct {
	chi_connections *connections;
	chi_hello hello;
	chi_hub *hub;
	chi_peer *peer;
	bool joined, reads, told;
	uint64_t failed;
	choir_status status;
	chi_pack pack;
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
	s->reads |= f->kind == CHI_REMOTE_READS;
	if (f->kind != CHI_REMOTE_REACHED)
		return CHOIR_OK;
	(void) chi_unpack_u32(&u);
	(void) chi_unpack_u64(&u);
	s->failed = chi_unpack_u64(&u);
	s->status = (choir_status) chi_unpack_u32(&u);
	s->told = true;
	return CHOIR_OK;
}

static void lost(void *user, chi_peer *peer, choir_status status)
{
	(void) user, (void) peer;
	fail_msg("lost with status %d: %s", (int) status, choir_error());
}

// A command with n numbers of 64 bits.
static void add(stranger *s, uint32_t command, int n, const uint64_t numbers[])
{
	chi_pack_u32(&s->pack, command);
	chi_pack_u32(&s->pack, command == CHI_COMMAND_LEND ? 0 : 1);
	chi_pack_u32(&s->pack, (uint32_t) n * 8);
	chi_pack_u32(&s->pack, 0);
	for (int i = 0; i < n; i++)
		chi_pack_u64(&s->pack, numbers[i]);
}

static void add_device(stranger *s, uint32_t command, int n, const uint64_t numbers[])
{
	chi_pack_u32(&s->pack, command);
	chi_pack_u32(&s->pack, 1);
	chi_pack_u32(&s->pack, 4 + (uint32_t) n * 8);
	chi_pack_u32(&s->pack, 0);
	chi_pack_u32(&s->pack, 0); // the device
	for (int i = 0; i < n; i++)
		chi_pack_u64(&s->pack, numbers[i]);
}

// Lends and has the server take bytes. Gives the status with which the command ended.
static choir_status take(
		const char *address, const uint64_t *sender, uint64_t from, uint64_t bytes, bool *reads)
{
	const uint64_t memory = (uint64_t) 1 << 63 | 4096;
	stranger s = { .connections = chi_connections_open(NULL, false) };
	const chi_hub_owner owner = { &s, NULL, joined, frame, lost };
	assert_non_null(s.connections);
	assert_int_equal(chi_remote_hello(&s.hello, CHI_REMOTE_ROLE, 0, 0), CHOIR_OK);
	s.hub = chi_hub_new(s.connections, &s.hello, &owner, &(chi_hub_options){ .max = 1 << 20 });
	s.peer = chi_hub_dial(s.hub, address, NULL);
	assert_non_null(s.peer);
	add_device(&s, CHI_COMMAND_OPEN, 0, NULL);
	add_device(&s, CHI_COMMAND_ALLOCATE, 2, (const uint64_t[]){ memory, 2 << 20 });
	const uint64_t own = (uintptr_t) &s.hello.incarnation;
	if (sender != NULL)
		add(&s, CHI_COMMAND_LEND, 1, *sender == 0 ? &own : sender);
	add(&s, CHI_COMMAND_TAKE, 3, (const uint64_t[]){ memory, bytes, from });
	add(&s, CHI_COMMAND_SYNC, 1, (const uint64_t[]){ 1 });
	const double until = chi_hub_now(s.hub) + 10;
	bool sent = false;
	while (!s.told && chi_hub_now(s.hub) < until) {
		if (s.joined && !sent)
			assert_int_equal(
					chi_peer_send_pack(s.peer, CHI_REMOTE_COMMANDS, 0, &s.pack), CHOIR_OK);
		sent |= s.joined;
		assert_int_equal(chi_hub_step(s.hub, chi_hub_now(s.hub) + 1), CHOIR_OK);
	}
	assert_true(s.told && (s.failed == 1) == (s.status != CHOIR_OK));
	*reads = s.reads;
	chi_pack_free(&s.pack);
	chi_hub_free(s.hub);
	chi_connections_free(s.connections);
	return s.status;
}

TEST(a_programs_words_are_not_trusted)
{
	static const unsigned char bytes[4096];
	const uint64_t own = 0, nowhere = 64, other = (uintptr_t) bytes;
	const uint64_t here = (uintptr_t) bytes;
	const char *address;
	bool reads;
	const pid_t server = servers_fork(&address, 0);
	assert_int_equal(take(address, NULL, here, 4096, &reads), CHOIR_CORRUPT); // not lent
	assert_false(reads);
	assert_int_equal(take(address, &nowhere, here, 4096, &reads), CHOIR_CORRUPT);
	assert_false(reads);
	assert_int_equal(take(address, &other, here, 4096, &reads), CHOIR_CORRUPT);
	assert_false(reads); // as in a process of the same number in another container
	assert_int_equal(take(address, &own, here, CHI_REMOTE_PIECE + 1, &reads), CHOIR_CORRUPT);
	assert_int_equal(take(address, &own, here, UINT64_MAX, &reads), CHOIR_CORRUPT);
	assert_int_equal(take(address, &own, 64, 4096, &reads), CHOIR_PEER_LOST);
	assert_int_equal(take(address, &own, UINT64_MAX - 8, 4096, &reads), CHOIR_PEER_LOST);
	assert_true(reads);
	assert_int_equal(take(address, &own, here, 4096, &reads), CHOIR_OK);
	assert_true(reads);
	end(server);
}

static int forget(void **state)
{
	(void) state;
	servers_stop();
	return 0;
}

TEST_GROUP(NULL, forget)
