// The heap's door: what it promises of memory, and that every failure is one and says so.
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/status.h"
#include "base/thread.h"
#include "test.h"

#include <string.h>

TEST(test_zeroed_and_aligned)
{
	static const unsigned char zeros[100];
	unsigned char *p = chi_alloc(100);
	assert_non_null(p);
	assert_memory_equal(p, zeros, 100);
	void *empty = chi_alloc(0);
	assert_non_null(empty);
	for (size_t bytes = 0; bytes < 300; bytes += 37) {
		void *aligned = chi_alloc_aligned(bytes);
		assert_non_null(aligned);
		assert_int_equal((uintptr_t) aligned % 64, 0);
		memset(aligned, 1, bytes);
		chi_free(aligned);
	}
	for (size_t bytes = (2 << 20) - 1; bytes < 5 << 20; bytes += 1 << 20) { // huge pages
		void *aligned = chi_alloc_aligned(bytes);
		assert_non_null(aligned);
		assert_int_equal((uintptr_t) aligned % (bytes < 2 << 20 ? 64 : 2 << 20), 0);
		memset(aligned, 1, bytes);
		chi_free(aligned);
	}
	chi_free(p);
	chi_free(empty);
	chi_free(NULL);
}

TEST(test_counts)
{
	uint64_t before = chi_alloc_count();
	void *a = chi_alloc(1), *b = chi_alloc_array(2, 3), *c = chi_alloc_aligned(4);
	char *d = chi_strdup("five");
	a = chi_realloc(a, 50);
	assert_int_equal(chi_alloc_count() - before, 5);
	assert_string_equal(d, "five");
	chi_free(a);
	chi_free(b);
	chi_free(c);
	chi_free(d);
}

static void assert_out_of_memory(const char *text)
{
	assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
	assert_text_holds(choir_error(), text);
	chi_error_clear();
}

TEST(test_too_large)
{
	assert_null(chi_alloc(SIZE_MAX));
	assert_out_of_memory("out of memory:*18446744073709551615");
	assert_null(chi_alloc_aligned(SIZE_MAX - 3));
	assert_out_of_memory("out of memory:*18446744073709551612");
	assert_null(chi_alloc_array(SIZE_MAX / 2, 3));
	assert_out_of_memory("out of memory:*9223372036854775807*3 bytes");
	void *p = chi_alloc(8);
	assert_null(chi_realloc(p, SIZE_MAX));
	assert_out_of_memory("out of memory:*18446744073709551615");
	chi_free(p);
}

TEST(test_nth_fails)
{
	chi_alloc_fail(3, false);
	for (int i = 1; i <= 5; i++) {
		void *p = chi_alloc(7);
		assert_int_equal(p == NULL, i == 3);
		assert_int_equal(chi_alloc_failed(), i >= 3);
		chi_free(p);
	}
	assert_out_of_memory("out of memory:*7 bytes");
	chi_alloc_fail(2, true);
	for (int i = 1; i <= 5; i++) {
		void *p = chi_alloc_aligned(7);
		assert_int_equal(p == NULL, i >= 2);
		chi_free(p);
	}
	chi_alloc_fail(0, false);
	assert_false(chi_alloc_failed());
	void *p = chi_alloc(7);
	assert_non_null(p);
	chi_free(p);
}

TEST(test_failed_realloc_keeps)
{
	char *p = chi_strdup("kept");
	chi_alloc_fail(1, false);
	assert_null(chi_realloc(p, 1000));
	chi_alloc_fail(0, false);
	assert_string_equal(p, "kept");
	chi_free(p);
}

TEST(test_grow)
{
	void *array = NULL;
	size_t capacity = 0;
	uint64_t before = chi_alloc_count();
	for (size_t need = 1; need <= 1000; need++) {
		assert_true(chi_grow(&array, &capacity, need, sizeof(int)));
		assert_true(capacity >= need);
		((int *) array)[need - 1] = (int) need;
	}
	assert_true(chi_alloc_count() - before <= 8);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(((int *) array)[i], i + 1);
	void *old = array;
	size_t old_capacity = capacity;
	chi_alloc_fail(1, false);
	assert_false(chi_grow(&array, &capacity, capacity + 1, sizeof(int)));
	chi_alloc_fail(0, false);
	assert_false(chi_grow(&array, &capacity, SIZE_MAX / 2, sizeof(int)));
	assert_out_of_memory("out of memory:*9223372036854775807*4 bytes");
	assert_ptr_equal(array, old);
	assert_int_equal(capacity, old_capacity);
	chi_free(array);
}

enum { THREADS = 4, ROUNDS = 1000 };

static void allocate_many(void *arg)
{
	chi_atomic32 *failures = arg;
	for (int i = 0; i < ROUNDS; i++) {
		void *p = chi_alloc(16);
		if (!p)
			chi_atomic32_add(failures, 1);
		chi_free(p);
	}
}

// However the threads meet, exactly one allocation is the n-th.
TEST(test_one_fails_among_threads)
{
	chi_atomic32 failures = { 0 };
	chi_thread threads[THREADS];
	chi_alloc_fail(THREADS * ROUNDS / 2, false);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
				chi_thread_start(&threads[i], "alloc", allocate_many, &failures), CHOIR_OK);
	for (int i = 0; i < THREADS; i++)
		chi_thread_join(&threads[i]);
	chi_alloc_fail(0, false);
	assert_int_equal(chi_atomic32_load(&failures), 1);
}

TEST(test_memory_is_kept)
{
	chi_scratch scratch = { 0 };
	assert_true(chi_scratch_reserve(&scratch, 100));
	assert_non_null(scratch.memory);
	assert_int_equal(scratch.capacity, 100);
	const char *const first = scratch.memory;
	assert_true(chi_scratch_reserve(&scratch, 40));
	assert_ptr_equal(scratch.memory, first);
	assert_int_equal(scratch.capacity, 100);
	assert_true(chi_scratch_reserve(&scratch, 1000));
	assert_int_equal((uintptr_t) scratch.memory % 64, 0);
	assert_int_equal(scratch.capacity, 1000);
	memset(scratch.memory, 1, 1000);
	chi_alloc_fail(1, false);
	assert_false(chi_scratch_reserve(&scratch, 2000)); // what there was is gone
	chi_alloc_fail(0, false);
	assert_null(scratch.memory);
	assert_int_equal(scratch.capacity, 0);
	assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
}
