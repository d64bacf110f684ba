// Columns that do not hold what they seem to hold: a table is read as its texts say, and each
// surprise gets one line with the column, the numbers and the remedy.
#include "data/table_check.h"
#include "data/table_data.h"
#include "command_options.h"
#include "output.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 600, HINT = 400 };
static const char usual_missing[] = "NA,N/A,NaN,nan,null,NULL,n/a,None,#N/A,<NA>";

__attribute__((format(printf, 2, 3))) static void warn(const source *s, const char *fmt, ...)
{
	char what[LINE], text[2 * LINE];
	va_list args;
	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	snprintf(text, sizeof text, "warning: %.500s: %s", s->data.path, what);
	print_error("choir train", text);
}

bool table_has_many_classes(int64_t classes, int64_t rows)
{
	return classes > FEW_CLASSES && 2 * classes > rows;
}

// The texts that mean a missing value, with one more. A list cannot have all texts, and a long
// text may be cut.
static void suggest_missing(const table_format *f, const char *other, char remedy[HINT])
{
	enum { CUT = 39 };
	char list[MISSING_SIZE];
	const char *now = f->lists_missing ? f->missing : usual_missing;
	const int n = snprintf(list, sizeof list, "%s%s%s", now, now[0] == '\0' ? "" : ",", other);
	if (n < MISSING_SIZE && strlen(other) < CUT && strchr(other, ',') == NULL &&
			strcmp(list, "none") != 0)
		snprintf(remedy, HINT, "--missing-values \"%s\" makes it a missing value", list);
}

// "1999 of 2000 values are numbers; row 6 has "?"", and what to do.
static void describe_mostly(
		const source *s, const choir_csv_inferred *c, char text[HINT], char remedy[HINT])
{
	char other[CLEAN_TEXT];
	remedy[0] = '\0';
	size_t at = (size_t) snprintf(text, HINT, "%lld of %lld values are %s",
			(long long) (c->values - c->others), (long long) c->values, c->mostly);
	if (strstr(c->mostly, "comma") != NULL)
		snprintf(remedy, HINT, "--decimal comma reads them");
	if (strstr(c->mostly, "other") != NULL)
		snprintf(remedy, HINT, "only forms such as -1234.5 and 2026-11-24 are read");
	if (c->other == NULL)
		return;
	clean_text(c->other, other);
	if (at < HINT)
		snprintf(text + at, HINT - at, "; row %lld has \"%s\"", (long long) c->other_row, other);
	if (remedy[0] == '\0' && strcmp(other, c->other) == 0)
		suggest_missing(&s->format, other, remedy);
}

static void warn_of_texts(const source *s, const choir_csv_inferred *c)
{
	char text[HINT], remedy[HINT], use[64] = "an ignored text";
	char name[CLEAN_TEXT], other[CLEAN_TEXT];
	const bool odd = c->mostly != NULL && strstr(c->mostly, "other") != NULL;
	if (c->not_utf8 && c->output == NULL)
		warn(s,
				"column \"%s\" is ignored: row %lld has \"%s\", which is not UTF-8; iconv -f "
				"latin1 "
				"-t utf-8 converts a file from Latin-1",
				clean_text(c->name, name), (long long) c->other_row, clean_text(c->other, other));
	if (c->mostly == NULL || (odd && (c->categories > 0 || table_is_target(s, c->name))))
		return;
	describe_mostly(s, c, text, remedy);
	if (c->categories > 0)
		snprintf(use, sizeof use, "text with %zu categories", c->categories);
	else if (table_is_target(s, c->name))
		snprintf(use, sizeof use, "the target");
	warn(s, "column \"%s\" is %s, but %s%s%s", clean_text(c->name, name), use, text,
			remedy[0] == '\0' ? "" : "; ", remedy);
}

static void warn_of_missing(const source *s)
{
	choir_csv_inferred c, worst = { .missing = 0 };
	char name[CLEAN_TEXT];
	int64_t rows = 0;
	bool warned = false;
	for (size_t i = 0; choir_csv_dataset_column(s->names, i, &c); i++) {
		const bool target = table_is_target(s, c.name), text = strcmp(c.holds, "text") == 0;
		rows = c.values + c.missing;
		if (!target && c.output != NULL && c.missing > worst.missing)
			worst = c;
		if (!target || c.missing == 0 || (!text && 10 * c.missing <= rows))
			continue;
		warned = warned || 10 * c.missing > rows;
		warn(s, "the target \"%s\" has no value in %lld of %lld rows, which are left out%s",
				clean_text(c.name, name), (long long) c.missing, (long long) rows,
				!text ? ""
						: s->format.lists_missing
						? "; --missing-values lists these texts"
						: "; without --missing-values, NA, None and some other texts "
						  "mean no value");
	}
	if (s->imputes)
		return;
	if (10 * worst.missing <= rows && 10 * s->dropped > rows && !warned)
		warn(s,
				"%lld of %lld rows lack a value in a column, and are left out; --missing impute "
				"keeps them",
				(long long) s->dropped, (long long) rows);
	if (10 * worst.missing > rows)
		warn(s,
				"column \"%s\" has no value in %lld of %lld rows, which are left out; --missing "
				"impute keeps them",
				clean_text(worst.name, name), (long long) worst.missing, (long long) rows);
}

static void warn_of_groups(const source *s)
{
	choir_csv_inferred c;
	char first[CLEAN_TEXT] = "";
	const bool comma = s->format.decimal == ',';
	size_t n = 0;
	for (size_t i = 0; choir_csv_dataset_column(s->names, i, &c); i++)
		if (c.grouped && (c.output != NULL || table_is_target(s, c.name)) && n++ == 0)
			clean_text(c.name, first);
	if (n > 0)
		warn(s,
				"column \"%s\" %s thousands separators: %s is read as 1234; %s --decimal comma it "
				"is 1.234",
				first, n == 1 ? "has" : "and others have", comma ? "1.234" : "\"1,234\"",
				comma ? "without" : "with");
}

static bool is_number(const char *text)
{
	char *end;
	(void) strtod(text, &end);
	return end != text && *end == '\0';
}

static void warn_of_header(const source *s)
{
	choir_csv_inferred c;
	size_t n = 0, numbers = 0;
	for (; choir_csv_dataset_column(s->names, n, &c); n++)
		numbers += is_number(c.name);
	if (n > 0 && numbers == n)
		warn(s, "the header has only numbers; the first row must have the names of the columns");
}

enum { STEPS = 16 };

// Whether a column in rows of width numbers, as the model gets them, has few different ones.
static bool is_suspect(
		const source *s, const float *column, int64_t width, const char *name, close_values *out)
{
	float min = column[0], max = column[0];
	for (int64_t i = 1; i < s->rows.n; i++) {
		min = fminf(min, column[i * width]);
		max = fmaxf(max, column[i * width]);
	}
	const float step = nextafterf(fabsf(max), HUGE_VALF) - fabsf(max);
	*out = (close_values){ .name = name, .limit = STEPS * (double) step, .near = (double) max };
	return max - min < STEPS * step && max != 0;
}

static void warn_of_rounding(const source *s)
{
	choir_csv_inferred c;
	close_values suspect[MAX_CLOSE];
	char name[CLEAN_TEXT];
	int64_t at = 0;
	size_t n = 0;
	for (size_t i = 0; s->rows.image != NULL && choir_csv_dataset_column(s->names, i, &c); i++) {
		const int64_t width = table_width_of(s, &c), input = at;
		at += width;
		if (width == 0 || c.kind != CHOIR_CSV_NUMBER || n == MAX_CLOSE)
			continue;
		n += is_suspect(s, s->rows.image + input, s->shape.dim[0], c.name, &suspect[n]);
	}
	for (size_t k = 0; s->rows.image != NULL && k < s->targets && n < MAX_CLOSE; k++)
		n += is_suspect(s, (const float *) s->rows.label + k, (int64_t) s->targets,
				s->target_name[k], &suspect[n]);
	table_find_close(s, n, suspect);
	for (size_t i = 0; i < n; i++)
		if (suspect[i].varies)
			warn(s,
					"column \"%s\" has different values near %.6g, where f32 has steps of %.3g; "
					"subtract a constant from it",
					clean_text(suspect[i].name, name), suspect[i].near, suspect[i].limit / STEPS);
}

void table_print_warnings(const source *s)
{
	choir_csv_inferred c;
	char name[CLEAN_TEXT];
	warn_of_header(s);
	for (size_t i = 0; choir_csv_dataset_column(s->names, i, &c); i++) {
		warn_of_texts(s, &c);
		if (table_is_target(s, c.name) && s->targets == 0 && !s->chosen_task &&
				s->classes > FEW_CLASSES && strcmp(c.holds, "whole numbers") == 0)
			warn(s,
					"the target \"%s\" has whole numbers, which are %lld classes; --task "
					"regression "
					"predicts numbers, and --task classification hides this line",
					clean_text(c.name, name), (long long) s->classes);
	}
	warn_of_missing(s);
	warn_of_groups(s);
	if (s->targets == 0 && s->classes == 1)
		warn(s, "the target \"%s\" has one class only; a classification needs two",
				clean_text(s->target, name));
	warn_of_rounding(s);
}

choir_status table_check_targets(const source *s)
{
	choir_csv_inferred c;
	char name[CLEAN_TEXT], other[CLEAN_TEXT] = "", place[CLEAN_TEXT + 40] = "";
	for (size_t i = 0; choir_csv_dataset_column(s->names, i, &c); i++) {
		const bool text = strcmp(c.holds, "text") == 0;
		const bool usual = c.mostly != NULL && strcmp(c.mostly, "numbers") == 0;
		if (!table_is_target(s, c.name) || s->targets == 0 || usual ||
				(!text && strcmp(c.holds, "dates") != 0 && strcmp(c.holds, "nothing") != 0))
			continue;
		if (text && c.other != NULL)
			snprintf(place, sizeof place, " (row %lld: \"%s\")", (long long) c.other_row,
					clean_text(c.other, other));
		return choir_fail(CHOIR_INVALID,
				"%s: column \"%s\" holds %s%s; a regression needs numbers%s", s->data.path,
				clean_text(c.name, name), c.holds, place,
				s->targets > 1 ? ", as do several targets" : "");
	}
	return CHOIR_OK;
}

choir_status table_check_classes(const source *s)
{
	choir_csv_inferred c;
	char text[HINT] = "", remedy[HINT] = "", name[CLEAN_TEXT];
	const int64_t named = (int64_t) choir_dataset_categories(s->names, "label");
	const int64_t classes = named == 0 && !s->plain_labels ? s->classes : named;
	for (size_t i = 0; s->targets == 0 && choir_csv_dataset_column(s->names, i, &c); i++) {
		if (!table_is_target(s, c.name))
			continue;
		clean_text(c.name, name);
		if (strcmp(c.holds, "nothing") == 0 || (named == 0 && strcmp(c.holds, "numbers") == 0))
			return choir_fail(CHOIR_INVALID,
					"%s: column \"%s\" holds %s%s; --task classification needs classes, as whole "
					"numbers or texts",
					s->data.path, name, c.holds,
					named == 0 && c.values > 0 ? " of too many values" : "");
		if (!table_has_many_classes(classes, s->examples))
			continue;
		if (c.mostly != NULL)
			describe_mostly(s, &c, text, remedy);
		else if (strcmp(c.holds, "text") != 0)
			snprintf(remedy, sizeof remedy, "--task regression predicts numbers");
		return choir_fail(CHOIR_INVALID,
				"%s: the target \"%s\" has %lld different values in %lld rows%s%s; a "
				"classification "
				"needs several rows of each class%s%s",
				s->data.path, name, (long long) classes, (long long) s->examples,
				text[0] == '\0' ? "" : "; ", text, remedy[0] == '\0' ? "" : "; ", remedy);
	}
	return CHOIR_OK;
}
