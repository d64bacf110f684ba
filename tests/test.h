// Tests for cmocka that register themselves. A test program is one file; its tests, each written
// TEST(name) { ... }, run in the order of the file. main is in test_main.c. The programs of a room
// are one executable with several names (tests/CMakeLists.txt). The name of the process decides
// which file's tests run.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "facts.h"

#ifndef CHOIR_TEST_PROGRAM
#define CHOIR_TEST_PROGRAM NULL // an executable of its own, with any name
#endif

#define TEST(name) TEST_WITHIN(name, NULL, NULL)
// A test with setup and teardown; either may be NULL. setup can pass data in *state.
#define TEST_WITHIN(name, setup, teardown) \
	static void name(void **state); \
	__attribute__((constructor)) static void add_##name(void) \
	{ \
		tests_add(CHOIR_TEST_PROGRAM, (struct CMUnitTest){ #name, name, setup, teardown, NULL }); \
	} \
	static void name(void **state __attribute__((unused)))
// Set up and tear down the whole program; either may be NULL. TEST_BEFORE's function is called
// before the setup. A program has one of each: two do not compile.
#define TEST_GROUP(setup, teardown) \
	__attribute__((constructor)) static void add_group(void) \
	{ \
		tests_group(CHOIR_TEST_PROGRAM, setup, teardown); \
	}
#define TEST_BEFORE(function) \
	__attribute__((constructor)) static void add_before(void) \
	{ \
		tests_before(CHOIR_TEST_PROGRAM, function); \
	}

// Without effect unless program is NULL or the name by which this process was started.
void tests_add(const char *program, struct CMUnitTest test);
void tests_group(const char *program, CMFixtureFunction setup, CMFixtureFunction teardown);
void tests_before(const char *program, void (*function)(void));
// Runs the registered tests and returns the number of failed ones. Only programs with their own
// main call it.
int tests_run(void);

void assert_text_holds(const char *text, const char *facts); // prints both on a failure
