// Labels that are numbers are classes by value: 1 and 1.0 are one class, and 10 follows 9. Keys
// are the values in one spelling, categories the file's texts.
#include "data/source/csv/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { KEY_SIZE = 40 };

typedef struct {
	double value;
	int64_t whole; // or 0
	const char *text;
} class_text;

static bool key_of(const chi_csv_schema *s, const chi_csv_text *t, char key[KEY_SIZE])
{
	chi_decimal d;
	int64_t whole;
	double value;
	const bool number = chi_csv_number(s, t, &d);
	if (number && chi_decimal_whole(&d, &whole))
		snprintf(key, KEY_SIZE, "%lld", (long long) whole);
	else if (number ? chi_decimal_f64(&d, &value) : chi_csv_not_finite(t, &value))
		snprintf(key, KEY_SIZE, "%.17g", value);
	else
		return false;
	return true;
}

choir_status chi_csv_key_classes(const chi_csv_schema *s, chi_csv_field *f)
{
	const size_t n = chi_categories_count(f->categories);
	char key[KEY_SIZE];
	f->keys = chi_categories_new();
	CHOIR_TRY(chi_made(f->keys));
	bool numbers = true;
	for (size_t i = 0; i < n && numbers; i++) {
		const char *text = chi_categories_text(f->categories, i);
		numbers = key_of(s, &(chi_csv_text){ text, strlen(text) }, key);
		if (numbers)
			CHOIR_TRY(chi_categories_add(f->keys, key, strlen(key)));
	}
	if (numbers && chi_categories_count(f->keys) == n)
		return CHOIR_OK;
	chi_categories_free(f->keys);
	f->keys = NULL;
	return CHOIR_OK;
}

int32_t chi_csv_find_class(
		const chi_csv_schema *s, const chi_csv_field *f, const chi_csv_text *field)
{
	char key[KEY_SIZE];
	if (!f->keys)
		return chi_categories_find(f->categories, field->text, field->length);
	if (key_of(s, field, key))
		return chi_categories_find(f->keys, key, strlen(key));
	return chi_categories_find(f->keys, field->text, field->length);
}

static int by_value(const void *a, const void *b)
{
	const class_text *x = a, *y = b;
	int order = (x->value > y->value) - (x->value < y->value);
	if (order == 0)
		order = (x->whole > y->whole) - (x->whole < y->whole);
	return order ? order : strcmp(x->text, y->text);
}

// *whole: all values are.
static class_text read_text(const chi_csv_schema *s, const char *text, bool *whole)
{
	const chi_csv_text t = { text, strlen(text) };
	chi_decimal d;
	class_text c = { HUGE_VAL, 0, text };
	const bool number = chi_csv_number(s, &t, &d);
	const bool is_whole = number && chi_decimal_whole(&d, &c.whole);
	*whole = *whole && is_whole;
	if (!number || !chi_decimal_f64(&d, &c.value))
		(void) chi_csv_not_finite(&t, &c.value);
	if (isnan(c.value))
		c.value = HUGE_VAL;
	return c;
}

static void forget(chi_csv_field *f)
{
	chi_categories_free(f->categories);
	f->categories = NULL;
	chi_categories_free(f->keys);
	f->keys = NULL;
	f->plain = true;
}

// One text per value. *plain: 0, 1, 2, ...
static choir_status take_distinct(
		const chi_csv_schema *s, chi_csv_field *f, size_t n, const class_text texts[], bool *plain)
{
	char number[KEY_SIZE], key[KEY_SIZE];
	chi_categories *distinct = chi_categories_new();
	f->keys = chi_categories_new();
	choir_status status = distinct && f->keys ? CHOIR_OK : CHOIR_NO_MEMORY;
	for (size_t i = 0; i < n && status == CHOIR_OK; i++) {
		const class_text *t = &texts[i];
		const chi_csv_text all = { t->text, strlen(t->text) };
		const char *k = key_of(s, &all, key) ? key : t->text;
		if (chi_categories_find(f->keys, k, strlen(k)) >= 0)
			continue;
		status = chi_categories_add(f->keys, k, strlen(k));
		if (status != CHOIR_OK)
			break;
		snprintf(number, sizeof number, "%zu", chi_categories_count(distinct));
		*plain = *plain && strcmp(number, t->text) == 0;
		status = chi_categories_add(distinct, t->text, strlen(t->text));
	}
	if (status != CHOIR_OK) {
		chi_categories_free(distinct);
		return status;
	}
	chi_categories_free(f->categories);
	f->categories = distinct;
	return CHOIR_OK;
}

choir_status chi_csv_infer_classes(chi_csv_schema *s, chi_csv_field *f)
{
	const size_t n = chi_categories_count(f->categories);
	bool whole = true, plain = true;
	class_text *texts = chi_alloc_array(n + 1, sizeof *texts);
	CHOIR_TRY(chi_made(texts));
	for (size_t i = 0; i < n; i++) {
		const char *text = chi_categories_text(f->categories, i);
		texts[i] = read_text(s, text, &whole);
	}
	qsort(texts, n, sizeof *texts, by_value);
	const bool many = !whole && n > CHI_MAX_REAL_CLASSES;
	const choir_status status = many ? CHOIR_OK : take_distinct(s, f, n, texts, &plain);
	chi_free(texts);
	CHOIR_TRY(status);
	if (n > 0 && whole)
		f->found = CHI_CSV_WHOLE;
	if (many || plain)
		forget(f);
	return CHOIR_OK;
}
