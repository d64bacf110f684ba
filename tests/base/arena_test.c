// The arena: memory stays valid until emptied, and a steady use allocates nothing.
#include "base/arena.h"
#include "base/alloc.h"
#include "choir/status.h"
#include "test.h"

#include <string.h>

TEST(test_zeroed_aligned_apart)
{
	chi_arena arena;
	chi_arena_init(&arena);
	unsigned char *p[200];
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < 200; i++) {
			size_t bytes = i * i;
			p[i] = chi_arena_alloc(&arena, bytes);
			assert_non_null(p[i]);
			assert_int_equal((uintptr_t) p[i] % 16, 0);
			for (size_t k = 0; k < bytes; k++)
				assert_int_equal(p[i][k], 0);
			memset(p[i], (int) i, bytes);
		}
		for (size_t i = 1; i < 200; i++)
			assert_true(p[i][0] == i && p[i][i * i - 1] == i);
		chi_arena_empty(&arena);
	}
	chi_arena_free(&arena);
}

static void use(chi_arena *arena)
{
	static const size_t sizes[] = { 10, 30000, 100, 200000, 16, 3000000, 40, 0 };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		assert_non_null(chi_arena_alloc(arena, sizes[i]));
	assert_string_equal(chi_arena_strdup(arena, "text"), "text");
}

TEST(test_steady_use_allocates_nothing)
{
	chi_arena arena;
	chi_arena_init(&arena);
	use(&arena);
	uint64_t before = chi_alloc_count();
	for (int i = 0; i < 10; i++) {
		chi_arena_empty(&arena);
		assert_int_equal(chi_arena_mark(&arena), 0);
		use(&arena);
	}
	assert_int_equal(chi_alloc_count(), before);
	chi_arena_free(&arena);
	use(&arena); // usable again
	chi_arena_free(&arena);
}

TEST(test_mark_and_rewind)
{
	chi_arena arena;
	chi_arena_init(&arena);
	assert_int_equal(chi_arena_mark(&arena), 0);
	chi_arena_rewind(&arena, 0); // nothing there yet
	char *scratch = chi_arena_strdup(&arena, "kept");
	size_t mark = chi_arena_mark(&arena);
	assert_int_equal(mark, 16);
	char *first = chi_arena_alloc(&arena, 100);
	use(&arena);
	chi_arena_rewind(&arena, mark);
	assert_int_equal(chi_arena_mark(&arena), mark);
	assert_ptr_equal(chi_arena_alloc(&arena, 100), first);
	assert_string_equal(scratch, "kept");
	chi_arena_rewind(&arena, 1000000); // ahead of what was handed out: nothing happens
	assert_int_equal(chi_arena_mark(&arena), mark + 112);
	chi_arena_free(&arena);
}

// Marks in every block, rewound from the last to the first.
TEST(test_rewind_over_blocks)
{
	enum { STEPS = 100, BYTES = 5008 };
	chi_arena arena;
	chi_arena_init(&arena);
	size_t marks[STEPS];
	char *places[STEPS];
	for (int i = 0; i < STEPS; i++) {
		marks[i] = chi_arena_mark(&arena);
		assert_int_equal(marks[i], (size_t) i * BYTES);
		places[i] = chi_arena_alloc(&arena, BYTES);
		memset(places[i], i, BYTES);
	}
	for (int i = STEPS - 1; i >= 0; i--) {
		chi_arena_rewind(&arena, marks[i]);
		assert_int_equal(chi_arena_mark(&arena), marks[i]);
		for (int k = 0; k < i; k++)
			assert_int_equal(places[k][BYTES - 1], k);
		assert_ptr_equal(chi_arena_alloc(&arena, BYTES), places[i]);
		chi_arena_rewind(&arena, marks[i]);
	}
	chi_arena_free(&arena);
}

TEST(test_out_of_memory)
{
	chi_arena arena;
	chi_arena_init(&arena);
	chi_alloc_fail(1, false);
	assert_null(chi_arena_alloc(&arena, 5));
	chi_alloc_fail(0, false);
	assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
	char *p = chi_arena_strdup(&arena, "kept");
	assert_null(chi_arena_alloc(&arena, SIZE_MAX));
	assert_null(chi_arena_alloc(&arena, SIZE_MAX - 40));
	chi_alloc_fail(1, false);
	assert_null(chi_arena_alloc(&arena, 1000000));
	chi_alloc_fail(0, false);
	assert_string_equal(p, "kept");
	assert_int_equal(chi_arena_mark(&arena), 16);
	assert_ptr_equal(chi_arena_alloc(&arena, 1), p + 16);
	chi_arena_free(&arena);
	chi_arena_free(&arena);
}
