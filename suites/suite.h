// What the suites share: counts of checks, and what a check reports.
#pragma once

#include <choir/extend.h>
#include <choir/extend/suite.h>

// The first failure is kept while the following checks run.
typedef struct {
	choir_suite_fn *report;
	void *user;
	int ran, failed;
	char first[400];
} chi_suite_tally;

// Counts and reports a check. result is its status; a failure's text is choir_error().
void chi_suite_note(chi_suite_tally *t, const char *check, choir_status result);
// The result of a suite. subject: "device kind \"cpu\"".
choir_status chi_suite_end(const chi_suite_tally *t, const char *subject, const char *name);
// Checks what all tables begin with. size: of the table's type.
choir_status chi_suite_check_table(
		const char *what, const void *table, size_t size, const char *name);
// Fails unless a call returned the status that is needed.
choir_status chi_suite_expect(const char *call, choir_status found, choir_status needed);

// The suites. Each is called if its field in the options is set.
choir_status chi_suite_device(const choir_suite_options *o, chi_suite_tally *t);
choir_status chi_suite_kernels(const choir_suite_options *o, chi_suite_tally *t);
choir_status chi_suite_cross_device_ops(const choir_suite_options *o, chi_suite_tally *t);
choir_status chi_suite_strategy(const choir_suite_options *o, chi_suite_tally *t);
choir_status chi_suite_transport(const choir_suite_options *o, chi_suite_tally *t);
