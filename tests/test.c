// The tests of a program, in the order in which its constructors ran: that of the file.
#include "test.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 128, MOST_THREAD_LOCAL = 32 << 10 };

static struct CMUnitTest tests[CAPACITY];
static size_t n_tests;
static CMFixtureFunction group_setup, group_teardown;
static void (*before)(void);

static bool is_running(const char *program)
{
	return program == NULL || strcmp(program, program_invocation_short_name) == 0;
}

void tests_add(const char *program, struct CMUnitTest test)
{
	if (!is_running(program))
		return;
	if (n_tests == CAPACITY) {
		fprintf(stderr, "%s: more than %d tests in one program\n", test.name, CAPACITY);
		abort();
	}
	tests[n_tests++] = test;
}

void tests_group(const char *program, CMFixtureFunction setup, CMFixtureFunction teardown)
{
	if (!is_running(program))
		return;
	group_setup = setup;
	group_teardown = teardown;
}

void tests_before(const char *program, void (*function)(void))
{
	if (is_running(program))
		before = function;
}

// Of the program itself, which is the first.
static int thread_local_bytes(struct dl_phdr_info *loaded, size_t size, void *bytes)
{
	(void) size;
	for (int i = 0; i < loaded->dlpi_phnum; i++)
		if (loaded->dlpi_phdr[i].p_type == PT_TLS)
			*(size_t *) bytes += loaded->dlpi_phdr[i].p_memsz;
	return 1;
}

// Each thread gets, and clears, the thread-local variables of all tests of the room.
static bool is_light_for_threads(void)
{
	size_t bytes = 0;
	dl_iterate_phdr(thread_local_bytes, &bytes);
	if (bytes > MOST_THREAD_LOCAL)
		fprintf(stderr, "%s: found %zu bytes of thread-local variables; needed: at most %d\n",
				program_invocation_short_name, bytes, MOST_THREAD_LOCAL);
	return bytes <= MOST_THREAD_LOCAL;
}

int tests_run(void)
{
	if (!is_light_for_threads())
		return 1;
	if (n_tests == 0) {
		fprintf(stderr, "%s: found no test of this name; needed: test_ROOM_NAME\n",
				program_invocation_short_name);
		return 1;
	}
	if (before)
		before();
	return _cmocka_run_group_tests("tests", tests, n_tests, group_setup, group_teardown);
}

void assert_text_holds(const char *text, const char *facts)
{
	if (!text_holds(text, facts))
		fail_msg("\"%s\" does not hold \"%s\"", text, facts);
}
