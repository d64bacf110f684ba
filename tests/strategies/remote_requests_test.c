// What servers ask each other: a transfer from memory that has been read before needs no question.
#include "base/process_memory.h"
#include "choir/layer.h"
#include "choir/op.h"
#include "choir/optimizer.h"
#include "choir/replica.h"
#include "choir/strategy.h"
#include "choir/tape.h"
#include "device/device.h"
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

static int forget(void **state)
{
	(void) state;
	servers_stop();
	return 0;
}

TEST_GROUP(NULL, forget)
