// Leaves: how what replicas give becomes one value, and how it is looked at.
#include "value/value.h"

#include "base/alloc.h"
#include "choir/op.h"
#include "value/variable.h"
#include "test.h"

#include <string.h>

static choir_frame *frame; // of the test

static int open_frame(void **state)
{
	(void) state;
	frame = choir_frame_new(NULL);
	return frame == NULL;
}

static int close_frame(void **state)
{
	(void) state;
	choir_frame_free(frame);
	return 0;
}

static choir_variable *make_variable(const char *name)
{
	choir_device *devices[2] = { choir_device_find("cpu:0"), choir_device_find("cpu:1") };
	const chi_layout layout = { 2, devices };
	const chi_variable_plan plan = { .name = name,
		.shape = CHOIR_SHAPE(2),
		.layout = &layout,
		.options = { .size = sizeof plan.options, .initializer = CHOIR_INITIALIZER_ONES } };
	choir_variable *v = chi_variable_new(&plan);
	assert_non_null(v);
	return v;
}

// spec: A3, 2.6
TEST_WITHIN(equal_numbers_are_plain, open_frame, close_frame)
{
	choir_tensor *t[3] = { choir_number(frame, 2.5), choir_number(frame, 2.5),
		choir_number(frame, 2.5) };
	choir_value *v = chi_value_merge(frame, 3, t);
	assert_int_equal(choir_value_kind_of(v), CHOIR_VALUE_PLAIN);
	assert_int_equal(choir_value_local_count(v), 1);
	assert_float_equal(choir_tensor_number(choir_value_tensor(v)), 2.5, 0);
}

// Replicas go on at their own pace: what they share must not lie in the frame of one of them.
TEST_WITHIN(a_plain_number_outlives_who_gave_it, open_frame, close_frame)
{
	choir_frame *replica = choir_frame_new(NULL);
	choir_tensor *t[2] = { choir_number(replica, 7), choir_number(replica, 7) };
	choir_value *v = chi_value_merge(frame, 2, t);
	choir_frame_free(replica);
	assert_float_equal(choir_tensor_number(choir_value_tensor(v)), 7, 0);
}

// spec: A4, 2.6
TEST_WITHIN(different_numbers_are_per_replica, open_frame, close_frame)
{
	choir_tensor *t[2] = { choir_number(frame, 1), choir_number(frame, 2) };
	choir_value *v = chi_value_merge(frame, 2, t);
	assert_int_equal(choir_value_kind_of(v), CHOIR_VALUE_PER_REPLICA);
	assert_int_equal(choir_value_local_count(v), 2);
	assert_float_equal(choir_tensor_number(choir_value_local(v, 1)), 2, 0);
}

// Also with one replica: what works with one works with more.
// spec: A1, A4, C28, 2.6
TEST_WITHIN(tensors_are_per_replica, open_frame, close_frame)
{
	choir_tensor *one = choir_fill(frame, CHOIR_F32, CHOIR_SHAPE(2), 1);
	choir_tensor *t[2] = { one, one };
	assert_int_equal(chi_value_merge(frame, 2, t)->kind, CHOIR_VALUE_PER_REPLICA);
	assert_int_equal(chi_value_merge(frame, 1, t)->kind, CHOIR_VALUE_PER_REPLICA);
	choir_tensor *mixed[2] = { one, choir_number(frame, 1) };
	assert_int_equal(chi_value_merge(frame, 2, mixed)->kind, CHOIR_VALUE_PER_REPLICA);
}

static choir_tensor *component_of(choir_variable *v)
{
	choir_tensor *t = chi_variable_alias(v, 0, frame);
	t->component = true;
	return t;
}

// spec: A5, A46, 2.6
TEST_WITHIN(components_are_their_variable, open_frame, close_frame)
{
	choir_variable *a = make_variable("a"), *b = make_variable("b");
	choir_tensor *same[2] = { component_of(a), component_of(a) };
	choir_tensor *other[2] = { component_of(a), component_of(b) };
	choir_value *v = chi_value_merge(frame, 2, same);
	assert_int_equal(choir_value_kind_of(v), CHOIR_VALUE_VARIABLE);
	assert_ptr_equal(choir_value_variable(v), a);
	assert_int_equal(choir_value_local_count(v), 1); // copies: these devices share memory
	assert_int_equal(choir_value_kind_of(chi_value_merge(frame, 1, same)), CHOIR_VALUE_VARIABLE);
	assert_int_equal(
			choir_value_kind_of(chi_value_merge(frame, 2, other)), CHOIR_VALUE_PER_REPLICA);
	assert_ptr_equal(choir_value_variable(choir_tensor_as_value(same[0])), a);
	choir_frame_clear(frame);
	chi_variable_free(a);
	chi_variable_free(b);
}

// spec: A20, M8
TEST_WITHIN(what_is_no_tensor_says_so, open_frame, close_frame)
{
	choir_tensor *t[2] = { choir_number(frame, 1), choir_number(frame, 2) };
	choir_value *v = chi_value_merge(frame, 2, t);
	assert_null(choir_value_tensor(v));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_text_holds(choir_error(), "2 replicas");
	assert_null(choir_value_local(v, 2));
	assert_text_holds(choir_error(), "no local result 2");
	assert_null(choir_value_local(v, -1));
	assert_null(choir_value_tensor(chi_value_new(frame, CHOIR_VALUE_DESTINATION, 1)));
	assert_text_holds(choir_error(), "destination");
	choir_variable *a = make_variable("a");
	assert_null(choir_value_tensor(choir_variable_as_value(a)));
	assert_text_holds(choir_error(), "\"a\"");
	assert_null(choir_value_local(choir_variable_as_value(a), 0));
	assert_text_holds(choir_error(), "frame");
	chi_variable_free(a);
}

TEST_WITHIN(nothing_gives_nothing, open_frame, close_frame)
{
	assert_null(choir_tensor_as_value(NULL));
	assert_null(choir_variable_as_value(NULL));
	assert_null(choir_value_tensor(NULL));
	assert_null(choir_value_variable(NULL));
	assert_null(choir_value_local(NULL, 0));
	assert_int_equal(choir_value_local_count(NULL), 0);
	assert_int_equal(choir_value_kind_of(NULL), CHOIR_VALUE_PLAIN);
	assert_null(choir_value_variable(choir_tensor_as_value(choir_number(frame, 1))));
}

// A view in the frame where the value lives: no copy where memory is shared, a copy where it is
// not.
TEST_WITHIN(views_share_memory_where_they_can, open_frame, close_frame)
{
	choir_frame *host = choir_frame_new(choir_device_find("cpu:1"));
	choir_frame *far = choir_frame_new(choir_device_find("far:0"));
	choir_tensor *a = choir_fill(host, CHOIR_F32, CHOIR_SHAPE(3), 4);
	choir_tensor *b = choir_fill(far, CHOIR_F32, CHOIR_SHAPE(3), 5);
	choir_tensor *t[2] = { a, b };
	choir_value *v = chi_value_merge(frame, 2, t);
	choir_tensor *first = choir_value_local(v, 0), *second = choir_value_local(v, 1);
	assert_ptr_equal(choir_tensor_frame(first), frame);
	assert_ptr_equal(choir_tensor_data(first), choir_tensor_data(a));
	assert_ptr_equal(choir_tensor_frame(second), frame);
	assert_float_equal(((const float *) choir_tensor_data(second))[2], 5, 0);
	assert_ptr_equal(chi_value_for_replica(v, 1, b->frame->device), b);
	choir_frame_clear(frame);
	choir_frame_free(host);
	choir_frame_free(far);
}

// Of equal tensors on several devices, the one that the asker's device can reach.
// spec: A21, 2.6
TEST_WITHIN(mirrored_gives_the_nearest, open_frame, close_frame)
{
	choir_frame *far = choir_frame_new(choir_device_find("far:1"));
	choir_value *v = chi_value_new(frame, CHOIR_VALUE_MIRRORED, 2);
	v->component[0] = choir_number(frame, 1);
	v->device[0] = choir_device_find("cpu:0");
	v->component[1] = choir_number(far, 1);
	v->device[1] = choir_device_find("far:1");
	assert_ptr_equal(chi_value_for_replica(v, 0, choir_device_find("cpu:3")), v->component[0]);
	assert_ptr_equal(chi_value_for_replica(v, 0, choir_device_find("far:1")), v->component[1]);
	assert_ptr_equal(chi_value_for_replica(v, 0, choir_device_find("far:2")), v->component[0]);
	// Anybody gets the same value of it, as one tensor.
	assert_int_equal(choir_value_kind_of(v), CHOIR_VALUE_MIRRORED);
	assert_float_equal(choir_tensor_number(choir_value_tensor(v)), 1, 0);
	assert_ptr_equal(choir_tensor_frame(choir_value_tensor(v)), frame);
	choir_frame_free(far);
}

TEST_WITHIN(shares_differ_by_at_most_one, open_frame, close_frame)
{
	for (int64_t total = 0; total < 30; total++)
		for (int n = 1; n < 9; n++) {
			int64_t sum = 0;
			for (int i = 0; i < n; i++) {
				const int64_t share = chi_share_of(total, n, i);
				assert_true(share == total / n || share == total / n + 1);
				assert_true(i == 0 || share <= chi_share_of(total, n, i - 1));
				sum += share;
			}
			assert_int_equal(sum, total);
		}
}

TEST_WITHIN(allocations_may_fail, open_frame, close_frame)
{
	for (uint64_t n = 1;; n++) {
		choir_frame *f = choir_frame_new(NULL);
		choir_tensor *t[2] = { choir_number(frame, 1), choir_number(frame, 2) };
		chi_alloc_fail(n, false);
		choir_value *v = chi_value_merge(f, 2, t);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(v == NULL, failed);
		assert_int_equal(choir_frame_status(f), failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		choir_frame_free(f);
		if (!failed)
			break;
	}
}
