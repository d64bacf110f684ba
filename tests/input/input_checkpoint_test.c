// Saving where a distributed dataset stands and going on from there: in the middle of a pass, at
// another number of replicas and workers, behind each transform; and what it costs in memory to
// read ahead.
#include "choir/input.h"
#include "choir/source.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/data.h"
#include "data/kinds.h"
#include "input/input.h"
#include "short.h"
#include "test.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 47, GLOBAL = 6, MAX = 256 };

static choir_status count_up(int64_t position, void *const out[], void *user)
{
	(void) user;
	if (position == N)
		return CHOIR_END;
	memcpy(out[0], &position, sizeof position);
	return CHOIR_OK;
}

static const choir_column number = { "number", CHOIR_I64, { 0, { 0 } }, NULL };
static choir_dataset *count(void)
{
	return choir_generator_dataset_new(1, &number, count_up, NULL);
}

static choir_distributed_dataset *dealt(
		choir_strategy *s, choir_dataset *d, int workers, int worker)
{
	choir_distributed_dataset *data = choir_strategy_distribute_dataset(s, d,
			CHOIR_OPTIONS(choir_input_options, .workers = workers, .worker = worker,
					.global_batch = GLOBAL, .read_ahead_steps = worker));
	if (data == NULL)
		fail_msg("%s", choir_error());
	return data;
}

// The numbers of the next steps, in the order of the replicas: fewer only at the end of the pass.
static int64_t read_on(choir_distributed_dataset *data, int replicas, int steps, int64_t to[])
{
	choir_values *batch = NULL;
	choir_status status = CHOIR_OK;
	int64_t n = 0;
	while (steps-- > 0 && (status = choir_distributed_dataset_next(data, &batch)) == CHOIR_OK) {
		choir_value *v = choir_values_find(batch, "number");
		for (int r = 0; r < replicas; r++) {
			choir_tensor *t = choir_value_local(v, r);
			const int64_t rows = choir_tensor_shape(t)->dim[0];
			assert_true(n + rows <= MAX);
			if (rows > 0)
				memcpy(to + n, choir_tensor_data(t), (size_t) rows * sizeof to[0]);
			n += rows;
		}
	}
	choir_values_free(batch);
	if (status != CHOIR_OK && status != CHOIR_END)
		fail_msg("after %lld numbers: %s", (long long) n, choir_error());
	return n;
}

static choir_strategy *mirrored(int replicas)
{
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .replicas = replicas));
	assert_non_null(s);
	return s;
}

// A source and two transforms.
typedef struct {
	const source_kind *source;
	const transform_kind *a, *b;
} chain;

static choir_dataset *build(const chain *c)
{
	return c->b->make(c->a->make(c->source->make()));
}

// Saves after some steps of pass 1 with 2 replicas, and goes on with 3 replicas of one worker and
// with 2 workers of 2 replicas each.
static void check_chain(const chain *c)
{
	choir_strategy *two = mirrored(2), *three = mirrored(3);
	choir_distributed_dataset *data = dealt(two, build(c), 1, 0);
	int64_t skipped[MAX], expected[MAX], found[MAX], part[2][MAX], n;
	assert_int_equal(choir_distributed_dataset_rewind(data), CHOIR_OK);
	for (int at = 0; at < 4; at++) {
		choir_input_position p = { .size = sizeof p };
		assert_int_equal(choir_distributed_dataset_save(data, &p), CHOIR_OK);
		assert_int_equal(p.pass, 1);
		assert_in_range(p.steps, 0, at);
		// What would have come: two steps.
		choir_distributed_dataset *ahead = dealt(two, build(c), 1, 0);
		assert_int_equal(choir_distributed_dataset_rewind(ahead), CHOIR_OK);
		read_on(ahead, 2, at, skipped);
		n = read_on(ahead, 2, 2, expected);
		if (n == 0 && at == 0)
			fail_msg("%s, %s, %s: nothing to go on with", c->source->constructor,
					c->a->constructor, c->b->constructor);
		choir_distributed_dataset *other = dealt(three, build(c), 1, 0);
		assert_int_equal(choir_distributed_dataset_restore(other, &p), CHOIR_OK);
		if (read_on(other, 3, 2, found) != n)
			fail_msg("%s, %s, %s: other numbers at step %d", c->source->constructor,
					c->a->constructor, c->b->constructor, at);
		assert_memory_equal(found, expected, (size_t) n * sizeof found[0]);
		int64_t rows[2][2];
		for (int w = 0; w < 2; w++) {
			choir_distributed_dataset *worker = dealt(two, build(c), 2, w);
			assert_int_equal(choir_distributed_dataset_restore(worker, &p), CHOIR_OK);
			rows[0][w] = read_on(worker, 2, 1, part[w]);
			rows[1][w] = read_on(worker, 2, 1, part[w] + rows[0][w]);
		}
		int64_t done = 0, taken[2] = { 0 };
		for (int k = 0; k < 2; k++)
			for (int w = 0; w < 2; done += rows[k][w], taken[w] += rows[k][w], w++)
				memcpy(found + done, part[w] + taken[w], (size_t) rows[k][w] * sizeof found[0]);
		assert_int_equal(done, n);
		assert_memory_equal(found, expected, (size_t) n * sizeof found[0]);
		read_on(data, 2, 1, skipped);
	}
	choir_strategy_free(two);
	choir_strategy_free(three);
	kinds_wait();
}

// spec: V9, D30
TEST(every_pair_goes_on_at_other_numbers_of_replicas_and_workers)
{
	int chains = 0;
	for (size_t s = 0; s < source_kind_count; s++)
		for (size_t a = 0; a < transform_kind_count; a++)
			for (size_t b = 0; b < transform_kind_count; b++) {
				const chain c = { &source_kinds[s], &transform_kinds[a], &transform_kinds[b] };
				// Of most sources only one transform each, of two of them every pair.
				if (s > 1 && a > 0)
					continue;
				if ((c.b->whole && a > 0) || (c.b->single && c.a->batches))
					continue;
				if (chains++ % STRIDE == 0)
					check_chain(&c);
			}
}

TEST(positions_of_other_data_are_refused)
{
	choir_strategy *s = mirrored(2);
	choir_distributed_dataset *data = dealt(s, choir_dataset_shuffle(count(), 10, 3), 1, 0);
	choir_distributed_dataset *other = dealt(s, choir_dataset_shuffle(count(), 10, 4), 1, 0);
	choir_distributed_dataset *larger =
			choir_strategy_distribute_dataset(s, choir_dataset_shuffle(count(), 10, 3),
					CHOIR_OPTIONS(choir_input_options, .global_batch = GLOBAL + 1));
	choir_input_position p = { .size = sizeof p }, wrong;
	int64_t found[MAX];
	assert_int_equal(choir_distributed_dataset_save(data, &p), CHOIR_OK);
	assert_int_equal(choir_distributed_dataset_restore(other, &p), CHOIR_INVALID);
	assert_text_holds(choir_error(), "columns");
	assert_int_equal(choir_distributed_dataset_restore(larger, &p), CHOIR_INVALID);
	assert_text_holds(choir_error(), "columns");
	assert_int_equal(read_on(other, 2, 1, found), GLOBAL); // nothing has changed
	wrong = p;
	wrong.elements = -1;
	assert_int_equal(choir_distributed_dataset_restore(data, &wrong), CHOIR_INVALID);
	assert_text_holds(choir_error(), "negative");
	wrong = p;
	wrong.elements = N;
	assert_int_equal(choir_distributed_dataset_restore(data, &wrong), CHOIR_INVALID);
	assert_text_holds(choir_error(), "position");
	choir_values *batch = NULL;
	assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_INVALID);
	choir_values_free(batch);
	assert_int_equal(choir_distributed_dataset_restore(data, &p), CHOIR_OK);
	assert_int_equal(read_on(data, 2, 1, found), GLOBAL);
	wrong = p;
	wrong.examples = GLOBAL + 1;
	assert_int_equal(choir_distributed_dataset_restore(data, &wrong), CHOIR_INVALID);
	assert_text_holds(choir_error(), "element 0*6*7");
	wrong.size = 1;
	assert_int_equal(choir_distributed_dataset_restore(data, &wrong), CHOIR_INVALID);
	assert_int_equal(choir_distributed_dataset_save(data, &wrong), CHOIR_INVALID);
	assert_text_holds(choir_error(), "save:*position's size is 1");
	assert_int_equal(choir_distributed_dataset_save(NULL, &p), CHOIR_INVALID);
	assert_int_equal(choir_distributed_dataset_restore(NULL, &p), CHOIR_INVALID);
	choir_strategy_free(s);
}

// A part that one worker reads has places that no other worker knows.
// spec: D30
TEST(positions_of_other_parts_are_refused)
{
	choir_strategy *s = mirrored(1);
	choir_distributed_dataset *data[4];
	choir_input_position p = { .size = sizeof p };
	for (int i = 0; i < 4; i++) {
		const choir_input_options o = { .size = sizeof o,
			.workers = i < 2 ? 2 : 3,
			.worker = i == 1,
			.auto_shard = i < 3 ? CHOIR_AUTO_SHARD_HINT : CHOIR_AUTO_SHARD_OFF };
		choir_dataset *d = choir_range_dataset_new("x", 0, 30, 1);
		if (i < 3)
			d = choir_dataset_shard(d, CHOIR_SHARD_HINT, CHOIR_SHARD_HINT);
		data[i] = choir_strategy_distribute_dataset(s, choir_dataset_batch(d, 3), &o);
		assert_non_null(data[i]);
	}
	assert_int_equal(choir_distributed_dataset_save(data[0], &p), CHOIR_OK);
	assert_int_equal(choir_distributed_dataset_restore(data[0], &p), CHOIR_OK);
	for (int i = 1; i < 4; i++) { // another worker, another number of them, another policy
		assert_int_equal(choir_distributed_dataset_restore(data[i], &p), CHOIR_INVALID);
		assert_text_holds(choir_error(), "another worker");
	}
	choir_strategy_free(s);
}

static choir_dataset *skips(const choir_input_context *c, void *user)
{
	(void) user;
	return choir_dataset_batch(
			choir_dataset_shuffle(choir_dataset_skip(count(), 20 * c->input_pipeline), 9, 1), 5);
}

// spec: B20, D4
TEST(datasets_of_a_function_go_on_too)
{
	choir_strategy *s = mirrored(2);
	for (int each = 0; each < 2; each++)
		for (int at = 0; at < 8; at++) {
			choir_input_options o = { .size = sizeof o, .replication = (choir_replication) each };
			choir_distributed_dataset *data =
					choir_strategy_distribute_datasets_from_function(s, skips, NULL, &o);
			int64_t skipped[MAX], expected[MAX], found[MAX], n;
			choir_input_position p = { .size = sizeof p };
			read_on(data, 2, at, skipped);
			assert_int_equal(choir_distributed_dataset_save(data, &p), CHOIR_OK);
			n = read_on(data, 2, MAX, expected);
			choir_distributed_dataset *other =
					choir_strategy_distribute_datasets_from_function(s, skips, NULL, &o);
			assert_int_equal(choir_distributed_dataset_restore(other, &p), CHOIR_OK);
			assert_int_equal(read_on(other, 2, MAX, found), n);
			assert_memory_equal(found, expected, (size_t) n * sizeof found[0]);
		}
	choir_strategy_free(s);
}

// ---- After a failure.

enum { TORN = 4 * GLOBAL + 4 };

static choir_status torn(int64_t position, void *const out[], void *user)
{
	if (*(const bool *) user && position >= TORN)
		return choir_fail(CHOIR_IO, "torn");
	return count_up(position, out, NULL);
}

static choir_distributed_dataset *tearing(choir_strategy *s, int buffer, bool *tears)
{
	return choir_strategy_distribute_dataset(s,
			choir_dataset_batch(choir_generator_dataset_new(1, &number, torn, tears), 4),
			CHOIR_OPTIONS(choir_input_options, .global_batch = GLOBAL,
					.read_ahead = buffer < 0 ? CHOIR_OFF : CHOIR_DEFAULT,
					.read_ahead_steps = buffer < 0 ? 0 : buffer));
}

// Its first examples had been read, and nobody got them.
TEST(what_a_failed_step_has_read_comes_again)
{
	choir_strategy *two = mirrored(2), *three = mirrored(3);
	static bool yes = true, no = false;
	for (int buffer = -1; buffer < 3; buffer++) {
		choir_input_position p = { .size = sizeof p };
		int64_t found[MAX];
		choir_distributed_dataset *data = tearing(two, buffer, &yes);
		choir_values *batch = NULL;
		assert_int_equal(read_on(data, 2, 4, found), 4 * GLOBAL);
		assert_int_equal(choir_distributed_dataset_next(data, &batch), CHOIR_IO);
		choir_values_free(batch);
		assert_int_equal(choir_distributed_dataset_save(data, &p), CHOIR_OK);
		assert_int_equal(p.steps, 4);
		assert_int_equal(p.elements * 4 + p.examples, 4 * GLOBAL);
		data = tearing(three, buffer, &no);
		assert_int_equal(choir_distributed_dataset_restore(data, &p), CHOIR_OK);
		assert_int_equal(read_on(data, 3, 1, found), GLOBAL);
		for (int i = 0; i < GLOBAL; i++)
			assert_int_equal(found[i], 4 * GLOBAL + i);
	}
	choir_strategy_free(two);
	choir_strategy_free(three);
}

TEST(where_a_failed_restore_was_to_go_is_saved)
{
	choir_strategy *s = mirrored(2);
	choir_distributed_dataset *data = dealt(s, count(), 1, 0);
	choir_input_position p = { .size = sizeof p }, wrong, found = { .size = sizeof found };
	assert_int_equal(choir_distributed_dataset_save(data, &p), CHOIR_OK);
	wrong = p;
	wrong.elements = N;
	wrong.steps = wrong.pass = 3;
	assert_int_equal(choir_distributed_dataset_restore(data, &wrong), CHOIR_INVALID);
	assert_int_equal(choir_distributed_dataset_save(data, &found), CHOIR_OK);
	assert_memory_equal(&found, &wrong, sizeof found);
	assert_int_equal(choir_distributed_dataset_restore(data, &p), CHOIR_OK);
	assert_int_equal(choir_distributed_dataset_save(data, &found), CHOIR_OK);
	assert_int_equal(found.elements, 0);
	choir_strategy_free(s);
}

// ---- The host's rounding.

static choir_distributed_dataset *cached_thirds(choir_strategy *s)
{
	static const float x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	const choir_column column = { "x", CHOIR_F32, CHOIR_SCALAR, x };
	return choir_strategy_distribute_dataset(s,
			choir_dataset_batch(
					choir_dataset_cache(
							choir_dataset_to_float(
									choir_memory_dataset_new(12, 1, &column, false), "x", 1 / 3.0),
							NULL),
					6),
			CHOIR_OPTIONS(choir_input_options, .global_batch = 4));
}

static void next_thirds(choir_distributed_dataset *data, choir_values **batch, float to[4])
{
	assert_int_equal(choir_distributed_dataset_next(data, batch), CHOIR_OK);
	choir_tensor *t = choir_value_local(choir_values_find(*batch, "x"), 0);
	assert_int_equal(choir_tensor_shape(t)->dim[0], 4);
	memcpy(to, choir_tensor_data(t), 4 * sizeof to[0]);
}

// What is computed on the way to a place is what reading up to there computes.
TEST(restoring_does_not_round_as_the_host_does)
{
	choir_strategy *s = mirrored(1);
	choir_distributed_dataset *data = cached_thirds(s), *other = cached_thirds(s);
	choir_values *batch = NULL;
	choir_input_position p = { .size = sizeof p };
	float skipped[4], expected[2][4], found[2][4];
	next_thirds(data, &batch, skipped);
	assert_int_equal(choir_distributed_dataset_save(data, &p), CHOIR_OK);
	assert_int_equal(p.examples, 4); // which the restore reads with two more
	next_thirds(data, &batch, expected[0]);
	next_thirds(data, &batch, expected[1]);
	fesetround(FE_UPWARD);
	const choir_status status = choir_distributed_dataset_restore(other, &p);
	const int mode = fegetround();
	fesetround(FE_TONEAREST);
	assert_int_equal(status, CHOIR_OK);
	assert_int_equal(mode, FE_UPWARD);
	next_thirds(other, &batch, found[0]);
	next_thirds(other, &batch, found[1]);
	assert_memory_equal(found, expected, sizeof found);
	choir_values_free(batch);
	choir_strategy_free(s);
}

// ---- Places in files.

enum { ROWS = 5000 };
static char csv_path[] = "/tmp/choir-position-XXXXXX";

static void write_csv(int good_from)
{
	FILE *f = fopen(csv_path, "w");
	assert_non_null(f);
	fprintf(f, "number\n");
	for (int i = 0; i < ROWS; i++)
		fprintf(f, i < good_from ? "x%03d\n" : "%04d\n", i < good_from ? i % 1000 : i);
	assert_int_equal(fclose(f), 0);
}

static choir_distributed_dataset *from_csv(choir_strategy *s)
{
	const choir_csv_column c = { .name = "number", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_I64 };
	return dealt(s,
			choir_csv_dataset_new(
					csv_path, CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = &c)),
			1, 0);
}

static void assert_reads_on(choir_distributed_dataset *data, int64_t first)
{
	int64_t found[MAX];
	assert_int_equal(read_on(data, 2, 4, found), 4 * GLOBAL);
	for (int64_t i = 0; i < 4 * GLOBAL; i++)
		assert_int_equal(found[i], first + i);
}

// A position says where in a file to go on: nothing of what lies before it has to be right.
TEST(files_are_not_read_up_to_there)
{
	choir_strategy *s = mirrored(2);
	int64_t skipped[MAX];
	assert_true(close(mkstemp(csv_path)) == 0);
	write_csv(0);
	choir_distributed_dataset *data = from_csv(s);
	for (int i = 0; i < 800; i++)
		read_on(data, 2, 1, skipped);
	choir_input_position p = { .size = sizeof p },
						 old = { .size = offsetof(choir_input_position, seek_points) };
	assert_int_equal(choir_distributed_dataset_save(data, &p), CHOIR_OK);
	assert_in_range(p.seek_points, 1, CHOIR_INPUT_SEEK_POINTS);
	old.seek_points = 77;
	assert_int_equal(choir_distributed_dataset_save(data, &old), CHOIR_OK);
	assert_int_equal(old.seek_points, 77); // an older program's position ends before
	assert_int_equal(old.elements, p.elements);
	chi_state_dict kept = { .object = "dataset" };
	assert_int_equal(chi_input_state.save(data, &kept), CHOIR_OK);
	choir_distributed_dataset *other = from_csv(s);
	assert_int_equal(choir_distributed_dataset_restore(other, &old), CHOIR_OK);
	assert_reads_on(other, 4800);
	write_csv(4096);
	other = from_csv(s);
	assert_int_equal(choir_distributed_dataset_restore(other, &p), CHOIR_OK);
	assert_reads_on(other, 4800);
	other = from_csv(s);
	assert_int_equal(chi_input_state.check(other, &kept), CHOIR_OK);
	assert_int_equal(chi_input_state.restore(other, &kept), CHOIR_OK);
	assert_reads_on(other, 4800);
	other = from_csv(s);
	assert_int_equal(choir_distributed_dataset_restore(other, &old), CHOIR_CORRUPT);
	p.seek_points = CHOIR_INPUT_SEEK_POINTS + 1;
	assert_int_equal(choir_distributed_dataset_restore(data, &p), CHOIR_INVALID);
	assert_text_holds(choir_error(), "16*seek points");
	chi_state_dict_free(&kept);
	unlink(csv_path);
	choir_strategy_free(s);
}

static choir_status blank(int64_t position, void *const out[], void *user)
{
	(void) user;
	memset(out[0], (int) position, 10000);
	return position == 4000 ? CHOIR_END : CHOIR_OK;
}

// Bytes that the heap was asked for while a chain is made and its first element read; examples
// have 10,000.
static int64_t cost(int64_t shuffled, int ahead)
{
	const choir_column column = { "blank", CHOIR_U8, { 1, { 10000 } }, NULL };
	const uint64_t before = chi_alloc_bytes();
	choir_dataset *d = choir_generator_dataset_new(1, &column, blank, NULL);
	if (shuffled > 0)
		d = choir_dataset_shuffle(d, shuffled, 1);
	d = choir_dataset_batch(d, 20);
	if (ahead > 0)
		d = choir_dataset_prefetch(d, ahead);
	static char batch[20 * 10000];
	chi_element e = { .column = { batch }, .capacity = 20 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	choir_dataset_free(d);
	return (int64_t) (chi_alloc_bytes() - before);
}

static void assert_near(int64_t found, int64_t expected)
{
	if (found < expected || found > expected + expected / 50 + 70000) // a block, and small things
		fail_msg("%lld bytes, not %lld", (long long) found, (long long) expected);
}

// A buffer of n examples costs n examples, and reading k batches ahead costs k batches.
TEST(buffers_cost_what_they_hold)
{
	const int64_t nothing = cost(0, 0);
	assert_near(cost(100, 0) - nothing, 100 * 10000);
	assert_near(cost(2000, 0) - nothing, 2000 * 10000);
	assert_near(cost(0, 1) - nothing, 20 * 10000);
	assert_near(cost(0, 9) - nothing, 9 * 20 * 10000);
	assert_near(cost(500, 3) - nothing, 500 * 10000 + 3 * 20 * 10000);
}

TEST_GROUP(kinds_begin, kinds_end)
