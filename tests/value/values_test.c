// Sets of named leaves: what goes in, how rows are dealt, and that nothing is left half set.
#include "value/value.h"

#include "base/alloc.h"
#include "choir/op.h"
#include "value/variable.h"
#include "test.h"

#include <string.h>

enum { REPLICAS = 3 };

static choir_values *set; // of three replicas, the last on memory of its own
static choir_device *devices[REPLICAS];

static int open_set(void **state)
{
	(void) state;
	static const char *const names[] = { "cpu:0", "cpu:1", "far:0" };
	for (int i = 0; i < REPLICAS; i++)
		devices[i] = choir_device_find(names[i]);
	const chi_layout layout = { REPLICAS, devices };
	set = chi_values_new(NULL, &layout);
	return set == NULL;
}

static int close_set(void **state)
{
	(void) state;
	choir_values_free(set);
	return 0;
}

static choir_tensor *count_up(choir_frame *f, int64_t rows)
{
	float data[64];
	for (int i = 0; i < 64; i++)
		data[i] = (float) i;
	return choir_constant(f, CHOIR_F32, CHOIR_SHAPE(rows, 2), data);
}

// What replica i would see of a leaf, first element; rows in *rows.
static float seen(const char *name, int replica, int64_t *rows)
{
	float data[64] = { -1 };
	choir_value *v = choir_values_find(set, name);
	assert_non_null(v);
	choir_frame *f = choir_frame_new(devices[replica]);
	choir_tensor *t = chi_value_view(f, chi_value_for_replica(v, replica, devices[replica]));
	assert_non_null(t);
	*rows = t->shape.rank == 0 ? 0 : t->shape.dim[0];
	assert_int_equal(choir_tensor_to_host(t, data, chi_tensor_bytes(t)), CHOIR_OK);
	choir_frame_free(f);
	return data[0];
}

// spec: A1, B23, C28
TEST_WITHIN(what_is_set_is_found, open_set, close_set)
{
	int64_t rows;
	assert_int_equal(
			choir_values_set(set, "x", choir_tensor_as_value(count_up(set->frame, 2))), CHOIR_OK);
	assert_int_equal(choir_value_kind_of(choir_values_find(set, "x")), CHOIR_VALUE_PLAIN);
	for (int i = 0; i < REPLICAS; i++) {
		assert_float_equal(seen("x", i, &rows), 0, 0);
		assert_int_equal(rows, 2);
	}
	assert_int_equal(
			choir_values_set(set, "x", choir_tensor_as_value(count_up(set->frame, 5))), CHOIR_OK);
	assert_int_equal(set->n, 1);
	seen("x", 1, &rows);
	assert_int_equal(rows, 5);
	choir_values_clear(set);
	assert_null(choir_values_find(set, "x"));
}

TEST_WITHIN(unknown_names_list_the_known, open_set, close_set)
{
	assert_null(choir_values_find(set, "w"));
	assert_int_equal(choir_error_status(), CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "\"w\"");
	assert_text_holds(choir_error(), "none");
	assert_int_equal(
			choir_values_set(set, "encoder/w", choir_tensor_as_value(choir_number(set->frame, 1))),
			CHOIR_OK);
	assert_null(choir_values_find(set, "w"));
	assert_text_holds(choir_error(), "\"encoder/w\"");
	assert_int_equal(
			choir_values_set(set, "b", choir_tensor_as_value(choir_number(set->frame, 1))),
			CHOIR_OK);
	assert_null(choir_values_find(set, "w"));
	assert_text_holds(choir_error(), "\"encoder/w\"*\"b\"");
	assert_null(choir_values_find(NULL, "w"));
	assert_null(choir_values_find(set, NULL));
}

TEST_WITHIN(rows_are_dealt_by_fixed_sizes, open_set, close_set)
{
	static const int64_t totals[] = { 9, 7, 2, 0 };
	static const int64_t expected[][REPLICAS] = { { 3, 3, 3 }, { 3, 2, 2 }, { 1, 1, 0 }, { 0 } };
	for (int k = 0; k < 4; k++) {
		choir_values_clear(set);
		assert_int_equal(choir_values_split(set, "x", count_up(set->frame, totals[k])), CHOIR_OK);
		int64_t first = 0, rows;
		for (int i = 0; i < REPLICAS; i++) {
			const float value = seen("x", i, &rows);
			assert_int_equal(rows, expected[k][i]);
			assert_int_equal(set->examples[i], expected[k][i]);
			if (rows > 0)
				assert_float_equal(value, (float) (2 * first), 0);
			first += rows;
		}
		assert_int_equal(chi_values_global_examples(set), totals[k]);
	}
}

TEST_WITHIN(split_leaves_have_equal_rows, open_set, close_set)
{
	assert_int_equal(choir_values_split(set, "x", count_up(set->frame, 7)), CHOIR_OK);
	assert_int_equal(choir_values_split(set, "y", count_up(set->frame, 8)), CHOIR_INVALID);
	assert_text_holds(choir_error(), "\"y\"");
	assert_text_holds(choir_error(), "\"x\"");
	assert_int_equal(set->n, 1);
	assert_int_equal(choir_values_split(set, "y", count_up(set->frame, 7)), CHOIR_OK);
	assert_int_equal(
			choir_values_split(set, "s", choir_fill(set->frame, CHOIR_F32, CHOIR_SCALAR, 1)),
			CHOIR_INVALID);
	assert_text_holds(choir_error(), "scalar");
	assert_int_equal(chi_values_global_examples(set), 7);
	// Rows of one's own choice: their sum may be less than there are.
	static const int64_t rows[] = { 1, 0, 2 };
	choir_values_clear(set);
	assert_int_equal(chi_values_split_rows(set, "x", count_up(set->frame, 7), rows), CHOIR_OK);
	assert_int_equal(chi_values_global_examples(set), 3);
}

// spec: D9, 2.6
TEST_WITHIN(each_replica_must_be_set, open_set, close_set)
{
	assert_int_equal(choir_values_set_local(set, "x", 0, count_up(set->frame, 1)), CHOIR_OK);
	assert_int_equal(choir_values_set_local(set, "x", 2, count_up(set->frame, 4)), CHOIR_OK);
	assert_int_equal(chi_values_check(set), CHOIR_INVALID);
	assert_text_holds(choir_error(), "\"x\"*replica 1");
	assert_int_equal(chi_values_global_examples(set), CHOIR_NONE);
	assert_int_equal(choir_values_set_local(set, "x", 1, count_up(set->frame, 2)), CHOIR_OK);
	assert_int_equal(chi_values_check(set), CHOIR_OK);
	assert_int_equal(chi_values_global_examples(set), 7);
	assert_int_equal(choir_values_set_local(set, "x", 3, count_up(set->frame, 2)), CHOIR_INVALID);
	assert_text_holds(choir_error(), "local replica 3;");
	assert_int_equal(choir_values_set_local(set, "x", -1, count_up(set->frame, 2)), CHOIR_INVALID);
}

// The rows of the first leaf are the examples; of that leaf as it is now.
TEST_WITHIN(examples_follow_what_is_replaced, open_set, close_set)
{
	for (int i = 0; i < REPLICAS; i++) {
		assert_int_equal(choir_values_set_local(set, "x", i, count_up(set->frame, 2)), CHOIR_OK);
		assert_int_equal(
				choir_values_set_local(set, "extra", i, count_up(set->frame, 5)), CHOIR_OK);
	}
	assert_int_equal(chi_values_global_examples(set), 6);
	for (int i = 0; i < REPLICAS; i++)
		assert_int_equal(choir_values_set_local(set, "x", i, count_up(set->frame, i)), CHOIR_OK);
	assert_int_equal(chi_values_global_examples(set), 3);
	assert_int_equal(choir_values_split(set, "y", count_up(set->frame, 8)), CHOIR_OK);
	assert_int_equal(chi_values_global_examples(set), 8);
	assert_int_equal(choir_values_set_local(set, "x", 0, count_up(set->frame, 6)), CHOIR_OK);
	assert_int_equal(chi_values_global_examples(set), 8);
	assert_int_equal(
			choir_values_set(set, "y", choir_tensor_as_value(choir_number(set->frame, 1))),
			CHOIR_OK);
	assert_int_equal(chi_values_global_examples(set), CHOIR_NONE);
}

static choir_tensor *make(choir_frame *f, int replica, int count, void *user)
{
	assert_int_equal(count, REPLICAS);
	if (replica == *(int *) user)
		return NULL;
	return choir_fill(f, CHOIR_F32, CHOIR_SHAPE(replica + 1, 2), 10 * replica);
}

static choir_tensor *fail_at_one(choir_frame *f, int replica, int count, void *user)
{
	(void) count, (void) user;
	if (replica == 1)
		choir_fail(CHOIR_IO, "the file is gone");
	return replica == 1 ? NULL : choir_number(f, 1);
}

// spec: D9
TEST_WITHIN(a_function_makes_each_replicas_own, open_set, close_set)
{
	int nobody = -1, second = 1;
	int64_t rows;
	assert_int_equal(choir_values_set_from_function(set, "x", make, &nobody), CHOIR_OK);
	for (int i = 0; i < REPLICAS; i++) {
		assert_float_equal(seen("x", i, &rows), 10.0f * (float) i, 0);
		assert_int_equal(rows, i + 1);
	}
	// A failure that was handled long ago is not what went wrong here.
	choir_fail(CHOIR_END, " ");
	choir_fail(CHOIR_TIMEOUT, "an old failure");
	assert_int_equal(choir_values_set_from_function(set, "x", make, &second), CHOIR_INVALID);
	assert_text_holds(choir_error(), "\"x\":*replica 1");
	assert_null(strstr(choir_error(), "old"));
	assert_int_equal(choir_values_set_from_function(set, "y", fail_at_one, NULL), CHOIR_IO);
	assert_text_holds(choir_error(), "replica 1:");
	assert_int_equal(choir_values_set_from_function(set, NULL, make, &nobody), CHOIR_INVALID);
	assert_int_equal(choir_values_set_from_function(set, "x", NULL, NULL), CHOIR_INVALID);
}

// Borrowed in the set's own frame it is used in place; borrowed elsewhere it is copied.
TEST_WITHIN(borrowed_memory, open_set, close_set)
{
	float memory[4] = { 1, 2, 3, 4 };
	choir_frame *other = choir_frame_new(NULL);
	choir_tensor *here =
			choir_borrow(choir_values_frame(set), CHOIR_F32, CHOIR_SHAPE(2, 2), memory);
	choir_tensor *there = choir_borrow(other, CHOIR_F32, CHOIR_SHAPE(2, 2), memory);
	assert_int_equal(choir_values_set(set, "here", choir_tensor_as_value(here)), CHOIR_OK);
	assert_int_equal(choir_values_set(set, "there", choir_tensor_as_value(there)), CHOIR_OK);
	assert_int_equal(choir_values_split(set, "rows", here), CHOIR_OK);
	choir_frame_free(other);
	memory[0] = memory[2] = 9;
	int64_t rows;
	assert_float_equal(seen("here", 0, &rows), 9, 0);
	assert_float_equal(seen("here", 2, &rows), 9, 0);
	assert_float_equal(seen("there", 0, &rows), 1, 0);
	assert_float_equal(seen("rows", 1, &rows), 9, 0);
	assert_ptr_equal(
			choir_tensor_data(choir_value_tensor(choir_values_find(set, "here"))), memory);
}

TEST_WITHIN(wrong_arguments, open_set, close_set)
{
	choir_value *v = choir_tensor_as_value(choir_number(set->frame, 1));
	assert_int_equal(choir_values_set(NULL, "x", v), CHOIR_INVALID);
	assert_int_equal(choir_values_set(set, NULL, v), CHOIR_INVALID);
	assert_int_equal(choir_values_set(set, "", v), CHOIR_INVALID);
	assert_text_holds(choir_error(), "name");
	assert_int_not_equal(choir_values_set(set, "x", NULL), CHOIR_OK);
	assert_int_not_equal(choir_values_split(set, "x", NULL), CHOIR_OK);
	assert_int_not_equal(choir_values_set_local(set, "x", 0, NULL), CHOIR_OK);
	assert_null(choir_values_frame(NULL));
	choir_values_clear(NULL);
	choir_values_free(NULL);
	assert_int_equal(set->n, 0);
}

// A value of another strategy's replicas, which are more than here.
// spec: 2.6
TEST_WITHIN(other_numbers_of_replicas_are_refused, open_set, close_set)
{
	choir_tensor *t[5];
	for (int i = 0; i < 5; i++)
		t[i] = choir_number(set->frame, i);
	assert_int_equal(choir_values_set(set, "x", chi_value_merge(set->frame, 5, t)), CHOIR_INVALID);
	assert_text_holds(choir_error(), "5 replicas");
	assert_int_equal(choir_values_set(set, "x", chi_value_merge(set->frame, 3, t)), CHOIR_OK);
}

// What a set keeps of a variable is its value now; replicas look at it later, at the same time.
TEST_WITHIN(reads_of_variables_are_copied, open_set, close_set)
{
	const chi_layout layout = { REPLICAS, devices };
	const chi_variable_plan plan = { .name = "v",
		.shape = CHOIR_SHAPE(2),
		.layout = &layout,
		.options = { .size = sizeof plan.options } };
	choir_variable *v = chi_variable_new(&plan);
	choir_tensor *read = chi_variable_alias(v, 0, set->frame);
	assert_int_equal(choir_values_set(set, "read", choir_tensor_as_value(read)), CHOIR_OK);
	assert_int_equal(choir_values_set(set, "v", choir_variable_as_value(v)), CHOIR_OK);
	const float ones[2] = { 1, 1 };
	assert_int_equal(chi_variable_from_host(v, ones), CHOIR_OK);
	int64_t rows;
	assert_float_equal(seen("read", 0, &rows), 0, 0);
	assert_int_equal(choir_value_kind_of(choir_values_find(set, "v")), CHOIR_VALUE_VARIABLE);
	assert_int_equal(choir_values_set(set, "late", choir_tensor_as_value(read)), CHOIR_STATE);
	assert_text_holds(choir_error(), "v:*changed");
	choir_values_clear(set);
	chi_variable_free(v);
}

TEST_WITHIN(a_place_is_no_missing_value, open_set, close_set)
{
	assert_int_equal(
			choir_values_set(set, "to", chi_value_new(set->frame, CHOIR_VALUE_DESTINATION, 2)),
			CHOIR_OK);
	assert_int_equal(chi_values_check(set), CHOIR_OK);
}

TEST_WITHIN(filling_again_allocates_nothing, open_set, close_set)
{
	float memory[14] = { 0 };
	uint64_t before = 0;
	for (int step = 0; step < 5; step++) {
		choir_values_clear(set);
		choir_tensor *x = choir_borrow(set->frame, CHOIR_F32, CHOIR_SHAPE(7, 2), memory);
		assert_int_equal(choir_values_split(set, "x", x), CHOIR_OK);
		for (int i = 0; i < REPLICAS; i++)
			assert_int_equal(choir_values_set_local(set, "y", i,
									 choir_fill(set->frame, CHOIR_F32, CHOIR_SHAPE(2), i)),
					CHOIR_OK);
		if (step == 2)
			before = chi_alloc_count();
	}
	assert_int_equal(chi_alloc_count(), before);
}

static choir_status fill_all(choir_values *s)
{
	float memory[14] = { 0 };
	choir_tensor *x = choir_borrow(s->frame, CHOIR_F32, CHOIR_SHAPE(7, 2), memory);
	CHOIR_TRY(choir_values_split(s, "x", x));
	CHOIR_TRY(choir_values_set(s, "n", choir_tensor_as_value(choir_number(s->frame, 1))));
	for (int i = 0; i < REPLICAS; i++)
		CHOIR_TRY(choir_values_set_local(
				s, "y", i, choir_fill(s->frame, CHOIR_F32, CHOIR_SHAPE(2), i)));
	int nobody = -1;
	CHOIR_TRY(choir_values_set_from_function(s, "z", make, &nobody));
	return chi_values_check(s);
}

TEST_WITHIN(allocations_may_fail, open_set, close_set)
{
	const chi_layout layout = { REPLICAS, devices };
	for (uint64_t n = 1;; n++) {
		chi_buffer_trim();
		chi_alloc_fail(n, false);
		choir_values *s = chi_values_new(NULL, &layout);
		const choir_status status = s == NULL ? choir_error_status() : fill_all(s);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (failed)
			assert_string_not_equal(choir_error(), "");
		if (s != NULL && status != CHOIR_OK) { // still good
			choir_values_clear(s);
			assert_int_equal(fill_all(s), CHOIR_OK);
		}
		choir_values_free(s);
		if (!failed)
			break;
		assert_int_equal(status, CHOIR_NO_MEMORY);
	}
}
