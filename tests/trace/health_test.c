// The page of a supervised process: what it says, who may write it, and a wrong variable.
#include "trace/health.h"

#include "base/clock.h"
#include "base/shared_memory.h"
#include "base/thread.h"
#include "choir/log.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static chi_health *page;
static char logged[300];

static void keep_log(choir_log_level level, const char *line, void *user)
{
	(void) level, (void) user;
	snprintf(logged, sizeof logged, "%s", line);
}

static chi_health_note note(void)
{
	chi_health_note n;
	chi_health_read(page, &n);
	return n;
}

// First, because the page stays once it is mapped.
TEST(a_wrong_variable_supervises_nobody)
{
	char small[16];
	const int fd = chi_shared_memory(100);
	snprintf(small, sizeof small, "%d", fd);
	const int file = open("/dev/zero", O_RDONLY);
	const char *const wrong[] = { "x", "-1", "1", "12345", "99999999999999999999", small };
	choir_logger_set(CHOIR_LOG_INFO, keep_log, NULL);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		logged[0] = '\0';
		setenv(CHI_HEALTH_VARIABLE, wrong[i], 1);
		chi_health_open();
		assert_false(chi_health_on());
		assert_text_holds(logged, CHI_HEALTH_VARIABLE "*is not supervised");
		chi_health_fail(CHOIR_STATE, "nobody hears it", false);
		chi_health_step(1, 0, 1);
		chi_health_saved(1);
		chi_health_close(false);
	}
	logged[0] = '\0';
	unsetenv(CHI_HEALTH_VARIABLE);
	chi_health_open();
	chi_health_close(false);
	assert_false(chi_health_on());
	assert_string_equal(logged, "");
	choir_logger_set(CHOIR_LOG_INFO, NULL, NULL);
	close(fd);
	close(file);
}

static int open_page(void **state)
{
	(void) state;
	char number[16];
	const int fd = chi_shared_memory(sizeof *page);
	page = chi_shared_map(fd, sizeof *page);
	page->magic = CHI_HEALTH_MAGIC;
	snprintf(number, sizeof number, "%d", fd);
	setenv(CHI_HEALTH_VARIABLE, number, 1);
	return 0;
}

TEST_WITHIN(the_page_may_have_a_key, open_page, NULL)
{
	unsigned char key[CHI_HEALTH_KEY];
	assert_false(chi_health_key(key)); // a job on this machine
	page->key[CHI_HEALTH_KEY - 1] = 7;
	assert_true(chi_health_key(key));
	assert_memory_equal(key, page->key, sizeof key);
	page->magic++; // of another version
	assert_false(chi_health_key(key));
	unsetenv(CHI_HEALTH_VARIABLE);
	assert_false(chi_health_key(key));
}

TEST_WITHIN(the_page_tells_what_happens, open_page, NULL)
{
	assert_int_equal(note().state, CHI_HEALTH_NEW);
	chi_health_open();
	chi_health_open(); // two clusters
	assert_true(chi_health_on());
	assert_int_equal(note().state, CHI_HEALTH_OPEN);
	assert_int_equal(note().pid, getpid());
	const uint32_t beats = note().beats;
	const double until = chi_clock_deadline(20);
	while (note().beats < beats + 2) {
		assert_true(chi_clock_now() < until);
		chi_thread_nap(0.01);
	}
	chi_health_step(1503, 4, 2);
	chi_health_saved(1500);
	chi_health_write_wait(9021, "all_reduce sum f32 [10] dense/kernel:grad", 2);
	chi_health_note n = note();
	assert_true(n.waiting);
	assert_int_equal(n.step, 1503);
	assert_int_equal(n.steps, 1);
	assert_int_equal(n.saved, 1501);
	assert_int_equal(n.first_replica, 4);
	assert_int_equal(n.replicas, 2);
	assert_int_equal(n.sequence, 9021);
	assert_int_equal(n.peer, 2);
	assert_string_equal(n.what, "all_reduce sum f32 [10] dense/kernel:grad");
	assert_true(n.since > 0 && n.since <= chi_clock_now());
	chi_health_write_wait(1,
			"of another thread, longer than the page has room for: "
			"0123456789012345678901234567890123456789012345678901234567890123456789",
			1);
	assert_int_equal(strlen(note().what), CHI_HEALTH_WHAT - 1);
	chi_health_end_wait();
	assert_true(note().waiting);
	chi_health_end_wait();
	assert_false(note().waiting);
	chi_health_close(false);
	assert_int_equal(note().state, CHI_HEALTH_OPEN);
	chi_health_close(false);
	assert_int_equal(note().state, CHI_HEALTH_FINISHED);
}

TEST(only_the_first_failure_counts)
{
	chi_health_open(); // the same page again
	assert_int_equal(note().state, CHI_HEALTH_OPEN);
	chi_health_fail(CHOIR_CANCELLED, "worker 1 stopped: bad", true);
	chi_health_fail(CHOIR_STATE, "later", false);
	const chi_health_note n = note();
	assert_int_equal(n.state, CHI_HEALTH_FAILED);
	assert_int_equal(n.status, CHOIR_CANCELLED);
	assert_true(n.by_other);
	assert_string_equal(n.text, "worker 1 stopped: bad");
	chi_health_close(true);
	assert_int_equal(note().state, CHI_HEALTH_FAILED);
}

// A child of the program does not write the page while the program does.
TEST(one_process_writes_at_a_time)
{
	chi_health_open();
	const pid_t child = fork();
	if (child == 0) {
		chi_atomic32_store(&page->pid, 1); // as if the page were another process's
		chi_health_page = NULL;
		chi_health_open();
		_exit(chi_health_on() ? 1 : 0);
	}
	int status = 1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	chi_atomic32_store(&page->pid, (uint32_t) getpid());
	chi_health_close(false);
}
