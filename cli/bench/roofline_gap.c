// Compares a step with its roofline, by kind of work. A span's own time belongs to the kind of its
// operation. The rest of the step is a kind, too. So the rows add up to the step, and their limits
// to the step's limit.
#include "bench/roofline_gap.h"

#include "output.h"

#include <stdio.h>
#include <string.h>

// The kinds without a limit.
enum { WAIT = LIMIT_KINDS, CALLS, KINDS };

static const char *const names[KINDS] = { "products", "convolutions", "attention",
	"other operations", "reduce", "update", "wait", "calls" };

typedef struct {
	double seconds[KINDS]; // per step and device
	double all; // per step
} step_kinds;

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static int kind_of(const char *operation)
{
	if (begins_with(operation, "matmul") || begins_with(operation, "dense"))
		return LIMIT_PRODUCTS;
	if (begins_with(operation, "conv"))
		return LIMIT_CONVOLUTIONS;
	if (begins_with(operation, "attention"))
		return LIMIT_ATTENTION;
	// These spans contain operations.
	if (strcmp(operation, "replica") == 0 || strcmp(operation, "backward") == 0)
		return CALLS;
	return LIMIT_OTHERS;
}

static step_kinds divide(const breakdown_table *t, int devices)
{
	step_kinds k = { .all = (t->to - t->from) / (double) t->runs };
	const double step = 1 / ((double) t->runs * devices);
	double known = 0;
	for (int i = 0; i < BREAKDOWN_NAMES && t->operations[i].calls > 0; i++)
		k.seconds[kind_of(t->operations[i].name)] += step * t->operations[i].seconds;
	for (int row = 1; row < t->rows; row++) {
		k.seconds[LIMIT_REDUCE] += step * t->seconds[row][CHOIR_TRACE_REDUCE];
		k.seconds[LIMIT_UPDATE] += step * t->seconds[row][CHOIR_TRACE_UPDATE];
		k.seconds[WAIT] += step * t->seconds[row][CHOIR_TRACE_WAIT];
	}
	for (int i = 0; i < KINDS; i++)
		known += k.seconds[i];
	k.seconds[CALLS] += k.all - known;
	return k;
}

static double limit_of(const limit *l, int kind)
{
	return kind < LIMIT_KINDS ? l->part[kind] : 0;
}

static void print_row(const char *name, double seconds, double min, double distance)
{
	printf("%-18s%10.3f%10.3f%10.3f%9.0f %%\n", name, 1e3 * seconds, 1e3 * min,
			1e3 * (seconds - min), 100 * (seconds - min) / distance);
}

static void print_table(const step_kinds *k, const limit *l)
{
	const double distance = k->all - l->seconds;
	printf("distance of a step from its limit, in ms per device (calls: frames, tape, and time in "
		   "no span)\n%-18s%10s%10s%10s%11s\n",
			"", "ms", "limit", "distance", "share");
	for (int i = 0; i < KINDS; i++)
		if (k->seconds[i] > 0 || limit_of(l, i) > 0)
			print_row(names[i], k->seconds[i], limit_of(l, i), distance);
	print_row("step", k->all, l->seconds, distance);
}

static void print_json(const step_kinds *k, const limit *l)
{
	json_begin_event("distance");
	json_number("step_ms", 1e3 * k->all);
	json_number("limit_ms", 1e3 * l->seconds);
	json_begin_list("kinds");
	for (int i = 0; i < KINDS; i++) {
		json_begin_item();
		json_text("kind", names[i]);
		json_number("ms", 1e3 * k->seconds[i]);
		json_number("limit_ms", 1e3 * limit_of(l, i));
		json_end_item();
	}
	json_end_list();
	json_end();
}

void distance_print(const breakdown *b, const limit *l, int devices, bool json)
{
	static breakdown_table t;
	breakdown_add_up(b, &t);
	if (t.runs == 0 || t.rows < 2 || l->seconds == 0)
		return;
	const step_kinds k = divide(&t, devices);
	if (json)
		print_json(&k, l);
	else
		print_table(&k, l);
}
