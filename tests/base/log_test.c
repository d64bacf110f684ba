// The log: silent unless asked, one line, with no lock held.
#include "base/log.h"
#include "base/lock.h"
#include "base/thread.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

typedef struct {
	int count;
	choir_log_level level;
	char line[2048];
} notes;

static void take_note(choir_log_level level, const char *line, void *user)
{
	notes *n = user;
	n->count++;
	n->level = level;
	snprintf(n->line, sizeof(n->line), "%s", line);
	chi_log(CHOIR_LOG_WARNING, "from within"); // dropped, or this would never end
	choir_logger_set(CHOIR_LOG_DEBUG, take_note, user); // allowed here
}

TEST(test_levels)
{
	notes n = { 0 };
	chi_log(CHOIR_LOG_WARNING, "nobody listens");
	choir_logger_set(CHOIR_LOG_WARNING, take_note, &n);
	chi_log(CHOIR_LOG_INFO, "too much");
	assert_int_equal(n.count, 0);
	chi_log(CHOIR_LOG_WARNING, "replica %d: %s", 3, "slow\nvery");
	assert_int_equal(n.count, 1);
	assert_int_equal(n.level, CHOIR_LOG_WARNING);
	assert_string_equal(n.line, "replica 3: slow very");
	chi_log(CHOIR_LOG_DEBUG, "now wanted");
	assert_int_equal(n.count, 2);
	choir_logger_set(CHOIR_LOG_DEBUG, NULL, NULL);
	chi_log(CHOIR_LOG_WARNING, "nobody listens");
	assert_int_equal(n.count, 2);
}

TEST(test_long_line)
{
	notes n = { 0 };
	choir_logger_set(CHOIR_LOG_INFO, take_note, &n);
	chi_log(CHOIR_LOG_INFO, "%3000d", 7);
	assert_int_equal(strlen(n.line), 1023);
	choir_logger_set(CHOIR_LOG_INFO, NULL, NULL);
}

static void ignore(choir_log_level level, const char *line, void *user)
{
	(void) level;
	(void) line;
	(void) user;
}

static void log_much(void *arg)
{
	(void) arg;
	for (int i = 0; i < 1000; i++)
		chi_log(CHOIR_LOG_INFO, "%d", i);
}

// For ThreadSanitizer: the function changes while others log.
TEST(test_set_while_logging)
{
	chi_thread thread;
	assert_int_equal(chi_thread_start(&thread, "log", log_much, NULL), CHOIR_OK);
	for (int i = 0; i < 1000; i++)
		choir_logger_set(CHOIR_LOG_INFO, i % 2 ? ignore : NULL, NULL);
	chi_thread_join(&thread);
	choir_logger_set(CHOIR_LOG_INFO, NULL, NULL);
}
