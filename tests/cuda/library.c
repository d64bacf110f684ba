// The libchoir-cuda that nvcc has built, on a machine without a driver or with one: it opens, and
// a device is found or the reason is named. Also: the variable CHOIR_CUDA with wrong values.
#include "choir/choir.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *library;

// A process looks for the library once, so each value is tried in a child.
// A process loads the library once, so each case has its own.
static void in_child(bool good(const char *const text[]), const char *const text[])
{
	fflush(stdout);
	const pid_t child = fork();
	if (child == 0) {
		const bool is_good = good(text);
		fflush(stdout);
		_exit(is_good ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool finds(const char *const text[])
{
	const char *value = text[0], *facts = text[1];
	setenv("CHOIR_CUDA", value, 1);
	const bool found = choir_device_find("gpu:0") != NULL;
	const bool good = found ? facts == NULL : facts != NULL && text_holds(choir_error(), facts);
	if (!good)
		printf("%s: %s\n", value, found ? "found" : choir_error());
	return good;
}

static void look(const char *value, const char *facts)
{
	in_child(finds, (const char *const[]){ value, facts });
}

TEST(values_of_the_variable)
{
	look("off", "gpu:0*CHOIR_CUDA*off");
	look("on", "gpu:0*\"on\"*off");
	look("./no/such/library.so", "gpu:0*./no/such/library.so");
	look("/lib/x86_64-linux-gnu/libm.so.6", "gpu:0");
}

// A process looks for drivers and GPUs once, too.
static void look_with(const char *variable, const char *value, const char *facts)
{
	const char *standin = getenv("CHOIR_TEST_STANDIN");
	assert_non_null(standin);
	setenv(variable, value, 1);
	look(standin, facts);
	unsetenv(variable);
}

TEST(drivers_and_gpus)
{
	look_with("STANDIN_DRIVER", "0", "gpu:0*no NVIDIA driver");
	look_with("STANDIN_DRIVER", "11080", "gpu:0*CUDA 11.8*CUDA 13.0");
	look_with("STANDIN_DEVICES", "0", "gpu:0*no GPU*no CUDA-capable device");
	look_with("STANDIN_DEVICES", "1", NULL);
}

static int warnings;

static void count_warnings(choir_log_level level, const char *line, void *user)
{
	warnings += level == CHOIR_LOG_WARNING && text_holds(line, user);
}

// The way of summing that a strategy chooses on two GPUs: by what they and the machine have.
static bool chooses(const char *const text[])
{
	const char *peers = text[0], *without = text[1], *expected = text[2];
	setenv("CHOIR_CUDA", getenv("CHOIR_TEST_STANDIN"), 1);
	setenv("STANDIN_PEER", peers, 1);
	setenv("CHOIR_CUDA_WITHOUT", without, 1);
	choir_logger_set(CHOIR_LOG_WARNING, count_warnings, "gpu: NCCL is missing*the host");
	const choir_strategy_options *two =
			CHOIR_OPTIONS(choir_strategy_options, .devices = "gpu:0,gpu:1");
	choir_strategy_free(choir_mirrored_strategy_new(two));
	choir_strategy *s = choir_mirrored_strategy_new(two);
	const char *ops = s == NULL ? choir_error() : choir_strategy_cross_device_ops(s);
	char line[200] = "";
	bool slow = false;
	for (int i = 0; choir_device_report("gpu", i, line, sizeof line); i++)
		slow = slow || strstr(line, "no peer access") != NULL;
	const bool is_missed = peers[0] == '0' && without[0] != '\0';
	const bool good = strcmp(ops, expected) == 0 && slow == (peers[0] == '0') &&
			warnings == (is_missed ? 1 : 0);
	if (!good)
		printf("peers %s, without %s: %s, %d warnings\n", peers, without, ops, warnings);
	choir_strategy_free(s);
	return good;
}

TEST(ways_of_summing)
{
	static const char *const cases[][3] = { { "1", "", "peer" }, { "1", "nccl", "peer" },
		{ "0", "", "nccl" }, { "0", "nccl", "ring" } };
	assert_non_null(getenv("CHOIR_TEST_STANDIN"));
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		in_child(chooses, cases[i]);
}

static bool warns_once(const char *const text[])
{
	setenv("CHOIR_CUDA", text[0], 1);
	setenv("STANDIN_DRIVER", "11080", 1);
	choir_logger_set(CHOIR_LOG_WARNING, count_warnings, "gpu: *CUDA 11.8*CUDA 13.0*CPUs");
	for (int i = 0; i < 2; i++) {
		choir_strategy *s = choir_mirrored_strategy_new(NULL);
		if (s == NULL)
			return false;
		choir_strategy_free(s);
	}
	return warnings == 1;
}

// A program that names no devices then runs on CPUs, which is said once.
TEST(a_driver_that_is_too_old_is_a_warning)
{
	const char *standin = getenv("CHOIR_TEST_STANDIN");
	assert_non_null(standin);
	in_child(warns_once, (const char *const[]){ standin });
}

TEST(the_library_opens)
{
	library = getenv("CHOIR_TEST_CUDA");
	if (library == NULL || library[0] == '\0')
		skip();
	const bool driver = access("/dev/nvidiactl", F_OK) == 0;
	look(library, driver ? NULL : "gpu:0*no NVIDIA driver");
}
