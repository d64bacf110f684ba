// The supervisor's calls: options, wrong use, memory that runs out, and messages that are damaged.
// Jobs with real processes are in tests/mpi/supervised.py.
#include "choir/supervisor.h"

#include "base/alloc.h"
#include "supervisor/agent_message.h"
#include "supervisor/job_key.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const program[] = { "true", NULL };
#define JOB(...) \
	CHOIR_OPTIONS(choir_supervisor_options, .program = program, .agent = "choir", __VA_ARGS__)

static void refuse(const choir_supervisor_options *o, choir_status status, const char *words)
{
	choir_supervisor *s = choir_supervisor_new(o);
	if (s != NULL)
		fail_msg("accepted, not refused with \"%s\"", words);
	assert_int_equal(choir_error_status(), status);
	assert_text_holds(choir_error(), words);
}

TEST(wrong_options_are_refused)
{
	refuse(JOB(.workers = -1), CHOIR_INVALID, "-1 workers");
	refuse(JOB(.workers = 5000), CHOIR_INVALID, "5000*4096");
	refuse(JOB(.workers = 2, .min_workers = 3), CHOIR_INVALID, "3*1 to 2");
	refuse(JOB(.restarts = -1), CHOIR_INVALID, "-1 restarts");
	refuse(JOB(.lost_after = -1), CHOIR_INVALID, "-1 seconds");
	refuse(JOB(.stall = NAN), CHOIR_INVALID, "nan");
	refuse(JOB(.stop_timeout = INFINITY), CHOIR_INVALID, "inf");
	refuse(JOB(.mpi = "lam"), CHOIR_INVALID, "lam*openmpi, mpich or none");
	refuse(JOB(.launcher = "ssh"), CHOIR_INVALID, "launcher");
	refuse(JOB(.launcher = " ", .hosts = "a"), CHOIR_INVALID, "\" \"*command needed");
	refuse(JOB(.hosts = "-x"), CHOIR_INVALID, "-x");
	refuse(JOB(.hosts = "/no/such/file"), CHOIR_NOT_FOUND, "/no/such/file");
	refuse(CHOIR_OPTIONS(choir_supervisor_options, .agent = "choir"), CHOIR_INVALID, "program");
	refuse(CHOIR_OPTIONS(choir_supervisor_options, .program = program), CHOIR_INVALID, "agent");
	refuse(NULL, CHOIR_INVALID, "program");
	assert_int_equal(choir_supervisor_run(NULL), CHOIR_INVALID);
	assert_int_equal(choir_supervisor_unsaved(NULL), 0);
	assert_string_equal(choir_supervisor_job(NULL), "");
	choir_supervisor_stop(NULL, 15);
	choir_supervisor_free(NULL);
}

TEST(an_agent_needs_a_supervisor)
{
	assert_int_equal(choir_agent_run(NULL), CHOIR_INVALID);
	assert_int_equal(choir_agent_run(CHOIR_OPTIONS(choir_agent_options, .program = program,
							 .address = "unix:/no/such/socket", .attempt = 1, .worker = 0)),
			CHOIR_NOT_FOUND);
	assert_int_equal(choir_agent_run(CHOIR_OPTIONS(choir_agent_options, .program = program,
							 .address = "unix:/no/such/socket", .worker = CHOIR_NONE)),
			CHOIR_INVALID);
	assert_text_holds(choir_error(), "rank");
}

static void ignore(choir_supervisor_kind kind, int worker, const char *line, void *user)
{
	(void) kind, (void) worker, (void) line, (void) user;
}

TEST(no_job_is_there_to_show)
{
	assert_int_equal(choir_supervisor_show("4711", false, NULL, NULL), CHOIR_INVALID);
	assert_int_equal(choir_supervisor_show("no-such-job", false, ignore, NULL), CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "no-such-job");
	assert_int_equal(choir_supervisor_show("../x", false, ignore, NULL), CHOIR_INVALID);
}

TEST(each_allocation_may_fail)
{
	choir_supervisor *s = choir_supervisor_new(JOB(.workers = 1));
	uint64_t n = 1;
	if (s == NULL && choir_error_status() == CHOIR_NOT_FOUND)
		skip(); // the thread sanitizer's loader does not find libchoir-net
	choir_supervisor_free(s);
	s = NULL;
	for (; s == NULL; n++) {
		assert_true(n < 200);
		chi_alloc_fail(n, false);
		s = choir_supervisor_new(JOB(.hosts = "a,b", .address = "127.0.0.1", .workers = 2,
				.mpi = "none", .launcher = "false"));
		chi_alloc_fail(0, false);
		if (s == NULL)
			assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
	}
	assert_true(n > 10);
	assert_true(strlen(choir_supervisor_job(s)) > 0);
	choir_supervisor_free(s);
}

TEST(messages_survive_the_way)
{
	chi_pack p = { 0 };
	chi_worker_report r = { .silence = 1.5, .unchanged = 2.5, .out_of_memory = true }, found;
	const chi_process_end end = { true, 9, false };
	chi_process_end found_end;
	r.health = (chi_health_note){ .state = CHI_HEALTH_FAILED,
		.pid = 4711,
		.waiting = true,
		.by_other = true,
		.peer = 3,
		.first_replica = 4,
		.replicas = 2,
		.step = UINT64_C(1) << 40,
		.steps = 12,
		.saved = 11,
		.sequence = 90,
		.status = CHOIR_IO,
		.what = "all_reduce",
		.text = "disk full" };
	chi_report_pack(&r, &p);
	chi_end_pack(&end, &p);
	chi_unpack u = { .data = p.data, .bytes = p.bytes };
	chi_report_unpack(&u, &found);
	chi_end_unpack(&u, &found_end);
	assert_int_equal(chi_unpack_end(&u, "report"), CHOIR_OK);
	assert_true(found_end.by_signal && found_end.number == 9);
	assert_true(found.out_of_memory && found.health.waiting && found.health.by_other);
	assert_true(found.silence == 1.5 && found.unchanged == 2.5);
	assert_int_equal(found.health.step, r.health.step);
	assert_int_equal(found.health.status, CHOIR_IO);
	assert_int_equal(found.health.pid, 4711);
	assert_string_equal(found.health.text, "disk full");
	for (size_t cut = 0; cut < p.bytes; cut++) { // at every byte
		u = (chi_unpack){ .data = p.data, .bytes = cut };
		chi_report_unpack(&u, &found);
		chi_end_unpack(&u, &found_end);
		assert_int_equal(chi_unpack_end(&u, "report"), CHOIR_CORRUPT);
	}
	chi_pack_free(&p);
	const chi_agent_join j = { 3, 2, 4711, "node3" };
	chi_agent_join found_join;
	chi_agent_join_pack(&j, &p);
	u = (chi_unpack){ .data = p.data, .bytes = p.bytes };
	assert_int_equal(chi_agent_join_unpack(&u, &found_join), CHOIR_OK);
	assert_int_equal(found_join.attempt, 3);
	assert_int_equal(found_join.worker, 2);
	assert_string_equal(found_join.host, "node3");
	u = (chi_unpack){ .data = p.data, .bytes = p.bytes - 1 };
	assert_int_equal(chi_agent_join_unpack(&u, &found_join), CHOIR_CORRUPT);
	chi_pack_free(&p);
}

TEST(keys_are_texts)
{
	chi_key key, found;
	char text[CHI_JOB_KEY_TEXT];
	assert_int_equal(chi_job_key_make(&key), CHOIR_OK);
	chi_job_key_text(&key, text);
	setenv(CHI_JOB_KEY, text, 1);
	assert_int_equal(chi_job_key_take(&found), CHOIR_OK);
	assert_int_equal(found.size, key.size);
	assert_memory_equal(found.bytes, key.bytes, key.size);
	static const char *const wrong[] = { "", "12", "x", "+1" };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char bad[2 * CHI_JOB_KEY_TEXT];
		memcpy(bad, wrong[i], strlen(wrong[i]) + 1);
		if (i > 1) // in a key of the right length
			memcpy(bad + strlen(bad), text + strlen(bad), CHI_JOB_KEY_TEXT - strlen(bad));
		setenv(CHI_JOB_KEY, bad, 1);
		assert_int_equal(chi_job_key_take(&found), CHOIR_INVALID);
		assert_null(strstr(choir_error(), text + 8));
	}
	unsetenv(CHI_JOB_KEY);
}
