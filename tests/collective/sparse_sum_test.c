// Sums of slices against the dense sum in the canonical tree: the same bits, row by row.
#include "collective/sparse_sum.h"

#include "base/philox.h"
#include "collective/oracle.h"
#include "test.h"

#include <string.h>

enum { MAX_PARTS = 9, MAX_ROWS = 12, TABLE = 7, WIDTH = 5 };

static int64_t rows[MAX_PARTS][MAX_ROWS];
static float values[MAX_PARTS][MAX_ROWS * WIDTH];
static chi_sparse_part part[MAX_PARTS];

static uint32_t draw(uint64_t seed, uint64_t i)
{
	const chi_random_key key = { .seed = seed };
	return chi_random_block(&key, i).word[0];
}

static void make_parts(int parts, uint64_t seed)
{
	for (int p = 0; p < parts; p++) {
		part[p] = (chi_sparse_part){ draw(seed, 1000 + (uint64_t) p) % (MAX_ROWS + 1), rows[p],
			values[p] };
		oracle_fill(CHOIR_F32, values[p], 1, MAX_ROWS * WIDTH, seed * 100 + (uint64_t) p);
		for (int64_t i = 0; i < part[p].n; i++)
			rows[p][i] = draw(seed, (uint64_t) (p * MAX_ROWS + i)) % TABLE;
	}
}

// Each part as a whole table, and the tables' sum by the oracle.
static void dense_sum(int parts, choir_dtype rounded, float sum[TABLE * WIDTH])
{
	static float all[MAX_PARTS][TABLE * WIDTH];
	memset(all, 0, sizeof all);
	for (int p = 0; p < parts; p++)
		for (int64_t i = 0; i < part[p].n; i++)
			for (int64_t k = 0; k < WIDTH; k++)
				all[p][rows[p][i] * WIDTH + k] += values[p][i * WIDTH + k];
	if (rounded == CHOIR_F32)
		oracle_sum(rounded, all, 0, parts, TABLE * WIDTH, sum);
	else
		oracle_sum_rounded(rounded, all[0], parts, TABLE * WIDTH, sum);
}

static void check_bits(choir_dtype rounded)
{
	const chi_sparse_sum_as as = { CHOIR_F32, rounded, WIDTH };
	for (int parts = 1; parts <= MAX_PARTS; parts++)
		for (uint64_t seed = 0; seed < 20; seed++) {
			chi_sparse_entry entry[2 * MAX_PARTS * MAX_ROWS];
			int64_t n = 0, row[TABLE];
			float scratch[8 * WIDTH];
			float sum[TABLE * WIDTH] = { 0 }, dense[TABLE * WIDTH], whole[TABLE * WIDTH] = { 0 };
			assert_in_range(chi_slices_levels(parts), 1, 8);
			make_parts(parts, seed);
			for (int p = 0; p < parts; p++)
				n += part[p].n;
			const int64_t different = chi_sparse_sum_order(parts, part, entry);
			assert_true(different <= TABLE);
			chi_sparse_sum(parts, part, n, entry, &as, row, sum, (char *) scratch);
			for (int64_t i = 0; i < different; i++) {
				assert_true(i == 0 || row[i] > row[i - 1]);
				memcpy(&whole[row[i] * WIDTH], &sum[i * WIDTH], WIDTH * sizeof(float));
			}
			dense_sum(parts, rounded, dense);
			for (int i = 0; i < TABLE * WIDTH; i++) // f16 rounds to -0, too
				whole[i] += 0, dense[i] += 0;
			assert_memory_equal(whole, dense, sizeof whole);
		}
}

// spec: 2.9, M22
TEST(rows_have_the_bits_of_the_dense_sum)
{
	check_bits(CHOIR_F32);
	check_bits(CHOIR_F16);
	check_bits(CHOIR_BF16);
}

TEST(rows_are_sorted)
{
	enum { N = 3000 };
	static const int64_t ranges[] = { 1, 2, 2048, 2049, 262144, INT64_MAX };
	static chi_sparse_entry entry[2 * N];
	static int64_t row[N];
	for (size_t k = 0; k < sizeof ranges / sizeof ranges[0]; k++)
		for (int64_t n = 40; n <= N; n = n < 60 ? n + 1 : 50 * n) {
			for (int64_t i = 0; i < n; i++)
				row[i] = (int64_t) ((uint64_t) draw(k, (uint64_t) i) << 31 ^
								 draw(k, (uint64_t) (i + N))) %
						ranges[k];
			const chi_sparse_part two[2] = { { n / 3, row, NULL },
				{ n - n / 3, row + n / 3, NULL } };
			int64_t different = 1;
			const int64_t have = chi_sparse_sum_order(2, two, entry);
			for (int64_t i = 0; i < n; i++) {
				const chi_sparse_entry *e = &entry[i], *before = e - 1;
				assert_int_equal(two[e->part].row[e->at], e->row);
				if (i == 0)
					continue;
				different += e->row != before->row;
				assert_true(e->row > before->row ||
						(e->row == before->row &&
								(e->part > before->part ||
										(e->part == before->part && e->at > before->at))));
			}
			assert_int_equal(have, different);
		}
}

TEST(no_rows)
{
	const chi_sparse_part none[2] = { { 0 } };
	const chi_sparse_sum_as as = { CHOIR_F32, CHOIR_F32, WIDTH };
	chi_sparse_entry entry[1];
	int64_t row[1] = { 7 };
	float sum[1] = { 7 };
	assert_int_equal(chi_sparse_sum_order(2, none, entry), 0);
	chi_sparse_sum(2, none, 0, entry, &as, row, sum, NULL);
	assert_true(row[0] == 7 && sum[0] == 7);
}
