// Values of threads: each sees its own, and it is given back when its thread ends.
#include "base/thread_local.h"

#include "base/thread.h"
#include "test.h"

static chi_atomic32 freed;

static void count(void *value)
{
	chi_atomic32_add(&freed, *(uint32_t *) value);
}

static chi_thread_local slot = CHI_THREAD_LOCAL_STATIC(CHI_RANK_OP, "slot", count);

static void keep(void *arg)
{
	if (chi_thread_local_get(&slot) != NULL || !chi_thread_local_set(&slot, arg) ||
			chi_thread_local_get(&slot) != arg)
		*(uint32_t *) arg = 1000;
}

TEST(each_thread_has_its_own)
{
	uint32_t values[3] = { 1, 10, 100 };
	chi_thread threads[2] = { 0 };
	assert_null(chi_thread_local_get(&slot));
	keep(&values[2]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(chi_thread_start(&threads[i], "slot", keep, &values[i]), 0);
	for (int i = 0; i < 2; i++)
		chi_thread_join(&threads[i]);
	assert_int_equal(chi_atomic32_load(&freed), 11);
	assert_ptr_equal(chi_thread_local_get(&slot), &values[2]);
	assert_int_equal(values[2], 100);
	assert_true(chi_thread_local_set(&slot, NULL));
	assert_null(chi_thread_local_get(&slot));
}
