// The device of libchoir-cuda on the stand-in: the conformance suite, names, and failures.
#include "choir/extend/suite.h"
#include "device/device.h"
#include "test.h"

#include "open.h"

#include <stdio.h>
#include <string.h>

static void report(const char *check, choir_status result, const char *text, void *user)
{
	if (result != CHOIR_OK)
		printf("%s: %s\n", check, text);
	++*(int *) user;
}

TEST(conformance_suite)
{
	int checks = 0;
	const choir_device *d = choir_device_find("gpu:0");
	if (choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .device = d->table), report, &checks) !=
			CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_true(checks > 8);
}

TEST(names)
{
	choir_device *d = choir_device_find("gpu:1");
	assert_non_null(d);
	static const char *const names[] = { "GPU:1", "/device:GPU:1", "/gpu:1", "cuda:1",
		"/job:worker/replica:0/task:0/device:GPU:1" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		assert_ptr_equal(choir_device_find(names[i]), d);
	assert_string_equal(choir_device_name(d), "gpu:1");
	assert_int_equal(choir_device_count("gpu"), 4);
	assert_null(choir_device_find("gpu:4"));
	assert_text_holds(choir_error(), "gpu:4");
	assert_null(choir_device_find("MIG-6e5bb4a1-5d5f-5c1f-8a34-01d0d0b2b7a1"));
	assert_text_holds(choir_error(), "MIG-*CUDA_VISIBLE_DEVICES*gpu:0");
	char line[200];
	for (int i = 0; choir_device_report("gpu", i, line, sizeof line); i++)
		if (i == 4)
			assert_text_holds(line, "GPU 0:*MIG 1g.4gb");
}

// Each copy has a staging buffer of its own until it is done.
TEST(copies_from_the_host_one_after_another)
{
	enum { COPIES = 20, BYTES = 3000 };
	static unsigned char from[COPIES][BYTES], to[COPIES][BYTES];
	choir_device *d = choir_device_find("gpu:0");
	chi_stream *s = chi_stream_new(d);
	void *memory;
	assert_non_null(s);
	assert_int_equal(chi_device_allocate(d, sizeof to, &memory), CHOIR_OK);
	for (int i = 0; i < COPIES; i++) {
		memset(from[i], i + 1, BYTES);
		assert_int_equal(
				chi_stream_copy(s, (char *) memory + i * BYTES, from[i], BYTES), CHOIR_OK);
	}
	assert_int_equal(chi_stream_copy(s, to, memory, sizeof to), CHOIR_OK);
	assert_int_equal(chi_stream_wait(s), CHOIR_OK);
	assert_memory_equal(to, from, sizeof to);
	chi_stream_free(s);
	chi_device_release(d, memory, sizeof to);
}
