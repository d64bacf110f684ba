// The cross-device operations that were compiled with only what is installed, under the suite that
// Choir's own pass. It knows the library from inside, so this program is linked with the static
// library.
#include "collective/ops_suite.h"
#include "collective/toy.h"

#include <stdio.h>

int main(void)
{
	static const ops_subject ops = { "toy", { "cpu:0", "cpu:1", "cpu:2" } };
	if (choir_register_cross_device_ops(&toy_ops) != CHOIR_OK) {
		printf("%s\n", choir_error());
		return 1;
	}
	return ops_suite_run("cross-device operations from outside", &ops);
}
