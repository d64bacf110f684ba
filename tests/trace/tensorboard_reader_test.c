// Event files as TensorBoard's own reader sees them, where a Python has it (tools/setup gets one);
// else the test is skipped.
#include "choir/trace.h"
#include "trace/scratch_directory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void test_tensorboard(void **state)
{
	assert_int_equal(
			choir_trace_start(NULL, CHOIR_OPTIONS(choir_trace_options, .log = "log")), CHOIR_OK);
	directory_scalars();
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
	assert_int_equal(directory_python(*state, "tensorboard_reader.py", "tensorboard log"), 0);
}

int main(void)
{
	char own[] = "python3", command[1024], *python = getenv("CHOIR_TEST_PYTHON");
	if (python == NULL || access(python, X_OK) != 0)
		python = own;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate_setup_teardown(
				test_tensorboard, directory_enter, directory_leave, python),
	};
	snprintf(command, sizeof command,
			"'%s' -c 'import importlib.util as u; exit(not u.find_spec(\"tensorboard\"))'",
			python);
	if (system(command) == 0)
		return cmocka_run_group_tests(tests, NULL, NULL);
	fprintf(stderr, "skipped: the Python of CHOIR_TEST_PYTHON has no tensorboard\n");
	return 77;
}
