// The part of the suite of cross-device operations for results in stream order.
#include "base/alloc.h"
#include "collective/members.h"
#include "collective/oracle.h"
#include "collective/ops_suite.h"
#include "short.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const ops_subject *subject;

int ops_subject_members(const ops_subject *s)
{
	int n = 0;
	while (n < MAX_MEMBERS && s->device[n] != NULL)
		n++;
	return n;
}

static void go_in_streams(party *p, double divisor)
{
	for (int i = 0; i < p->members; i++) {
		p->member[i].c.in_stream = true;
		p->member[i].c.divisor = divisor;
	}
}

// What is queued after the wait sees the result, and may overwrite the parts. Memory is used
// again by the next collective, and by one of another size.
static void results_come_in_stream_order(void **state)
{
	(void) state;
	static const int64_t sizes[] = { 20000, 20000, 3, 20000, 0, 70000, 20000 };
	party p;
	party_open(&p, subject, ops_subject_members(subject), 6);
	for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
		party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, sizes[k], k);
		const double divisor = k % 3 == 2 ? 3 : 1;
		if (divisor != 1)
			oracle_divide(CHOIR_F32, p.expected, divisor, p.elements);
		go_in_streams(&p, divisor);
		assert_int_equal(party_meet(&p), CHOIR_OK);
		for (int i = 0; i < p.members; i++)
			for (size_t n = 0; n < p.member[i].c.n; n++)
				assert_int_equal(chi_stream_fill(p.member[i].stream, p.member[i].part[n].data,
										 0xff, (size_t) sizes[k] * sizeof(float)),
						CHOIR_OK);
		for (int i = 0; i < p.members; i++)
			party_check(&p, i, p.expected);
	}
	party_close(&p);
}

static void allocations_in_stream_order_may_fail(void **state)
{
	(void) state;
	uint64_t n = 1;
	for (bool failed = true; failed; n += n < 10 ? 1 : STRIDE) {
		party p;
		party_open(&p, subject, ops_subject_members(subject), 6);
		party_bring(&p, CHOIR_ALL_REDUCE, CHOIR_F32, 30000, n);
		go_in_streams(&p, 3);
		chi_buffer_trim();
		chi_alloc_fail(n, false);
		const choir_status status = party_meet(&p);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_OK);
		for (int i = 0; i < p.members; i++)
			(void) chi_stream_wait(p.member[i].stream);
		chi_communicator_abort(&p.group);
		chi_communicator_reset(&p.group);
		party_close(&p);
	}
}

int ops_stream_suite_run(const char *name, const ops_subject *s)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_come_in_stream_order),
		cmocka_unit_test(allocations_in_stream_order_may_fail),
	};
	subject = s;
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
