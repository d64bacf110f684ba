// The list of devices: what is found and counted, tables from outside with their mistakes and
// their missing slots, and many threads that want the same device first.
#include "base/alloc.h"
#include "base/gate.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "device/device.h"
#include "device/toy.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static void assert_says(const char *text)
{
	assert_text_holds(choir_error(), text);
}

TEST(a_name_is_one_device)
{
	choir_device *d = choir_device_find("cpu:3");
	assert_non_null(d);
	assert_ptr_equal(d, choir_device_find("/job:worker/replica:0/task:1/device:CPU:3"));
	assert_ptr_not_equal(d, choir_device_find("cpu:2"));
	assert_string_equal(choir_device_name(d), "cpu:3");
	assert_string_equal(choir_device_name(NULL), "");
	assert_int_equal(d->index, 3);
}

TEST(unknown_names_list_the_known)
{
	char known[100], last[40] = "";
	int cores = choir_device_count("cpu");
	if (cores > 1)
		snprintf(last, sizeof last, " to cpu:%d", cores - 1);
	snprintf(known, sizeof known, "device \"gpu:3\":*cpu:0%s (more by name), far:0", last);
	assert_null(choir_device_find("gpu:3"));
	assert_int_equal(choir_error_status(), CHOIR_NOT_FOUND);
	assert_says(known);
	assert_null(choir_device_find(NULL));
	assert_says("\"\"");
}

TEST(memory_is_shared_where_the_host_may_touch_it)
{
	choir_device *cpu = choir_device_find("cpu:0"), *far = choir_device_find("far:0");
	assert_true(chi_device_shares(cpu, cpu));
	assert_true(chi_device_shares(cpu, choir_device_find("cpu:1")));
	assert_false(chi_device_shares(cpu, far));
	assert_true(chi_device_shares(far, far));
	assert_false(chi_device_shares(far, choir_device_find("far:1")));
}

TEST(descriptions_check_their_size)
{
	choir_device *d = choir_device_find("cpu:1");
	choir_device_info info = { .size = sizeof info.size - 1 };
	assert_int_equal(choir_device_describe(d, &info), CHOIR_INVALID);
	assert_says("cpu:1: ");
	// From a program built with an older header: only what it has is written.
	info = (choir_device_info){ .size = offsetof(choir_device_info, cores), .cores = -7 };
	assert_int_equal(choir_device_describe(d, &info), CHOIR_OK);
	assert_int_equal(info.size, offsetof(choir_device_info, cores));
	assert_string_equal(info.kind, "cpu");
	assert_int_equal(info.index, 1);
	assert_int_equal(info.cores, -7);
	assert_int_equal(choir_device_describe(d, NULL), CHOIR_INVALID);
	info.size = sizeof info;
	assert_int_equal(choir_device_describe(NULL, &info), CHOIR_INVALID);
	// From a program built with a newer header: what this library does not know is zero.
	struct {
		choir_device_info info;
		uint64_t more[2];
	} newer = { .info = { .size = sizeof newer }, .more = { 1, 2 } };
	assert_int_equal(choir_device_describe(d, &newer.info), CHOIR_OK);
	assert_int_equal(newer.info.size, sizeof newer);
	assert_int_equal(newer.info.index, 1);
	assert_string_equal(newer.info.kind, "cpu");
	assert_true(newer.info.cores >= 1);
	assert_int_equal(newer.more[0] | newer.more[1], 0);
}

static int three(void)
{
	return 3;
}

static int none(void)
{
	return 0;
}

static int nonsense(void)
{
	return -2;
}

TEST(wrong_tables_are_refused)
{
	choir_device_table table = toy_table("good", three);
	assert_int_equal(choir_register_device(NULL), CHOIR_INVALID);
	table.size--;
	assert_int_equal(choir_register_device(&table), CHOIR_INVALID);
	assert_says("size");
	table.size++;
	table.version = 99;
	assert_int_equal(choir_register_device(&table), CHOIR_INVALID);
	assert_says("99*version");
	static const char *const bad[] = { NULL, "", "Toy", "toy1", "toy:", "abcdefghijklmnop" };
	for (int i = 0; i < 6; i++) {
		table = toy_table(bad[i], three);
		assert_int_equal(choir_register_device(&table), CHOIR_INVALID);
		assert_says("letters");
	}
	table = toy_table("cpu", three);
	assert_int_equal(choir_register_device(&table), CHOIR_INVALID);
	assert_says("device kind \"cpu\":*already");
	table = toy_table("good", nonsense);
	assert_int_equal(choir_register_device(&table), CHOIR_INVALID);
	assert_says("-2*count");
	assert_null(choir_device_find("good:0"));
}

// Tables of an older header end before a slot, those of a newer one have more behind the last.
TEST(tables_of_another_size)
{
	struct {
		choir_device_table table;
		void *more[2];
	} newer = { .table = toy_table("newer", three) };
	newer.table.size = sizeof newer;
	memset(newer.more, 0xff, sizeof newer.more);
	assert_int_equal(choir_register_device(&newer.table), CHOIR_OK);
	assert_non_null(choir_device_find("newer:2"));
	choir_device_table older = toy_table("older", three);
	older.size = offsetof(choir_device_table, wait);
	assert_int_equal(choir_register_device(&older), CHOIR_OK);
	choir_device *d = choir_device_find("older:0");
	assert_non_null(d);
	chi_stream *s = chi_stream_new(d);
	assert_non_null(s);
	assert_int_equal(chi_stream_wait(s), CHOIR_UNSUPPORTED);
	chi_stream_free(s);
	older.size = offsetof(choir_device_table, kind);
	assert_int_equal(choir_register_device(&older), CHOIR_INVALID);
	assert_says("device:*size*16*24");
}

TEST(tables_from_outside_are_copied)
{
	int before = choir_device_count(NULL);
	char kind[] = "tri";
	choir_device_table table = toy_table(kind, three);
	assert_int_equal(choir_register_device(&table), CHOIR_OK);
	memset(&table, 0, sizeof table);
	kind[0] = 'x';
	assert_int_equal(choir_device_count("tri"), 3);
	assert_int_equal(choir_device_count("TRI"), 3);
	assert_int_equal(choir_device_count("xri"), 0);
	assert_int_equal(choir_device_count(NULL), before + 3);
	choir_device *d = choir_device_find("/device:TRI:2");
	assert_non_null(d);
	assert_string_equal(choir_device_name(d), "tri:2");
	assert_false(d->host_memory);
	assert_null(choir_device_find("tri:3"));
	assert_says("\"tri:3\"*tri:0 to tri:2");
	table = toy_table("empty", none);
	assert_int_equal(choir_register_device(&table), CHOIR_OK);
	assert_null(choir_device_find("empty:0"));
	assert_null(strstr(choir_error(), "empty:0,"));
}

TEST(kinds_have_other_names)
{
	choir_device_table table = toy_table("vector", three);
	table.aliases = "cuda,rocm";
	assert_int_equal(choir_register_device(&table), CHOIR_OK);
	choir_device *d = choir_device_find("vector:1");
	assert_non_null(d);
	static const char *const names[] = { "VECTOR:1", "/device:VECTOR:1", "cuda:1", "/vector:1",
		"CUDA:1", "/job:worker/replica:0/task:1/device:cuda:1", "rocm:1" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		assert_ptr_equal(choir_device_find(names[i]), d);
	assert_string_equal(choir_device_name(d), "vector:1");
	assert_int_equal(choir_device_count("cuda"), 3);
	assert_null(choir_device_find("cud:1"));
	assert_null(choir_device_find("cudar:1"));
	choir_device *found[2];
	int count;
	assert_int_equal(chi_device_list("vector:1,cuda:1", 2, found, &count), CHOIR_INVALID);
	assert_says("vector:1 occurs twice");
	static const char *const bad[] = { "cuda", "Other", "a,,b", ",", "far:0", "abcdefghijklmnop",
		"a,cpu", "aaaaaaaaaaaaa,bbbbbbbbbbbbb,ccccccccccccc,ddddddddddddd,eeeeeeeeeeeee" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		table = toy_table("another", three);
		table.aliases = bad[i];
		assert_int_equal(choir_register_device(&table), CHOIR_INVALID);
		assert_says("device kind \"another\":*alias");
	}
	table = toy_table("cuda", three);
	assert_int_equal(choir_register_device(&table), CHOIR_INVALID);
	assert_says("\"cuda\"*already");
}

TEST(accelerators_are_listed)
{
	choir_device *found[4];
	int count = 7;
	assert_int_equal(chi_device_list_accelerators(4, found, &count), CHOIR_OK);
	assert_int_equal(count, 0);
	choir_device_table table = toy_table("fast", three);
	table.accelerator = true;
	assert_int_equal(choir_register_device(&table), CHOIR_OK);
	assert_int_equal(chi_device_list_accelerators(4, found, &count), CHOIR_OK);
	assert_int_equal(count, 3);
	assert_string_equal(choir_device_name(found[2]), "fast:2");
	assert_int_equal(chi_device_list_accelerators(2, found, &count), CHOIR_OK);
	assert_int_equal(count, 2);
	assert_ptr_equal(choir_device_self(found[0]), found[0]->self);
	assert_null(choir_device_self(NULL));
}

TEST(missing_slots_say_so)
{
	choir_device_table full = toy_table("bare", three);
	choir_device_table bare = { .size = sizeof bare,
		.version = CHOIR_TABLE_VERSION,
		.kind = "bare",
		.count = three,
		.self_size = full.self_size,
		.open = full.open,
		.stream_open = full.stream_open,
		.stream_size = full.stream_size };
	assert_int_equal(choir_register_device(&bare), CHOIR_OK);
	choir_device *d = choir_device_find("bare:1");
	assert_non_null(d);
	void *memory;
	assert_int_equal(chi_device_allocate(d, 1, &memory), CHOIR_UNSUPPORTED);
	assert_says("bare:1:*allocate");
	choir_device_info info = { .size = sizeof info };
	assert_int_equal(choir_device_describe(d, &info), CHOIR_OK);
	assert_int_equal(info.memory_total, 0);
	chi_stream *s = chi_stream_new(d);
	assert_non_null(s);
	uint64_t event = 1;
	assert_int_equal(chi_stream_copy(s, NULL, NULL, 0), CHOIR_UNSUPPORTED);
	assert_says("bare:1:*copy");
	assert_int_equal(chi_stream_fill(s, NULL, 0, 0), CHOIR_UNSUPPORTED);
	assert_says("bare:1:*fill");
	assert_int_equal(chi_stream_record_event(s, &event), CHOIR_UNSUPPORTED);
	assert_int_equal(chi_stream_wait_event(s, s, 0), CHOIR_UNSUPPORTED);
	assert_int_equal(chi_stream_wait_until(s, 0, 0), CHOIR_UNSUPPORTED);
	assert_int_equal(chi_stream_wait(s), CHOIR_UNSUPPORTED);
	choir_fail(CHOIR_NOT_FOUND, "older");
	assert_null(chi_device_host_allocate(d, 8));
	assert_says("older");
	d->table->host_release(d->self, NULL, 0);
	d->table->release(d->self, NULL, 0);
	d->table->close(d->self);
	chi_stream_free(s);
	choir_device_table nothing = {
		.size = sizeof nothing, .version = CHOIR_TABLE_VERSION, .kind = "nothing"
	};
	assert_int_equal(choir_register_device(&nothing), CHOIR_OK);
	assert_int_equal(choir_device_count("nothing"), 0);
	nothing.kind = "closed";
	nothing.count = three;
	assert_int_equal(choir_register_device(&nothing), CHOIR_OK);
	assert_null(choir_device_find("closed:0"));
	assert_int_equal(choir_error_status(), CHOIR_UNSUPPORTED);
	assert_says("0*closed");
}

// A kind whose open takes its time, and fails as often as it is told.
static chi_atomic32 opens, opened, closes, failures_left;
static chi_gate never;

static choir_status open_slowly(void *self, int index)
{
	(void) self;
	(void) index;
	chi_atomic32_add(&opens, 1);
	chi_gate_wait(&never, 0, false, chi_clock_deadline(0.02));
	chi_atomic32_add(&opened, 1);
	uint32_t left = chi_atomic32_load(&failures_left);
	if (left == 0)
		return CHOIR_OK;
	chi_atomic32_store(&failures_left, left - 1);
	if (left == 3)
		return CHOIR_END; // which is no failure, but no success either
	return left == 1 ? CHOIR_IO : choir_fail(CHOIR_IO, "out of order"); // the last says nothing
}

static void count_close(void *self)
{
	(void) self;
	chi_atomic32_add(&closes, 1);
	choir_fail(CHOIR_STATE, "close leaves another text");
}

static void find_slow(void *arg)
{
	choir_device *d = choir_device_find("slow:0");
	if (chi_atomic32_load(&opened) > 0) // never a device that is still being opened
		*(choir_device **) arg = d;
}

TEST(many_threads_open_it_once)
{
	choir_device_table table = toy_table("slow", three);
	table.open = open_slowly;
	table.close = count_close;
	assert_int_equal(choir_register_device(&table), CHOIR_OK);
	chi_thread threads[8] = { 0 };
	choir_device *found[8] = { NULL };
	for (int i = 0; i < 8; i++)
		assert_int_equal(chi_thread_start(&threads[i], "finder", find_slow, &found[i]), CHOIR_OK);
	for (int i = 0; i < 8; i++)
		chi_thread_join(&threads[i]);
	assert_non_null(found[0]);
	for (int i = 1; i < 8; i++)
		assert_ptr_equal(found[i], found[0]);
	assert_int_equal(chi_atomic32_load(&opens), 1);
	assert_int_equal(chi_atomic32_load(&closes), 0);
}

TEST(a_failed_open_is_closed_and_may_be_tried_again)
{
	chi_atomic32_store(&opens, 0);
	chi_atomic32_store(&failures_left, 3);
	assert_null(choir_device_find("slow:1"));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_text_holds(choir_error(), "1*CHOIR_END");
	assert_null(choir_device_find("slow:1"));
	assert_int_equal(choir_error_status(), CHOIR_IO);
	assert_text_holds(choir_error(), "1*order");
	chi_error_clear();
	assert_null(choir_device_find("slow:1"));
	assert_text_holds(choir_error(), "1*CHOIR_IO");
	assert_int_equal(chi_atomic32_load(&closes), 3);
	assert_non_null(choir_device_find("slow:1"));
	assert_int_equal(chi_atomic32_load(&opens), 4);
	assert_int_equal(chi_atomic32_load(&closes), 3);
}

TEST(finding_survives_failed_allocations)
{
	for (uint64_t n = 1;; n++) {
		chi_error_clear();
		chi_alloc_fail(n, false);
		choir_device *d = choir_device_find("cpu:77");
		bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		if (!failed) {
			assert_non_null(d);
			assert_true(n > 2);
			return;
		}
		assert_null(d);
		assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
		assert_true(choir_error()[0] != '\0');
	}
}

TEST(kinds_have_an_end)
{
	choir_status status = CHOIR_OK;
	for (char c = 'a'; c <= 'z' && status == CHOIR_OK; c++) {
		char kind[] = { 'm', 'a', 'n', 'y', c, '\0' };
		choir_device_table table = toy_table(kind, three);
		status = choir_register_device(&table);
	}
	assert_int_equal(status, CHOIR_UNSUPPORTED);
	assert_says("16*already");
	assert_null(choir_device_find("gpu:0"));
	assert_says("0*known"); // cut, not overrun
}
