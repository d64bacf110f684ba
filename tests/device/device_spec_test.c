// Names: which spellings are read, as what, and what is said of those that are not.
#include "device/device.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

TEST(spellings_are_read)
{
	static const struct {
		const char *name, *kind;
		int index;
	} good[] = {
		{ "cpu:0", "cpu", 0 },
		{ "cpu", "cpu", 0 },
		{ "CPU:0", "cpu", 0 },
		{ "/cpu:0", "cpu", 0 },
		{ "/CPU:13", "cpu", 13 },
		{ "/device:CPU:2", "cpu", 2 },
		{ "/device:GPU:1", "gpu", 1 },
		{ "far:63", "far", 63 },
		{ "cpu:007", "cpu", 7 },
		{ "cpu:2147483647", "cpu", 2147483647 },
		{ "/job:worker/replica:0/task:1/device:CPU:0", "cpu", 0 },
		{ "/job:worker/task:1/device:CPU:4", "cpu", 4 },
		{ "/task:1/job:my_ps2/cpu:3", "cpu", 3 },
		{ "/replica:0/device:cpu:1", "cpu", 1 },
		{ "abcdefghijklmno:1", "abcdefghijklmno", 1 },
	};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		char kind[16];
		int index = -1;
		if (!chi_device_parse(good[i].name, kind, &index))
			fail_msg("\"%s\" was not read", good[i].name);
		assert_string_equal(kind, good[i].kind);
		assert_int_equal(index, good[i].index);
	}
}

TEST(other_spellings_are_not)
{
	static const char *const bad[] = { "", ":", ":0", "cpu:", "cpu:-1", "cpu:+1", "cpu:x",
		"cpu:0x", "cpu:1 ", " cpu:1", "cpu:2147483648", "cpu:99999999999999999999", "cpu:0:0",
		"cpu0", "/", "//cpu:0", "/device:", "/device:CPU:", "device:CPU:0", "/device:CPU:*",
		"/job:worker/task:1", "/job:worker", "/job:/cpu:0", "/job:1a/cpu:0", "/task:/cpu:0",
		"/task:-1/cpu:0", "/task:1/task:2/cpu:0", "/job:a/job:b/cpu:0",
		"/replica:1/replica:1/cpu:0", "/task:1cpu:0", "/host:1/cpu:0", "abcdefghijklmnop:1",
		"c_pu:0", "cpu\n", "\xc3\xa4:0" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char kind[16] = "kept";
		int index = 77;
		if (chi_device_parse(bad[i], kind, &index))
			fail_msg("\"%s\" was read as %s:%d", bad[i], kind, index);
		assert_string_equal(kind, "kept");
		assert_int_equal(index, 77);
		assert_null(choir_device_find(bad[i]));
		assert_int_equal(choir_error_status(), CHOIR_NOT_FOUND);
		assert_text_holds(choir_error(), "0*known");
	}
	char kind[16];
	int index;
	assert_false(chi_device_parse(NULL, kind, &index));
}

TEST(lists_are_read)
{
	choir_device *devices[4] = { NULL };
	int count = -1;
	assert_int_equal(chi_device_list("cpu:1, /device:FAR:0 ,CPU", 4, devices, &count), CHOIR_OK);
	assert_int_equal(count, 3);
	assert_string_equal(choir_device_name(devices[0]), "cpu:1");
	assert_string_equal(choir_device_name(devices[1]), "far:0");
	assert_string_equal(choir_device_name(devices[2]), "cpu:0");
	assert_int_equal(chi_device_list("cpu:5", 1, devices, &count), CHOIR_OK);
	assert_int_equal(count, 1);
}

TEST(wrong_lists_are_refused)
{
	static const struct {
		const char *names;
		choir_status status;
		const char *text;
	} bad[] = {
		{ NULL, CHOIR_INVALID, "empty" },
		{ "", CHOIR_INVALID, "empty" },
		{ ",", CHOIR_INVALID, "name 1 of the list is empty" },
		{ "cpu:0,,", CHOIR_INVALID, "\"cpu:0,,\": name 2 of the list is empty" },
		{ "cpu:0,", CHOIR_INVALID, "name 2 of the list is empty" },
		{ "cpu:0, ,cpu:1", CHOIR_INVALID, "name 2 of the list is empty" },
		{ "cpu:0,far:1,CPU:0", CHOIR_INVALID, "cpu:0 occurs twice, as names 1 and 3" },
		{ "cpu:0,cpu:1,cpu:2,cpu:3,cpu:4", CHOIR_INVALID, "more than 4" },
		{ "cpu:0,tpu:1", CHOIR_NOT_FOUND, "device \"tpu:1\": is unknown; known: cpu:0" },
		{ "cpu:0,cpu:-1", CHOIR_NOT_FOUND, "device \"cpu:-1\"" },
		{ "cpu:0;cpu:1", CHOIR_NOT_FOUND, "device \"cpu:0;cpu:1\"" },
		{ "cpu:0,cpu:1024", CHOIR_NOT_FOUND,
				"cpu:1024: no such device: the last one is cpu:1023" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		choir_device *devices[4];
		int count = -1;
		assert_int_equal(chi_device_list(bad[i].names, 4, devices, &count), bad[i].status);
		assert_int_equal(count, 0);
		if (strstr(choir_error(), bad[i].text) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", choir_error(), bad[i].text);
	}
}

TEST(long_names_are_cut_in_messages)
{
	char name[4000];
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = '\0';
	choir_device *devices[1];
	int count;
	assert_int_equal(chi_device_list(name, 1, devices, &count), CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "name 1");
	assert_true(strlen(choir_error()) < 200);
	assert_null(choir_device_find(name));
	assert_text_holds(choir_error(), "0*known");
	assert_null(choir_device_find("cpu:\x1b[2J"));
	assert_null(strchr(choir_error(), '\x1b'));
}
