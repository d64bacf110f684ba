// The CPU as devices: as many as somebody names, and a count that is the processors of this
// process.
#include "base/processors.h"
#include "device/device.h"
#include "test.h"

#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// First of all, in a child in which nobody has looked at the machine yet.
TEST(the_affinity_mask_counts)
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		cpu_set_t set, one;
		sched_getaffinity(0, sizeof set, &set);
		size_t first = 0;
		while (!CPU_ISSET(first, &set))
			first++;
		CPU_ZERO(&one);
		CPU_SET(first, &one);
		sched_setaffinity(0, sizeof one, &one);
		_exit(choir_device_count("cpu") == 1 && choir_device_count(NULL) == 1 ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(there_is_one_for_each_processor)
{
	assert_int_equal(choir_device_count("cpu"), chi_processor_count());
	assert_int_equal(choir_device_count(NULL), chi_processor_count()); // far is no default
	assert_int_equal(choir_device_count("far"), 0);
	choir_device_info info = { .size = sizeof info };
	assert_int_equal(choir_device_describe(choir_device_find("cpu:0"), &info), CHOIR_OK);
	assert_int_equal(info.cores, chi_processor_count());
	assert_true(info.memory_total > 0);
}

TEST(there_are_more_by_name)
{
	assert_non_null(choir_device_find("cpu:1023"));
	assert_null(choir_device_find("cpu:1024"));
	assert_int_equal(choir_error_status(), CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "1024*1023");
	assert_int_equal(choir_device_count("cpu"), chi_processor_count());
}

TEST(memory_is_the_hosts)
{
	choir_device *d = choir_device_find("cpu:0");
	void *memory;
	assert_true(d->host_memory);
	assert_int_equal(chi_device_allocate(d, 100, &memory), CHOIR_OK);
	memset(memory, 3, 100);
	chi_stream *s = chi_stream_new(d);
	unsigned char host[100];
	// Done when the call returns, with nothing waited for.
	assert_int_equal(chi_stream_copy(s, host, memory, 100), CHOIR_OK);
	assert_memory_equal(host, memory, 100);
	chi_stream_free(s);
	chi_device_release(d, memory, 100);
}
