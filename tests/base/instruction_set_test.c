// The instruction set: what the processor has, what is asked for, and that it stands still once
// kernels were chosen by it. Each case is a process of its own, since it is chosen once.
#include "base/instruction_set.h"
#include "base/status.h"
#include "choir/library.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// A function that returns 0, or the number of the line where something is wrong.
#define NEED(good) \
	do { \
		if (!(good)) \
			return __LINE__; \
	} while (0)

static void in_a_child(int (*fn)(const char *asked), const char *asked)
{
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (asked != NULL)
			setenv("CHOIR_INSTRUCTION_SET", asked, 1);
		else
			unsetenv("CHOIR_INSTRUCTION_SET");
		_exit(fn(asked) & 0xff);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("CHOIR_INSTRUCTION_SET=%s: line %d", asked == NULL ? "(none)" : asked,
				WEXITSTATUS(status));
}

static chi_instruction_set lower_of(chi_instruction_set a, chi_instruction_set b)
{
	return a < b ? a : b;
}

static int is_the_processors(const char *asked)
{
	(void) asked;
	NEED(chi_instruction_set_check() == CHOIR_OK);
	NEED(strcmp(choir_instruction_set(),
				 chi_instruction_set_name(chi_instruction_set_of_processor())) == 0);
	NEED(chi_instruction_set_use() == chi_instruction_set_of_processor());
	return 0;
}

#if defined(__x86_64__)
static int is_what_was_asked(const char *asked)
{
	static const char *const sets[] = { "x86-64", "avx2", "avx512" };
	chi_instruction_set set = CHI_INSTRUCTION_SET_BASE;
	while (strstr(asked, sets[set]) == NULL ||
			(set == CHI_INSTRUCTION_SET_BASE && strchr(asked, ' ') != NULL))
		set++;
	NEED(chi_instruction_set_check() == CHOIR_OK);
	set = lower_of(set, chi_instruction_set_of_processor());
	NEED(strcmp(choir_instruction_set(), chi_instruction_set_name(set)) == 0);
	NEED(chi_instruction_set_use() == set);
	return 0;
}
#endif

static int is_refused(const char *asked)
{
	NEED(chi_instruction_set_check() == CHOIR_INVALID);
	NEED(text_holds(choir_error(), "CHOIR_INSTRUCTION_SET:"));
	NEED(strstr(choir_error(), asked) != NULL && strstr(choir_error(), "' is unknown; known: "));
	NEED(chi_instruction_set_use() == chi_instruction_set_of_processor());
	return 0;
}

TEST(test_the_environment)
{
	in_a_child(is_the_processors, NULL);
	in_a_child(is_the_processors, "");
	in_a_child(is_refused, "sse");
	in_a_child(is_refused, "x86-64 avx1");
#if defined(__x86_64__)
	in_a_child(is_what_was_asked, "x86-64");
	in_a_child(is_what_was_asked, "avx2");
	in_a_child(is_what_was_asked, "x86-64 avx2");
	in_a_child(is_what_was_asked, "avx512");
#endif
}

static int is_lowered(const char *asked)
{
	(void) asked;
	chi_error_clear();
	NEED(chi_instruction_set_lower(CHI_INSTRUCTION_SET_AVX512) == CHOIR_OK);
	NEED(strcmp(choir_instruction_set(),
				 chi_instruction_set_name(chi_instruction_set_of_processor())) == 0);
	NEED(chi_instruction_set_lower(CHI_INSTRUCTION_SET_AVX2) == CHOIR_OK);
	const chi_instruction_set set =
			lower_of(CHI_INSTRUCTION_SET_AVX2, chi_instruction_set_of_processor());
	NEED(chi_instruction_set_use() == set);
	NEED(chi_instruction_set_lower(CHI_INSTRUCTION_SET_AVX512) == CHOIR_OK); // it is less already
	NEED(chi_instruction_set_use() == set);
	if (set == CHI_INSTRUCTION_SET_BASE)
		return 0;
	NEED(chi_instruction_set_lower(CHI_INSTRUCTION_SET_BASE) == CHOIR_STATE);
	NEED(text_holds(choir_error(), "already"));
	NEED(strstr(choir_error(), chi_instruction_set_name(set)) != NULL);
	NEED(chi_instruction_set_use() == set);
	return 0;
}

TEST(test_lowering)
{
	in_a_child(is_lowered, NULL);
}

TEST(test_names)
{
	chi_instruction_set found;
	assert_true(
			chi_instruction_set_find(chi_instruction_set_name(CHI_INSTRUCTION_SET_BASE), &found));
	assert_int_equal(found, CHI_INSTRUCTION_SET_BASE);
	assert_true(chi_instruction_set_find(
			chi_instruction_set_name(chi_instruction_set_of_processor()), &found));
	assert_int_equal(found, chi_instruction_set_of_processor());
	assert_false(chi_instruction_set_find("pdp-11", &found));
}

// A set that is not the processor's own leaves something of it unused.
TEST(test_more)
{
	for (chi_instruction_set set = CHI_INSTRUCTION_SET_BASE;
			set < chi_instruction_set_of_processor(); set++)
		assert_true(chi_instruction_set_has_more(set));
	assert_false(chi_instruction_set_has_more(CHI_INSTRUCTION_SET_AVX512));
}
