// The conformance suite of cross-device operations on GPUs of the stand-in: those of
// libchoir-cuda, and Choir's, which do not know GPUs.
#include "collective/members.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { ROUNDS = 10, ELEMENTS = 20000, GPUS = 3 };

static const ops_subject three = { "peer", { "gpu:0", "gpu:1", "gpu:2" } };

// Parts that queued work has yet to make when their member joins.
static void parts_may_still_be_made(void **state)
{
	party p;
	(void) state;
	party_open(&p, &three, GPUS, GPUS);
	for (int round = 0; round < ROUNDS; round++) {
		party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, ELEMENTS, (uint64_t) round);
		for (int i = 0; i < GPUS; i++) {
			const member *m = &p.member[i];
			const size_t bytes = ELEMENTS * sizeof(float);
			const char *part = (const char *) p.all + (size_t) i * bytes;
			assert_int_equal(
					chi_stream_fill(m->stream, m->part[0].data, 0xff, bytes), CHOIR_OK);
			assert_int_equal(
					chi_stream_copy(m->stream, m->part[0].data, part, bytes), CHOIR_OK);
		}
		assert_int_equal(party_meet(&p), CHOIR_OK);
		for (int i = 0; i < GPUS; i++)
			party_check(&p, i, p.expected);
		party_drop(&p);
	}
	party_close(&p);
}

static int run(const char *ops, const char *a, const char *b, const char *c)
{
	const ops_subject subject = { ops, { a, b, c } };
	char name[64];
	snprintf(name, sizeof name, "%s on %s, %s%s%s", ops, a, b, c != NULL ? ", " : "",
			c != NULL ? c : "");
	return ops_suite_run(name, &subject);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(parts_may_still_be_made) };
	int failed = cmocka_run_group_tests_name("parts on peer", tests, NULL, NULL);
	failed += run("peer", "gpu:0", "gpu:1", NULL);
	failed += run("peer", "gpu:0", "gpu:1", "gpu:2");
	failed += run("nccl", "gpu:0", "gpu:1", "gpu:2");
	failed += run("ring", "gpu:0", "gpu:1", "gpu:2");
	failed += run("hierarchical_copy", "cpu:0", "gpu:0", "gpu:1");
	failed += run("reduce_to_one_device", "gpu:0", "cpu:0", NULL);
	return failed;
}
