// The checks of strategies. Each program runs on a strategy and on the mirrored strategy with as
// many replicas on one CPU, in the same precision. What both record must have the same bits.
#include "strategy_program.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_REPLICAS = 4 };

// Where a program runs.
typedef struct {
	const char *kind, *devices;
	const choir_strategy_options *options;
	int replicas;
} place;

static choir_status carry_out(const chi_program *p, const place *at, chi_record *to)
{
	choir_strategy_options o = { .size = sizeof o };
	if (at->options != NULL)
		o = *at->options;
	o.replicas = at->replicas;
	o.devices = at->devices;
	o.seed = 11;
	o.timeout = 20;
	to->n = 0;
	choir_strategy *s = choir_strategy_new(at->kind, &o);
	choir_status status = s == NULL ? choir_error_status() : p->run(s, to);
	if (status != CHOIR_OK)
		status = choir_fail(CHOIR_INTERNAL, "%s of %d replicas on %s: %s: %.200s", at->kind,
				at->replicas, at->devices, choir_status_name(status), choir_error());
	choir_strategy_free(s);
	return status;
}

static choir_status compare(const place *at, const chi_record *found, const chi_record *needed)
{
	for (int i = 0; i < found->n && i < needed->n; i++)
		if (memcmp(&found->number[i], &needed->number[i], sizeof needed->number[i]) != 0)
			return choir_fail(CHOIR_INTERNAL,
					"%s of %d replicas on %s: number %d of %d is %.17g; %.17g is needed", at->kind,
					at->replicas, at->devices, i, found->n, found->number[i], needed->number[i]);
	if (found->n != needed->n)
		return choir_fail(CHOIR_INTERNAL,
				"%s of %d replicas on %s: it gives %d numbers; %d are needed", at->kind,
				at->replicas, at->devices, found->n, needed->n);
	return CHOIR_OK;
}

static choir_status check(
		const chi_program *p, const choir_suite_options *o, chi_record records[2])
{
	static const char *const cpus[] = { "cpu:0", "cpu:0,cpu:1", NULL };
	const char *const *devices = o->devices == NULL ? cpus : o->devices;
	const int most = o->max_replicas > 0 ? o->max_replicas : MAX_REPLICAS;
	choir_strategy_options arithmetic = { .size = sizeof arithmetic };
	if (o->strategy_options != NULL) {
		arithmetic.precision = o->strategy_options->precision;
		arithmetic.wire = o->strategy_options->wire;
	}
	for (int replicas = 1; replicas <= most; replicas++) {
		const place model = { .kind = "mirrored",
			.devices = o->model == NULL ? "cpu:0" : o->model,
			.options = &arithmetic,
			.replicas = replicas };
		CHOIR_TRY(carry_out(p, &model, &records[0]));
		for (int i = 0; devices[i] != NULL; i++) {
			const place at = { o->strategy, devices[i], o->strategy_options, replicas };
			if (most == 1 && strchr(devices[i], ',') != NULL)
				continue;
			CHOIR_TRY(carry_out(p, &at, &records[1]));
			CHOIR_TRY(compare(&at, &records[1], &records[0]));
		}
	}
	return CHOIR_OK;
}

choir_status chi_suite_strategy(const choir_suite_options *o, chi_suite_tally *t)
{
	chi_record *records = calloc(2, sizeof *records);
	if (records == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "suite: two records of %zu bytes", sizeof *records);
	for (int i = 0; i < chi_strategy_program_count; i++)
		chi_suite_note(
				t, chi_strategy_programs[i].name, check(&chi_strategy_programs[i], o, records));
	free(records);
	return chi_suite_end(t, "strategy", o->strategy);
}
