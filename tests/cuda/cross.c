// The conformance suite of cross-device operations on GPUs of the stand-in: those of
// libchoir-cuda, and Choir's, which do not know GPUs.
#include "collective/ops_suite.h"

#include <stdio.h>

static int run(const char *ops, const char *a, const char *b, const char *c)
{
	const ops_subject subject = { ops, { a, b, c } };
	char name[64];
	snprintf(name, sizeof name, "%s on %s, %s%s%s", ops, a, b, c != NULL ? ", " : "",
			c != NULL ? c : "");
	return ops_suite_run(name, &subject);
}

int main(void)
{
	int failed = 0;
	failed += run("peer", "gpu:0", "gpu:1", NULL);
	failed += run("peer", "gpu:0", "gpu:1", "gpu:2");
	failed += run("nccl", "gpu:0", "gpu:1", "gpu:2");
	failed += run("ring", "gpu:0", "gpu:1", "gpu:2");
	failed += run("hierarchical_copy", "cpu:0", "gpu:0", "gpu:1");
	failed += run("reduce_to_one_device", "gpu:0", "cpu:0", NULL);
	return failed;
}
