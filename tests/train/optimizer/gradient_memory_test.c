// Gradients in memory of the program's own, handed over while its backward pass goes on: the bits
// of gradients that are given at the end, on any devices, without a copy; gradients of another
// library; and what is wrong use.
#include "train/problem.h"

#include "tensor/dlpack.h"
#include "train/optimizer/optimizer.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 40000, SMALL = 5, REPLICAS = 4, STEPS = 5 };
static float large[REPLICAS][LARGE], small[REPLICAS][SMALL];

typedef enum {
	GIVE,
	READY,
	WRONG_BYTES,
	NO_MEMORY_AT_ALL,
	NO_VARIABLE,
	TWICE,
	NO_OPTIMIZER,
	NEVER_APPLIED,
	FOREIGN,
	NOT_FINITE,
	ONE_LACKS_ONE,
	OTHER_ORDER,
	OTHER_FRAME
} way;

typedef struct {
	choir_optimizer *optimizer;
	choir_variable *large, *small, *foreign;
	choir_tensor *of_another;
	way how;
	int step;
} job;

// Made anew in each step, in memory that stays, as a backward pass of C loops does.
static void fill(int id, int step)
{
	for (int i = 0; i < LARGE; i++)
		large[id][i] = sinf((float) (i * (id + 1) + step)) / 3;
	for (int i = 0; i < SMALL; i++)
		small[id][i] = cosf((float) (i + id * step));
}

static choir_status ready(const job *j, choir_replica *r, choir_variable *v, const void *data)
{
	return choir_optimizer_add_gradient_memory(
			j->optimizer, r, v, data, v == j->small ? sizeof small[0] : sizeof large[0]);
}

static choir_status misuse(const job *j, choir_replica *r, int id)
{
	const bool odd = id == 1;
	choir_optimizer *const o = j->optimizer;
	switch (j->how) {
	case WRONG_BYTES:
		return choir_optimizer_add_gradient_memory(o, r, j->small, small[id], 16);
	case NO_MEMORY_AT_ALL:
		return ready(j, r, j->small, NULL);
	case NO_VARIABLE:
		return choir_optimizer_add_gradient_memory(o, r, NULL, small[id], 4);
	case TWICE:
		CHOIR_TRY(ready(j, r, j->small, small[id]));
		return ready(j, r, j->small, small[id]);
	case NO_OPTIMIZER:
		return choir_optimizer_add_gradient_memory(NULL, r, j->small, small[id], 20);
	case NEVER_APPLIED:
		CHOIR_TRY(ready(j, r, j->small, small[id]));
		return ready(j, r, j->large, large[id]);
	case FOREIGN:
		return choir_optimizer_add_gradient_memory(o, r, j->foreign, small[id], 8);
	case NOT_FINITE:
		if (odd)
			large[id][70] = NAN;
		CHOIR_TRY(ready(j, r, j->large, large[id]));
		return choir_optimizer_apply_gradients(o, r);
	case ONE_LACKS_ONE:
		CHOIR_TRY(ready(j, r, j->large, large[id]));
		if (!odd)
			CHOIR_TRY(ready(j, r, j->small, small[id]));
		return choir_optimizer_apply_gradients(o, r);
	case OTHER_ORDER:
		CHOIR_TRY(ready(j, r, odd ? j->large : j->small, odd ? large[id] : small[id]));
		CHOIR_TRY(ready(j, r, odd ? j->small : j->large, odd ? small[id] : large[id]));
		return choir_optimizer_apply_gradients(o, r);
	default:
		return choir_optimizer_add_gradient(o, r, j->small, j->of_another);
	}
}

static choir_status step(choir_replica *r, void *user)
{
	const job *j = user;
	const int id = choir_replica_id(r);
	fill(id, j->step);
	if (j->how > READY)
		return misuse(j, r, id);
	if (j->how == READY) {
		CHOIR_TRY(ready(j, r, j->large, large[id]));
		CHOIR_TRY(ready(j, r, j->small, small[id]));
	} else {
		choir_tensor *g = choir_borrow(r->frame, CHOIR_F32, CHOIR_SHAPE(LARGE), large[id]);
		choir_tensor *h = choir_borrow(r->frame, CHOIR_F32, CHOIR_SHAPE(SMALL), small[id]);
		CHOIR_TRY(choir_optimizer_add_gradient(j->optimizer, r, j->large, g));
		CHOIR_TRY(choir_optimizer_add_gradient(j->optimizer, r, j->small, h));
	}
	return choir_optimizer_apply_gradients(j->optimizer, r);
}

static void open_job(job *j, choir_strategy *s, const choir_optimizer_options *o)
{
	*j = (job){ .how = READY };
	CHOIR_SCOPE (s) {
		j->large = choir_variable_new("large", CHOIR_SHAPE(LARGE), NULL);
		j->small = choir_variable_new("small", CHOIR_SHAPE(SMALL), NULL);
		j->optimizer = choir_optimizer_new(CHOIR_ADAM, o);
	}
	assert_non_null(j->optimizer);
}

static void train(const char *devices, way how, const choir_optimizer_options *o, float *to)
{
	choir_strategy *s = mirrored(devices, REPLICAS);
	job j;
	open_job(&j, s, o);
	j.how = how;
	for (; j.step < STEPS; j.step++)
		if (choir_strategy_run(s, step, &j, NULL, NULL) != CHOIR_OK)
			fail_msg("%s: %s", devices, choir_error());
	fetch_variable(j.large, to, LARGE * sizeof *to);
	fetch_variable(j.small, to + LARGE, SMALL * sizeof *to);
	choir_strategy_free(s);
}

TEST(the_bits_of_gradients_given_at_the_end)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2",
		"cpu:0,cpu:1,cpu:2,cpu:3", "far:0,far:1" };
	const choir_optimizer_options ways[] = { { .size = sizeof ways[0] },
		{ .size = sizeof ways[0], .global_clip_norm = 1 } };
	static float one[LARGE + SMALL], other[LARGE + SMALL];
	for (int w = 0; w < 2; w++) {
		train(devices[0], GIVE, &ways[w], one);
		assert_true(one[LARGE - 1] != 0);
		for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
			train(devices[i], READY, &ways[w], other);
			assert_memory_equal(one, other, sizeof one);
		}
	}
}

// Each device folds its own two replicas' gradients; only that takes memory.
TEST(nothing_is_copied)
{
	choir_strategy *s = mirrored("cpu:0,cpu:1,cpu:2,cpu:3", REPLICAS);
	job j;
	open_job(&j, s, NULL);
	size_t max[2];
	for (int how = READY; how >= GIVE; how--) {
		j.how = (way) how;
		assert_int_equal(choir_strategy_run(s, step, &j, NULL, NULL), CHOIR_OK); // makes slots
		for (int i = 0; i < REPLICAS; i++)
			chi_buffer_reset_peak(choir_strategy_worker_device(s, i));
		const size_t before = chi_buffer_in_use(choir_strategy_worker_device(s, 1));
		assert_int_equal(choir_strategy_run(s, step, &j, NULL, NULL), CHOIR_OK);
		max[how] = chi_buffer_peak(choir_strategy_worker_device(s, 1)) - before;
	}
	assert_int_equal(max[READY], 0);
	assert_true(max[GIVE] >= sizeof large[0]);
	choir_strategy_free(s);
}

// Tensors of another library, on large and small above.
typedef struct {
	struct DLManagedTensorVersioned managed;
	int64_t shape[1];
	const float *as_it_was; // NULL: this one is not looked at
} other_tensor;
static other_tensor others[REPLICAS][2];
static atomic_int deleted, changed;
static pthread_t caller;
static bool shared; // devices use the memory: it is deleted when the run is over

static void delete_other(struct DLManagedTensorVersioned *managed)
{
	const other_tensor *o = managed->context;
	deleted++;
	if (shared && !pthread_equal(pthread_self(), caller))
		changed++;
	if (o->as_it_was != NULL && memcmp(managed->tensor.data, o->as_it_was, sizeof large[0]) != 0)
		changed++;
}

static choir_tensor *import(choir_replica *r, int id, int which, void *data, int64_t n)
{
	other_tensor *o = &others[id][which];
	o->shape[0] = n;
	o->managed = (struct DLManagedTensorVersioned){
		.version = { 1, 0 },
		.context = o,
		.deleter = delete_other,
		.tensor = { .data = data,
				.device = { DL_CPU, 0 },
				.rank = 1,
				.type = { DL_FLOAT, 32, 1 },
				.shape = o->shape },
	};
	return choir_from_dlpack(r->frame, &o->managed);
}

static choir_status other_step(choir_replica *r, void *user)
{
	static float copy[REPLICAS][LARGE];
	const job *j = user;
	const int id = choir_replica_id(r);
	fill(id, j->step);
	memcpy(copy[id], large[id], sizeof copy[id]);
	others[id][0].as_it_was = copy[id];
	choir_tensor *g = import(r, id, 0, large[id], LARGE);
	choir_tensor *h = import(r, id, 1, small[id], SMALL);
	CHOIR_TRY(choir_optimizer_add_gradient(j->optimizer, r, j->large, g));
	CHOIR_TRY(choir_optimizer_add_gradient(j->optimizer, r, j->small, h));
	if (j->how == NEVER_APPLIED && id == 1)
		return CHOIR_OK;
	return choir_optimizer_apply_gradients(j->optimizer, r);
}

// Nothing writes to them, however sums are made, and each is deleted once, by the caller's thread
// (or, where it was copied, by who imported it), also where the run fails.
TEST(gradients_of_another_library)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2,cpu:3",
		"far:0,far:1" };
	static float own[LARGE + SMALL], have[LARGE + SMALL];
	caller = pthread_self();
	train("cpu:0", GIVE, NULL, own);
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
		choir_strategy *s = mirrored(devices[i], REPLICAS);
		job j;
		open_job(&j, s, NULL);
		deleted = 0;
		shared = i < 3;
		for (; j.step < STEPS; j.step++) {
			assert_int_equal(choir_strategy_run(s, other_step, &j, NULL, NULL), CHOIR_OK);
			assert_int_equal(deleted, (j.step + 1) * 2 * REPLICAS);
		}
		fetch_variable(j.large, have, LARGE * sizeof *have);
		fetch_variable(j.small, have + LARGE, SMALL * sizeof *have);
		assert_memory_equal(own, have, sizeof own);
		j.how = NEVER_APPLIED;
		assert_failed(choir_strategy_run(s, other_step, &j, NULL, NULL), CHOIR_STATE,
				"choir_optimizer_apply_gradients");
		assert_int_equal(deleted % 2, 0);
		assert_in_range(deleted, STEPS * 2 * REPLICAS + 4, (STEPS + 1) * 2 * REPLICAS);
		choir_strategy_free(s);
	}
	assert_int_equal(changed, 0);
}

static const struct {
	way how;
	choir_status status;
	const char *text;
} misuses[] = {
	{ WRONG_BYTES, CHOIR_INVALID, "the gradient of \"small\" has 16 bytes, the variable 20" },
	{ NO_MEMORY_AT_ALL, CHOIR_INVALID, "adam: the gradient of \"small\" is NULL" },
	{ NO_VARIABLE, CHOIR_INVALID, "adam: the variable is NULL" },
	{ TWICE, CHOIR_INVALID, "the gradient of \"small\"*twice" },
	{ NO_OPTIMIZER, CHOIR_INVALID, "optimizer: *is NULL" },
	{ NEVER_APPLIED, CHOIR_STATE, "adam of small, large*choir_optimizer_apply_gradients" },
	{ FOREIGN, CHOIR_INVALID, "variable \"foreign\"*another strategy" },
	{ NOT_FINITE, CHOIR_INVALID, "replica 1: adam: the gradient of \"large\" is nan at [70]" },
	{ ONE_LACKS_ONE, CHOIR_STATE, "adam of large, small" },
	{ OTHER_ORDER, CHOIR_STATE, "adam of large, small" }, // the others: of small, large
	{ OTHER_FRAME, CHOIR_INVALID, "the gradient of \"small\" belongs to another frame" },
};

TEST(wrong_use)
{
	const char *const devices[] = { "cpu:0", "cpu:0,cpu:1" };
	for (int i = 0; i < 2; i++) {
		choir_strategy *other = mirrored("cpu:0", 1), *s = mirrored(devices[i], 2);
		choir_frame *f = choir_frame_new(NULL);
		job j;
		open_job(&j, s, NULL);
		CHOIR_SCOPE (other)
			j.foreign = choir_variable_new("foreign", CHOIR_SHAPE(2), NULL);
		j.of_another = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(SMALL), 1);
		for (size_t k = 0; k < 2 * sizeof misuses / sizeof misuses[0]; k++) {
			j.how = k % 2 == 0 ? misuses[k / 2].how : READY;
			const choir_status status = choir_strategy_run(s, step, &j, NULL, NULL);
			if (k % 2 == 0)
				assert_failed(status, misuses[k / 2].status, misuses[k / 2].text);
			else // nothing of before is left
				assert_int_equal(status, CHOIR_OK);
		}
		choir_frame_free(f);
		choir_strategy_free(s);
		choir_strategy_free(other);
	}
}

TEST(outside_of_a_replica)
{
	choir_strategy *s = mirrored("cpu:0", 1);
	job j;
	open_job(&j, s, NULL);
	assert_failed(choir_optimizer_add_gradient_memory(j.optimizer, NULL, j.small, small, 20),
			CHOIR_INVALID, "NULL");
	choir_strategy_free(s);
}
