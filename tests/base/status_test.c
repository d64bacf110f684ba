// The error line: one line, whatever is put into it, kept by each thread for itself.
#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int forget(void **state)
{
	(void) state;
	chi_error_clear();
	return 0;
}

TEST_WITHIN(test_names, forget, NULL)
{
	assert_string_equal(choir_status_name(CHOIR_OK), "CHOIR_OK");
	assert_string_equal(choir_status_name(CHOIR_PEER_LOST), "CHOIR_PEER_LOST");
	assert_string_equal(choir_status_name(CHOIR_INTERNAL), "CHOIR_INTERNAL");
	for (int i = CHOIR_OK; i <= CHOIR_INTERNAL; i++)
		assert_int_equal(strncmp(choir_status_name((choir_status) i), "CHOIR_", 6), 0);
	assert_string_equal(choir_status_name((choir_status) 99), "unknown status");
	assert_string_equal(choir_status_name((choir_status) -1), "unknown status");
}

TEST_WITHIN(test_fail, forget, NULL)
{
	assert_string_equal(choir_error(), "");
	assert_int_equal(choir_error_status(), CHOIR_OK);
	errno = EEXIST;
	assert_int_equal(
			choir_fail(CHOIR_INVALID, "batch: %d, needs at least %.1f", -2, 1.), CHOIR_INVALID);
	assert_int_equal(errno, EEXIST);
	assert_string_equal(choir_error(), "batch: -2, needs at least 1.0");
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	choir_fail(CHOIR_IO, "%s", "two\nlines\r\n");
	assert_string_equal(choir_error(), "two lines  ");
	choir_fail(CHOIR_IO, "%s", "\x1b[31m\xc3\xa9\xff"); // a command, a letter, no character
	assert_string_equal(choir_error(), "\\x1b[31m\xc3\xa9\\xff");
	char commands[CHI_ERROR_SIZE];
	memset(commands, '\a', sizeof commands);
	choir_fail(CHOIR_IO, "%.*s", (int) sizeof commands - 1, commands);
	assert_int_equal(strlen(choir_error()), CHI_ERROR_SIZE - 1);
	assert_string_equal(choir_error() + CHI_ERROR_SIZE - 4, "...");
	choir_fail(CHOIR_STATE, "%s", "");
	assert_string_equal(choir_error(), "CHOIR_STATE");
}

TEST_WITHIN(test_no_failures, forget, NULL)
{
	choir_fail(CHOIR_IO, "kept");
	assert_int_equal(choir_fail(CHOIR_END, "no more"), CHOIR_END);
	assert_int_equal(choir_fail(CHOIR_OK, "fine"), CHOIR_OK);
	assert_string_equal(choir_error(), "kept");
	assert_int_equal(choir_error_status(), CHOIR_IO);
}

TEST_WITHIN(test_text_of_itself, forget, NULL)
{
	choir_fail(CHOIR_CORRUPT, "bad magic");
	choir_fail(choir_error_status(), "file: %s", choir_error());
	assert_string_equal(choir_error(), "file: bad magic");
}

TEST_WITHIN(test_long_text, forget, NULL)
{
	char text[1000];
	memset(text, 'x', sizeof(text));
	text[CHI_ERROR_SIZE - 1] = '\0';
	choir_fail(CHOIR_IO, "%s", text); // just fits
	assert_string_equal(choir_error(), text);
	text[CHI_ERROR_SIZE - 1] = 'x';
	text[sizeof(text) - 1] = '\0';
	choir_fail(CHOIR_IO, "%s", text);
	assert_int_equal(strlen(choir_error()), CHI_ERROR_SIZE - 1);
	assert_string_equal(choir_error() + CHI_ERROR_SIZE - 5, "x...");
	for (size_t i = 1; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa9", 2); // a letter of two bytes, across the cut
	for (int shift = 0; shift < 2; shift++) {
		choir_fail(CHOIR_IO, "%s%s", shift ? "y" : "", text);
		assert_int_equal(strlen(choir_error()), CHI_ERROR_SIZE - (shift ? 1 : 2));
		assert_string_equal(choir_error() + strlen(choir_error()) - 5, "\xc3\xa9...");
	}
}

TEST_WITHIN(test_prefix, forget, NULL)
{
	assert_int_equal(chi_error_prefix("replica %d", 1), CHOIR_OK); // nothing to put it before
	assert_string_equal(choir_error(), "");
	choir_fail(CHOIR_STATE, "matmul: no");
	assert_int_equal(chi_error_prefix("replica %d", 1), CHOIR_STATE);
	assert_string_equal(choir_error(), "replica 1: matmul: no");
	assert_int_equal(chi_error_prefix("replica %d", 1), CHOIR_STATE); // once
	assert_string_equal(choir_error(), "replica 1: matmul: no");
	chi_error_prefix("replica");
	assert_string_equal(choir_error(), "replica: replica 1: matmul: no");
}

TEST_WITHIN(test_save_and_restore, forget, NULL)
{
	chi_error first;
	choir_fail(CHOIR_TIMEOUT, "first");
	chi_error_save(&first);
	choir_fail(CHOIR_IO, "second");
	chi_error_restore(&first);
	assert_string_equal(choir_error(), "first");
	assert_int_equal(choir_error_status(), CHOIR_TIMEOUT);
	chi_error_clear();
	assert_string_equal(choir_error(), "");
	assert_int_equal(choir_error_status(), CHOIR_OK);
}

TEST_WITHIN(test_aside, forget, NULL)
{
	choir_fail(CHOIR_TIMEOUT, "older");
	chi_suspended_error aside = chi_error_suspend();
	assert_string_equal(choir_error(), "");
	assert_int_equal(choir_error_status(), CHOIR_OK);
	chi_error_resume(aside);
	assert_string_equal(choir_error(), "older");
	assert_int_equal(choir_error_status(), CHOIR_TIMEOUT);
	aside = chi_error_suspend();
	choir_fail(CHOIR_IO, "newer");
	chi_error_resume(aside);
	assert_string_equal(choir_error(), "newer");
	assert_int_equal(choir_error_status(), CHOIR_IO);
}

TEST_WITHIN(test_reason, forget, NULL)
{
	assert_int_equal(chi_error_reason(CHOIR_IO, "step %d", 3), CHOIR_IO);
	assert_string_equal(choir_error(), "step 3 failed with CHOIR_IO and no reason");
	assert_int_equal(chi_error_reason(CHOIR_STATE, "step 4"), CHOIR_STATE); // which has one
	assert_string_equal(choir_error(), "step 3 failed with CHOIR_IO and no reason");
	chi_error_clear();
	assert_int_equal(chi_error_reason(CHOIR_END, "step"), CHOIR_INVALID);
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_string_equal(choir_error(), "step failed with CHOIR_END and no reason");
}

static void fail_elsewhere(void *arg)
{
	bool *clean = arg;
	*clean = choir_error_status() == CHOIR_OK;
	choir_fail(CHOIR_IO, "elsewhere");
}

TEST_WITHIN(test_threads_apart, forget, NULL)
{
	bool clean = false;
	choir_fail(CHOIR_STATE, "here");
	chi_thread thread;
	assert_int_equal(chi_thread_start(&thread, "fail", fail_elsewhere, &clean), CHOIR_OK);
	chi_thread_join(&thread);
	assert_true(clean);
	assert_string_equal(choir_error(), "here");
}

TEST_WITHIN(test_failing_allocates_nothing, forget, NULL)
{
	uint64_t before = chi_alloc_count();
	chi_alloc_fail(1, true);
	choir_fail(CHOIR_NO_MEMORY, "out of memory: %d bytes", 12);
	chi_error_prefix("frame");
	chi_alloc_fail(0, false);
	assert_int_equal(chi_alloc_count(), before);
	assert_string_equal(choir_error(), "frame: out of memory: 12 bytes");
}

static void check_status(void)
{
	choir_check(CHOIR_OK, "train.c", 6);
	choir_fail(CHOIR_IO, "weights: full");
	choir_check(CHOIR_IO, "train.c", 7);
}

static void check_object(void)
{
	choir_check_new("an object", "train.c", 7);
	choir_fail(CHOIR_NO_MEMORY, "no");
	choir_check_new(NULL, "train.c", 8);
}

static void check_end(void)
{
	choir_fail(CHOIR_IO, "of old");
	choir_check(CHOIR_END, "train.c", 9);
}

// Runs fn in a child; it must exit with 1 and have printed the line.
static void assert_dies(void (*fn)(void), const char *line)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	close(ends[1]);
	char text[256];
	size_t length = 0;
	ssize_t got;
	while ((got = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t) got;
	text[length] = '\0';
	close(ends[0]);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_string_equal(text, line);
}

TEST_WITHIN(test_check, forget, NULL)
{
	assert_dies(check_status, "train.c:7: CHOIR_IO: weights: full\n");
	assert_dies(check_object, "train.c:8: CHOIR_NO_MEMORY: no\n");
	assert_dies(check_end, "train.c:9: CHOIR_END\n");
}

// What gave the NULL may have failed long before, or not at all.
TEST_WITHIN(test_null, forget, NULL)
{
	assert_int_equal(chi_error_null("next: the dataset is NULL"), CHOIR_INVALID);
	assert_string_equal(choir_error(), "next: the dataset is NULL");
	choir_fail(CHOIR_IO, "train.csv: no such file");
	assert_int_equal(chi_error_null("%s: the dataset is NULL", "batch"), CHOIR_IO);
	assert_string_equal(choir_error(),
			"batch: the dataset is NULL; the last failure before it: train.csv: no such file");
	assert_int_equal(chi_error_null("next: the dataset is NULL"), CHOIR_IO); // handed on
	assert_string_equal(choir_error(),
			"next: the dataset is NULL; the last failure before it: train.csv: no such file");
}
