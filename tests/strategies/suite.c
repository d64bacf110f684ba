// Runs the programs on a strategy and on its model, and compares what they found out.
#include "programs.h"
#include "short.h"

#include <stdio.h>
#include <string.h>

static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0", "far:0,far:1",
	"cpu:0,far:0" };
enum { DEVICES = sizeof devices / sizeof devices[0], MAX_REPLICAS = 4 };

static choir_strategy *make(const strategy_subject *subject, int replicas, const char *on)
{
	choir_strategy_options o = { .size = sizeof o };
	if (subject->options != NULL)
		o = *subject->options;
	o.replicas = replicas;
	o.devices = on;
	o.seed = 11;
	o.timeout = 20;
	return choir_strategy_new(subject->kind, &o);
}

static bool carry_out(const program *p, choir_strategy *s, record *to)
{
	to->n = 0;
	if (s != NULL && p->run(s, to) == CHOIR_OK)
		return true;
	printf("%s: %s\n", p->name, choir_error());
	return false;
}

// The first number in which they differ; CHOIR_NONE: none.
static int difference(const record *a, const record *b)
{
	for (int i = 0; i < a->n && i < b->n; i++)
		if (memcmp(&a->number[i], &b->number[i], sizeof a->number[i]) != 0)
			return i;
	return a->n == b->n ? CHOIR_NONE : a->n < b->n ? a->n : b->n;
}

static bool works_on(const program *p, const strategy_subject *subject, int replicas,
		const char *on, const record *model)
{
	static record found;
	choir_strategy *s = make(subject, replicas, on);
	bool good = carry_out(p, s, &found);
	choir_strategy_free(s);
	const int i = good ? difference(model, &found) : CHOIR_NONE;
	if (i != CHOIR_NONE)
		printf("%s: number %d of %d is %.17g, not %.17g of %d\n", p->name, i, found.n,
				found.number[i], model->number[i], model->n);
	good = good && i == CHOIR_NONE;
	if (!good)
		printf("... with \"%s\", %d replicas on %s\n", subject->kind, replicas, on);
	return good;
}

static bool works(const program *p, const strategy_subject *subject)
{
	static const strategy_subject mirrored = { .kind = "mirrored" };
	static record model;
	bool good = true;
	const int max = subject->max_replicas > 0 ? subject->max_replicas : MAX_REPLICAS;
	for (int replicas = max > 1 ? 1 + SHORT : 1; replicas <= max; replicas += 1 + SHORT) {
		choir_strategy *s = make(&mirrored, replicas, "cpu:0");
		good = carry_out(p, s, &model) && good;
		choir_strategy_free(s);
		for (int i = 0; i < DEVICES; i++)
			if ((!SHORT || (i + replicas / 2) % 2 == 0) &&
					(max > 1 || strchr(devices[i], ',') == NULL) &&
					(!subject->host_only || strstr(devices[i], "far") == NULL))
				good = works_on(p, subject, replicas, devices[i], &model) && good;
	}
	return good;
}

int strategy_suite_run(const strategy_subject *subject)
{
	int failed = 0;
	for (int i = 0; i < strategy_program_count; i++) {
		const bool good = works(&strategy_programs[i], subject);
		printf("%s %s: %s\n", good ? "ok    " : "FAILED", subject->kind,
				strategy_programs[i].name);
		failed += !good;
	}
	fflush(stdout);
	return failed;
}
