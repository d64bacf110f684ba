// The conformance suite on every table of cross-device operations: on memory that is shared, on
// memory that is not, on a mixture, and a table from outside.
#include "collective/ops_suite.h"
#include "collective/toy.h"
#include "short.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

// spec: C7, C14, M15, M20, 2.8, 2.9
int main(void)
{
	static const char *const ways[] = { "reduce_to_one_device", "ring", "hierarchical_copy" };
	static const ops_subject direct = { "direct", { "cpu:0", "cpu:1", "cpu:2", "cpu:3" } };
	static const ops_subject toy = { "toy", { "cpu:0", "cpu:1", "cpu:2" } };
	int failed = ops_suite_run("direct", &direct);
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		const ops_subject shared = { ways[i], { "cpu:0", "cpu:1", "cpu:2" } };
		const ops_subject far = { ways[i], { "far:0", "far:1", "far:2" } };
		const ops_subject mixed = { ways[i], { "cpu:0", "far:0", "cpu:1", "far:1" } };
		char name[64];
		if (!SHORT || i == 0) {
			failed += ops_suite_run(ways[i], &shared);
			snprintf(name, sizeof name, "%s, far", ways[i]);
			failed += ops_suite_run(name, &far);
		}
		snprintf(name, sizeof name, "%s, mixed", ways[i]);
		failed += ops_suite_run(name, &mixed);
	}
	failed += choir_register_cross_device_ops(&toy_ops) != CHOIR_OK;
	failed += ops_suite_run("toy", &toy);
	return failed;
}
