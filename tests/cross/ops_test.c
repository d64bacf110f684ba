// The conformance suite on every table of cross-device operations: on memory that is shared, on
// memory that is not, on a mixture, and a table from outside.
#include "cross/ops_suite.h"
#include "cross/toy.h"
#include "device/far.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

int main(void)
{
	static const ops_subject direct = { "direct", { "cpu:0", "cpu:1", "cpu:2", "cpu:3" } };
	static const ops_subject one = { "reduce_to_one_device", { "cpu:0", "cpu:1", "cpu:2" } };
	static const ops_subject far = { "reduce_to_one_device", { "far:0", "far:1", "far:2" } };
	static const ops_subject mixed = { "reduce_to_one_device",
		{ "cpu:0", "far:0", "cpu:1", "far:1" } };
	static const ops_subject toy = { "toy", { "cpu:0", "cpu:1", "cpu:2" } };
	int failed = ops_suite_run("direct", &direct);
	failed += ops_suite_run("reduce_to_one_device", &one);
	failed += ops_suite_run("reduce_to_one_device, far", &far);
	failed += ops_suite_run("reduce_to_one_device, mixed", &mixed);
	failed += choir_register_cross_device_ops(&toy_ops) != CHOIR_OK;
	failed += ops_suite_run("toy", &toy);
	return failed;
}
