// The choice of cross-device operations, and what may be registered.
#include "collective/cross_device_ops.h"

#include "collective/toy.h"
#include "test.h"

#include <string.h>

static const char *chosen_among(int n, const char *const names[], const char *name)
{
	choir_device *devices[5];
	chi_communicator group = { 0 };
	for (int i = 0; i < n; i++)
		assert_non_null(devices[i] = choir_device_find(names[i]));
	const choir_status status = chi_communicator_open(&group, n, n, devices, name);
	const char *found = status == CHOIR_OK ? group.table->name : "";
	chi_communicator_close(&group);
	return found;
}

static const char *chosen(const char *first, const char *second, const char *name)
{
	return chosen_among(2, (const char *const[]){ first, second }, name);
}

// spec: B8, C22, M20, 2.10
TEST(the_best_score_is_chosen)
{
	assert_string_equal(chosen("cpu:0", "cpu:1", NULL), "direct");
	assert_string_equal(chosen("far:0", "far:1", NULL), "ring");
	assert_string_equal(chosen("cpu:0", "far:1", NULL), "reduce_to_one_device");
	assert_string_equal(chosen("cpu:0", "cpu:1", "reduce_to_one_device"), "reduce_to_one_device");
	static const char *const far[] = { "far:0", "far:1", "far:2", "cpu:0", "cpu:1" };
	assert_string_equal(chosen_among(3, far, NULL), "ring");
	assert_string_equal(chosen_among(3, far + 2, NULL), "reduce_to_one_device");
	assert_string_equal(chosen_among(5, far, "hierarchical_copy"), "hierarchical_copy");
	assert_string_equal(chosen("cpu:0", "cpu:1", "ring"), "ring");
}

// spec: E27
TEST(what_cannot_serve_is_refused)
{
	assert_string_equal(chosen("cpu:0", "far:0", "direct"), "");
	assert_int_equal(choir_error_status(), CHOIR_UNSUPPORTED);
	assert_text_holds(choir_error(), "direct");
}

// spec: E27
TEST(unknown_names_list_the_known)
{
	assert_string_equal(chosen("cpu:0", "cpu:1", "star"), "");
	assert_int_equal(choir_error_status(), CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "\"star\"");
	assert_text_holds(choir_error(), "direct");
	assert_text_holds(choir_error(), "reduce_to_one_device*hierarchical_copy");
}

TEST(bad_tables_are_refused)
{
	choir_cross_device_ops_table t = toy_ops;
	assert_int_equal(choir_register_cross_device_ops(NULL), CHOIR_INVALID);
	t.size--;
	assert_int_equal(choir_register_cross_device_ops(&t), CHOIR_INVALID);
	t = toy_ops;
	t.version = 99;
	assert_int_equal(choir_register_cross_device_ops(&t), CHOIR_INVALID);
	t = toy_ops;
	t.name = NULL;
	assert_int_equal(choir_register_cross_device_ops(&t), CHOIR_INVALID);
	t = toy_ops;
	t.name = "direct";
	assert_int_equal(choir_register_cross_device_ops(&t), CHOIR_INVALID);
	assert_text_holds(choir_error(), "\"direct\":*already");
}

TEST(tables_of_another_size)
{
	struct {
		choir_cross_device_ops_table table;
		void *more[2];
	} newer = { .table = toy_ops };
	newer.table.size = sizeof newer;
	newer.table.name = "newer";
	memset(newer.more, 0xff, sizeof newer.more);
	assert_int_equal(choir_register_cross_device_ops(&newer.table), CHOIR_OK);
	assert_string_equal(chosen("cpu:0", "cpu:1", "newer"), "newer");
	choir_cross_device_ops_table older = toy_ops;
	older.size = offsetof(choir_cross_device_ops_table, abort);
	older.name = "older";
	assert_int_equal(choir_register_cross_device_ops(&older), CHOIR_OK);
	assert_string_equal(chosen("cpu:0", "cpu:1", "older"), "older");
	older.size = offsetof(choir_cross_device_ops_table, name);
	assert_int_equal(choir_register_cross_device_ops(&older), CHOIR_INVALID);
	assert_text_holds(choir_error(), "cross-device operations:*size*16*24");
}

TEST(a_table_from_outside_is_chosen_by_name)
{
	assert_int_equal(choir_register_cross_device_ops(&toy_ops), CHOIR_OK);
	assert_int_equal(choir_register_cross_device_ops(&toy_ops), CHOIR_INVALID);
	assert_string_equal(chosen("cpu:0", "cpu:1", "toy"), "toy");
	assert_string_equal(chosen("cpu:0", "cpu:1", NULL), "direct");
	assert_string_equal(chosen("far:0", "cpu:1", "toy"), "");
	assert_string_equal(chosen("cpu:0", "cpu:1", "star"), "");
	assert_text_holds(choir_error(), "\"star\"*direct*toy");
}

static int anything(const choir_group *group, choir_collective_kind kind, int64_t bytes)
{
	(void) group, (void) kind, (void) bytes;
	return 1;
}

// A table may leave slots out; what it lacks fails with a text.
TEST(empty_slots_are_filled)
{
	static const choir_cross_device_ops_table empty = {
		.size = sizeof empty, .version = CHOIR_TABLE_VERSION, .name = "empty", .score = anything
	};
	static const choir_cross_device_ops_table blind = {
		.size = sizeof blind, .version = CHOIR_TABLE_VERSION, .name = "blind"
	};
	assert_int_equal(choir_register_cross_device_ops(&empty), CHOIR_OK);
	assert_int_equal(choir_register_cross_device_ops(&blind), CHOIR_OK);
	assert_string_equal(chosen("cpu:0", "cpu:1", "blind"), "");
	assert_int_equal(choir_error_status(), CHOIR_UNSUPPORTED);
	choir_device *devices[1] = { choir_device_find("cpu:0") };
	chi_communicator group = { 0 };
	const choir_collective c = { .size = sizeof c, .name = "it" };
	uint64_t request = 0;
	assert_int_equal(chi_communicator_open(&group, 1, 1, devices, "empty"), CHOIR_OK);
	assert_int_equal(chi_communicator_join(&group, 0, &c, &request), CHOIR_UNSUPPORTED);
	assert_text_holds(choir_error(), "it:*join");
	assert_int_equal(chi_communicator_wait(&group, 0, request, 1), CHOIR_UNSUPPORTED);
	chi_communicator_abort(&group);
	chi_communicator_reset(&group);
	chi_communicator_close(&group);
}
