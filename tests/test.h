// Tests that register themselves, for cmocka. A test program is one file, in which each
// TEST(name) { ... } runs, in the order of the file. main is in test_main.c.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST(name) TEST_WITHIN(name, NULL, NULL)
// A test between setup and teardown, either of which may be NULL. The test finds in *state what
// setup left there.
#define TEST_WITHIN(name, setup, teardown) \
	static void name(void **state); \
	__attribute__((constructor)) static void add_##name(void) \
	{ \
		tests_add((struct CMUnitTest){ #name, name, setup, teardown, NULL }); \
	} \
	static void name(void **state __attribute__((unused)))
// Around all tests of the program; either may be NULL. The function is called before all that.
#define TEST_GROUP(setup, teardown) \
	__attribute__((constructor)) static void add_group(void) \
	{ \
		tests_group(setup, teardown); \
	}
#define TEST_BEFORE(function) \
	__attribute__((constructor)) static void add_##function(void) \
	{ \
		tests_before(function); \
	}

void tests_add(struct CMUnitTest test);
void tests_group(CMFixtureFunction setup, CMFixtureFunction teardown);
void tests_before(void (*function)(void));
// Runs what was registered. How many tests failed; for programs with a main of their own.
int tests_run(void);

// Whether text holds each of the facts, which stars separate: names, values and numbers, in any
// order. A message may then be worded anew.
bool text_holds(const char *text, const char *facts);
void assert_text_holds(const char *text, const char *facts); // and prints both if not
