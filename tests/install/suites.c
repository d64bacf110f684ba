// The device and the cross-device operations that were compiled with what is installed and nothing
// else, under the suites that Choir's own pass. These know the library from inside, so this
// program is linked with the static one.
#include "collective/ops_suite.h"
#include "collective/toy.h"
#include "device/suite.h"
#include "device/toy.h"

#include <stdio.h>

static int two(void)
{
	return 2;
}

int main(void)
{
	static const device_subject device = { "toy:0", "toy:1", NULL };
	static const ops_subject ops = { "toy", { "cpu:0", "cpu:1", "cpu:2" } };
	const choir_device_table table = toy_table("toy", two);
	if (choir_register_device(&table) != CHOIR_OK ||
			choir_register_cross_device_ops(&toy_ops) != CHOIR_OK) {
		printf("%s\n", choir_error());
		return 1;
	}
	return device_suite_run("a device from outside", &device) +
			ops_suite_run("cross-device operations from outside", &ops);
}
