// The canonical tree: a fold of any block gives the block's maximal nodes with the bits of the
// plain recursion, wherever the blocks begin and end.
#include "collective/tree.h"

#include "base/alloc.h"
#include "collective/oracle.h"
#include "far/far.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { MAX = 40, ELEMENTS = 3 };

static float values[MAX][ELEMENTS];

TEST(tree_is_what_the_recursion_makes)
{
	for (int replicas = 1; replicas <= MAX; replicas++)
		for (int lo = 0; lo < replicas; lo++)
			for (int hi = lo + 1; hi <= replicas; hi++) {
				int nodes[2 * MAX][2];
				choir_partial_sum found[2 * MAX];
				const int n = oracle_nodes(replicas, lo, hi, nodes);
				assert_int_equal(chi_tree_is_node(replicas, lo, hi), n == 1);
				assert_in_range(n, 1, 2 * chi_tree_depth(replicas));
				assert_int_equal(chi_tree_find_nodes(replicas, lo, hi, NULL), n);
				assert_int_equal(chi_tree_find_nodes(replicas, lo, hi, found), n);
				for (int i = 0; i < n; i++) {
					assert_int_equal(found[i].lo, nodes[i][0]);
					assert_int_equal(found[i].hi, nodes[i][1]);
				}
			}
}

TEST(depth_counts_levels)
{
	static const int depth[] = { 0, 1, 2, 3, 3, 4, 4, 4, 4, 5 };
	for (int replicas = 1; replicas < 10; replicas++)
		assert_int_equal(chi_tree_depth(replicas), depth[replicas]);
	assert_int_equal(chi_tree_depth(1 << 20), 21);
}

TEST(no_node_outside_the_tree)
{
	assert_false(chi_tree_is_node(4, 1, 1));
	assert_false(chi_tree_is_node(4, 2, 5));
	assert_false(chi_tree_is_node(6, 2, 6));
	assert_true(chi_tree_is_node(6, 4, 6));
}

// A device on which a fold is made, with a buffer for each replica.
typedef struct {
	choir_device *device;
	chi_stream *stream;
	chi_buffer *buffer[MAX];
} bench;

static void open_bench(bench *b, const char *device)
{
	b->device = choir_device_find(device);
	assert_non_null(b->device);
	assert_non_null(b->stream = chi_stream_new(b->device));
	for (int i = 0; i < MAX; i++) {
		assert_non_null(b->buffer[i] = chi_buffer_new(b->device, sizeof values[i]));
		assert_int_equal(
				chi_stream_copy(b->stream, b->buffer[i]->memory, values[i], sizeof values[i]),
				CHOIR_OK);
	}
	assert_int_equal(chi_stream_wait(b->stream), CHOIR_OK);
}

static void close_bench(bench *b)
{
	for (int i = 0; i < MAX; i++)
		chi_buffer_release(b->buffer[i]);
	chi_stream_free(b->stream);
}

// first: who contributes first of a block; the others follow, then those before it.
static void check_rotated(bench *b, int replicas, int lo, int hi, int first)
{
	const choir_shape shape = { 1, { ELEMENTS } };
	int nodes[2 * MAX][2];
	const int n = oracle_nodes(replicas, lo, hi, nodes);
	chi_partial_sums sums;
	chi_partial_sums_begin(&sums, replicas, CHOIR_F32, &shape);
	for (int k = 0; k < hi - lo; k++) {
		const int i = lo + (first - lo + k) % (hi - lo);
		assert_int_equal(
				chi_partial_sums_add(&sums, i, b->buffer[i], b->buffer[i]->memory, b->stream),
				CHOIR_OK);
	}
	assert_int_equal(sums.n, n);
	for (int i = 0; i < n; i++) {
		float expected[ELEMENTS], got[ELEMENTS];
		assert_int_equal(sums.node[i].lo, nodes[i][0]);
		assert_int_equal(sums.node[i].hi, nodes[i][1]);
		oracle_sum(CHOIR_F32, values, nodes[i][0], nodes[i][1], ELEMENTS, expected);
		assert_int_equal(chi_stream_copy(b->stream, got, sums.node[i].data, sizeof got), CHOIR_OK);
		assert_int_equal(chi_stream_wait(b->stream), CHOIR_OK);
		assert_memory_equal(got, expected, sizeof got);
	}
	assert_int_equal(chi_stream_wait(b->stream), CHOIR_OK);
	chi_partial_sums_clear(&sums);
	assert_int_equal(sums.n, 0);
}

static void check_block(bench *b, int replicas, int lo, int hi)
{
	check_rotated(b, replicas, lo, hi, lo);
}

// Whoever comes first: replicas that waited for each other go on in another order.
TEST(partial_sums_in_any_order)
{
	bench b;
	open_bench(&b, "cpu:0");
	for (int replicas = 1; replicas <= 20; replicas++)
		for (int lo = 0; lo < replicas; lo++)
			for (int hi = lo + 1; hi <= replicas; hi++)
				for (int first = lo; first < hi; first++)
					check_rotated(&b, replicas, lo, hi, first);
	const choir_shape shape = { 1, { ELEMENTS } };
	chi_partial_sums sums; // from the last to the first, and every other one
	for (int step = 1; step <= 2; step++) {
		float expected[ELEMENTS];
		chi_partial_sums_begin(&sums, MAX, CHOIR_F32, &shape);
		for (int k = 0; k < MAX; k++) {
			const int i = step == 1 ? MAX - 1 - k : (2 * k) % MAX + (2 * k >= MAX);
			assert_int_equal(
					chi_partial_sums_add(&sums, i, b.buffer[i], b.buffer[i]->memory, b.stream),
					CHOIR_OK);
		}
		assert_int_equal(sums.n, 1);
		oracle_sum(CHOIR_F32, values, 0, MAX, ELEMENTS, expected);
		assert_memory_equal(sums.node[0].data, expected, sizeof expected);
		chi_partial_sums_clear(&sums);
	}
	close_bench(&b);
}

TEST(partial_sums_have_the_bits_of_the_recursion)
{
	bench b;
	open_bench(&b, "cpu:0");
	for (int replicas = 1; replicas <= MAX; replicas++)
		for (int lo = 0; lo < replicas; lo++)
			for (int hi = lo; hi <= replicas; hi++)
				check_block(&b, replicas, lo, hi);
	close_bench(&b);
}

TEST(partial_sums_on_an_asynchronous_device)
{
	bench b;
	open_bench(&b, "far:0");
	check_block(&b, 13, 0, 13);
	check_block(&b, 13, 3, 11);
	check_block(&b, 16, 0, 16);
	close_bench(&b);
}

// Memory that the queued sum reads does not go to the pool, from which any stream may take it.
TEST(partial_sums_keep_what_is_read)
{
	enum { REPLICAS = 5 };
	const choir_shape shape = { 1, { ELEMENTS } };
	for (int round = 0; round < 20; round++) {
		float expected[ELEMENTS], got[ELEMENTS];
		bench b;
		chi_partial_sums sums;
		far_delays((uint64_t) round, 1000);
		open_bench(&b, "far:0");
		chi_stream *other = chi_stream_new(b.device);
		assert_non_null(other);
		chi_partial_sums_begin(&sums, REPLICAS, CHOIR_F32, &shape);
		for (int k = 0; k < REPLICAS; k++) {
			const int i = round % 2 == 0 ? k : REPLICAS - 1 - k, before = sums.n;
			assert_int_equal(
					chi_partial_sums_add(&sums, i, b.buffer[i], b.buffer[i]->memory, b.stream),
					CHOIR_OK);
			if (sums.n > before) { // nothing was queued
				chi_buffer_release(b.buffer[i]);
				assert_non_null(b.buffer[i] = chi_buffer_new(b.device, sizeof got));
			}
			chi_buffer *taken = chi_buffer_new(b.device, sizeof got);
			assert_non_null(taken);
			assert_int_equal(chi_stream_fill(other, taken->memory, 0x7f, sizeof got), CHOIR_OK);
			assert_int_equal(chi_stream_wait(other), CHOIR_OK);
			chi_buffer_release(taken);
		}
		assert_int_equal(sums.n, 1);
		assert_int_equal(chi_stream_copy(b.stream, got, sums.node[0].data, sizeof got), CHOIR_OK);
		assert_int_equal(chi_stream_wait(b.stream), CHOIR_OK);
		oracle_sum(CHOIR_F32, values, 0, REPLICAS, ELEMENTS, expected);
		assert_memory_equal(got, expected, sizeof got);
		chi_partial_sums_clear(&sums);
		chi_stream_free(other);
		close_bench(&b);
	}
	far_delays(1, 20);
}

// What is folded in is never written: others may still look at it.
TEST(partial_sums_leave_contributions_alone)
{
	bench b;
	open_bench(&b, "cpu:0");
	check_block(&b, MAX, 0, MAX);
	for (int i = 0; i < MAX; i++)
		assert_memory_equal(b.buffer[i]->memory, values[i], sizeof values[i]);
	close_bench(&b);
}

TEST(partial_sums_survive_failing_allocations)
{
	const choir_shape shape = { 1, { ELEMENTS } };
	for (uint64_t n = 1;; n++) {
		bench b;
		open_bench(&b, "cpu:0");
		chi_buffer_trim();
		chi_partial_sums sums;
		chi_partial_sums_begin(&sums, 5, CHOIR_F32, &shape);
		chi_alloc_fail(n, false);
		choir_status status = CHOIR_OK;
		for (int i = 0; status == CHOIR_OK && i < 5; i++)
			status = chi_partial_sums_add(&sums, i, b.buffer[i], b.buffer[i]->memory, b.stream);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		chi_partial_sums_clear(&sums);
		close_bench(&b);
		if (!failed)
			break;
		assert_int_equal(status, CHOIR_NO_MEMORY);
		assert_string_not_equal(choir_error(), "");
	}
}

static int fill(void **state)
{
	(void) state;
	oracle_fill(CHOIR_F32, values, MAX, ELEMENTS, 7);
	return 0;
}

TEST_GROUP(fill, NULL)
