// Sources and readers for the tests of datasets.
#include "data/elements.h"

#include "base/alloc.h"
#include "base/status.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const choir_column number_column = { .name = "number", .dtype = CHOIR_I64 };

choir_dataset *numbers_in_memory(int64_t n)
{
	int64_t *data = malloc((size_t) (n + 1) * sizeof *data);
	assert_non_null(data);
	for (int64_t i = 0; i < n; i++)
		data[i] = i;
	choir_column column = number_column;
	column.data = data;
	choir_dataset *d = choir_memory_dataset_new(n, 1, &column, true);
	free(data);
	return d;
}

static choir_status make_number(int64_t position, void *const out[], void *user)
{
	number_source *s = user;
	s->asked++;
	if (position == s->n)
		return CHOIR_END;
	if (position == s->fail_at)
		return s->message ? choir_fail(CHOIR_IO, "%s", s->message) : CHOIR_IO;
	*(int64_t *) out[0] = position;
	return CHOIR_OK;
}

choir_dataset *numbers_from(number_source *s)
{
	return choir_generator_dataset_new(1, &number_column, make_number, s);
}

// The length travels in the pointer, so that nothing has to be freed.
static choir_status count_up(int64_t position, void *const out[], void *user)
{
	if (position == (int64_t) (intptr_t) user)
		return CHOIR_END;
	*(int64_t *) out[0] = position;
	return CHOIR_OK;
}

choir_dataset *numbers_as_stream(int64_t n)
{
	return choir_generator_dataset_new(1, &number_column, count_up, (void *) (intptr_t) n);
}

void read_pass(choir_dataset *d, int64_t max, pass *p)
{
	const chi_spec *spec = chi_dataset_spec(d);
	assert_non_null(spec);
	int64_t unit = spec->batch ? spec->batch : 1;
	chi_element e = { .capacity = unit };
	p->n = p->elements = 0;
	p->status = CHOIR_OK;
	while (p->n < max) {
		assert_true(p->n + unit <= MAX_NUMBERS);
		e.column[0] = p->number + p->n;
		p->status = chi_dataset_next(d, &e);
		if (p->status != CHOIR_OK)
			return;
		assert_in_range(e.examples, 1, unit);
		p->size[p->elements++] = e.examples;
		p->n += e.examples;
	}
}

static void assert_same(
		int64_t n, const int64_t expected[], int64_t found_n, const int64_t found[])
{
	for (int64_t i = 0; i < n && i < found_n; i++)
		if (found[i] != expected[i])
			fail_msg("at %lld: found %lld, expected %lld", (long long) i, (long long) found[i],
					(long long) expected[i]);
	assert_int_equal(found_n, n);
}

static void read_well(choir_dataset *d, pass *p)
{
	if (!d)
		fail_msg("no dataset: %s", choir_error());
	read_pass(d, MAX_NUMBERS, p);
	if (p->status != CHOIR_END)
		fail_msg("%s: %s", choir_status_name(p->status), choir_error());
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
}

void assert_numbers(choir_dataset *d, int64_t n, const int64_t expected[])
{
	pass p;
	read_well(d, &p);
	assert_same(n, expected, p.n, p.number);
}

void assert_sizes(choir_dataset *d, int64_t n, const int64_t expected[])
{
	pass p;
	read_well(d, &p);
	assert_same(n, expected, p.elements, p.size);
}

void assert_failure(choir_status status, const char *text)
{
	assert_string_equal(choir_status_name(choir_error_status()), choir_status_name(status));
	assert_true(choir_error()[0] != '\0');
	if (!text_holds(choir_error(), text))
		fail_msg("\"%s\" does not hold \"%s\"", choir_error(), text);
	chi_error_clear();
}

void assert_refused(choir_dataset *d, choir_status status, const char *text)
{
	assert_null(d);
	assert_failure(status, text);
}

void assert_next_fails(choir_dataset *d, choir_status status, const char *text)
{
	for (int i = 0; i < 2; i++) {
		pass p;
		read_pass(d, 1, &p);
		assert_string_equal(choir_status_name(p.status), choir_status_name(status));
		assert_failure(status, text);
	}
}

choir_status read_to_end(choir_dataset *d, chi_element e)
{
	choir_status status = d ? CHOIR_OK : choir_error_status();
	while (status == CHOIR_OK)
		status = chi_dataset_next(d, &e);
	choir_dataset_free(d);
	return status;
}

void assert_every_allocation(use_fn *use, void *user)
{
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		chi_error_clear();
		chi_alloc_fail(n, false);
		choir_status status = use(user);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (status == CHOIR_END)
			status = CHOIR_OK;
		if (status != (failed ? CHOIR_NO_MEMORY : CHOIR_OK))
			fail_msg("allocation %llu %s: %s, \"%s\"", (unsigned long long) n,
					failed ? "failed" : "did not fail", choir_status_name(status), choir_error());
		if (failed)
			assert_failure(CHOIR_NO_MEMORY, "bytes");
	}
}
