// Event files: what is written is read back by a parser of the test's own, written from the
// format's description. tensorboard_reader_test.c has TensorBoard's own reader.
#include "trace/scratch_directory.h"
#include "trace/trace.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/status.h"
#include "base/file.h"
#include "base/thread.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static choir_status start(void)
{
	return choir_trace_start(NULL, CHOIR_OPTIONS(choir_trace_options, .log = "log"));
}

TEST_WITHIN(test_own_reader, directory_enter, directory_leave)
{
	if (system("python3 -c ''") != 0) {
		print_message("there is no python3\n");
		skip();
	}
	assert_int_equal(start(), CHOIR_OK);
	directory_scalars();
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
	choir_trace_scalar("late", 1, 1);
	assert_int_equal(directory_python("python3", "tensorboard_reader.py", "own log"), 0);
	char name[256];
	assert_int_equal(directory_entries("log", name), 1);
	assert_memory_equal(name, "events.out.tfevents.", 20);
	// A second trace is a second file.
	assert_int_equal(start(), CHOIR_OK);
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
	assert_int_equal(directory_entries("log", NULL), 2);
}

// What was recorded can be read before the end, about a second later.
TEST_WITHIN(test_grows, directory_enter, directory_leave)
{
	char name[256], path[300];
	struct stat s;
	const double begun = chi_clock_now();
	assert_int_equal(start(), CHOIR_OK);
	assert_int_equal(directory_entries("log", name), 1);
	snprintf(path, sizeof path, "log/%s", name);
	assert_int_equal(stat(path, &s), 0);
	const off_t first = s.st_size;
	assert_true(first > 0);
	choir_trace_scalar("loss", 1, 1);
	assert_int_equal(stat(path, &s), 0);
	if (chi_clock_now() - begun < 1)
		assert_int_equal(s.st_size, first);
	usleep(1100000);
	choir_trace_scalar("loss", 2, 1);
	assert_int_equal(stat(path, &s), 0);
	assert_true(s.st_size > first);
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
}

TEST_WITHIN(test_only_replica_0, directory_enter, directory_leave)
{
	if (system("python3 -c ''") != 0)
		skip();
	assert_int_equal(start(), CHOIR_OK);
	for (int id = 0; id < 3; id++) {
		chi_trace_begin_replica(7 + id, id, CHOIR_TRACE_COMPUTE, "replica");
		choir_trace_begin(CHOIR_TRACE_COMPUTE, "inside");
		choir_trace_scalar("id", 1, id);
		choir_trace_end();
		chi_trace_begin_cross(CHOIR_TRACE_COMPUTE, "merge");
		choir_trace_scalar("merged", 1, id);
		chi_trace_end();
		chi_trace_end();
	}
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
	assert_int_equal(directory_python("python3", "tensorboard_reader.py", "ids log"), 0);
}

TEST_WITHIN(test_misuse, directory_enter, directory_leave)
{
	FILE *f = fopen("file", "w");
	fclose(f);
	assert_int_equal(
			choir_trace_start("a.json", CHOIR_OPTIONS(choir_trace_options, .log = "file")),
			CHOIR_IO);
	assert_text_holds(choir_error(), "file: make the directory:*exists");
	assert_int_equal(choir_trace_start("a.json", CHOIR_OPTIONS(choir_trace_options, .log = "a/b")),
			CHOIR_IO);
	assert_text_holds(choir_error(), "a/b: make the directory:*directory");
	assert_int_equal(directory_entries(".", NULL), 1);
	char *path = malloc(5000);
	memset(path, 'a', 4999);
	for (int i = 0; i < 4998; i += 2)
		memcpy(path + i, "./", 2);
	path[4999] = '\0';
	assert_int_equal(
			choir_trace_start(NULL, CHOIR_OPTIONS(choir_trace_options, .log = path)), CHOIR_IO);
	free(path);
	assert_int_equal(start(), CHOIR_OK);
	choir_trace_scalar("", 1, 1);
	choir_trace_scalar(NULL, 1, 1);
	assert_int_equal(choir_trace_stop(), CHOIR_INVALID);
	assert_text_holds(choir_error(), "trace:*scalar");
}

// A full disk, at every call that writes: scalars go on as if nothing was, and stop says it.
TEST_WITHIN(test_each_call_fails, directory_enter, directory_leave)
{
	bool failed = true;
	for (int n = 1; failed; n++) {
		chi_fs_fail(n, ENOSPC);
		choir_status status = start();
		chi_error_clear();
		for (int i = 0; status == CHOIR_OK && i < 3000; i++) // more than a buffer
			choir_trace_scalar("loss", i, i);
		assert_int_equal(choir_error_status(), CHOIR_OK);
		if (status == CHOIR_OK)
			status = choir_trace_stop();
		failed = status != CHOIR_OK;
		chi_fs_fail(0, 0);
		assert_false(choir_trace_is_on());
		assert_int_equal(status, failed ? CHOIR_IO : CHOIR_OK);
		assert_true(failed || n > 5);
	}
}

TEST_WITHIN(test_no_memory, directory_enter, directory_leave)
{
	bool failed = true;
	assert_int_equal(choir_trace_start(NULL, NULL), CHOIR_OK); // this thread's memory is there
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
	for (uint64_t n = 1; failed; n++) {
		chi_alloc_fail(n, false);
		choir_status status = start();
		chi_error_clear();
		if (status == CHOIR_OK) {
			directory_scalars();
			assert_int_equal(choir_error_status(), CHOIR_OK);
			status = choir_trace_stop();
		}
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
	}
}

static void count_up(void *arg)
{
	for (int64_t i = 0; i < 500; i++)
		choir_trace_scalar(arg, i, (double) i);
}

TEST_WITHIN(test_threads, directory_enter, directory_leave)
{
	if (system("python3 -c ''") != 0)
		skip();
	static const char *const tags[] = { "a", "b", "c" };
	chi_thread t[3];
	assert_int_equal(start(), CHOIR_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
				chi_thread_start(&t[i], "counter", count_up, (void *) (uintptr_t) tags[i]),
				CHOIR_OK);
	for (int i = 0; i < 3; i++)
		chi_thread_join(&t[i]);
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
	assert_int_equal(directory_python("python3", "tensorboard_reader.py", "threads log"), 0);
}
