// Where an iterator stands: going to any element of any pass gives what reading up to there would
// have given, for each step behind each kind of source; elements whose shape varies; what the
// elements are.
#include "data/elements.h"

#include "data/kinds.h"
#include "data/source/scratch.h"
#include "data/varying.h"
#include "short.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

// A source, two transforms, and a batch step: in front of the second one, behind it, or nowhere.
typedef struct {
	const source_kind *source;
	const transform_kind *a, *b;
	int batch;
} chain;
enum { NOWHERE, BETWEEN, BEHIND, WAYS };

// Whether these can be in a pipeline.
static bool can_be(const chain *c)
{
	const bool plain = c->a->constructor == NULL;
	bool batches = c->a->batches;
	if (c->b->whole && !plain)
		return false; // lengths that do not match
	if (c->batch == BETWEEN && batches)
		return false;
	batches = batches || c->batch == BETWEEN;
	if (c->b->single && batches)
		return false;
	batches = c->b->batches ||
			(batches &&
					strcmp(c->b->constructor ? c->b->constructor : "", "choir_dataset_unbatch"));
	return !(c->batch == BEHIND && batches);
}

static choir_dataset *build(const chain *c)
{
	choir_dataset *d = c->a->make(c->source->make());
	if (c->batch == BETWEEN)
		d = choir_dataset_batch(d, 4);
	d = c->b->make(d);
	if (c->batch == BEHIND)
		d = choir_dataset_batch(d, 4);
	if (!d)
		fail_msg("%s, %s, %s, %d: %s", c->source->constructor, c->a->constructor,
				c->b->constructor, c->batch, choir_error());
	return d;
}

// One element into memory of the test's.
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

enum { PASSES = 3, MAX_ELEMENTS = 27 * KIND_EXAMPLES };
typedef struct {
	int64_t elements[PASSES];
	int64_t number[PASSES][MAX_ELEMENTS][KIND_BATCH], size[PASSES][MAX_ELEMENTS];
} passes;

static void read_passes(choir_dataset *d, int n, passes *p)
{
	for (int i = 0; i < n; i++) {
		int64_t at = 0;
		while (next(d, p->number[i][at], &p->size[i][at]) == CHOIR_OK)
			assert_in_range(++at, 1, MAX_ELEMENTS - 1);
		p->elements[i] = at;
		assert_int_equal(chi_dataset_pass(d), i);
		if (i + 1 < n)
			assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
}

// What comes next at that place is what came there.
static void check_place(const passes *p, choir_dataset *d, int number, int64_t at)
{
	int64_t found[KIND_BATCH], n;
	assert_int_equal(chi_dataset_seek(d, number, at), CHOIR_OK);
	assert_int_equal(chi_dataset_pass(d), number);
	for (int64_t k = at; k < p->elements[number] && k < at + 5; k++) {
		assert_int_equal(next(d, found, &n), CHOIR_OK);
		assert_int_equal(n, p->size[number][k]);
		assert_memory_equal(found, p->number[number][k], (size_t) n * sizeof found[0]);
	}
	if (at + 5 >= p->elements[number])
		assert_int_equal(next(d, found, &n), CHOIR_END);
}

// Reads passes to their ends and then jumps to places of them, with another iterator; with a new
// one each time where what was read is gone.
static void check_chain(const chain *c)
{
	static passes p;
	const bool once = c->source->once;
	choir_dataset *d = build(c), *again = build(c);
	assert_int_equal(chi_dataset_signature(d), chi_dataset_signature(again));
	read_passes(d, once ? 1 : PASSES, &p);
	choir_dataset_free(d);
	for (int i = once ? 0 : PASSES - 1; i >= 0; i--)
		for (int64_t at = 0; at <= p.elements[i];
				at += 1 + SHORT + (p.elements[i] - at) / (SHORT ? 3 : 7)) {
			check_place(&p, again, i, at);
			if (once) {
				choir_dataset_free(again);
				again = build(c);
			}
		}
	// One element more than a pass has is another dataset's place.
	if (!c->source->anywhere) {
		assert_int_equal(chi_dataset_seek(again, 0, p.elements[0] + 1), CHOIR_INVALID);
		assert_failure(CHOIR_INVALID, "position");
	}
	choir_dataset_free(again);
	kinds_wait();
}

// spec: D30
TEST(every_pair_of_steps_goes_on_where_it_stood)
{
	assert_true(source_kinds[0].random && !source_kinds[1].random); // both ways to read
	for (size_t s = 0; s < 2; s++)
		for (size_t a = 0; a < transform_kind_count; a++)
			for (size_t b = a % SERIAL_STRIDE; b < transform_kind_count; b += SERIAL_STRIDE)
				for (int batch = 0; batch < WAYS; batch++) {
					const chain c = { &source_kinds[s], &transform_kinds[a], &transform_kinds[b],
						batch };
					if (can_be(&c))
						check_chain(&c);
				}
}

// spec: D30
TEST(every_source_goes_on_where_it_stood)
{
	for (size_t s = 0; s < source_kind_count; s++)
		for (size_t b = s % SERIAL_STRIDE; b < transform_kind_count; b += SERIAL_STRIDE)
			for (int batch = 0; batch < WAYS; batch++) {
				const chain c = { &source_kinds[s], &transform_kinds[0], &transform_kinds[b],
					batch };
				if (can_be(&c))
					check_chain(&c);
			}
}

static bool is_known(const char *name, size_t length)
{
	for (size_t i = 0; i < source_kind_count; i++)
		if (strncmp(source_kinds[i].constructor, name, length) == 0 &&
				source_kinds[i].constructor[length] == '\0')
			return true;
	for (size_t i = 1; i < transform_kind_count; i++)
		if (strncmp(transform_kinds[i].constructor, name, length) == 0 &&
				transform_kinds[i].constructor[length] == '\0')
			return true;
	return false;
}

// Each constructor that a header declares has a kind above; gives how many there are.
static int count_constructors(const char *header)
{
	static const char begin[] = "choir_dataset *";
	char line[256], path[512];
	int n = 0;
	snprintf(path, sizeof path, "%s/include/choir/%s", CHOIR_SOURCE_DIR, header);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		const char *name = line + sizeof begin - 1;
		if (strncmp(line, begin, sizeof begin - 1) != 0 || !strchr(name, '('))
			continue;
		if (!is_known(name, strcspn(name, "(")))
			fail_msg("tests/data/kinds.c does not have %s", name);
		n++;
	}
	fclose(f);
	return n;
}

TEST(no_source_and_no_transform_is_forgotten)
{
	assert_int_equal(count_constructors("source.h"), 20);
	assert_int_equal(count_constructors("dataset.h"), 24);
	assert_true(transform_kinds[0].constructor == NULL);
}

TEST(a_source_that_can_jump_is_not_read)
{
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

TEST(places_that_cannot_be_are_refused)
{
	choir_dataset *d = numbers_in_memory(3);
	assert_int_equal(chi_dataset_seek(d, -1, 0), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "pass -1*element 0");
	assert_int_equal(chi_dataset_seek(d, 0, -2), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "element -2");
	assert_int_equal(chi_dataset_seek(d, 0, 4), CHOIR_INVALID);
	assert_failure(CHOIR_INVALID, "memory dataset:*pass 0*3 elements*4");
	assert_next_fails(d, CHOIR_INVALID, "4");
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	assert_numbers(d, NUMBERS(0, 1, 2));
	choir_dataset_free(d);
}

static void tell_apart(choir_dataset *const d[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (chi_dataset_signature(d[i]) == chi_dataset_signature(d[j]))
				fail_msg("%zu and %zu: %s", j, i, d[i] ? "alike" : choir_error());
	for (size_t i = 0; i < n; i++)
		choir_dataset_free(d[i]);
}
#define TELL_APART(...) \
	do { \
		choir_dataset *chains[] = { __VA_ARGS__ }; \
		tell_apart(chains, sizeof chains / sizeof chains[0]); \
	} while (0)

TEST(signatures_tell_chains_apart)
{
	TELL_APART(numbers_in_memory(5), numbers_as_stream(5),
			choir_dataset_batch(numbers_in_memory(5), 2),
			choir_dataset_batch(numbers_in_memory(5), 3),
			choir_dataset_batch_drop_remainder(numbers_in_memory(5), 2),
			choir_dataset_shuffle(numbers_in_memory(5), 5, 1),
			choir_dataset_shuffle(numbers_in_memory(5), 5, 2),
			choir_dataset_shuffle(numbers_in_memory(5), 4, 1),
			choir_dataset_shuffle_once(numbers_in_memory(5), 5, 0),
			choir_dataset_shuffle_once(numbers_in_memory(5), 5, 1),
			choir_synthetic_digits_dataset_new(5, 1), choir_synthetic_digits_dataset_new(5, 2),
			choir_dataset_take(numbers_in_memory(5), 2),
			choir_dataset_skip(numbers_in_memory(5), 2),
			choir_dataset_shard(numbers_in_memory(5), 2, 0),
			choir_dataset_shard(numbers_in_memory(5), 2, 1),
			choir_dataset_repeat(numbers_in_memory(5), 2),
			choir_dataset_to_float(numbers_in_memory(5), "number", 1),
			choir_dataset_to_float(numbers_in_memory(5), "number", 2),
			choir_range_dataset_new("number", 0, 9, 1),
			choir_range_dataset_new("number", 1, 9, 3));
}

static choir_dataset *windows(int64_t length, int64_t shift, int64_t stride)
{
	return choir_dataset_window(numbers_in_memory(5),
			CHOIR_OPTIONS(
					choir_window_options, .length = length, .shift = shift, .stride = stride));
}

static choir_dataset *padded_with(double value, bool drop)
{
	const double values[] = { value, 0 };
	return choir_dataset_padded_batch(words_new(5), 2,
			CHOIR_OPTIONS(
					choir_padded_batch_options, .padding_values = values, .drop_remainder = drop));
}

static choir_dataset *standard(float mean, float deviation)
{
	return choir_dataset_standardize(choir_dataset_to_float(numbers_in_memory(5), "number", 1),
			"number", 1, &mean, &deviation);
}

// What the columns do not show.
TEST(signatures_hold_the_arguments_of_steps)
{
	TELL_APART(windows(2, 1, 1), windows(3, 1, 1), windows(2, 2, 1), windows(2, 1, 2));
	TELL_APART(padded_with(0, false), padded_with(1, false), padded_with(0, true));
	TELL_APART(standard(0, 1), standard(1, 1), standard(0, 2));
}

static choir_dataset *rows(choir_missing missing, choir_bad_record wrong, const char *text)
{
	return choir_csv_dataset_new(scratch_text("rows.csv", "a,b\n1,2\n3,4\n"),
			CHOIR_OPTIONS(choir_csv_options, .missing = missing, .bad_record = wrong,
					.missing_texts = 1, .missing_text = &text));
}

static choir_dataset *kept(bool finite, bool optional)
{
	const choir_csv_column a = {
		.name = "a", .kind = CHOIR_CSV_NUMBER, .dtype = CHOIR_F32, .optional = optional
	};
	return choir_csv_dataset_new(scratch_text("rows.csv", "a,b\n1,2\n3,4\n"),
			CHOIR_OPTIONS(choir_csv_options, .columns = 1, .column = &a, .finite = finite));
}

static choir_dataset *records(choir_bad_record wrong)
{
	return choir_tfrecord_dataset_new(scratch_text("no.tfrecord", ""),
			CHOIR_OPTIONS(choir_tfrecord_options, .wrong = wrong, .raw = true, .n = 1,
					.features = &(choir_feature){ .name = "x", .dtype = CHOIR_U8 }));
}

TEST(signatures_hold_which_rows_are_left_out)
{
	TELL_APART(rows(CHOIR_MISSING_NAN, CHOIR_BAD_RECORD_ERROR, "?"),
			rows(CHOIR_MISSING_DROP, CHOIR_BAD_RECORD_ERROR, "?"),
			rows(CHOIR_MISSING_DROP, CHOIR_BAD_RECORD_SKIP, "?"),
			rows(CHOIR_MISSING_DROP, CHOIR_BAD_RECORD_ERROR, "-"));
	TELL_APART(kept(false, false), kept(true, false), kept(false, true));
	TELL_APART(records(CHOIR_BAD_RECORD_ERROR), records(CHOIR_BAD_RECORD_SKIP));
	const char *path = scratch_text("some.txt", "a\n");
	TELL_APART(choir_text_lines_dataset_new(path, "x", CHOIR_BAD_RECORD_ERROR),
			choir_text_lines_dataset_new(path, "x", CHOIR_BAD_RECORD_SKIP));
}

TEST(examples_of_different_sizes_go_through)
{
	choir_dataset *d = choir_dataset_skip(choir_dataset_shuffle(words_new(40), 7, 3), 4);
	d = choir_dataset_prefetch(
			choir_dataset_zip(d, choir_dataset_take(numbers_as_stream(36), 36)), 5);
	assert_null(d); // both have a "number"
	assert_failure(CHOIR_INVALID, "zip:*\"number\"");
	d = choir_dataset_repeat(choir_dataset_shuffle(words_new(40), 7, 3), 2);
	d = choir_dataset_prefetch(choir_dataset_skip(d, 4), 5);
	chi_ragged_value word = { .data = NULL };
	int64_t number, seen = 0;
	chi_element e = { .column = { &word, &number }, .capacity = 1 };
	while (chi_dataset_next(d, &e) == CHOIR_OK) {
		assert_word(&word, number);
		seen++;
	}
	assert_int_equal(seen, 76);
	chi_ragged_value_free(&word);
	choir_dataset_free(d);
}

// spec: D6
TEST(a_dataset_says_what_its_elements_are)
{
	choir_dataset *d = words_new(10);
	assert_int_equal(choir_dataset_columns(d), 2);
	assert_string_equal(choir_dataset_column(d, 0)->name, "word");
	assert_int_equal(choir_dataset_column(d, 0)->shape.dim[0], CHOIR_NONE);
	assert_int_equal(choir_dataset_column(d, 1)->dtype, CHOIR_I64);
	assert_null(choir_dataset_column(d, 2));
	assert_int_equal(choir_dataset_batch_size(d), 0);
	assert_int_equal(choir_dataset_cardinality(d), 10);
	choir_dataset_free(d);
	d = choir_dataset_batch(choir_dataset_repeat(numbers_in_memory(5), CHOIR_FOREVER), 2);
	assert_int_equal(choir_dataset_batch_size(d), 2);
	assert_int_equal(choir_dataset_cardinality(d), CHOIR_INFINITE_CARDINALITY);
	choir_dataset_free(d);
	d = choir_dataset_batch(numbers_in_memory(5), 2);
	assert_int_equal(choir_dataset_cardinality(d), 3);
	choir_dataset_free(d);
	d = numbers_as_stream(3);
	assert_int_equal(choir_dataset_cardinality(d), CHOIR_UNKNOWN_CARDINALITY);
	choir_dataset_free(d);
	assert_int_equal(choir_dataset_columns(NULL), 0);
	assert_null(choir_dataset_column(NULL, 0));
	assert_int_equal(choir_dataset_batch_size(NULL), 0);
	assert_int_equal(choir_dataset_cardinality(NULL), 0);
}

TEST_GROUP(kinds_begin, kinds_end)
