// shuffle: every example once, in an order that depends on seed, pass and buffer alone, and that
// is drawn evenly.
#include "data/elements.h"
#include "test.h"

#include <string.h>

// Both kinds of source, and something in between that has random access too.
enum { KINDS = 3 };
static choir_dataset *source(int kind, int64_t n)
{
	if (kind == 1)
		return numbers_as_stream(n);
	choir_dataset *d = numbers_in_memory(n);
	return kind == 0 ? d : choir_dataset_flatten(choir_dataset_take(d, n), "number");
}

static void read_shuffled(choir_dataset *d, int64_t n, pass *p)
{
	read_pass(d, MAX_NUMBERS, p);
	assert_int_equal(p->status, CHOIR_END);
	assert_int_equal(p->n, n);
	bool seen[MAX_NUMBERS] = { false };
	for (int64_t i = 0; i < n; i++) {
		assert_in_range(p->number[i], 0, n - 1);
		assert_false(seen[p->number[i]]);
		seen[p->number[i]] = true;
	}
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
}

TEST(order_depends_on_seed_pass_and_buffer_alone)
{
	static const int64_t buffers[] = { 1, 2, 7, 99, 100, 1000 };
	for (size_t b = 0; b < sizeof buffers / sizeof buffers[0]; b++) {
		static pass first[3], p;
		for (int kind = 0; kind < KINDS; kind++)
			for (int batch = 0; batch < 2; batch++) {
				choir_dataset *d = choir_dataset_shuffle(source(kind, 100), buffers[b], 11);
				if (batch)
					d = choir_dataset_batch(d, 13);
				for (int i = 0; i < 3; i++) {
					read_shuffled(d, 100, kind || batch ? &p : &first[i]);
					if (kind || batch)
						assert_memory_equal(p.number, first[i].number, 100 * sizeof(int64_t));
				}
				choir_dataset_free(d);
			}
		bool same = memcmp(first[0].number, first[1].number, 100 * sizeof(int64_t)) == 0;
		assert_int_equal(same, buffers[b] == 1); // a buffer of one cannot shuffle
	}
}

TEST(seeds_and_passes_differ)
{
	static pass p[4];
	for (int i = 0; i < 4; i++) {
		choir_dataset *d = choir_dataset_shuffle(numbers_in_memory(50), 50, (uint64_t) i / 2);
		read_shuffled(d, 50, &p[i]);
		if (i % 2)
			read_shuffled(d, 50, &p[i]);
		choir_dataset_free(d);
	}
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < i; j++)
			assert_memory_not_equal(p[i].number, p[j].number, 50 * sizeof(int64_t));
}

// Of shuffle_once every pass is the first one of a shuffle with the same seed, also within a
// repeat.
// spec: D30
TEST(shuffle_once_keeps_its_order)
{
	for (int kind = 0; kind < KINDS; kind++) {
		static pass first, p[2];
		choir_dataset *other = choir_dataset_shuffle(source(kind, 50), 20, 3);
		choir_dataset *d = choir_dataset_shuffle_once(source(kind, 50), 20, 3);
		read_shuffled(other, 50, &first);
		for (int i = 0; i < 3; i++) {
			read_shuffled(d, 50, &p[0]);
			assert_memory_equal(p[0].number, first.number, 50 * sizeof(int64_t));
			read_shuffled(other, 50, &p[1]);
			assert_memory_not_equal(p[1].number, first.number, 50 * sizeof(int64_t));
		}
		choir_dataset_free(other);
		choir_dataset_free(d);
		d = choir_dataset_repeat(choir_dataset_shuffle_once(source(kind, 50), 20, 3), 2);
		read_pass(d, MAX_NUMBERS, &p[0]);
		assert_int_equal(p[0].n, 100);
		assert_memory_equal(p[0].number, first.number, 50 * sizeof(int64_t));
		assert_memory_equal(p[0].number + 50, first.number, 50 * sizeof(int64_t));
		choir_dataset_free(d);
	}
}

TEST(repeated_shuffles_come_in_another_order_each_time)
{
	choir_dataset *d =
			choir_dataset_repeat(choir_dataset_shuffle(numbers_as_stream(60), 60, 3), 2);
	pass p;
	read_pass(d, MAX_NUMBERS, &p);
	assert_int_equal(p.n, 120);
	assert_memory_not_equal(p.number, p.number + 60, 60 * sizeof(int64_t));
	choir_dataset_free(d);
}

TEST(nothing_leaves_before_it_can_have_come)
{
	for (int kind = 0; kind < KINDS; kind++) {
		choir_dataset *d = choir_dataset_shuffle(source(kind, 1000), 10, 5);
		static pass p;
		read_shuffled(d, 1000, &p);
		for (int64_t i = 0; i < 1000; i++)
			assert_true(p.number[i] < i + 10);
		choir_dataset_free(d);
	}
}

// Each of 8 numbers comes to each of 8 places about equally often: chi-squared with 49 degrees of
// freedom is above 95 once in 10,000 times; the draws are fixed, so this cannot flicker.
TEST(full_shuffles_are_even)
{
	enum { N = 8, PASSES = 4000 };
	int count[N][N] = { { 0 } };
	choir_dataset *d = choir_dataset_shuffle(numbers_in_memory(N), N, 42);
	for (int i = 0; i < PASSES; i++) {
		pass p;
		read_pass(d, N, &p);
		for (int j = 0; j < N; j++)
			count[j][p.number[j]]++;
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	double expected = (double) PASSES / N, chi_squared = 0;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			chi_squared += (count[i][j] - expected) * (count[i][j] - expected) / expected;
	assert_true(chi_squared < 95);
	choir_dataset_free(d);
}

TEST(whole_batches_are_shuffled_behind_batch)
{
	for (int kind = 0; kind < KINDS; kind++) {
		choir_dataset *d = choir_dataset_shuffle(choir_dataset_batch(source(kind, 31), 4), 3, 8);
		pass p;
		read_shuffled(d, 31, &p);
		assert_int_equal(p.elements, 8);
		int64_t at = 0, out_of_order = 0;
		for (int64_t i = 0; i < p.elements; i++) {
			assert_int_equal(p.number[at] % 4, 0);
			assert_int_equal(p.size[i], p.number[at] == 28 ? 3 : 4);
			for (int64_t j = 1; j < p.size[i]; j++)
				assert_int_equal(p.number[at + j], p.number[at] + j);
			out_of_order += p.number[at] != 4 * i;
			at += p.size[i];
		}
		assert_true(out_of_order > 0);
		choir_dataset_free(d);
	}
}

TEST(shuffles_of_nothing_and_of_endless_data_work)
{
	for (int kind = 0; kind < KINDS; kind++) {
		choir_dataset *d = choir_dataset_shuffle(source(kind, 0), 10, 5);
		assert_numbers(d, 0, NULL);
		choir_dataset_free(d);
		d = choir_dataset_shuffle(choir_dataset_repeat(source(kind, 7), CHOIR_FOREVER), 10, 5);
		assert_true(chi_dataset_spec(d)->endless);
		pass p;
		read_pass(d, 500, &p);
		assert_int_equal(p.status, CHOIR_OK);
		choir_dataset_free(d);
	}
}

TEST(failures_come_through_and_can_be_rewound)
{
	for (int64_t at = 0; at < 30; at += 7) {
		number_source s = { .n = 30, .fail_at = at, .message = "torn" };
		choir_dataset *d = choir_dataset_shuffle(numbers_from(&s), 5, 1);
		pass p;
		read_pass(d, 30, &p);
		assert_int_equal(p.status, CHOIR_IO);
		assert_failure(CHOIR_IO, ": torn");
		s.fail_at = -1;
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
		read_shuffled(d, 30, &p);
		choir_dataset_free(d);
	}
}

TEST(wrong_buffers_are_refused)
{
	assert_refused(choir_dataset_shuffle(numbers_in_memory(3), 0, 1), CHOIR_INVALID,
			"shuffle:*0 elements*1*CHOIR_ALL");
	assert_refused(choir_dataset_shuffle(numbers_as_stream(3), INT64_MAX, 1), CHOIR_NO_MEMORY,
			"9223372036854775807*8 bytes");
	// One that is larger than what is known to come costs no more than that.
	choir_dataset *d = choir_dataset_shuffle(numbers_in_memory(3), INT64_MAX, 1);
	pass p;
	read_shuffled(d, 3, &p);
	choir_dataset_free(d);
}
