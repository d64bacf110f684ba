// The tests of a program, in the order in which its constructors ran: that of the file.
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

enum { CAPACITY = 128 };

static struct CMUnitTest tests[CAPACITY];
static size_t n_tests;
static CMFixtureFunction group_setup, group_teardown;
static void (*before)(void);

void tests_add(struct CMUnitTest test)
{
	if (n_tests == CAPACITY) {
		fprintf(stderr, "%s: more than %d tests in one program\n", test.name, CAPACITY);
		abort();
	}
	tests[n_tests++] = test;
}

void tests_group(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	group_setup = setup;
	group_teardown = teardown;
}

void tests_before(void (*function)(void))
{
	before = function;
}

int tests_run(void)
{
	if (before)
		before();
	return _cmocka_run_group_tests("tests", tests, n_tests, group_setup, group_teardown);
}

void assert_text_holds(const char *text, const char *facts)
{
	if (!text_holds(text, facts))
		fail_msg("\"%s\" does not hold \"%s\"", text, facts);
}
