// What a program asks servers, and what they ask each other: not what they were told, can read in
// the other's memory, or know from the order of other streams.
#include "base/process_memory.h"
#include "base/thread.h"
#include "choir/layer.h"
#include "choir/op.h"
#include "choir/optimizer.h"
#include "choir/replica.h"
#include "choir/strategy.h"
#include "choir/tape.h"
#include "device/device.h"
#include "device/remote/remote_client.h"
#include "serve/peer_transfer.h"
#include "serve/servers.h"
#include "tensor/buffer_pool.h"
#include "test.h"

#include <string.h>

enum { BYTES = 100000 };

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
	t.there = servers_stream(servers_device(0, 0));
	t.here = servers_stream(servers_device(1, 0));
	t.target = servers_allocate(t.here, BYTES);
	void *first = servers_allocate(t.there, BYTES), *second = servers_allocate(t.there, BYTES);
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
		first = servers_allocate(t.there, BYTES);
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

enum { FIRST, SECOND, THIRD, STREAMS };

// On servers 0, 1 and 1. The third follows the second, which follows the first.
typedef struct {
	chi_stream *stream[STREAMS];
	unsigned char *memory[STREAMS];
} chain;

static void open_chain(chain *c)
{
	servers_start();
	for (int i = 0; i < STREAMS; i++) {
		c->stream[i] = servers_stream(servers_device(i > FIRST, 0));
		c->memory[i] = servers_allocate(c->stream[i], BYTES);
	}
}

static void close_chain(chain *c)
{
	for (int i = 0; i < STREAMS; i++) {
		chi_device_release(c->stream[i]->device, c->memory[i], BYTES);
		chi_stream_free(c->stream[i]);
	}
}

static void follow(const chain *c, int i, int other, uint64_t event)
{
	assert_int_equal(chi_stream_wait_event(c->stream[i], c->stream[other], event), CHOIR_OK);
}

static uint64_t fill(const chain *c, int i, size_t at)
{
	uint64_t event;
	assert_int_equal(chi_stream_fill(c->stream[i], c->memory[i] + at, 1, 1), CHOIR_OK);
	assert_int_equal(chi_stream_record_event(c->stream[i], &event), CHOIR_OK);
	return event;
}

// at: of the byte that the first writes. Gives the number of requests.
static uint64_t run_chain(const chain *c, size_t at, choir_status expected)
{
	const uint64_t before = chi_session_requests();
	const uint64_t first = fill(c, FIRST, at);
	follow(c, SECOND, FIRST, first);
	const uint64_t second = fill(c, SECOND, 0);
	follow(c, THIRD, SECOND, second);
	follow(c, THIRD, FIRST, first);
	assert_int_equal(chi_stream_wait(c->stream[THIRD]), expected);
	return chi_session_requests() - before;
}

// A busy server may show its progress too late.
TEST(a_server_reads_how_far_another_one_is)
{
	enum { TRIES = 50 };
	uint64_t event, asked = 0;
	chain c;
	open_chain(&c);
	for (int i = 0; i < TRIES; i++) {
		const uint64_t before = chi_session_requests();
		event = fill(&c, FIRST, 0);
		chi_thread_nap(0.005);
		follow(&c, SECOND, FIRST, event);
		assert_int_equal(chi_stream_wait(c.stream[SECOND]), CHOIR_OK);
		assert_in_range(chi_session_requests() - before, i == 0, 1);
		asked += chi_session_requests() - before;
	}
	assert_in_range(asked, 1, TRIES - 1);
	event = fill(&c, FIRST, 2 * BYTES); // fails
	follow(&c, SECOND, FIRST, event);
	assert_int_equal(chi_stream_wait(c.stream[SECOND]), CHOIR_CORRUPT);
	assert_int_equal(chi_stream_wait(c.stream[FIRST]), CHOIR_CORRUPT);
	close_chain(&c);
}

// As an update follows a sum that needs its gradients, and that another device keeps waiting.
static void fail_early(const chain *c, int fails, int lags)
{
	enum { FILLS = 10, LARGE = 1 << 26, NOWHERE = 1 << 30 };
	unsigned char *large = servers_allocate(c->stream[lags], LARGE);
	for (int i = 0; i < FILLS; i++)
		assert_int_equal(chi_stream_fill(c->stream[lags], large, i, LARGE), CHOIR_OK);
	follow(c, lags, fails, fill(c, fails, NOWHERE));
	follow(c, fails, lags, fill(c, lags, 0));
	assert_int_equal(chi_stream_wait(c->stream[fails]), CHOIR_CORRUPT);
	assert_int_equal(chi_stream_wait(c->stream[lags]), CHOIR_CORRUPT);
	chi_device_release(c->stream[lags]->device, large, LARGE);
}

TEST(a_failure_is_not_cleared_before_a_follower_sees_it)
{
	chain c;
	open_chain(&c);
	assert_in_range(run_chain(&c, 0, CHOIR_OK), 0, 2); // the servers know where progress is
	for (int i = 0; i < 3; i++) {
		fail_early(&c, FIRST, SECOND);
		fail_early(&c, SECOND, FIRST);
		fail_early(&c, SECOND, THIRD); // of one server
	}
	close_chain(&c);
}

TEST(an_answer_tells_of_all_streams)
{
	chain c;
	open_chain(&c);
	follow(&c, THIRD, SECOND, fill(&c, SECOND, 0));
	(void) fill(&c, THIRD, 0);
	assert_int_equal(chi_stream_wait(c.stream[THIRD]), CHOIR_OK);
	const uint64_t before = chi_remote_waits();
	assert_int_equal(chi_stream_wait(c.stream[SECOND]), CHOIR_OK);
	assert_int_equal(chi_remote_waits(), before);
	close_chain(&c);
}

// From here on the servers do not read each other's memory.

TEST(what_another_stream_has_waited_for_is_not_asked_again)
{
	chain c;
	chi_process_memory_refuse(true);
	open_chain(&c);
	for (int i = 0; i < 5; i++)
		assert_int_equal(run_chain(&c, 0, CHOIR_OK), 1);
	for (int i = 0; i < 3; i++) { // the first fails
		assert_int_equal(run_chain(&c, 2 * BYTES, CHOIR_CORRUPT), 1);
		for (int k = 0; k < THIRD; k++)
			assert_int_equal(chi_stream_wait(c.stream[k]), CHOIR_CORRUPT);
		assert_int_equal(run_chain(&c, 0, CHOIR_OK), 1);
	}
	chi_process_memory_refuse(false);
	close_chain(&c);
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

// Each half of the sum needs the other server's gradients, and the other server reads its result.
// That the result has been read is the third event of a server and a step.
TEST(a_step_asks_for_few_events)
{
	enum { STEPS = 10, EVENTS = 3, READS = 2 };
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
		chi_process_memory_refuse(i > 0); // the first step writes what the optimizer needs
		if (i == STEPS)
			before = chi_session_requests();
		if (choir_strategy_run(s, step, &t, NULL, NULL) != CHOIR_OK)
			fail_msg("%s", choir_error());
	}
	assert_in_range(chi_session_requests() - before, STEPS, 2 * (EVENTS + READS) * STEPS);
	chi_process_memory_refuse(false);
	choir_strategy_free(s);
}

static int forget(void **state)
{
	(void) state;
	servers_stop();
	return 0;
}

TEST_GROUP(NULL, forget)
