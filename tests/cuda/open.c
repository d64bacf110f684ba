// Opens libchoir-cuda's stand-in before main, so that far:0 is a name of gpu:0 from then on. At
// the end, a broken rule that the stand-in has reported fails the program.
#include "open.h"

#include <choir/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void open_standin(void)
{
	if (choir_device_find("gpu:0") != NULL)
		return;
	fprintf(stderr, "gpu:0: %s\n", choir_error());
	exit(2);
}

__attribute__((destructor)) static void judge(void)
{
	const unsigned reports = standin_reports();
	if (reports == 0)
		return;
	printf("FAILED: the stand-in has %u reports; the last: %s\n", reports, standin_last_report());
	fflush(stdout);
	_exit(3);
}
