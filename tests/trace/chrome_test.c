// The Chrome trace file: read by a JSON parser that is not Choir's, with spans that lie in each
// other; and what happens when it cannot be written.
#include "trace/scratch_directory.h"
#include "trace/trace.h"

#include "base/fs.h"
#include "base/alloc.h"
#include "base/status.h"
#include "base/file.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void record_a_step(void)
{
	choir_trace_begin(CHOIR_TRACE_INPUT, "next \"batch\"\n\\ \xff of \xc3\xa9l\xc3\xa8ve");
	choir_trace_end();
	chi_trace_begin(CHOIR_TRACE_OTHER, "run");
	for (int replica = 0; replica < 2; replica++) {
		chi_trace_begin_replica(replica, replica, CHOIR_TRACE_COMPUTE, "replica");
		chi_trace_begin(CHOIR_TRACE_REDUCE, "dense/kernel");
		chi_trace_begin(CHOIR_TRACE_UPDATE, "dense/kernel");
		chi_trace_end();
		chi_trace_end_communication();
		chi_trace_end();
	}
	chi_trace_end();
}

TEST_WITHIN(test_python_reads_it, directory_enter, directory_leave)
{
	if (system("python3 -c ''") != 0) {
		print_message("there is no python3\n");
		skip();
	}
	assert_int_equal(choir_trace_start("trace.json", NULL), CHOIR_OK);
	record_a_step();
	assert_int_not_equal(access("trace.json", F_OK), 0);
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
	assert_int_equal(directory_python("python3", "chrome.py", "trace.json"), 0);
	assert_int_equal(directory_entries(".", NULL), 1);
	// Nothing recorded is a whole file as well.
	assert_int_equal(choir_trace_start("empty.json", NULL), CHOIR_OK);
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
	assert_int_equal(directory_python("python3", "chrome.py", "empty.json empty"), 0);
}

// Every call that writes fails in turn, at the start or at the end: the old file stays, recording
// goes on, and the failure is said when the trace is stopped.
TEST_WITHIN(test_each_call_fails, directory_enter, directory_leave)
{
	bool failed = true;
	FILE *old = fopen("trace.json", "w");
	fputs("old", old);
	fclose(old);
	for (int n = 1; failed; n++) {
		chi_fs_fail(n, ENOSPC);
		choir_status status = choir_trace_start("trace.json", NULL);
		const bool started = status == CHOIR_OK;
		chi_error_clear();
		record_a_step();
		assert_int_equal(choir_error_status(), CHOIR_OK);
		if (started)
			status = choir_trace_stop();
		failed = status != CHOIR_OK;
		chi_fs_fail(0, 0);
		assert_false(choir_trace_is_on());
		assert_int_equal(directory_entries(".", NULL), 1);
		if (!failed) {
			assert_true(n > 5);
			break;
		}
		assert_int_equal(status, CHOIR_IO);
		if (started)
			assert_text_holds(choir_error(), "trace.json: ");
	}
}

TEST_WITHIN(test_no_memory, directory_enter, directory_leave)
{
	bool failed = true;
	assert_int_equal(choir_trace_start(NULL, NULL), CHOIR_OK); // this thread's memory is there
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
	for (uint64_t n = 1; failed; n++) {
		chi_alloc_fail(n, false);
		choir_status status = choir_trace_start("trace.json", NULL);
		if (status == CHOIR_OK) {
			record_a_step();
			status = choir_trace_stop();
		}
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_false(choir_trace_is_on());
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		if (failed)
			assert_true(strlen(choir_error()) > 0);
	}
	assert_int_equal(directory_entries(".", NULL), 1);
}
