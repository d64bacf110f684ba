// Options: what CHOIR_OPTIONS makes of one field and of eight, how long it lives, and what is
// taken of what a caller gives.
#include "base/options.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

typedef struct {
	size_t size;
	int a, b, c, d, e, f, g, h;
	const char *untouched;
} options;

static int weigh(const options *o)
{
	assert_int_equal(o->size, sizeof(*o));
	assert_null(o->untouched);
	return o->a + 2 * o->b + 3 * o->c + 4 * o->d + 5 * o->e + 6 * o->f + 7 * o->g + 8 * o->h;
}

TEST(one_field_and_eight)
{
	int n = 4;

	assert_int_equal(weigh(CHOIR_OPTIONS(options, .c = n)), 12);
	assert_int_equal(weigh(CHOIR_OPTIONS(options, .h = 1, .g = 1, .f = 1, .e = 1, .d = 1, .c = 1,
							 .b = 1, .a = 1)),
			36);
}

typedef struct {
	size_t size;
	const options *inner;
} outer;

TEST(they_live_until_the_end_of_the_block)
{
	const outer *scratch = CHOIR_OPTIONS(outer, .inner = CHOIR_OPTIONS(options, .a = 7));

	memset((char[256]){ 0 }, 1, 256);
	assert_int_equal(scratch->size, sizeof(outer));
	assert_int_equal(weigh(scratch->inner), 7);
}

static choir_status pass_on(choir_status status, int *after)
{
	CHOIR_TRY(status);
	++*after;
	return CHOIR_OK;
}

TEST(try_returns_what_is_not_ok)
{
	int after = 0;

	assert_int_equal(pass_on(CHOIR_IO, &after), CHOIR_IO);
	assert_int_equal(pass_on(CHOIR_END, &after), CHOIR_END);
	assert_int_equal(after, 0);
	assert_int_equal(pass_on(CHOIR_OK, &after), CHOIR_OK);
	assert_int_equal(after, 1);
}

// As a program has it that was built against an older version: without what came later.
typedef struct {
	size_t size;
	int a, b;
} older;

TEST(what_is_given_is_taken)
{
	options all = { .a = 7, .h = 7 };
	assert_int_equal(chi_options_take("x: the options'", &all, sizeof all, NULL), CHOIR_OK);
	assert_int_equal(weigh(&all), 0);
	assert_int_equal(
			chi_options_take("x: the options'", &all, sizeof all, CHOIR_OPTIONS(options, .h = 1)),
			CHOIR_OK);
	assert_int_equal(weigh(&all), 8);
	assert_int_equal(
			chi_options_take("x: the options'", &all, sizeof all, CHOIR_OPTIONS(older, .b = 3)),
			CHOIR_OK);
	assert_int_equal(weigh(&all), 6);
}

TEST(a_size_that_cannot_be)
{
	const options untaken = { .size = sizeof untaken, .a = 1 };
	const size_t sizes[] = { 0, sizeof(size_t) - 1, sizeof(options) + 1, SIZE_MAX };
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		options all = untaken;
		const options given = { .size = sizes[i], .a = 2 };
		assert_int_equal(
				chi_options_take("x: the options'", &all, sizeof all, &given), CHOIR_INVALID);
		assert_int_equal(weigh(&all), 1);
		char facts[64];
		snprintf(facts, sizeof facts, "x:*%zu*%zu", sizes[i], sizeof(options));
		assert_text_holds(choir_error(), facts);
	}
}
