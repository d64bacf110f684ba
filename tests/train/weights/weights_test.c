// Weights saved, hashed and restored: across numbers of replicas and devices, by another program's
// reader, and with everything that can go wrong on the way.
#include "base/alloc.h"
#include "base/status.h"
#include "base/fs.h"
#include "base/file.h"
#include "train/files.h"
#include "train/problem.h"
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const layouts[] = { "cpu:0", "cpu:0,cpu:1,cpu:2", "far:0,far:1" };

typedef struct {
	choir_strategy *strategy;
	choir_variable *weight, *scalar, *flags, *sums, *whole, *means;
} model;

// A model of many dtypes; of zeros, unless it is to be filled.
static model open_model(const char *devices, int replicas, bool filled)
{
	static const float weight[6] = { 1, -2, 3.5f, 1e-30f, 0, -0.0f };
	static const double scalar = 3.25;
	static const uint8_t flags[3] = { 1, 0, 1 };
	model m = { .strategy = mirrored(devices, replicas) };
	CHOIR_SCOPE (m.strategy) {
		m.sums = choir_variable_new("z/sums", CHOIR_SHAPE(2),
				CHOIR_OPTIONS(choir_variable_options,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = CHOIR_AGGREGATION_SUM));
		m.whole = choir_variable_new("z/whole", CHOIR_SCALAR,
				CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_I64,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = CHOIR_AGGREGATION_SUM));
		m.means = choir_variable_new("means", CHOIR_SHAPE(1),
				CHOIR_OPTIONS(choir_variable_options,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = CHOIR_AGGREGATION_MEAN));
		m.weight = choir_variable_new("a \"b\"/\xc3\xa9", CHOIR_SHAPE(2, 3),
				CHOIR_OPTIONS(choir_variable_options, .initial_value = filled ? weight : NULL));
		m.scalar = choir_variable_new("scalar", CHOIR_SCALAR,
				CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F64,
						.initial_value = filled ? &scalar : NULL));
		m.flags = choir_variable_new("flags", CHOIR_SHAPE(3),
				CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_BOOL, .trainable = CHOIR_OFF,
						.initial_value = filled ? flags : NULL));
		choir_variable_new("none", CHOIR_SHAPE(0, 4), NULL);
	}
	if (!m.weight || !m.scalar || !m.flags || !m.sums || !m.whole || !m.means)
		fail_msg("%s", choir_error());
	return m;
}

static choir_status add_parts(choir_replica *r, void *user)
{
	const model *m = user;
	choir_frame *f = r->frame;
	const double own = choir_replica_id(r) + 1;
	CHOIR_TRY(choir_variable_assign_add(m->sums, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(2), own)));
	CHOIR_TRY(
			choir_variable_assign_add(m->whole, choir_fill(f, CHOIR_I64, CHOIR_SCALAR, 10 * own)));
	return choir_variable_assign(m->means, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(1), own));
}

static void check_model(
		const model *m, const float weight_first, double sum, int64_t whole, double mean)
{
	float weight[6], sums[2], means[1];
	double scalar;
	int64_t have;
	uint8_t flags[3];
	fetch_variable(m->weight, weight, sizeof weight);
	fetch_variable(m->scalar, &scalar, sizeof scalar);
	fetch_variable(m->flags, flags, sizeof flags);
	fetch_variable(m->sums, sums, sizeof sums);
	fetch_variable(m->whole, &have, sizeof have);
	fetch_variable(m->means, means, sizeof means);
	assert_true(weight[0] == weight_first && (weight_first == 0 || signbit(weight[5])));
	assert_true(scalar == (weight_first == 0 ? 0 : 3.25));
	assert_int_equal(flags[2], weight_first == 0 ? 0 : 1);
	assert_true(fabs((double) sums[1] - sum) < 1e-5 && have == whole);
	assert_true(fabs((double) means[0] - mean) < 1e-6);
}

// From every layout to every other: 2 replicas saved, up to 3 restored.
// spec: D14, M9, 2.7
TEST(round_trip)
{
	for (int i = 0; i < 3; i++) {
		char path[512];
		snprintf(path, sizeof path, "%s", files_path("weights"));
		model from = open_model(layouts[i], 2, true);
		if (choir_strategy_run(from.strategy, add_parts, &from, NULL, NULL) != CHOIR_OK ||
				choir_strategy_save(from.strategy, path, NULL) != CHOIR_OK)
			fail_msg("%s", choir_error());
		const uint64_t hash = choir_strategy_hash(from.strategy);
		for (int k = 0; k < 3; k++)
			for (int replicas = 1; replicas <= 3; replicas++) {
				model to = open_model(layouts[k], replicas, false);
				assert_int_not_equal(choir_strategy_hash(to.strategy), hash);
				if (choir_strategy_restore(to.strategy, path) != CHOIR_OK)
					fail_msg("%s", choir_error());
				check_model(&to, 1, 3, 30, 1.5);
				if (replicas != 3) // a third of the sum is rounded
					assert_int_equal(choir_strategy_hash(to.strategy), hash);
				choir_strategy_free(to.strategy);
			}
		choir_strategy_free(from.strategy);
	}
	assert_int_equal(files_count(), 1);
}

typedef struct {
	choir_variable *v;
	float own[4];
} parts;

static choir_status read_part(choir_replica *r, void *user)
{
	parts *p = user;
	choir_tensor *t = choir_variable_read(p->v, r->frame);
	return choir_tensor_to_host(t, &p->own[choir_replica_id(r)], sizeof(float));
}

static choir_variable *make_v(
		choir_strategy *s, choir_synchronization how, choir_aggregation aggregation)
{
	choir_variable *v = NULL;
	CHOIR_SCOPE (s)
		v = choir_variable_new("v", CHOIR_SCALAR,
				CHOIR_OPTIONS(choir_variable_options, .synchronization = how,
						.aggregation = aggregation, .initializer = CHOIR_INITIALIZER_ONES));
	assert_non_null(v);
	return v;
}

// What a plain variable saved as 7 gives to one of another kind, and back.
static void restore_kind(
		const char *path, int replicas, choir_synchronization how, choir_aggregation aggregation)
{
	const bool sum = how == CHOIR_SYNCHRONIZATION_ON_READ && aggregation == CHOIR_AGGREGATION_SUM;
	choir_strategy *s = mirrored("cpu:0,far:0", replicas), *plain = mirrored("cpu:0", 1);
	parts p = { .v = make_v(s, how, aggregation) };
	assert_int_equal(choir_strategy_restore(s, path), CHOIR_OK);
	assert_int_equal(choir_strategy_run(s, read_part, &p, NULL, NULL), CHOIR_OK);
	for (int i = 0; i < replicas; i++)
		assert_true(p.own[i] == (sum ? 7.0f / (float) replicas : 7));
	char again[512];
	snprintf(again, sizeof again, "%s", files_path("again"));
	const choir_status saved = choir_strategy_save(s, again, NULL);
	if (how == CHOIR_SYNCHRONIZATION_ON_READ && aggregation == CHOIR_AGGREGATION_NONE) {
		assert_int_equal(saved, CHOIR_INVALID);
		assert_text_holds(choir_error(), "\"v\"");
	} else {
		float got;
		assert_int_equal(saved, CHOIR_OK);
		choir_variable *v = make_v(plain, CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE);
		assert_int_equal(choir_strategy_restore(plain, again), CHOIR_OK);
		fetch_variable(v, &got, sizeof got);
		assert_float_equal(got, 7, 0);
		remove(again);
	}
	choir_strategy_free(s);
	choir_strategy_free(plain);
}

// spec: D14, 2.7, 2.19
TEST(every_kind_from_a_plain_one_and_back)
{
	char path[512];
	snprintf(path, sizeof path, "%s", files_path("plain"));
	choir_strategy *s = mirrored("cpu:0", 1);
	choir_variable *v = make_v(s, CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE);
	choir_frame *f = choir_frame_new(NULL);
	assert_int_equal(choir_variable_assign(v, choir_number(f, 7)), CHOIR_OK);
	assert_int_equal(choir_strategy_save(s, path, NULL), CHOIR_OK);
	for (int replicas = 2; replicas <= 4; replicas += 2)
		for (int a = CHOIR_AGGREGATION_NONE; a <= CHOIR_AGGREGATION_ONLY_FIRST_REPLICA; a++) {
			restore_kind(path, replicas, CHOIR_SYNCHRONIZATION_ON_WRITE, (choir_aggregation) a);
			restore_kind(path, replicas, CHOIR_SYNCHRONIZATION_ON_READ, (choir_aggregation) a);
		}
	choir_frame_free(f);
	choir_strategy_free(s);
	remove(path);
}

TEST(training_goes_on)
{
	char path[512];
	snprintf(path, sizeof path, "%s", files_path("trained"));
	problem p, q;
	assert_int_equal(problem_open(&p, "cpu:0,cpu:1", 2, CHOIR_SGD, NULL), CHOIR_OK);
	assert_int_equal(problem_open(&q, "cpu:0", 2, CHOIR_SGD, NULL), CHOIR_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(problem_step(&p), CHOIR_OK);
	// Neither slots nor metrics are in the file, so one of another optimizer is as good.
	assert_int_equal(choir_strategy_save(p.strategy, path, NULL), CHOIR_OK);
	assert_int_equal(choir_strategy_restore(q.strategy, path), CHOIR_OK);
	assert_int_equal(choir_strategy_hash(p.strategy), choir_strategy_hash(q.strategy));
	q.steps = p.steps;
	assert_int_equal(problem_step(&q), CHOIR_OK);
	problem_close(&p);
	problem_close(&q);
}

TEST(hash_sees_everything)
{
	static const struct {
		const char *name;
		choir_dtype dtype;
		choir_shape shape;
		float value;
	} cases[] = {
		{ "w", CHOIR_F32, { 1, { 6 } }, 1 },
		{ "v", CHOIR_F32, { 1, { 6 } }, 1 },
		{ "w", CHOIR_I32, { 1, { 6 } }, 1 },
		{ "w", CHOIR_F32, { 2, { 2, 3 } }, 1 },
		{ "w", CHOIR_F32, { 2, { 3, 2 } }, 1 },
		{ "w", CHOIR_F32, { 1, { 6 } }, 2 },
		{ "w", CHOIR_F32, { 1, { 5 } }, 1 },
	};
	uint64_t hash[7];
	for (int i = 0; i < 7; i++) {
		const float data[6] = { cases[i].value, 1, 1, 1, 1, 1 };
		choir_strategy *s = mirrored("cpu:0", 1);
		CHOIR_SCOPE (s)
			choir_variable_new(cases[i].name, cases[i].shape,
					CHOIR_OPTIONS(choir_variable_options, .dtype = cases[i].dtype,
							.initial_value = data));
		hash[i] = choir_strategy_hash(s);
		assert_int_not_equal(hash[i], 0);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(hash[i], hash[k]);
		choir_strategy_free(s);
	}
	// The order of creation is nothing.
	for (int i = 0; i < 2; i++) {
		choir_strategy *s = mirrored("cpu:0", 1);
		CHOIR_SCOPE (s) {
			choir_variable_new(i ? "a" : "b", CHOIR_SHAPE(3), NULL);
			choir_variable_new(i ? "b" : "a", CHOIR_SHAPE(3), NULL);
		}
		hash[i] = choir_strategy_hash(s);
		choir_strategy_free(s);
	}
	assert_int_equal(hash[0], hash[1]);
}

TEST(metadata)
{
	char path[512], value[32];
	snprintf(path, sizeof path, "%s", files_path("metadata"));
	choir_strategy *s = mirrored("cpu:0", 1);
	assert_int_equal(choir_strategy_save(s, path, "model=cnn\n\nempty=\nrate=a=b\n"), CHOIR_OK);
	assert_int_equal(choir_weights_metadata(path, "model", value, sizeof value), CHOIR_OK);
	assert_string_equal(value, "cnn");
	assert_int_equal(choir_weights_metadata(path, "rate", value, 4), CHOIR_OK);
	assert_string_equal(value, "a=b");
	assert_int_equal(choir_weights_metadata(path, "empty", value, 1), CHOIR_OK);
	assert_string_equal(value, "");
	assert_failed(
			choir_weights_metadata(path, "model", value, 3), CHOIR_INVALID, "\"model\"*4 bytes*3");
	assert_failed(choir_weights_metadata(path, "mode", value, sizeof value), CHOIR_NOT_FOUND,
			"\"mode\"*\"empty\"*\"model\"*\"rate\"");
	assert_failed(choir_weights_metadata(NULL, "a", value, 9), CHOIR_INVALID, "NULL");
	assert_failed(choir_weights_metadata(path, NULL, value, 9), CHOIR_INVALID, "NULL");
	assert_failed(choir_strategy_save(s, path, "model"), CHOIR_INVALID, "\"model\"");
	assert_failed(choir_strategy_save(s, path, "=x"), CHOIR_INVALID, "\"=x\"");
	assert_failed(choir_strategy_save(s, path, "a=1\na=2"), CHOIR_INVALID, "\"a\"");
	assert_failed(choir_strategy_save(s, path, "a=\xff"), CHOIR_INVALID, "UTF-8");
	assert_int_equal(choir_strategy_save(s, path, NULL), CHOIR_OK);
	assert_failed(choir_weights_metadata(path, "model", value, 9), CHOIR_NOT_FOUND, "it has none");
	choir_strategy_free(s);
}

TEST(another_model)
{
	char path[512];
	snprintf(path, sizeof path, "%s", files_path("other"));
	choir_strategy *s = mirrored("cpu:0", 1), *t = mirrored("cpu:0", 2);
	CHOIR_SCOPE (s) {
		choir_dense_new("both", 3, 2, CHOIR_RELU);
		choir_dense_new("there", 2, 2, CHOIR_RELU);
		choir_variable_new("same", CHOIR_SHAPE(1), NULL);
	}
	choir_variable *same = NULL;
	CHOIR_SCOPE (t) {
		choir_dense_new("both", 3, 4, CHOIR_RELU);
		choir_dense_new("here", 2, 2, CHOIR_RELU);
		choir_conv2d_new("here2", 2, 2, 2, NULL);
		same = choir_variable_new("same", CHOIR_SHAPE(1),
				CHOIR_OPTIONS(choir_variable_options, .initializer = CHOIR_INITIALIZER_ONES));
	}
	assert_int_equal(choir_strategy_save(s, path, NULL), CHOIR_OK);
	const uint64_t before = choir_strategy_hash(t);
	assert_failed(choir_strategy_restore(t, path), CHOIR_INVALID,
			"\"here/bias\"*\"here/kernel\"*\"here2/bias\"*1*\"there/bias\"*\"there/"
			"kernel\"*\"both/bias\"*F32*[2]*[4]*\"both/kernel\"*[3, 2]*[3, 4]*restore_partial");
	assert_int_equal(choir_strategy_hash(t), before);
	float value;
	fetch_variable(same, &value, sizeof value);
	assert_true(value == 1);
	choir_strategy_free(s);
	choir_strategy_free(t);
}

TEST(damaged_files)
{
	char path[512], cut[512];
	snprintf(path, sizeof path, "%s", files_path("whole"));
	snprintf(cut, sizeof cut, "%s", files_path("cut"));
	model m = open_model("cpu:0", 2, true), to = open_model("cpu:0,cpu:1", 2, false);
	assert_int_equal(choir_strategy_save(m.strategy, path, "a=b"), CHOIR_OK);
	const uint64_t before = choir_strategy_hash(to.strategy);
	size_t size;
	char *data = files_read(path, &size), facts[600];
	snprintf(facts, sizeof facts, "%s:*bytes", cut);
	for (size_t n = 0; n < size; n++) { // cut at every byte
		files_write(cut, data, n);
		assert_failed(choir_strategy_restore(to.strategy, cut), CHOIR_CORRUPT, facts);
	}
	char *flag = memchr(data + size - 32, 1, 32); // a BOOL that is none
	while (flag != NULL && flag < data + size) {
		*flag = 7;
		flag = memchr(flag, 1, (size_t) (data + size - flag));
	}
	files_write(cut, data, size);
	assert_failed(choir_strategy_restore(to.strategy, cut), CHOIR_CORRUPT, "\"flags\":*BOOL*7");
	assert_int_equal(choir_strategy_hash(to.strategy), before);
	assert_failed(choir_strategy_restore(to.strategy, files_path("nowhere")), CHOIR_NOT_FOUND,
			"nowhere");
	assert_failed(choir_strategy_restore(to.strategy, NULL), CHOIR_INVALID, "NULL");
	assert_failed(choir_strategy_restore(to.strategy, "/"), CHOIR_IO, "directory");
	free(data);
	choir_strategy_free(m.strategy);
	choir_strategy_free(to.strategy);
}

TEST(full_disk)
{
	char path[512];
	snprintf(path, sizeof path, "%s", files_path("disk"));
	model m = open_model("cpu:0", 1, false);
	assert_int_equal(choir_strategy_save(m.strategy, path, NULL), CHOIR_OK);
	const int files = files_count();
	size_t size;
	char *old = files_read(path, &size);
	choir_strategy_free(m.strategy);
	m = open_model("cpu:0", 1, true);
	int n = 1;
	for (; n < 50; n++) {
		chi_fs_fail(n, ENOSPC);
		const choir_status status = choir_strategy_save(m.strategy, path, NULL);
		chi_fs_fail(0, 0);
		assert_int_equal(files_count(), files);
		if (status == CHOIR_OK)
			break;
		assert_failed(status, CHOIR_IO, "device");
		size_t now_size;
		char *now = files_read(path, &now_size);
		assert_int_equal(now_size, size);
		// The last of all can fail only after the new file is there.
		if (memcmp(now, old, size) != 0)
			assert_true(n >= 7);
		free(now);
	}
	assert_true(n >= 7 && n < 50);
	free(old);
	assert_failed(choir_strategy_save(m.strategy, "/nowhere at all/x", NULL), CHOIR_IO,
			"/nowhere*all/x");
	choir_strategy_free(m.strategy);
}

TEST(memory_runs_out)
{
	char path[512];
	snprintf(path, sizeof path, "%s", files_path("memory"));
	model m = open_model("cpu:0,cpu:1", 2, true), zero = open_model("cpu:0", 2, false);
	assert_int_equal(choir_strategy_run(m.strategy, add_parts, &m, NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_strategy_save(m.strategy, path, "a=b"), CHOIR_OK);
	const uint64_t whole = choir_strategy_hash(m.strategy),
				   before = choir_strategy_hash(zero.strategy);
	bool failed = true;
	for (int n = 1; failed; n++) {
		chi_alloc_fail((uint64_t) n, false);
		const choir_status status = choir_strategy_save(m.strategy, path, "a=b");
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
	}
	failed = true;
	for (int n = 1; failed; n++) {
		chi_alloc_fail((uint64_t) n, false);
		const choir_status status = choir_strategy_restore(zero.strategy, path);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (status != CHOIR_OK) {
			assert_failed(status, CHOIR_NO_MEMORY, "memory");
			const uint64_t hash = choir_strategy_hash(zero.strategy);
			if (hash == 0) // half way, and it says so
				assert_failed(choir_error_status(), CHOIR_STATE, "undefined");
			else
				assert_int_equal(hash, before);
		}
	}
	assert_int_equal(choir_strategy_hash(zero.strategy), whole);
	choir_strategy_free(m.strategy);
	choir_strategy_free(zero.strategy);
}

static choir_status save_inside(choir_replica *r, void *user)
{
	(void) user;
	return choir_strategy_save(choir_replica_strategy(r), files_path("inside"), NULL);
}

TEST(wrong_context)
{
	choir_strategy *s = mirrored("cpu:0", 2);
	assert_failed(choir_strategy_run(s, save_inside, NULL, NULL, NULL), CHOIR_STATE, "save");
	assert_failed(choir_strategy_save(s, NULL, NULL), CHOIR_INVALID, "NULL");
	assert_failed(choir_strategy_save(NULL, "x", NULL), CHOIR_INVALID, "strategy");
	assert_int_equal(choir_strategy_hash(NULL), 0);
	chi_error_clear();
	CHOIR_SCOPE (s)
		choir_variable_new("part", CHOIR_SHAPE(1),
				CHOIR_OPTIONS(
						choir_variable_options, .synchronization = CHOIR_SYNCHRONIZATION_ON_READ));
	assert_failed(choir_strategy_save(s, files_path("inside"), NULL), CHOIR_INVALID,
			"\"part\":*ON_READ");
	choir_strategy_free(s);
	s = mirrored("cpu:0", 1);
	CHOIR_SCOPE (s)
		choir_variable_new("\xff", CHOIR_SHAPE(1), NULL);
	assert_failed(choir_strategy_save(s, files_path("inside"), NULL), CHOIR_INVALID, "UTF-8");
	choir_strategy_free(s);
}

// Python's safetensors reads the same values.
TEST(python_reads_it)
{
	const char *python = getenv("CHOIR_TEST_PYTHON");
	char path[512], command[2048];
	snprintf(path, sizeof path, "%s", files_path("python"));
	snprintf(command, sizeof command, "'%s' -c 'import safetensors.numpy' 2>/dev/null",
			python == NULL ? "python3" : python);
	if (system(command) != 0)
		skip();
	model m = open_model("cpu:0,cpu:1", 2, true);
	assert_int_equal(choir_strategy_run(m.strategy, add_parts, &m, NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_strategy_save(m.strategy, path, "model=\xc3\xa9\"\nb=2"), CHOIR_OK);
	snprintf(command, sizeof command,
			"'%s' -c '\n"
			"import sys, numpy as n\n"
			"from safetensors import safe_open\n"
			"f = safe_open(sys.argv[1], framework=\"np\")\n"
			"assert f.metadata() == {\"model\": \"\\u00e9\\\"\", \"b\": \"2\"}, f.metadata()\n"
			"t = {k: f.get_tensor(k) for k in f.keys()}\n"
			"assert len(t) == 7, t\n"
			"w = t[\"a \\\"b\\\"/\\u00e9\"]\n"
			"assert w.dtype == n.float32 and w.shape == (2, 3), w\n"
			"assert (w == n.array([[1, -2, 3.5], [1e-30, 0, 0]], n.float32)).all(), w\n"
			"assert n.signbit(w[1, 2])\n"
			"assert t[\"scalar\"].shape == () and t[\"scalar\"] == 3.25\n"
			"assert t[\"flags\"].dtype == n.bool_ and list(t[\"flags\"]) == [True, False, True]\n"
			"assert list(t[\"z/sums\"]) == [3, 3] and t[\"z/whole\"] == 30 and t[\"means\"] == "
			"1.5\n"
			"assert t[\"none\"].shape == (0, 4)\n"
			"' '%s'",
			python == NULL ? "python3" : python, path);
	assert_int_equal(system(command), 0);
	choir_strategy_free(m.strategy);
}

TEST_GROUP(NULL, files_teardown)
