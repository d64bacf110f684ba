// Where an iterator stands: going to any element of any pass gives what reading up to there would
// have given, for each step behind each kind of source; elements whose shape varies; what the
// elements are.
#include "data/elements.h"

#include "choir/library.h"

#include "data/source/scratch.h"
#include "data/varying.h"

#include <stdio.h>

#include <string.h>

typedef choir_dataset *make_fn(choir_dataset *from);

static choir_dataset *plain(choir_dataset *d)
{
	return d;
}
static choir_dataset *taken(choir_dataset *d)
{
	return choir_dataset_take(d, 17);
}
static choir_dataset *skipped(choir_dataset *d)
{
	return choir_dataset_skip(d, 5);
}
static choir_dataset *sharded(choir_dataset *d)
{
	return choir_dataset_shard(d, 2, 1);
}
static choir_dataset *shuffled(choir_dataset *d)
{
	return choir_dataset_shuffle(d, 6, 9);
}
static choir_dataset *repeated(choir_dataset *d)
{
	return choir_dataset_repeat(d, 3);
}
static choir_dataset *batched(choir_dataset *d)
{
	return choir_dataset_batch(d, 4);
}
static choir_dataset *ahead(choir_dataset *d)
{
	return choir_dataset_prefetch(d, 3);
}
static choir_dataset *zipped(choir_dataset *d)
{
	choir_dataset *other = numbers_in_memory(23);
	choir_column c = { .name = "other", .dtype = CHOIR_I64 };
	static const int64_t zeros[23];
	c.data = zeros;
	choir_dataset_free(other);
	other = choir_memory_dataset_new(23, 1, &c, false);
	return choir_dataset_zip(choir_dataset_take(d, 23), other);
}

static choir_dataset *shuffled_once(choir_dataset *d)
{
	return choir_dataset_shuffle_once(d, CHOIR_NONE, 4);
}
static choir_dataset *unbatched(choir_dataset *d)
{
	if (d && choir_dataset_batch_size(d) > 0)
		return choir_dataset_batch(choir_dataset_unbatch(d), 3);
	return choir_dataset_unbatch(choir_dataset_batch(d, 5));
}
static choir_dataset *cached(choir_dataset *d)
{
	return choir_dataset_cache(d, NULL);
}
static choir_dataset *concatenated(choir_dataset *d)
{
	choir_dataset *more = numbers_as_stream(6);
	if (d && choir_dataset_batch_size(d) > 0)
		more = choir_dataset_batch(more, choir_dataset_batch_size(d));
	return choir_dataset_concatenate(d, more);
}

static choir_status negate(const choir_entry in[], choir_entry out[], void *user)
{
	(void) user;
	const int64_t n = choir_shape_elements(&in[0].shape);
	for (int64_t i = 0; i < n; i++)
		((int64_t *) out[0].data)[i] = -1 - ((const int64_t *) in[0].data)[i];
	return CHOIR_OK;
}
static choir_dataset *mapped(choir_dataset *d)
{
	return choir_dataset_map(d, CHOIR_OPTIONS(choir_map_options, .threads = 2), negate, NULL);
}

static bool mostly(const choir_entry in[], void *user)
{
	(void) user;
	return ((const int64_t *) in[0].data)[0] % 3 != 0;
}
static choir_dataset *filtered(choir_dataset *d)
{
	return choir_dataset_filter(d, mostly, NULL);
}

static choir_dataset *count_to(const choir_entry in[], void *user)
{
	(void) user;
	int64_t n = ((const int64_t *) in[0].data)[0];
	return numbers_as_stream((n < 0 ? -n : n) % 4);
}
static choir_dataset *interleaved(choir_dataset *d)
{
	return choir_dataset_interleave(
			d, CHOIR_OPTIONS(choir_interleave_options, .cycle = 3, .block = 2), count_to, NULL);
}
static choir_dataset *flat(choir_dataset *d)
{
	return choir_dataset_flat_map(
			d, CHOIR_OPTIONS(choir_interleave_options, .cycle = 1), count_to, NULL);
}

static make_fn *const steps[] = { plain, taken, skipped, sharded, shuffled, shuffled_once,
	repeated, ahead, unbatched, cached, concatenated, mapped, filtered, interleaved, flat,
	zipped };
// Which a column beside "number" would not go through.
static bool changes_columns(make_fn *step)
{
	return step == concatenated || step == mapped || step == interleaved || step == flat ||
			step == filtered;
}
static bool of_batches(make_fn *step)
{
	return step != zipped && step != interleaved && step != flat;
}
enum { STEPS = sizeof steps / sizeof steps[0], N = 23 };

static choir_dataset *source(int kind)
{
	return kind == 0 ? numbers_in_memory(N) : numbers_as_stream(N);
}

// One element of each column into memory of the test's; "number" is what is compared.
static choir_status next(choir_dataset *d, int64_t number[], int64_t *examples)
{
	const chi_spec *spec = chi_dataset_spec(d);
	chi_element e = { .capacity = spec->batch ? spec->batch : 1 };
	for (size_t i = 0; i < spec->n; i++)
		e.column[i] = strcmp(spec->column[i].name, "number") == 0 ? number : NULL;
	choir_status status = chi_dataset_next(d, &e);
	*examples = status == CHOIR_OK ? e.examples : 0;
	return status;
}

// Reads passes to their ends and then jumps to every place of them. Gives the first one's length.
static int64_t compare_places(choir_dataset *d, choir_dataset *again)
{
	enum { PASSES = 3, MOST = 3 * 3 * N * 3 + 1 };
	static int64_t number[PASSES][MOST][8], size[PASSES][MOST];
	int64_t elements[PASSES];
	if (!d)
		fail_msg("%s", choir_error());
	assert_int_equal(chi_dataset_signature(d), chi_dataset_signature(again));
	for (int p = 0; p < PASSES; p++) {
		elements[p] = 0;
		while (next(d, number[p][elements[p]], &size[p][elements[p]]) == CHOIR_OK)
			assert_in_range(++elements[p], 1, MOST - 1);
		assert_int_equal(chi_dataset_pass(d), p);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	for (int p = PASSES - 1; p >= 0; p--)
		for (int64_t at = 0; at <= elements[p]; at += 1 + (elements[p] - at) / 7) {
			int64_t found[8], n;
			assert_int_equal(chi_dataset_seek(again, p, at), CHOIR_OK);
			assert_int_equal(chi_dataset_pass(again), p);
			for (int64_t k = at; k < elements[p] && k < at + 5; k++) {
				assert_int_equal(next(again, found, &n), CHOIR_OK);
				assert_int_equal(n, size[p][k]);
				assert_memory_equal(found, number[p][k], (size_t) n * sizeof found[0]);
			}
			if (at + 5 >= elements[p])
				assert_int_equal(next(again, found, &n), CHOIR_END);
		}
	choir_dataset_free(d);
	return elements[0];
}

static void check_places(choir_dataset *d, choir_dataset *again)
{
	const int64_t elements = compare_places(d, again);
	// One element more than a pass has is another dataset's place.
	if (chi_dataset_seek(again, 0, elements + 1) == CHOIR_OK)
		fail_msg("a place behind the end was found");
	assert_failure(CHOIR_INVALID, "not the dataset that the position is of");
	choir_dataset_free(again);
}

// The same of what does not know where its end is before it is there.
static void check_places_without_end(choir_dataset *d, choir_dataset *again)
{
	compare_places(d, again);
	choir_dataset_free(again);
}

// spec: D30
static void every_pair_of_steps_goes_on_where_it_stood(void **state)
{
	(void) state;
	for (int kind = 0; kind < 2; kind++)
		for (size_t a = 0; a < STEPS; a++)
			for (size_t b = 0; b < STEPS; b++) {
				if (steps[b] == zipped && steps[a] != plain)
					continue; // lengths that do not match
				if (steps[a] == zipped && changes_columns(steps[b]))
					continue;
				check_places(steps[b](steps[a](source(kind))), steps[b](steps[a](source(kind))));
				if (of_batches(steps[b]))
					check_places(steps[b](batched(steps[a](source(kind)))),
							steps[b](batched(steps[a](source(kind)))));
				check_places(batched(steps[b](steps[a](source(kind)))),
						batched(steps[b](steps[a](source(kind)))));
			}
}

// ---- The same numbers from files of each kind, and from a function that goes to a place.

static choir_dataset *from_csv(void)
{
	char text[16 * N] = "number\n";
	for (int i = 0; i < N; i++)
		sprintf(text + strlen(text), "%d\n", i);
	return choir_csv_dataset_new(scratch_text("n.csv", text), NULL);
}

static choir_dataset *from_csv_with_gaps(void)
{
	char text[32 * N] = "number,other\n";
	for (int i = 0; i < N; i++)
		sprintf(text + strlen(text), "%d,1\n%s", i, i % 3 == 0 ? "NA,1\n" : "");
	const choir_csv_column column = { .name = "number" };
	return choir_csv_dataset_new(scratch_text("gaps.csv", text),
			CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = &column,
					.missing = CHOIR_MISSING_DROP));
}

static choir_dataset *from_npy(void)
{
	int64_t number[N];
	for (int i = 0; i < N; i++)
		number[i] = i;
	const char *path = scratch_path("n.npy");
	assert_int_equal(choir_npy_write(path, CHOIR_I64, CHOIR_SHAPE(N), number), CHOIR_OK);
	return choir_npy_dataset_new(path, "number");
}

static choir_dataset *from_records(choir_compression compression)
{
	const char *path = scratch_path("n.tfrecord");
	choir_tfrecord_writer *w = choir_tfrecord_writer_new(path, compression);
	assert_non_null(w);
	for (int64_t i = 0; i < N; i++) {
		const choir_column c = { .name = "number", .dtype = CHOIR_I64, .data = &i };
		assert_int_equal(choir_tfrecord_writer_write_example(w, 1, &c), CHOIR_OK);
	}
	assert_int_equal(choir_tfrecord_writer_finish(w), CHOIR_OK);
	choir_tfrecord_writer_free(w);
	return choir_tfrecord_dataset_new(path, NULL);
}

static choir_dataset *from_tfrecord(void)
{
	return from_records(CHOIR_COMPRESSION_NONE);
}

static choir_dataset *from_packed_tfrecord(void)
{
	return from_records(choir_has("zlib") ? CHOIR_COMPRESSION_GZIP : CHOIR_COMPRESSION_NONE);
}

// Two files, of 10 records and of the rest.
static choir_dataset *from_fixed(void)
{
	int64_t number[N];
	for (int i = 0; i < N; i++)
		number[i] = i;
	const char *const paths[] = { scratch_write("n-0", number, 80),
		scratch_write("n-1", number + 10, sizeof number - 80) };
	choir_files *files = choir_files_new(2, paths);
	const choir_field field = { .name = "number", .dtype = CHOIR_I64 };
	choir_dataset *d = choir_fixed_dataset_new(
			NULL, 1, &field, CHOIR_OPTIONS(choir_fixed_options, .files = files));
	choir_files_free(files);
	return d;
}

static choir_status first_byte(const choir_entry in[], choir_entry out[], void *user)
{
	(void) user;
	*(int64_t *) out[0].data = *(const uint8_t *) in[0].data;
	return CHOIR_OK;
}

// Bytes, lines and windows as the number of their first byte.
static choir_dataset *as_numbers(choir_dataset *d)
{
	const choir_column c = { .name = "number", .dtype = CHOIR_I64 };
	return choir_dataset_map(
			d, CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &c), first_byte, NULL);
}

static choir_dataset *from_bytes(void)
{
	return as_numbers(
			choir_text_bytes_dataset_new(scratch_text("bytes", "abcdefghijklmnopqrstuvw"), "x"));
}

static choir_dataset *from_lines(void)
{
	char text[8 * N] = "";
	for (int i = 0; i < N; i++)
		sprintf(text + strlen(text), "%c%.*s\n", 'a' + i, i % 4, "xyz");
	return as_numbers(
			choir_text_lines_dataset_new(scratch_text("lines", text), "x", CHOIR_WRONG_STOP));
}

static choir_dataset *from_windows(void)
{
	return as_numbers(choir_text_windows_dataset_new(
			scratch_text("windows", "abcdefghijklmnopqrstuvwxyz"), 3, 1));
}

static choir_dataset *from_idx(void)
{
	unsigned char file[8 + N] = { 0, 0, 8, 1, 0, 0, 0, N };
	for (int i = 0; i < N; i++)
		file[8 + i] = (unsigned char) i;
	return as_numbers(choir_idx_dataset_new(scratch_write("n.idx", file, sizeof file), "x"));
}

static choir_status at_position(int64_t position, void *const out[], void *user)
{
	(void) user;
	if (position >= N)
		return CHOIR_END;
	*(int64_t *) out[0] = position;
	return CHOIR_OK;
}
static choir_status go_anywhere(int64_t epoch, int64_t position, void *user)
{
	(void) user;
	assert_true(epoch >= 0 && position >= 0);
	return CHOIR_OK;
}
static choir_dataset *from_seekable(void)
{
	const choir_column c = { .name = "number", .dtype = CHOIR_I64 };
	return choir_seekable_dataset_new(1, &c, at_position, go_anywhere, NULL);
}

static choir_dataset *from_range(void)
{
	return choir_range_dataset_new("number", 0, N, 1);
}

typedef choir_dataset *from_fn(void);
static from_fn *const froms[] = { from_csv, from_csv_with_gaps, from_npy, from_tfrecord,
	from_packed_tfrecord, from_fixed, from_bytes, from_lines, from_windows, from_idx,
	from_seekable, from_range };
enum { FROMS = sizeof froms / sizeof froms[0] };

// spec: D30
static void every_source_goes_on_where_it_stood(void **state)
{
	(void) state;
	for (size_t a = 0; a < FROMS; a++)
		for (size_t b = 0; b < STEPS; b++) {
			void (*check)(choir_dataset *, choir_dataset *) =
					froms[a] == from_seekable ? check_places_without_end : check_places;
			check(steps[b](froms[a]()), steps[b](froms[a]()));
			check(batched(steps[b](froms[a]())), batched(steps[b](froms[a]())));
			if (of_batches(steps[b]))
				check(steps[b](batched(froms[a]())), steps[b](batched(froms[a]())));
		}
	scratch_leave(NULL);
}

static void a_source_that_can_jump_is_not_read(void **state)
{
	(void) state;
	choir_dataset *d = choir_dataset_batch(choir_dataset_skip(numbers_in_memory(1000), 10), 7);
	int64_t number[7], n;
	assert_int_equal(chi_dataset_seek(d, 4, 100), CHOIR_OK);
	assert_int_equal(next(d, number, &n), CHOIR_OK);
	assert_int_equal(number[0], 710);
	choir_dataset_free(d);
	number_source s = { .n = 50, .fail_at = -1 };
	d = numbers_from(&s);
	assert_int_equal(chi_dataset_seek(d, 0, 30), CHOIR_OK);
	assert_int_equal(s.asked, 30); // one that cannot is
	choir_dataset_free(d);
}

static void places_that_cannot_be_are_refused(void **state)
{
	(void) state;
	choir_dataset *d = numbers_in_memory(3);
	assert_int_equal(chi_dataset_seek(d, -1, 0), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "pass -1 and element 0 given, 0 or more needed");
	assert_int_equal(chi_dataset_seek(d, 0, -2), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "element -2");
	assert_int_equal(chi_dataset_seek(d, 0, 4), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "memory dataset: pass 0 has 3 elements, but was read up to 4");
	assert_next_fails(d, CHOIR_INVALID, "not the dataset");
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_numbers(d, NUMBERS(0, 1, 2));
	choir_dataset_free(d);
}

static void signatures_tell_chains_apart(void **state)
{
	(void) state;
	choir_dataset *d[] = { numbers_in_memory(5), numbers_as_stream(5),
		choir_dataset_batch(numbers_in_memory(5), 2), choir_dataset_batch(numbers_in_memory(5), 3),
		choir_dataset_shuffle(numbers_in_memory(5), 5, 1),
		choir_dataset_shuffle(numbers_in_memory(5), 5, 2),
		choir_dataset_shuffle(numbers_in_memory(5), 4, 1), choir_digits_dataset_new(5, 1),
		choir_dataset_take(numbers_in_memory(5), 2), choir_dataset_skip(numbers_in_memory(5), 2),
		choir_dataset_shard(numbers_in_memory(5), 2, 0),
		choir_dataset_shard(numbers_in_memory(5), 2, 1),
		choir_dataset_repeat(numbers_in_memory(5), 2),
		choir_dataset_to_float(numbers_in_memory(5), "number", 1),
		choir_dataset_to_float(numbers_in_memory(5), "number", 2) };
	enum { ALL = sizeof d / sizeof d[0] };
	for (int i = 0; i < ALL; i++)
		for (int j = 0; j < i; j++)
			assert_true(chi_dataset_signature(d[i]) != chi_dataset_signature(d[j]));
	for (int i = 0; i < ALL; i++)
		choir_dataset_free(d[i]);
}

static void examples_of_different_sizes_go_through(void **state)
{
	(void) state;
	choir_dataset *d = choir_dataset_skip(choir_dataset_shuffle(words_new(40), 7, 3), 4);
	d = choir_dataset_prefetch(
			choir_dataset_zip(d, choir_dataset_take(numbers_as_stream(36), 36)), 5);
	assert_null(d); // both have a "number"
	assert_failure(CHOIR_INVALID, "zip: both have a column \"number\"");
	d = choir_dataset_repeat(choir_dataset_shuffle(words_new(40), 7, 3), 2);
	d = choir_dataset_prefetch(choir_dataset_skip(d, 4), 5);
	chi_cell word = { .data = NULL };
	int64_t number, seen = 0;
	chi_element e = { .column = { &word, &number }, .capacity = 1 };
	while (chi_dataset_next(d, &e) == CHOIR_OK) {
		assert_word(&word, number);
		seen++;
	}
	assert_int_equal(seen, 76);
	chi_cell_free(&word);
	choir_dataset_free(d);
}

// spec: D6
static void a_dataset_says_what_its_elements_are(void **state)
{
	(void) state;
	choir_dataset *d = words_new(10);
	assert_int_equal(choir_dataset_columns(d), 2);
	assert_string_equal(choir_dataset_column(d, 0)->name, "word");
	assert_int_equal(choir_dataset_column(d, 0)->shape.dim[0], CHOIR_NONE);
	assert_int_equal(choir_dataset_column(d, 1)->dtype, CHOIR_I64);
	assert_null(choir_dataset_column(d, 2));
	assert_int_equal(choir_dataset_batch_size(d), 0);
	assert_int_equal(choir_dataset_cardinality(d), 10);
	choir_dataset_free(d);
	d = choir_dataset_batch(choir_dataset_repeat(numbers_in_memory(5), CHOIR_NONE), 2);
	assert_int_equal(choir_dataset_batch_size(d), 2);
	assert_int_equal(choir_dataset_cardinality(d), CHOIR_ENDLESS);
	choir_dataset_free(d);
	d = choir_dataset_batch(numbers_in_memory(5), 2);
	assert_int_equal(choir_dataset_cardinality(d), 3);
	choir_dataset_free(d);
	d = numbers_as_stream(3);
	assert_int_equal(choir_dataset_cardinality(d), CHOIR_NONE);
	choir_dataset_free(d);
	assert_int_equal(choir_dataset_columns(NULL), 0);
	assert_null(choir_dataset_column(NULL, 0));
	assert_int_equal(choir_dataset_batch_size(NULL), 0);
	assert_int_equal(choir_dataset_cardinality(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_of_steps_goes_on_where_it_stood),
		cmocka_unit_test(every_source_goes_on_where_it_stood),
		cmocka_unit_test(a_source_that_can_jump_is_not_read),
		cmocka_unit_test(places_that_cannot_be_are_refused),
		cmocka_unit_test(signatures_tell_chains_apart),
		cmocka_unit_test(examples_of_different_sizes_go_through),
		cmocka_unit_test(a_dataset_says_what_its_elements_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
