// What a file and a strategy have in common: names by a map, axes in another order, dtypes that
// are cast, shares of sums; and that nothing changes where something is wrong or memory runs out.
#include "base/alloc.h"
#include "short.h"
#include "strategy/strategy.h"
#include "train/files.h"
#include "train/weights/name_map.h"
#include "train/problem.h"
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char path[64];

static const char map[] = "theirs/*/w */kernel 1,0\nhalf kernel_of_none\nkept -\n";

// A file of [3, 2] as "theirs/a/w", f64 [2] as "b", and three tensors that nobody takes.
static void write_file(void)
{
	static const float w[] = { 1, 2, 3, 4, 5, 6 };
	static const double b[] = { 7, 8 };
	snprintf(path, sizeof path, "/tmp/choir-part-%d.safetensors", (int) getpid());
	choir_strategy *s = mirrored("cpu:0", 1);
	CHOIR_SCOPE (s) {
		choir_variable_new("theirs/a/w", CHOIR_SHAPE(3, 2),
				CHOIR_OPTIONS(choir_variable_options, .initial_value = w));
		choir_variable_new("b", CHOIR_SHAPE(2),
				CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_F64, .initial_value = b));
		choir_variable_new("half", CHOIR_SHAPE(1), NULL);
		choir_variable_new("kept", CHOIR_SHAPE(1), NULL);
		choir_variable_new("other", CHOIR_SHAPE(1), NULL);
	}
	assert_int_equal(choir_strategy_save(s, path, NULL), CHOIR_OK);
	choir_strategy_free(s);
}

typedef struct {
	choir_strategy *strategy;
	choir_variable *kernel, *b, *own;
} model;

static model open_model(const char *devices, int replicas)
{
	static const float tens[] = { 10, 10, 10, 10, 10, 10 };
	model m = { .strategy = mirrored(devices, replicas) };
	CHOIR_SCOPE (m.strategy) {
		m.kernel = choir_variable_new("a/kernel", CHOIR_SHAPE(2, 3),
				CHOIR_OPTIONS(choir_variable_options, .initial_value = tens));
		m.b = choir_variable_new("b", CHOIR_SHAPE(2),
				CHOIR_OPTIONS(choir_variable_options,
						.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
						.aggregation = CHOIR_AGGREGATION_SUM));
		m.own = choir_variable_new("own", CHOIR_SHAPE(1),
				CHOIR_OPTIONS(choir_variable_options, .initial_value = tens));
	}
	assert_non_null(m.own);
	return m;
}

static void check_model(const model *m, const float kernel[6], const float b[2])
{
	float have[6];
	fetch_variable(m->kernel, have, sizeof have);
	assert_memory_equal(have, kernel, sizeof have);
	fetch_variable(m->b, have, 2 * sizeof have[0]);
	assert_memory_equal(have, b, 2 * sizeof have[0]);
	fetch_variable(m->own, have, sizeof have[0]);
	assert_true(have[0] == 10);
}

static void note(choir_restored what, const char *name, void *user)
{
	static const char signs[] = { '+', '-', '?' };
	char *text = user;
	const size_t n = strlen(text);
	snprintf(text + n, 256 - n, "%c%s ", signs[what], name);
}

TEST(test_what_is_in_both)
{
	static const float kernel[] = { 1, 3, 5, 2, 4, 6 }, b[] = { 7, 8 };
	static const char *const layouts[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	for (int i = 0; i < 3; i++) {
		char told[256] = "";
		model m = open_model(layouts[i], 3);
		assert_int_equal(choir_strategy_restore_partial(m.strategy, path,
								 CHOIR_OPTIONS(choir_restore_options, .map = map, .report = note,
										 .user = told)),
				CHOIR_OK);
		check_model(&m, kernel, b);
		assert_string_equal(told, "+a/kernel +b -own ?half ?other ");
		choir_strategy_free(m.strategy);
	}
}

TEST(test_without_a_map)
{
	static const float kernel[] = { 10, 10, 10, 10, 10, 10 }, b[] = { 7, 8 };
	model m = open_model("cpu:0", 1);
	assert_int_equal(choir_strategy_restore_partial(m.strategy, path, NULL), CHOIR_OK);
	check_model(&m, kernel, b);
	choir_strategy_free(m.strategy);
}

TEST(test_what_is_wrong)
{
	static const struct {
		const char *map, *text;
	} cases[] = {
		{ "theirs/a/w a/kernel",
				"tensor \"theirs/a/w\" is F32 [3, 2]; variable \"a/kernel\" needs F32 "
				"[2, 3]" },
		{ "theirs/a/w a/kernel 1,0,2",
				"tensor \"theirs/a/w\" is F32 [3, 2], to which the map gives 3 axes; variable "
				"\"a/kernel\" needs F32 [2, 3]" },
		{ "theirs/a/w a/kernel 0,1,2,3,4,5,6,7", "is F32 [3, 2], to which the map gives 8 axes" },
		{ "theirs/a/w a/kernel 0,1", "is F32 [3, 2], which the map makes [3, 2]; variable" },
		{ "theirs/a/w a/kernel reshape 2,4",
				"is F32 [3, 2], which the map makes [2, 4]; variable" },
		{ "theirs/a/w own reshape 3,2",
				"which the map makes [3, 2]; variable \"own\" needs F32 [1]" },
		{ "theirs/a/w a/kernel 1", "axes" },
		{ "a b 0,1,2,3,4,5,6,7,8", "axes such as 1,0 are needed" },
		{ "a b reshape 2,3 axes 2,1,0", "one axis for each dimension" },
		{ "a b axes 1,0 reshape 2,3", "after the two names" },
		{ "a b reshape", "axes such as 1,0 are needed" },
		{ "a b reshape 2,", "a shape such as in reshape 10,64,7,7 or reshape 10,(64" },
		{ "a b reshape 0,2", "a shape" },
		{ "a b reshape 4294967296,4294967296,2", "a shape" },
		{ "a b reshape 1,1,1,1,1,1,1,1,1", "a shape" },
		{ "a b reshape 2,3 axes 1,0 x", "more than six words" },
		{ "half b", "\"b\" and \"half\" are both for variable \"b\"" },
		{ "b -", "none of its 5 tensors has the name of one of the 3 variables" },
		{ "\n\n x", "map: line 3, \"x\": has one word" },
	};
	static const float kernel[] = { 10, 10, 10, 10, 10, 10 }, zeros[2] = { 0 };
	model m = open_model("cpu:0", 1);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(choir_strategy_restore_partial(m.strategy, path,
								 CHOIR_OPTIONS(choir_restore_options, .map = cases[i].map)),
				CHOIR_INVALID);
		if (strstr(choir_error(), cases[i].text) == NULL)
			fail_msg("%s", choir_error());
	}
	assert_int_equal(choir_strategy_restore_partial(m.strategy, NULL, NULL), CHOIR_INVALID);
	assert_int_equal(choir_strategy_restore_partial(m.strategy, "/none", NULL), CHOIR_NOT_FOUND);
	const choir_restore_options large = { .size = 4096 };
	assert_int_equal(choir_strategy_restore_partial(m.strategy, path, &large), CHOIR_INVALID);
	assert_text_holds(choir_error(), "restore_partial:*options*4096*CHOIR_OPTIONS");
	check_model(&m, kernel, zeros);
	choir_strategy_free(m.strategy);
}

static void write_bool(const char *to, char value)
{
	static const char header[] =
			"{\"mask\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}";
	const char length[8] = { sizeof header - 1 };
	FILE *f = fopen(to, "wb");
	assert_non_null(f);
	fwrite(length, 1, sizeof length, f);
	fwrite(header, 1, sizeof header - 1, f);
	fwrite(&value, 1, 1, f);
	assert_int_equal(fclose(f), 0);
}

TEST(test_bools_are_looked_at)
{
	char to[96];
	snprintf(to, sizeof to, "%s.bool", path);
	choir_strategy *s = mirrored("cpu:0", 1);
	CHOIR_SCOPE (s)
		assert_non_null(choir_variable_new("mask", CHOIR_SHAPE(1),
				CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_BOOL)));
	write_bool(to, 1);
	assert_int_equal(choir_strategy_restore_partial(s, to, NULL), CHOIR_OK);
	write_bool(to, 7);
	assert_int_equal(choir_strategy_restore_partial(s, to, NULL), CHOIR_CORRUPT);
	assert_text_holds(choir_error(), "tensor \"mask\":*BOOL*7");
	remove(to);
	choir_strategy_free(s);
}

// As a restore of the whole does: all parts get the value.
TEST(test_parts_without_an_aggregation)
{
	static const float tens[] = { 10, 10 };
	choir_strategy *s = mirrored("cpu:0", 2);
	choir_variable *b = NULL, *half = NULL;
	CHOIR_SCOPE (s) {
		b = choir_variable_new("b", CHOIR_SHAPE(2),
				CHOIR_OPTIONS(
						choir_variable_options, .synchronization = CHOIR_SYNCHRONIZATION_ON_READ));
		half = choir_variable_new("half", CHOIR_SHAPE(1),
				CHOIR_OPTIONS(choir_variable_options, .initial_value = tens));
	}
	if (choir_strategy_restore_partial(s, path, NULL) != CHOIR_OK)
		fail_msg("%s", choir_error());
	float have[2] = { -1, -1 };
	fetch_variable(half, have, sizeof have[0]);
	assert_true(have[0] == 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chi_variable_to_host(b, i, have), CHOIR_OK);
		assert_true(have[0] == 7 && have[1] == 8);
	}
	choir_strategy_free(s);
}

TEST(test_memory_runs_out)
{
	static const float before[] = { 10, 10, 10, 10, 10, 10 }, after[] = { 1, 3, 5, 2, 4, 6 };
	static const float zeros[2] = { 0 }, b[] = { 7, 8 };
	model m = open_model("cpu:0", 1);
	uint64_t n = 1;
	for (bool done = false; !done; n++) {
		chi_alloc_fail(n, false);
		const choir_status status = choir_strategy_restore_partial(
				m.strategy, path, CHOIR_OPTIONS(choir_restore_options, .map = map));
		done = !chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (!done)
			assert_int_equal(status, CHOIR_NO_MEMORY);
		else
			assert_int_equal(status, CHOIR_OK);
		choir_frame *f = choir_frame_new(NULL);
		// Before the first variable is written nothing has changed; after that none is believed.
		if (choir_variable_read(m.kernel, f) != NULL)
			check_model(&m, done ? after : before, done ? b : zeros);
		else
			assert_int_equal(choir_error_status(), CHOIR_STATE);
		choir_frame_free(f);
	}
	assert_true(n > 10);
	choir_strategy_free(m.strategy);
}

static void check_mapped(const char *lines, const char *tensor, const char *name, int axes)
{
	chi_mapped_name m;
	chi_name_map read;
	assert_int_equal(chi_name_map_read(lines, &read), CHOIR_OK);
	assert_int_equal(chi_name_map_find(&read, tensor, &m), CHOIR_OK);
	if (name != NULL)
		assert_string_equal(m.name.data, name);
	assert_int_equal(m.left_out, name == NULL);
	assert_int_equal(m.how.axes, axes);
	chi_text_free(&m.name);
	chi_name_map_free(&read);
}

TEST(test_maps)
{
	check_mapped(NULL, "a", "a", 0);
	check_mapped("", "a", "a", 0);
	check_mapped("# b c\n\t h.*.w  block*/k\t3,2,0,1 # why\r\n", "h.12.w", "block12/k", 4);
	check_mapped("h.*.w block*/k", "h.w", "h.w", 0); // the dots are two
	check_mapped("h.*.w block*/k", "h..w", "block/k", 0);
	check_mapped("h* one\nh* two", "hx", "one", 0);
	check_mapped("* model/*", "a", "model/a", 0);
	check_mapped("*.mask -\n", "x.mask", NULL, 0);
	check_mapped("ab b", "abc", "abc", 0);
	check_mapped("a b 1,0", "a", "b", 2);
	check_mapped("a b axes 1,0", "a", "b", 2);
	check_mapped("a b reshape 2,3 axes 1,0", "a", "b", 2);
	check_mapped("a b reshape 12", "a", "b", 0);
	check_mapped("z z\na* one\nab two\nb b", "ab", "one", 0); // the first line counts
	check_mapped("z z\nab two\na* one\nb b", "ab", "two", 0);
	check_mapped("ab two\nab one", "ab", "two", 0);
	check_mapped("b c", "a*", "a*", 0); // where no line matches a star is a letter
}

// A map may be long, and is a stranger's: reading all of it for each name took minutes here.
TEST(test_a_long_map)
{
	// The address sanitizer looks at the whole map for each word (strict_string_checks).
	enum { LINES = SHORT ? 2000 : 200000 };
	chi_text text = { 0 };
	chi_name_map long_map;
	chi_mapped_name m;
	char name[32];
	for (int i = 0; i < LINES; i++)
		chi_text_add(&text, "tensor_%d variable_%d\n", i, LINES - i);
	const clock_t begin = clock();
	assert_int_equal(chi_name_map_read(text.data, &long_map), CHOIR_OK);
	for (int i = 0; i < LINES; i++) {
		snprintf(name, sizeof name, "tensor_%d", i);
		assert_int_equal(chi_name_map_find(&long_map, name, &m), CHOIR_OK);
		snprintf(name, sizeof name, "variable_%d", LINES - i);
		assert_string_equal(m.name.data, name);
		chi_text_free(&m.name);
	}
	assert_true((double) (clock() - begin) / CLOCKS_PER_SEC < 20);
	chi_name_map_free(&long_map);
	for (int i = 0; i < 1001; i++)
		chi_text_add(&text, "t_*_%d v_*\n", i);
	assert_int_equal(chi_name_map_read(text.data, &long_map), CHOIR_INVALID);
	char facts[64];
	snprintf(facts, sizeof facts, "map:*line %d*\"t_*_1000\"*1000 lines", LINES + 1001);
	assert_text_holds(choir_error(), facts);
	chi_name_map_free(&long_map);
	chi_text_free(&text);
}

static int setup(void **state)
{
	(void) state;
	write_file();
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	return unlink(path);
}

TEST_GROUP(setup, teardown)
