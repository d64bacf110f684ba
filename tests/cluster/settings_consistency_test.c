// Workers on processors of different kinds: refused by name, or given what all have.
#include "cluster/cluster.h"
#include "cluster/worker_threads.h"
#include "cluster/suite.h"
#include "test.h"

#include <string.h>

enum { WORKERS = 3 };

typedef struct {
	const char *set[WORKERS];
	bool lowest;
	choir_status status;
	const char *words, *and; // of the failure
	chi_instruction_set found;
} mixture;

static const char *agree(choir_cluster *c, int worker, void *user)
{
	const mixture *m = user;
	chi_instruction_set set = CHI_INSTRUCTION_SET_BASE;
	if (c == NULL)
		return choir_error();
	const choir_status status =
			chi_cluster_common_instruction_set(c, m->set[worker], m->lowest, &set);
	if (status != CHOIR_OK || m->status != CHOIR_OK) {
		const char *wrong = suite_failure(status, m->status, m->words);
		return wrong != NULL ? wrong : suite_failure(status, m->status, m->and);
	}
	return set == m->found ? NULL : "it is another set";
}

static void run(mixture *m)
{
	sim *s = sim_new(&(sim_options){ .workers = WORKERS, .slowest = 0.01, .eager = 4096 });
	assert_non_null(s);
	worker_threads_run(s, WORKERS, NULL, agree, m);
	sim_free(s);
}

#define HINT ".lowest_instruction_set"
#define NONE "common to all workers"
#if defined(__x86_64__)
#define BASE "x86-64"
#define AVX2 "x86-64 avx2"
#define AVX512 "x86-64 avx512"
#define OTHER "aarch64"
static mixture refused[] = {
	{ { AVX2, AVX2, AVX2 }, false, CHOIR_OK, NULL, NULL, CHI_INSTRUCTION_SET_AVX2 },
	{ { AVX512, AVX512, AVX2 }, false, CHOIR_STATE,
			"differs*\"x86-64 avx2\"*\"x86-64 avx512\"*worker 0", HINT, 0 },
	{ { BASE, AVX2, AVX512 }, false, CHOIR_STATE, "worker 1 (", HINT, 0 },
	{ { OTHER, OTHER, AVX512 }, false, CHOIR_STATE, "worker 2 (", OTHER, 0 },
};
static mixture lowest[] = {
	{ { AVX512, AVX512, AVX512 }, true, CHOIR_OK, NULL, NULL, CHI_INSTRUCTION_SET_AVX512 },
	{ { AVX512, AVX512, AVX2 }, true, CHOIR_OK, NULL, NULL, CHI_INSTRUCTION_SET_AVX2 },
	{ { AVX2, BASE, AVX512 }, true, CHOIR_OK, NULL, NULL, CHI_INSTRUCTION_SET_BASE },
	{ { AVX512, AVX2, OTHER }, true, CHOIR_UNSUPPORTED, "worker 2 (", NONE, 0 },
};
#else
#define OWN "aarch64"
#define OTHER "x86-64"
static mixture refused[] = {
	{ { OWN, OWN, OTHER }, false, CHOIR_STATE, "worker 2 (", HINT, 0 },
};
static mixture lowest[] = {
	{ { OWN, OWN, OWN }, true, CHOIR_OK, NULL, NULL, CHI_INSTRUCTION_SET_BASE },
	{ { OWN, OTHER, OWN }, true, CHOIR_UNSUPPORTED, "worker 1 (", NONE, 0 },
};
#endif

// spec: 2.17
TEST(they_are_refused)
{
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		run(&refused[i]);
}

TEST(they_take_the_lowest)
{
	for (size_t i = 0; i < sizeof lowest / sizeof lowest[0]; i++)
		run(&lowest[i]);
}

static const char *agree_or_say_why(choir_cluster *c, int worker, void *user)
{
	chi_instruction_set set;
	(void) worker, (void) user;
	const choir_status status = c == NULL
			? choir_error_status()
			: chi_cluster_common_instruction_set(
					  c, chi_instruction_set_name(CHI_INSTRUCTION_SET_BASE), true, &set);
	return status == CHOIR_OK || choir_error()[0] != '\0' ? NULL : "a failure without a text";
}

TEST(the_nth_allocation_fails)
{
	worker_threads_every_allocation(NULL, agree_or_say_why, NULL);
}
