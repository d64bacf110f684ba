// Tasks of processes: options, TF_CONFIG and CHOIR_TASK.
#include "choir/coordinator.h"

#include "test.h"

#include <stdlib.h>

TEST(wrong_tasks_are_refused)
{
	static const choir_task_options wrong[] = {
		{ .size = sizeof wrong[0], .type = "boss", .address = "unix:/tmp/x" },
		{ .size = sizeof wrong[0], .type = "coordinator", .address = "unix:/tmp/x" },
		{ .size = sizeof wrong[0],
				.type = "coordinator",
				.servers = 17,
				.address = "unix:/tmp/x" },
		{ .size = sizeof wrong[0], .type = "worker" },
		{ .size = sizeof wrong[0], .type = "ps", .address = "unix:/tmp/x" },
		{ .size = sizeof wrong[0], .type = "worker", .address = "unix:/tmp/x", .index = -2 },
		{ .size = sizeof wrong[0], .type = "worker", .address = "unix:/tmp/x", .heartbeat = 4 },
		{ .size = sizeof wrong[0],
				.type = "worker",
				.address = "unix:/tmp/x",
				.start_timeout = -1 },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_null(choir_task_new(&wrong[i]));
		assert_int_equal(choir_error_status(), CHOIR_INVALID);
	}
	unsetenv("TF_CONFIG");
	assert_null(choir_task_new(NULL));
	assert_int_equal(choir_error_status(), CHOIR_NOT_FOUND);
	setenv("TF_CONFIG",
			"{\"cluster\": {\"chief\": [\"unix:/tmp/c\"], \"ps\": [\"unix:/tmp/p\", "
			"\"unix:/tmp/q\"], "
			"\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"ps\", \"index\": 1}}",
			1);
	choir_task *t = choir_task_new(NULL);
	assert_non_null(t);
	assert_string_equal(choir_task_type(t), "ps");
	assert_int_equal(choir_task_index(t), 1);
	choir_task_free(t);
	unsetenv("TF_CONFIG");
}

TEST(tasks_follow_from_the_number_of_the_process)
{
	unsetenv("TF_CONFIG");
	static const char *const variables[] = { "unix:/tmp/c", "0@unix:/tmp/c", "17@unix:/tmp/c",
		"one@unix:/tmp/c", "1@", "1 @unix:/tmp/c", "123456789@unix:/tmp/c", "@" };
	setenv("CHOIR_WORKER", "2", 1);
	for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
		setenv("CHOIR_TASK", variables[i], 1);
		assert_null(choir_task_new(NULL));
		assert_int_equal(choir_error_status(), CHOIR_INVALID);
	}
	setenv("CHOIR_TASK", "2@unix:/tmp/c", 1);
	static const struct {
		const char *number, *type;
		int index;
	} numbers[] = { { "0", "coordinator", 0 }, { "1", "ps", 0 }, { "2", "ps", 1 },
		{ "3", "worker", 0 }, { "9", "worker", 6 } };
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		setenv("CHOIR_WORKER", numbers[i].number, 1);
		choir_task *given = choir_task_new(NULL);
		assert_non_null(given);
		assert_string_equal(choir_task_type(given), numbers[i].type);
		assert_int_equal(choir_task_index(given), numbers[i].index);
		choir_task_free(given);
	}
	unsetenv("CHOIR_WORKER");
	assert_null(choir_task_new(NULL));
	assert_text_holds(choir_error(), "CHOIR_WORKER");
	unsetenv("CHOIR_TASK");
}
