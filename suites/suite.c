// Finds the suite for the table that the options name.
#include "suite.h"

#include <stdio.h>
#include <string.h>

choir_status chi_suite_expect(const char *call, choir_status found, choir_status needed)
{
	if (found == needed)
		return CHOIR_OK;
	const bool has_text = found != CHOIR_OK && choir_error_status() == found;
	return choir_fail(CHOIR_INTERNAL, "%s: it returned %s%s%s; %s is needed", call,
			choir_status_name(found), has_text ? ": " : "", has_text ? choir_error() : "",
			choir_status_name(needed));
}

choir_status chi_suite_check_table(
		const char *what, const void *table, size_t size, const char *name)
{
	struct {
		size_t size;
		uint32_t version;
	} begin;
	memcpy(&begin, table, sizeof begin);
	if (begin.size == size && begin.version == CHOIR_TABLE_VERSION && name != NULL)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"suite: a %s table of size %zu and version %u; size %zu, version %u and a name are "
			"needed",
			what, begin.size, (unsigned) begin.version, size, (unsigned) CHOIR_TABLE_VERSION);
}

void chi_suite_note(chi_suite_tally *t, const char *check, choir_status result)
{
	char text[300] = "";
	if (result != CHOIR_OK)
		snprintf(text, sizeof text, "%s", choir_error());
	if (result != CHOIR_OK && t->failed++ == 0)
		snprintf(t->first, sizeof t->first, "%s: %s", check, text);
	t->ran++;
	if (t->report != NULL)
		t->report(check, result, text, t->user);
}

choir_status chi_suite_end(const chi_suite_tally *t, const char *subject, const char *name)
{
	if (t->failed == 0)
		return CHOIR_OK;
	return choir_fail(CHOIR_INTERNAL, "suite: %s \"%s\" fails %d of %d checks; the first: %s",
			subject, name, t->failed, t->ran, t->first);
}

choir_status choir_suite_run(const choir_suite_options *o, choir_suite_fn *report, void *user)
{
	chi_suite_tally t = { .report = report, .user = user };
	if (o == NULL || o->size != sizeof *o)
		return choir_fail(CHOIR_INVALID,
				"suite: options of %zu bytes; %zu bytes and a table are needed: use CHOIR_OPTIONS",
				o == NULL ? 0 : o->size, sizeof *o);
	const struct {
		bool is_set;
		choir_status (*run)(const choir_suite_options *o, chi_suite_tally *t);
	} suites[] = {
		{ o->device != NULL, chi_suite_device },
		{ o->kernels != NULL, chi_suite_kernels },
		{ o->cross_device_ops != NULL, chi_suite_cross_device_ops },
		{ o->strategy != NULL, chi_suite_strategy },
		{ o->transport != NULL, chi_suite_transport },
	};
	enum { SUITES = sizeof suites / sizeof suites[0] };
	int found = 0, tables = 0;
	for (int i = 0; i < SUITES; i++)
		if (suites[i].is_set)
			found = i, tables++;
	if (tables != 1)
		return choir_fail(CHOIR_INVALID,
				"suite: the options name %d tables; one of .device, .kernels, "
				".cross_device_ops, .strategy and .transport is needed",
				tables);
	return suites[found].run(o, &t);
}
