// Mixed precision in strategies: the same bits on any devices, threads and workers, and near f32;
// layers with a precision of their own; overflow; options that workers must share.
#include "process_group.h"
#include "plain_kernels.h"

#include "choir/extend/kernel_table.h"
#include "op/plain/half.h"
#include "test.h"
#include "value/variable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { REPLICAS = 4, ROWS = 16, STEPS = 3 };

typedef struct {
	choir_precision precision;
	choir_precision last_layer;
	double input; // size of x
	choir_loss_scale scale;
	choir_layer *net;
	choir_optimizer *optimizer;
	double loss;
	uint64_t hash;
} training;

static choir_status step(choir_replica *r, void *user)
{
	const training *t = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *x = choir_replica_arg(r, "x");
	choir_tensor *y = choir_layer_apply(t->net, x);
	choir_tensor *losses = choir_sparse_softmax_cross_entropy(choir_replica_arg(r, "labels"), y);
	return choir_optimizer_minimize(t->optimizer, choir_replica_average_loss(r, losses), tape);
}

static choir_status find_loss(choir_replica *r, void *user)
{
	const training *t = user;
	choir_tensor *y = choir_layer_apply(t->net, choir_replica_arg(r, "x"));
	choir_tensor *losses = choir_sparse_softmax_cross_entropy(choir_replica_arg(r, "labels"), y);
	return choir_replica_return(r, "loss", choir_replica_average_loss(r, losses));
}

static choir_status make(training *t)
{
	choir_layer *const layers[] = {
		choir_conv2d_new(
				"conv", 1, 6, 3, CHOIR_OPTIONS(choir_conv_options, .activation = CHOIR_RELU)),
		choir_batch_normalization_new("norm", 6,
				CHOIR_OPTIONS(choir_batch_normalization_options, .over_replicas = CHOIR_ON)),
		choir_max_pool2d_new(2, 2, 0),
		choir_flatten_new(),
		choir_dense_new("hidden", 54, 20, CHOIR_GELU),
		choir_layer_normalization_new("rows", 20, 0),
		choir_dropout_new("dropout", 0.2),
		choir_dense_new("scores", 20, 5, CHOIR_LINEAR),
	};
	enum { N = sizeof layers / sizeof layers[0] };
	t->net = choir_sequential_new(N, layers);
	t->optimizer = choir_optimizer_new(CHOIR_ADAM,
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.01,
					.loss_scale = t->scale.size > 0 ? &t->scale : NULL));
	if (t->net == NULL || t->optimizer == NULL)
		return choir_error_status();
	return choir_layer_set_precision(layers[N - 1], t->last_layer);
}

static choir_status fill(choir_values *args, double size)
{
	choir_frame *f = choir_values_frame(args);
	choir_tensor *x = choir_random_normal(f, CHOIR_F32, CHOIR_SHAPE(ROWS, 8, 8, 1), 1);
	int32_t labels[ROWS];
	for (int i = 0; i < ROWS; i++)
		labels[i] = i * 7 % 5;
	if (isnan(size))
		x = choir_fill(f, CHOIR_F32, CHOIR_SHAPE(ROWS, 8, 8, 1), size);
	CHOIR_TRY(choir_values_split(args, "x", isnan(size) ? x : choir_scale(x, size)));
	return choir_values_split(
			args, "labels", choir_constant(f, CHOIR_I32, CHOIR_SHAPE(ROWS), labels));
}

static choir_status run_steps(training *t, choir_strategy *s, choir_values *args)
{
	choir_scope scope;
	CHOIR_TRY(choir_scope_enter(&scope, s));
	choir_status status = make(t);
	CHOIR_TRY(choir_scope_exit(&scope));
	for (int i = 0; i < STEPS && status == CHOIR_OK; i++) {
		choir_values_clear(args);
		status = fill(args, t->input == 0 ? 1 : t->input);
		if (status == CHOIR_OK)
			status = choir_strategy_run(s, step, t, args, NULL);
	}
	return status;
}

static choir_status train(training *t, choir_strategy *s)
{
	choir_values *args = choir_values_new(s), *results = NULL;
	choir_status status = run_steps(t, s, args);
	if (status == CHOIR_OK)
		status = choir_strategy_run(s, find_loss, t, args, &results);
	if (status == CHOIR_OK) {
		choir_tensor *loss = choir_strategy_reduce(
				s, CHOIR_SUM, choir_values_find(results, "loss"), CHOIR_NO_AXIS);
		t->loss = choir_tensor_number(loss);
		t->hash = choir_strategy_hash(s);
		status = loss == NULL ? choir_error_status() : CHOIR_OK;
	}
	choir_values_free(results);
	choir_values_free(args);
	return status;
}

static choir_status train_on(training *t, const char *kind, const char *devices, int cores)
{
	choir_strategy *s = choir_strategy_new(kind,
			CHOIR_OPTIONS(choir_strategy_options, .devices = devices, .replicas = REPLICAS,
					.cores_per_device = cores, .seed = 3, .precision = t->precision));
	if (s == NULL)
		return choir_error_status();
	const choir_status status = train(t, s);
	choir_strategy_free(s);
	return status;
}

static training trained(choir_precision p, const char *kind, const char *devices, int cores)
{
	training t = { .precision = p };
	if (train_on(&t, kind, devices, cores) != CHOIR_OK)
		fail_msg("%s on %s: %s", kind, devices, choir_error());
	return t;
}

TEST(the_same_bits_on_any_devices_and_threads)
{
	static const choir_precision mixed[] = { CHOIR_PRECISION_MIXED_BF16,
		CHOIR_PRECISION_MIXED_F16 };
	const training f32 = trained(CHOIR_PRECISION_F32, "mirrored", "cpu:0", 1);
	assert_true(trained(CHOIR_PRECISION_TF32, "mirrored", "cpu:0", 1).hash == f32.hash);
	for (int i = 0; i < 2; i++) {
		const training one = trained(mixed[i], "mirrored", "cpu:0", 1);
		assert_true(one.hash != f32.hash);
		assert_true(fabs(one.loss - f32.loss) < 0.05);
		assert_true(one.hash == trained(mixed[i], "mirrored", "cpu:0,cpu:1", 1).hash);
		assert_true(one.hash == trained(mixed[i], "mirrored", "cpu:0,cpu:1,cpu:2", 2).hash);
		assert_true(one.hash == trained(mixed[i], "mirrored", "cpu:0,far:0", 1).hash);
		assert_true(one.hash == trained(mixed[i], "central_storage", "cpu:0,cpu:1", 1).hash);
		assert_true(one.hash == trained(mixed[i], "parameter_server", "cpu:0", 1).hash);
	}
}

// Before anything reads them.
TEST(updates_round_the_weights)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1" };
	for (int i = 0; i < 4; i++) {
		training t = { .precision = CHOIR_PRECISION_MIXED_BF16 };
		choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
				.devices = devices[i % 2], .replicas = REPLICAS, .cores_per_device = 1 + i / 2,
				.precision = t.precision));
		choir_values *args = choir_values_new(s);
		assert_int_equal(run_steps(&t, s, args), CHOIR_OK);
		int rounded = 0;
		for (int k = 0; k < choir_layer_variables(t.net); k++) {
			const choir_variable *v = choir_layer_variable(t.net, k);
			const chi_copy *c = &v->copy[0];
			if (c->narrow[1].buffer == NULL)
				continue;
			rounded++;
			assert_int_equal(c->narrow[1].version, chi_atomic64_load(&c->source.version) + 1);
			for (int64_t j = 0; j < v->elements; j++)
				assert_int_equal(((const uint16_t *) c->narrow[1].buffer->memory)[j],
						chi_bf16_of_f32(((const float *) c->buffer->memory)[j]));
		}
		assert_int_equal(rounded, 3); // kernels
		choir_values_free(args);
		choir_strategy_free(s);
	}
}

static const char *train_worker(choir_strategy *s, int worker, void *user)
{
	static _Thread_local char text[200];
	const uint64_t *expected = user;
	training t = { .precision = CHOIR_PRECISION_DEFAULT };
	if (s == NULL || train(&t, s) != CHOIR_OK)
		return choir_error();
	snprintf(text, sizeof text, "worker %d has other weights", worker);
	return t.hash == *expected ? NULL : text;
}

static void set_mixed(choir_strategy_options *o, int worker, void *user)
{
	(void) worker;
	(void) user;
	o->seed = 3;
	o->precision = CHOIR_PRECISION_MIXED_BF16;
}

TEST(the_same_bits_on_any_workers)
{
	uint64_t hash = trained(CHOIR_PRECISION_MIXED_BF16, "mirrored", "cpu:0", 1).hash;
	for (int workers = 2; workers <= 4; workers += 2)
		peers_run(&(peers_job){ .replicas = REPLICAS,
				.place = { workers, "cpu:0" },
				.fn = train_worker,
				.user = &hash,
				.options = set_mixed });
}

static void set_different(choir_strategy_options *o, int worker, void *user)
{
	const choir_precision *own = user;
	o->precision = own[worker];
}

static const char *refused(choir_strategy *s, int worker, void *user)
{
	const choir_precision *own = user;
	char names[32];
	(void) worker;
	if (s != NULL)
		return "a strategy was made";
	snprintf(names, sizeof names, "%s*%s", choir_precision_name(own[1]),
			choir_precision_name(own[0]));
	return peers_last_or_heard(CHOIR_STATE, ".precision", names);
}

TEST(workers_need_the_same_precision)
{
	choir_precision different[][2] = {
		{ CHOIR_PRECISION_MIXED_BF16, CHOIR_PRECISION_MIXED_F16 },
		{ CHOIR_PRECISION_F32, CHOIR_PRECISION_TF32 },
	};
	for (int i = 0; i < 2; i++)
		peers_run(&(peers_job){ .replicas = 2,
				.place = { 2, "cpu:0" },
				.fn = refused,
				.user = different[i],
				.options = set_different });
}

TEST(a_layer_may_have_its_own_precision)
{
	training mixed = { .precision = CHOIR_PRECISION_MIXED_BF16 }, own = mixed;
	own.last_layer = CHOIR_PRECISION_F32;
	assert_int_equal(train_on(&mixed, "mirrored", "cpu:0", 1), CHOIR_OK);
	assert_int_equal(train_on(&own, "mirrored", "cpu:0", 1), CHOIR_OK);
	assert_true(mixed.hash != own.hash);
	training alone = { .last_layer = CHOIR_PRECISION_MIXED_BF16 };
	assert_int_equal(train_on(&alone, "mirrored", "cpu:0", 1), CHOIR_OK);
	assert_true(alone.hash != own.hash && alone.hash != mixed.hash);
	training wrong = { .last_layer = CHOIR_PRECISION_AUTO };
	assert_int_equal(train_on(&wrong, "mirrored", "cpu:0", 1), CHOIR_INVALID);
	assert_text_holds(choir_error(), "layer \"scores\"*auto*MIXED_F16");
}

// Products in this dtype take much longer than usual.
static choir_dtype slow = CHOIR_I32;

static int score_of_slow(const choir_kernel_call *call)
{
	return call->in[0].dtype == slow ? 1000 : 0;
}

static choir_status multiply_slowly(const choir_kernel_call *call)
{
	const struct timespec long_time = { 0, 50000000 };
	nanosleep(&long_time, NULL);
	memset(call->out->data, 0,
			(size_t) choir_shape_elements(&call->out->shape) * chi_dtype_size(call->out->dtype));
	return CHOIR_OK;
}

static int register_slow(void **state)
{
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_BF16 };
	(void) state;
	for (int i = 0; i < 2; i++) {
		const choir_kernel_table table = { .size = sizeof table,
			.version = CHOIR_TABLE_VERSION,
			.operation = "matmul",
			.kind = "cpu",
			.name = "slow",
			.dtype = dtypes[i],
			.score = score_of_slow,
			.run = multiply_slowly };
		if (choir_register_kernel(&table) != CHOIR_OK)
			return 1;
	}
	return 0;
}

TEST_GROUP(register_slow, NULL)

static choir_precision chosen(choir_dtype slow_one)
{
	slow = slow_one;
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .devices = "cpu:0", .precision = CHOIR_PRECISION_AUTO));
	const choir_precision taken = choir_strategy_precision(s);
	slow = CHOIR_I32;
	choir_strategy_free(s);
	return taken;
}

TEST(auto_takes_what_is_faster)
{
	const bool native = choir_precision_is_native(CHOIR_PRECISION_MIXED_BF16);
	assert_int_equal(chosen(CHOIR_BF16), CHOIR_PRECISION_F32);
	assert_int_equal(chosen(CHOIR_F32), native ? CHOIR_PRECISION_MIXED_BF16 : CHOIR_PRECISION_F32);
}

TEST(an_unknown_precision_is_refused)
{
	assert_null(choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .precision = (choir_precision) 7)));
	assert_text_holds(choir_error(), "strategy: .precision is 7*AUTO");
}

// f16 has no number beyond 65504, so every update overflows, and a dynamic loss scale cannot help.
TEST(overflow_in_every_step_fails_at_the_lowest_scale)
{
	training t = { .precision = CHOIR_PRECISION_MIXED_F16,
		.input = 1e6,
		.scale = { .size = sizeof t.scale, .initial = 2 } };
	assert_int_equal(train_on(&t, "mirrored", "cpu:0", 1), CHOIR_INVALID);
	assert_text_holds(choir_error(), "adam:*not finite*update 1*loss scale is 1");
}

// As in f32: the first gradient that arrives is the last layer's.
TEST(nan_in_an_activation_is_named)
{
	static const choir_precision all[] = { CHOIR_PRECISION_F32, CHOIR_PRECISION_MIXED_BF16 };
	for (int i = 0; i < 2; i++) {
		training t = { .precision = all[i], .input = NAN };
		assert_int_equal(train_on(&t, "mirrored", "cpu:0", 1), CHOIR_INVALID);
		assert_text_holds(choir_error(), "replica 0:*adam:*\"scores/*nan*update 1*nothing");
	}
}
