// The conformance suite on every kind of device there is: the CPU, the asynchronous far device
// with and without delays, and one from outside.
#include "far/far.h"
#include "device/suite.h"
#include "device/toy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static int two(void)
{
	return 2;
}

int main(void)
{
	static const device_subject cpu = { "cpu:0", "cpu:1", NULL };
	static const device_subject far = { "far:0", "far:1", far_submit };
	static const device_subject toy = { "toy:0", "toy:1", NULL };
	int failed = device_suite_run("cpu", &cpu);
	failed += device_suite_run("far", &far);
	far_delays(2, 500);
	failed += device_suite_run("far, slow", &far);
	far_delays(3, 0);
	failed += device_suite_run("far, at once", &far);
	const choir_device_table table = toy_table("toy", two);
	failed += choir_register_device(&table) != CHOIR_OK;
	failed += device_suite_run("toy", &toy);
	return failed;
}
