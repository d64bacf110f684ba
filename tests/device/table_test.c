// The public suite of the device table (choir/extend/suite.h) on every kind: the CPU, far (with
// and without delays), and one from outside; and on devices with one broken slot each.
#include "choir/extend/suite.h"
#include "device/device.h"
#include "device/toy.h"
#include "far/far.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static int two(void)
{
	return 2;
}

static int no_device(void)
{
	return 0;
}

typedef struct {
	int checks;
	char failed[512]; // their names, with commas
} findings;

static void note(const char *check, choir_status result, const char *text, void *user)
{
	findings *f = user;
	f->checks++;
	assert_int_equal(result == CHOIR_OK, text[0] == '\0');
	if (result == CHOIR_OK)
		return;
	assert_int_equal(result, CHOIR_INTERNAL);
	strncat(f->failed, check, sizeof f->failed - strlen(f->failed) - 2);
	strcat(f->failed, ",");
}

static choir_status run(const choir_device_table *table, bool queues, findings *f)
{
	*f = (findings){ 0 };
	return choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .device = table,
								   .submit = queues ? far_submit : NULL),
			note, f);
}

static void assert_passes(const choir_device_table *table, bool queues)
{
	findings f;
	if (run(table, queues, &f) != CHOIR_OK)
		fail_msg("%s", choir_error());
	assert_int_equal(f.checks, queues ? 14 : 11);
	assert_string_equal(f.failed, "");
}

TEST(the_cpu_passes)
{
	choir_device_table cpu = chi_cpu_table;
	cpu.count = two; // as many as are named
	assert_passes(&cpu, false);
}

TEST(an_asynchronous_device_passes)
{
	assert_passes(&far_table, true);
	far_delays(2, 500);
	assert_passes(&far_table, true);
	far_delays(3, 0);
	assert_passes(&far_table, true);
}

TEST(a_device_from_outside_passes)
{
	const choir_device_table toy = toy_table("toy", two);
	assert_passes(&toy, false);
	assert_int_equal(
			choir_suite_run(CHOIR_OPTIONS(choir_suite_options, .device = &toy), NULL, NULL),
			CHOIR_OK);
}

// Devices that do one thing wrong.

static choir_device_table right;

static choir_status fill_too_much(void *stream, void *to, int byte, size_t bytes)
{
	return right.fill(stream, to, byte, bytes == 100 ? bytes + 1 : bytes);
}

static choir_status copy_too_little(void *stream, void *to, const void *from, size_t bytes)
{
	return right.copy(stream, to, from, bytes > 4096 ? 4096 : bytes);
}

static choir_status allocate_at_32(void *self, size_t bytes, void **memory)
{
	const choir_status status = right.allocate(self, bytes, memory);
	if (status == CHOIR_OK && bytes == 65)
		*memory = (char *) *memory + 32;
	return status;
}

static void release_at_32(void *self, void *memory, size_t bytes)
{
	right.release(self, (char *) memory - (bytes == 65 ? 32 : 0), bytes);
}

static choir_status always_late(void *stream, uint64_t event, double seconds)
{
	(void) stream, (void) event, (void) seconds;
	return choir_fail(CHOIR_TIMEOUT, "late");
}

static void describe_another(const void *self, choir_device_info *info)
{
	(void) self;
	info->index = 7;
}

static void assert_found(const choir_device_table *table, bool queues, const char *check)
{
	findings f;
	assert_int_equal(run(table, queues, &f), CHOIR_INTERNAL);
	char first[600];
	snprintf(first, sizeof first, "\"%s\"*%s:", table->kind, check);
	assert_text_holds(choir_error(), first);
	assert_text_holds(f.failed, check);
	assert_int_equal(f.checks, queues ? 14 : 11); // all of them, also after one that failed
}

TEST(broken_devices_fail)
{
	right = toy_table("broken", two);
	choir_device_table t = right;
	t.fill = fill_too_much;
	assert_found(&t, false, "a fill sets only its bytes");
	t = right;
	t.copy = copy_too_little;
	assert_found(&t, false, "copies come back as they were");
	t = right;
	t.allocate = allocate_at_32;
	t.release = release_at_32;
	assert_found(&t, false, "memory is aligned and does not overlap");
	t = right;
	t.wait = always_late;
	assert_found(&t, false, "copies come back as they were");
	t = right;
	t.describe = describe_another;
	assert_found(&t, false, "the description is true");
}

#ifndef __SANITIZE_THREAD__ // which reports the race that this device makes
static choir_status follow_nobody(void *stream, void *other, uint64_t event)
{
	(void) stream, (void) other, (void) event;
	return CHOIR_OK;
}

TEST(broken_queues_fail)
{
	right = far_table;
	far_delays(4, 2000);
	choir_device_table t = right;
	t.wait_event = follow_nobody;
	assert_found(&t, true, "streams wait for each other");
	far_delays(3, 0);
}
#endif

TEST(wrong_subjects_are_refused)
{
	choir_device_table t = toy_table("toy", two);
	findings f;
	assert_int_equal(choir_suite_run(NULL, NULL, NULL), CHOIR_INVALID);
	assert_text_holds(choir_error(), "CHOIR_OPTIONS");
	assert_int_equal(run(NULL, false, &f), CHOIR_INVALID);
	assert_text_holds(choir_error(), ".device*.kernels");
	t.fill = NULL;
	assert_int_equal(run(&t, false, &f), CHOIR_INVALID);
	assert_text_holds(choir_error(), "\"toy\"*slot fill");
	t = toy_table("toy", no_device);
	assert_int_equal(run(&t, false, &f), CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "\"toy\"*0*1");
	t = toy_table("toy", two);
	t.version = 9;
	assert_int_equal(run(&t, false, &f), CHOIR_INVALID);
	assert_text_holds(choir_error(), "version 9*version 1");
	assert_int_equal(f.checks, 0);
}
