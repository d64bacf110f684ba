// Where packs end.
#include "collective/pack.h"
#include "test.h"

static void check_number(int64_t total, int64_t n, size_t packs, const int64_t expected[])
{
	int64_t ends[16];
	assert_int_equal(chi_packs_by_number(total, n, ends), packs);
	for (size_t i = 0; i < packs; i++)
		assert_int_equal(ends[i], expected[i]);
}

// spec: 2.9
TEST(by_number_the_last_gets_the_rest)
{
	check_number(10, 3, 3, (const int64_t[]){ 3, 6, 10 });
	check_number(9, 3, 3, (const int64_t[]){ 3, 6, 9 });
	check_number(11, 3, 3, (const int64_t[]){ 3, 6, 11 });
	check_number(10, 1, 1, (const int64_t[]){ 10 });
	check_number(3, 3, 3, (const int64_t[]){ 1, 2, 3 });
	check_number(2, 3, 1, (const int64_t[]){ 2 }); // none is empty
	check_number(7, 8, 1, (const int64_t[]){ 7 });
	check_number(1, 16, 1, (const int64_t[]){ 1 });
	check_number(0, 3, 0, NULL);
}

static void check_bytes(
		size_t n, const int64_t elements[], int64_t bytes, size_t packs, const int64_t expected[])
{
	int64_t ends[16];
	assert_int_equal(chi_packs_by_bytes(n, elements, 4, bytes, ends), packs);
	for (size_t i = 0; i < packs; i++)
		assert_int_equal(ends[i], expected[i]);
}

// A pack is closed when it is larger than the limit, not when it reaches it.
// spec: 2.9, D2
TEST(by_bytes_every_pack_but_the_last_is_larger)
{
	static const int64_t ten[] = { 1, 2, 3, 4 };
	check_bytes(4, ten, 4, 3, (const int64_t[]){ 3, 6, 10 }); // 12, 12, 16 bytes
	check_bytes(4, ten, 3, 4, (const int64_t[]){ 1, 3, 6, 10 });
	check_bytes(4, ten, 12, 2, (const int64_t[]){ 6, 10 }); // 12 is not larger than 12
	check_bytes(4, ten, 24, 1, (const int64_t[]){ 10 });
	check_bytes(4, ten, 39, 1, (const int64_t[]){ 10 });
	check_bytes(4, ten, INT64_MAX, 1, (const int64_t[]){ 10 });
	static const int64_t empty[] = { 0, 0, 5, 0 };
	check_bytes(4, empty, 1, 1, (const int64_t[]){ 5 });
	check_bytes(2, empty, 1, 0, NULL);
	check_bytes(0, empty, 1, 0, NULL);
}
