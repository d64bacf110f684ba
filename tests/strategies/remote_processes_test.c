// Servers of devices as processes: training to the bits of one process, deaths of servers and
// programs, strangers, damaged commands, allocations that fail.
#include "choir/layer.h"
#include "choir/optimizer.h"
#include "choir/weights.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/process_memory.h"
#include "choir/extend/kernel_table.h"
#include "device/device.h"
#include "device/remote/remote_device.h"
#include "serve/servers.h"
#include "cluster/tf_config.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 8, WIDTH = 5, STEPS = 6 };

typedef struct {
	choir_layer *layers;
	choir_optimizer *adam;
	int step;
	pid_t victim; // is killed in step 3; 0: none
} net;

static choir_status step(choir_replica *r, void *user)
{
	const net *n = user;
	float x[BATCH * WIDTH];
	for (int i = 0; i < BATCH * WIDTH; i++)
		x[i] = (float) sin(i + 100 * choir_replica_id(r) + 7 * n->step);
	if (n->victim != 0 && n->step == 3 && choir_replica_id(r) == 0)
		kill(n->victim, SIGKILL);
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *in = choir_constant(r->frame, CHOIR_F32, CHOIR_SHAPE(BATCH, WIDTH), x);
	choir_tensor *y = choir_layer_apply(n->layers, in);
	return choir_optimizer_minimize(n->adam, choir_mean(choir_square(y), CHOIR_ALL_AXES), tape);
}

// Trains and gives the hash of the weights. *waits: of a step of the second half.
static choir_status train(const char *devices, pid_t victim, uint64_t *hash, uint64_t *waits)
{
	net n = { .victim = victim };
	const bool spec = devices[0] == '{';
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .devices = spec ? NULL : devices,
					.cluster_spec = spec ? devices : NULL, .replicas = 2, .timeout = 20));
	if (s == NULL)
		return choir_error_status();
	CHOIR_SCOPE (s) {
		choir_layer *layers[] = { choir_dense_new("a", WIDTH, 40, CHOIR_RELU),
			choir_dense_new("b", 40, 3, CHOIR_LINEAR) };
		n.layers = choir_sequential_new(2, layers);
		n.adam = choir_optimizer_new(CHOIR_ADAM, NULL);
	}
	choir_status status = n.adam == NULL ? choir_error_status() : CHOIR_OK;
	uint64_t before = 0;
	for (; n.step < STEPS && status == CHOIR_OK; n.step++) {
		if (n.step == STEPS / 2)
			before = chi_remote_waits();
		status = choir_strategy_run(s, step, &n, NULL, NULL);
	}
	*waits = (chi_remote_waits() - before) / (STEPS - STEPS / 2);
	if (status == CHOIR_OK)
		*hash = choir_strategy_hash(s);
	chi_error failure;
	chi_error_save(&failure);
	choir_strategy_free(s);
	chi_error_restore(&failure);
	return status;
}

static void end(pid_t server)
{
	kill(server, SIGKILL);
	assert_int_equal(waitpid(server, NULL, 0), server);
}

// Copies some pieces from one server to another.
static void copy_between(const char *from, const char *to)
{
	enum { BYTES = (9 << 20) + 5 };
	char name[200];
	choir_device *device[2];
	chi_buffer *buffer[2];
	unsigned char *sent = chi_alloc(BYTES), *found = chi_alloc(BYTES);
	for (int i = 0; i < BYTES; i++)
		sent[i] = (unsigned char) (i * 7 + i / 1000);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "remote:%s/cpu:0", i == 0 ? from : to);
		device[i] = choir_device_find(name);
		buffer[i] = chi_buffer_new(device[i], BYTES);
		assert_non_null(buffer[i]);
	}
	for (int by = 0; by < 2; by++) { // the copy is made by either
		chi_stream *s = chi_stream_new(device[by]), *first = chi_stream_new(device[0]);
		assert_int_equal(chi_stream_copy(first, buffer[0]->memory, sent, BYTES), CHOIR_OK);
		assert_int_equal(chi_stream_wait(first), CHOIR_OK);
		memset(found, 0, BYTES);
		if (chi_stream_copy(s, buffer[1]->memory, buffer[0]->memory, BYTES) != CHOIR_OK ||
				chi_stream_wait(s) != CHOIR_OK)
			fail_msg("%s", choir_error());
		chi_stream *last = chi_stream_new(device[1]);
		assert_int_equal(chi_stream_copy(last, found, buffer[1]->memory, BYTES), CHOIR_OK);
		assert_int_equal(chi_stream_wait(last), CHOIR_OK);
		assert_memory_equal(sent, found, BYTES);
		sent[by] ^= 1;
		chi_stream_free(last);
		chi_stream_free(first);
		chi_stream_free(s);
	}
	chi_buffer_release(buffer[0]);
	chi_buffer_release(buffer[1]);
	chi_free(sent);
	chi_free(found);
}

// spec: B2
TEST(training_has_the_bits_of_one_process)
{
	const char *address;
	char a[128], b[128], c[128], devices[6][300];
	uint64_t local = 0, hash = 1, waits = 0;
	const pid_t one = servers_fork(&address, 0);
	snprintf(a, sizeof a, "%s", address);
	const pid_t other = servers_fork(&address, 0);
	snprintf(b, sizeof b, "%s", address);
	chi_process_memory_refuse(true);
	const pid_t closed = servers_fork(&address, 0); // it cannot read others' memory
	chi_process_memory_refuse(false);
	snprintf(c, sizeof c, "%s", address);
	snprintf(devices[0], sizeof devices[0], "remote:%s/cpu:0", a);
	snprintf(devices[1], sizeof devices[1], "remote:%s/cpu:0,remote:%s/cpu:1", a, a);
	snprintf(devices[2], sizeof devices[2], "remote:%s/cpu:0,remote:%s/cpu:1", a, b);
	snprintf(devices[3], sizeof devices[3], "{\"worker\": [\"%s\"], \"chief\": [\"%s\"]}", b, a);
	snprintf(devices[4], sizeof devices[4], "remote:%s/cpu:0,remote:%s/cpu:1", c, a);
	snprintf(devices[5], sizeof devices[5], "remote:%s/cpu:0,cpu:1", b);
	assert_int_equal(train("cpu:0", 0, &local, &waits), CHOIR_OK);
	for (int i = 0; i < 6; i++) {
		if (train(devices[i], 0, &hash, &waits) != CHOIR_OK)
			fail_msg("%s: %s", devices[i], choir_error());
		assert_int_equal(hash, local);
		if (i < 5) // with the host's memory, sums go by pieces
			assert_in_range(waits, 1, i == 0 ? 3 : 2); // replicas of one device take turns
	}
	copy_between(a, b);
	copy_between(a, c);
	copy_between(c, a);
	end(one);
	end(other);
	end(closed);
}

TEST(a_server_or_a_cluster_spec_names_all_its_devices)
{
	static const struct {
		const char *spec, *facts;
	} wrong[] = { { "", "byte 0" }, { "{\"gpu\": [\"a:1\"]}", "gpu*worker" },
		{ "{\"worker\": 7}", "byte 12" }, { "{\"worker\": [\"a:1\", 7]}", "byte" },
		{ "{}", "no address" }, { "{\"worker\": []}", "no address" },
		{ "{\"worker\": [\"a:1\"]} x", "byte" },
		{ "{\"worker\": [\"unix:/nowhere/s\"]}", "nowhere/s*nobody listens" } };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_null(choir_mirrored_strategy_new(
				CHOIR_OPTIONS(choir_strategy_options, .cluster_spec = wrong[i].spec)));
		assert_text_holds(choir_error(), wrong[i].facts);
	}
	assert_null(choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .devices = "cpu:0", .cluster_spec = wrong[0].spec)));
	assert_text_holds(choir_error(), ".devices*cpu:0*.cluster_spec");
	choir_status status = CHOIR_NO_MEMORY;
	for (uint64_t n = 1; status != CHOIR_OK; n++) {
		char *devices;
		chi_alloc_fail(n, false);
		status = chi_cluster_spec_devices("{\"worker\": [\"a:1\", \"b:2\"]}", &devices);
		chi_alloc_fail(0, false);
		if (status == CHOIR_OK)
			assert_string_equal(devices, "remote:a:1,remote:b:2");
		else
			assert_null(devices);
		chi_free(devices);
	}
	const char *address;
	char name[200];
	const pid_t server = servers_fork(&address, 0);
	snprintf(name, sizeof name, "cpu:0,remote:%s", address);
	choir_strategy *s =
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .devices = name));
	if (s == NULL)
		fail_msg("%s", choir_error());
	assert_int_equal(choir_strategy_worker_devices(s), 3);
	assert_text_holds(choir_device_name(choir_strategy_worker_device(s, 2)), "cpu:1");
	choir_strategy_free(s);
	end(server);
}

TEST(a_server_is_killed_in_a_step)
{
	const char *address;
	char devices[300];
	uint64_t hash, waits;
	const pid_t server = servers_fork(&address, 0);
	snprintf(devices, sizeof devices, "remote:%s/cpu:0,remote:%s/cpu:1", address, address);
	const double before = chi_clock_now();
	assert_int_equal(train(devices, server, &hash, &waits), CHOIR_PEER_LOST);
	assert_text_holds(choir_error(), address);
	assert_true(chi_clock_now() - before < 5);
	assert_int_equal(waitpid(server, NULL, 0), server);
	assert_int_equal(train(devices, 0, &hash, &waits), CHOIR_PEER_LOST); // for ever
	assert_text_holds(choir_error(), address);
}

TEST(a_program_may_start_before_its_server)
{
	const char *address;
	char device[200];
	const pid_t server = servers_fork_late(&address);
	snprintf(device, sizeof device, "remote:%s/cpu:0", address);
	if (choir_device_find(device) == NULL)
		fail_msg("%s", choir_error());
	end(server);
}

// The next program gets the device after the first was killed.
TEST(a_program_is_killed)
{
	const char *address;
	char device[200];
	int ends[2], status;
	char ready;
	const pid_t server = servers_fork(&address, 0);
	snprintf(device, sizeof device, "remote:%s/cpu:0", address);
	assert_int_equal(pipe(ends), 0);
	const pid_t program = fork();
	if (program == 0) {
		alarm(20);
		const bool there = choir_device_find(device) != NULL;
		_exit(there && write(ends[1], "r", 1) == 1 && pause() == 0 ? 0 : 1);
	}
	assert_int_equal(read(ends[0], &ready, 1), 1);
	assert_null(choir_device_find(device));
	assert_int_equal(choir_error_status(), CHOIR_STATE);
	assert_text_holds(choir_error(), "works for program*pid");
	kill(program, SIGKILL);
	assert_int_equal(waitpid(program, &status, 0), program);
	assert_non_null(choir_device_find(device));
	close(ends[0]);
	close(ends[1]);
	end(server);
}

static void assert_refused(const char *name, choir_status status, const char *facts)
{
	assert_null(choir_device_find(name));
	assert_int_equal(choir_error_status(), status);
	assert_text_holds(choir_error(), facts);
}

TEST(names_and_addresses_are_refused)
{
	const char *address;
	char name[300];
	assert_refused("remote:0", CHOIR_NOT_FOUND, "remote:0*HOST:PORT");
	assert_refused("remote:node1/cpu:0", CHOIR_NOT_FOUND, "HOST:PORT");
	assert_refused("remote:node1:7/cpu:x", CHOIR_NOT_FOUND, "HOST:PORT");
	assert_refused("remote:/cpu:0", CHOIR_NOT_FOUND, "HOST:PORT");
	assert_refused("remote:unix:/nowhere/s/cpu:0", CHOIR_NOT_FOUND, "nowhere/s*nobody listens");
	unsetenv("CHOIR_KEY_FILE");
	assert_refused("remote:127.0.0.1:9/cpu:0", CHOIR_INVALID, "127.0.0.1:9*key");
	setenv("CHOIR_KEY_FILE", "/nowhere/key", 1);
	assert_refused("remote:127.0.0.1:9/cpu:0", CHOIR_NOT_FOUND, "/nowhere/key");
	unsetenv("CHOIR_KEY_FILE");
	const pid_t server = servers_fork(&address, 0);
	snprintf(name, sizeof name, "remote:%s/gpu:3", address);
	assert_refused(name, CHOIR_NOT_FOUND, "no gpu:3*cpu:0, cpu:1");
	const choir_server_options used = { .size = sizeof used, .address = address };
	assert_null(choir_server_new(&used));
	assert_int_equal(choir_error_status(), CHOIR_STATE);
	assert_null(choir_server_new(NULL));
	assert_text_holds(choir_error(), "address");
	end(server);
}

TEST(memory_is_exhausted)
{
	const char *address;
	char name[300];
	void *memory = NULL;
	const pid_t server = servers_fork(&address, 1 << 20);
	snprintf(name, sizeof name, "remote:%s/cpu:0", address);
	choir_device *d = choir_device_find(name);
	assert_non_null(d);
	assert_int_equal(chi_device_allocate(d, 1 << 19, &memory), CHOIR_OK);
	void *more = NULL;
	assert_int_equal(chi_device_allocate(d, (1 << 19) + 1, &more), CHOIR_NO_MEMORY);
	assert_text_holds(choir_error(), "cpu:0*524289 bytes*524288 of 1048576");
	assert_int_equal(chi_device_allocate(d, SIZE_MAX - 3, &more), CHOIR_NO_MEMORY);
	chi_device_release(d, memory, 1 << 19);
	assert_int_equal(chi_device_allocate(d, 1 << 20, &memory), CHOIR_OK);
	chi_device_release(d, memory, 1 << 20);
	end(server);
}

// A program that dials by itself, to say what no program says.
typedef struct {
	chi_connections *connections;
	chi_hello hello;
	chi_hub *hub;
	chi_peer *peer;
	bool joined;
	chi_error end;
} stranger;

static void stranger_joined(void *user, chi_peer *peer)
{
	(void) peer;
	((stranger *) user)->joined = true;
}

static choir_status stranger_frame(
		void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	(void) user, (void) peer, (void) f, (void) payload;
	return CHOIR_OK;
}

static void stranger_lost(void *user, chi_peer *peer, choir_status status)
{
	stranger *s = user;
	(void) peer;
	chi_error_save(&s->end);
	s->end.status = status;
}

static void stranger_open(stranger *s, const char *address, const char *fact)
{
	const chi_hub_owner owner = { s, NULL, stranger_joined, stranger_frame, stranger_lost };
	*s = (stranger){ .connections = chi_connections_open(NULL, false) };
	assert_non_null(s->connections);
	assert_int_equal(chi_remote_hello(&s->hello, CHI_REMOTE_ROLE, 0, 0), CHOIR_OK);
	if (fact != NULL)
		snprintf(s->hello.fact[0].value, CHI_FACT_VALUE, "%s", fact);
	s->hub = chi_hub_new(s->connections, &s->hello, &owner, &(chi_hub_options){ .max = 1 << 20 });
	assert_non_null(s->hub);
	s->peer = chi_hub_dial(s->hub, address, NULL);
	assert_non_null(s->peer);
	while (!s->joined && s->end.status == CHOIR_OK)
		assert_int_equal(chi_hub_step(s->hub, chi_hub_now(s->hub) + 1), CHOIR_OK);
}

static void stranger_close(stranger *s)
{
	chi_hub_free(s->hub);
	chi_connections_free(s->connections);
}

static void assert_serves(const char *address)
{
	stranger s;
	stranger_open(&s, address, NULL);
	assert_true(s.joined);
	stranger_close(&s);
}

TEST(another_build_is_refused)
{
	const char *address;
	stranger s;
	const pid_t server = servers_fork(&address, 0);
	stranger_open(&s, address, "choir 0.0.7");
	assert_false(s.joined);
	assert_int_equal(s.end.status, CHOIR_STATE);
	assert_text_holds(s.end.text, "build is*choir 0.0.7*protocol");
	stranger_close(&s);
	assert_serves(address);
	end(server);
}

static uint32_t random_word(uint32_t *state)
{
	return *state = *state * 1664525u + 1013904223u;
}

TEST(random_bytes_at_the_address)
{
	const char *address;
	uint32_t seed = 5;
	const pid_t server = servers_fork(&address, 0);
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	snprintf(to.sun_path, sizeof to.sun_path, "%s", address + 5);
	for (int i = 0; i < 20; i++) {
		const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		assert_int_equal(connect(fd, (const struct sockaddr *) &to, sizeof to), 0);
		uint32_t words[256];
		for (int w = 0; w < 256; w++)
			words[w] = random_word(&seed) >> (i % 3) * 8;
		ssize_t sent = 0; // the server may hang up
		for (int w = 0; w < 10 && sent >= 0; w++)
			sent = send(fd, words, sizeof words, MSG_NOSIGNAL);
		close(fd);
	}
	assert_serves(address);
	end(server);
}

// Frames of commands with a likely beginning and random rests. None may end the server.
TEST(damaged_commands)
{
	enum { ROUNDS = 150, WORDS = 24 };
	const char *address;
	uint32_t seed = 11;
	int sent_away = 0;
	const pid_t server = servers_fork(&address, 1 << 20);
	for (int i = 0; i < ROUNDS; i++) {
		stranger s;
		chi_pack p = { 0 };
		stranger_open(&s, address, NULL);
		assert_true(s.joined);
		for (int c = 0; c < 8; c++) {
			const bool right = c < 2 && i % 3 != 0;
			const uint32_t words = random_word(&seed) >> 16 & 7;
			chi_pack_u32(&p, c == 0 && right ? CHI_COMMAND_OPEN : random_word(&seed) >> 16 & 15);
			chi_pack_u32(&p, 1);
			chi_pack_u32(&p, i % 7 == 0 ? random_word(&seed) : 4 * words);
			chi_pack_u32(&p, 0);
			for (uint32_t w = 0; w < words; w++)
				chi_pack_u32(&p, right ? 0 : random_word(&seed) >> 8 * (random_word(&seed) >> 30));
		}
		(void) chi_peer_send_pack(s.peer, CHI_REMOTE_COMMANDS, 0, &p);
		chi_pack_free(&p);
		(void) chi_peer_send(s.peer, CHI_NET_OWN + 9, 0, NULL, 0);
		while (s.end.status == CHOIR_OK)
			assert_int_equal(chi_hub_step(s.hub, chi_hub_now(s.hub) + 1), CHOIR_OK);
		sent_away += s.end.status == CHOIR_CORRUPT;
		stranger_close(&s);
	}
	assert_true(sent_away > ROUNDS / 2);
	assert_serves(address);
	end(server);
}

static choir_status use(const char *address)
{
	char name[200];
	float x[2] = { 1, 2 }, y[2] = { 0, 0 };
	choir_buffer in = { x, CHOIR_F32, CHOIR_SHAPE(2) }, out = { y, CHOIR_F32, CHOIR_SHAPE(2) };
	const choir_kernel_call call = { .size = sizeof call, .n = 1, .in = &in, .out = &out };
	snprintf(name, sizeof name, "remote:%s/cpu:0", address);
	choir_device *d = choir_device_find(name);
	if (d == NULL)
		return choir_error_status();
	CHOIR_TRY(choir_kernel_run(d, "square", NULL, &call));
	assert_true(y[0] == 1 && y[1] == 4);
	return CHOIR_OK;
}

// In the program. A connection that fails is lost for this program, so each has its own.
TEST(every_allocation_of_a_program_may_fail)
{
	const char *address;
	bool failed = true;
	const pid_t server = servers_fork(&address, 0);
	for (uint64_t n = 1; failed; n++) {
		const pid_t program = fork();
		int code = 0;
		if (program == 0) {
			alarm(20);
			chi_alloc_fail(n, false);
			const choir_status status = use(address);
			const bool one = chi_alloc_failed();
			const bool good = status == CHOIR_OK || (one && choir_error()[0] != '\0');
			_exit(!good ? 2 : one ? 1 : 0);
		}
		assert_int_equal(waitpid(program, &code, 0), program);
		assert_true(WIFEXITED(code) && WEXITSTATUS(code) < 2);
		failed = WEXITSTATUS(code) == 1;
	}
	end(server);
}

// In the server, which then serves the next program.
TEST(every_allocation_of_a_server_may_fail)
{
	enum { MOST = 60 };
	for (uint64_t n = 1; n < MOST; n += 1 + n / 4) {
		const char *address;
		const pid_t server = servers_fork_failing(&address, n);
		for (int i = 0; i < 3; i++) {
			const pid_t program = fork();
			int code = 0;
			if (program == 0) {
				alarm(20);
				const choir_status status = use(address);
				if (i == 2 && status != CHOIR_OK)
					print_message("%d: %s\n", (int) n, choir_error());
				_exit(status == CHOIR_OK ? 0 : choir_error()[0] == '\0' ? 2 : 1);
			}
			assert_int_equal(waitpid(program, &code, 0), program);
			assert_true(WIFEXITED(code) && WEXITSTATUS(code) < (i < 2 ? 2 : 1));
		}
		end(server);
	}
}

static int forget(void **state)
{
	(void) state;
	servers_stop();
	return 0;
}

TEST_GROUP(NULL, forget)
