// The tables of a trace. Their window starts when every track has kept its spans, and ends with
// the program's last span. A span counts without the spans inside it, so categories in a row do
// not overlap. The rest of a replica's row is time between runs, or while its device ran another
// replica.
#include "trace_breakdown.h"

#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double MIN_SHARE = 0.002; // shorter operations share a line

static int name_of_span(breakdown *b, const char *name)
{
	if (b->names == 0)
		snprintf(b->name[b->names++], BREAKDOWN_NAME, "others");
	for (int i = 1; i < b->names; i++)
		if (strncmp(b->name[i], name, BREAKDOWN_NAME - 1) == 0)
			return i;
	if (b->names == BREAKDOWN_NAMES)
		return 0;
	snprintf(b->name[b->names], BREAKDOWN_NAME, "%s", name);
	return b->names++;
}

void breakdown_add(const choir_trace_span *span, void *user)
{
	breakdown *b = user;
	if (b->n == b->capacity) {
		const size_t capacity = b->capacity == 0 ? 4096 : 2 * b->capacity;
		breakdown_span *grown = realloc(b->span, capacity * sizeof *grown);
		if (grown == NULL) {
			b->failed = true;
			return;
		}
		b->span = grown;
		b->capacity = capacity;
	}
	b->span[b->n++] = (breakdown_span){ .track = span->track,
		.category = span->category,
		.depth = span->depth,
		.name = name_of_span(b, span->name),
		.run = span->track == CHOIR_TRACE_PROGRAM && strcmp(span->name, "run") == 0,
		.begin = span->begin,
		.end = span->end,
		.own = span->own };
}

void breakdown_free(breakdown *b)
{
	free(b->span);
	*b = (breakdown){ .n = 0 };
}

static int row_of(int track)
{
	if (track == CHOIR_TRACE_PROGRAM)
		return 0;
	return track >= 0 && track < BREAKDOWN_ROWS - 1 ? track + 1 : CHOIR_NONE;
}

static void find_window(const breakdown *b, breakdown_table *t)
{
	double first[BREAKDOWN_ROWS], kept = 0;
	bool seen[BREAKDOWN_ROWS] = { false };
	for (size_t i = 0; i < b->n; i++) {
		const breakdown_span *s = &b->span[i];
		const int row = row_of(s->track);
		if (row == CHOIR_NONE)
			continue;
		if (!seen[row] || s->begin < first[row])
			first[row] = s->begin;
		seen[row] = true;
		t->rows = row + 1 > t->rows ? row + 1 : t->rows;
	}
	for (int row = 0; row < t->rows && choir_trace_dropped_spans() > 0; row++)
		kept = seen[row] && first[row] > kept ? first[row] : kept;
	t->from = t->to = -1;
	for (size_t i = 0; i < b->n; i++) {
		const breakdown_span *s = &b->span[i];
		if (s->track != CHOIR_TRACE_PROGRAM || s->depth > 0 || s->begin < kept)
			continue;
		t->from = t->from < 0 || s->begin < t->from ? s->begin : t->from;
		t->to = s->end > t->to ? s->end : t->to;
	}
}

static int compare_operations(const void *a, const void *b)
{
	const double x = ((const breakdown_operation *) a)->seconds,
				 y = ((const breakdown_operation *) b)->seconds;
	return (x < y) - (x > y);
}

void breakdown_add_up(const breakdown *b, breakdown_table *t)
{
	*t = (breakdown_table){ .rows = 0 };
	for (int i = 0; i < BREAKDOWN_NAMES; i++)
		t->operations[i].name = b->name[i];
	find_window(b, t);
	for (size_t i = 0; i < b->n; i++) {
		const breakdown_span *s = &b->span[i];
		const int row = row_of(s->track);
		if (row == CHOIR_NONE || s->begin < t->from || s->end > t->to)
			continue;
		t->seconds[row][s->category] += s->own;
		if (row > 0 && s->category == CHOIR_TRACE_COMPUTE) {
			t->operations[s->name].calls++;
			t->operations[s->name].seconds += s->own;
		}
		if (s->track == CHOIR_TRACE_PROGRAM && s->depth == 0)
			t->spans += s->end - s->begin;
		t->runs += s->run && s->depth == 0;
	}
	qsort(t->operations, BREAKDOWN_NAMES, sizeof t->operations[0], compare_operations);
}

// The time in no span. The program's thread also runs the first device, so its row leaves out
// spans of any track.
static double rest_of(const breakdown_table *t, int row)
{
	double rest = t->to - t->from;
	if (row == 0)
		return rest - t->spans;
	for (int c = 0; c < CHOIR_TRACE_CATEGORIES; c++)
		rest -= t->seconds[row][c];
	return rest;
}

static const choir_trace_category columns[] = { CHOIR_TRACE_COMPUTE, CHOIR_TRACE_WAIT,
	CHOIR_TRACE_REDUCE, CHOIR_TRACE_UPDATE, CHOIR_TRACE_INPUT, CHOIR_TRACE_CHECKPOINT,
	CHOIR_TRACE_OTHER };
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static const char *name_of(int row, char name[32])
{
	if (row == 0)
		return "program";
	snprintf(name, 32, "replica %d", row - 1);
	return name;
}

static bool is_empty(const breakdown_table *t, int column)
{
	for (int row = 0; row < t->rows; row++)
		if (t->seconds[row][columns[column]] > 0)
			return false;
	return true;
}

static void print_line(
		const breakdown_table *t, int row, const char *name, const char *unit, double by)
{
	printf("%-12s%-3s", name, unit);
	for (int c = 0; c < COLUMNS; c++)
		if (!is_empty(t, c))
			printf("%11.3f", by * t->seconds[row][columns[c]]);
	printf("%11.3f\n", by * rest_of(t, row));
}

static void print_table(const breakdown_table *t)
{
	const double all = t->to - t->from, runs = (double) t->runs;
	char name[32];
	printf("time of %lld steps of %.4g ms each\n%-15s", (long long) t->runs, 1e3 * all / runs, "");
	for (int c = 0; c < COLUMNS; c++)
		if (!is_empty(t, c))
			printf("%11s", choir_trace_category_name(columns[c]));
	printf("%11s\n", "no span");
	for (int row = t->rows - 1; row >= 0; row--) {
		print_line(t, row, name_of(row, name), "ms", 1e3 / runs);
		print_line(t, row, "", "%", 100 / all);
	}
	printf("spans explain %.1f %% of the program's thread, which also runs the first device\n",
			100 * t->spans / all);
}

static void print_operation(const breakdown_operation *o, double runs, double all)
{
	printf("%-32s%9.1f calls%10.3f ms%8.2f %%\n", o->name, (double) o->calls / runs,
			1e3 * o->seconds / runs, 100 * o->seconds / all);
}

// Average time of a replica and step.
static void print_operations(const breakdown_table *t)
{
	const double replicas = t->rows - 1, runs = (double) t->runs * replicas,
				 all = replicas * (t->to - t->from);
	breakdown_operation rest = { .name = "shorter ones" };
	printf("compute time of a replica, by operation\n");
	for (int i = 0; i < BREAKDOWN_NAMES && t->operations[i].calls > 0; i++) {
		const breakdown_operation *o = &t->operations[i];
		if (o->seconds < MIN_SHARE * all) {
			rest.calls += o->calls;
			rest.seconds += o->seconds;
		} else {
			print_operation(o, runs, all);
		}
	}
	if (rest.calls > 0)
		print_operation(&rest, runs, all);
}

static void print_json(const breakdown_table *t)
{
	char name[32];
	const double all = t->to - t->from;
	json_begin_event("breakdown");
	json_integer("steps", t->runs);
	json_number("seconds", all);
	json_number("explained", t->spans / all);
	json_number("input_share", t->seconds[0][CHOIR_TRACE_INPUT] / all);
	json_begin_list("tracks");
	for (int row = 0; row < t->rows; row++) {
		json_begin_item();
		json_text("track", name_of(row, name));
		for (int c = 0; c < COLUMNS; c++)
			json_number(choir_trace_category_name(columns[c]), t->seconds[row][columns[c]]);
		json_number("no_span", rest_of(t, row));
		json_end_item();
	}
	json_end_list();
	json_begin_list("operations");
	for (int i = 0; i < BREAKDOWN_NAMES && t->operations[i].calls > 0; i++) {
		json_begin_item();
		json_text("operation", t->operations[i].name);
		json_integer("calls", t->operations[i].calls);
		json_number("seconds", t->operations[i].seconds);
		json_end_item();
	}
	json_end_list();
	json_end();
}

void breakdown_print(const breakdown *b, bool json)
{
	static breakdown_table t;
	breakdown_add_up(b, &t);
	if (json && t.runs > 0)
		print_json(&t);
	else if (t.runs > 0)
		print_table(&t);
	if (!json && t.runs > 0 && t.rows > 1)
		print_operations(&t);
	if (!json && b->failed)
		printf("some spans are missing: out of memory\n");
	if (!json && t.rows == BREAKDOWN_ROWS)
		printf("only the first %d replicas are shown\n", BREAKDOWN_ROWS - 1);
}
