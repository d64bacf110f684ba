// Lists of hosts: names, slots, files, and hosts that are lost.
#include "supervisor/hosts.h"

#include "base/alloc.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static chi_hosts hosts;

static int clear(void **state)
{
	(void) state;
	memset(&hosts, 0, sizeof hosts);
	return 0;
}

TEST_WITHIN(a_list_fills_hosts_in_order, clear, NULL)
{
	chi_text list = { 0 };
	assert_int_equal(chi_hosts_read(&hosts, "a, me@b.example:2 ,10.0.0.7"), CHOIR_OK);
	assert_int_equal(chi_hosts_capacity(&hosts), 4);
	assert_string_equal(chi_hosts_of(&hosts, 0), "a");
	assert_string_equal(chi_hosts_of(&hosts, 2), "me@b.example");
	assert_string_equal(chi_hosts_of(&hosts, 3), "10.0.0.7");
	assert_null(chi_hosts_of(&hosts, 4));
	chi_hosts_add_list(&hosts, 2, &list);
	assert_string_equal(list.data, "a:1,me@b.example:1");
	chi_text_free(&list);
	assert_string_equal(chi_hosts_name(&hosts, "b", 0), "me@b.example");
	assert_string_equal(chi_hosts_name(&hosts, "node7", 3), "10.0.0.7");
	assert_string_equal(chi_hosts_name(&hosts, "node7", 4), "node7");
	chi_hosts_lose(&hosts, "b"); // as the host calls itself
	chi_hosts_lose(&hosts, "");
	assert_int_equal(chi_hosts_capacity(&hosts), 2);
	assert_string_equal(chi_hosts_of(&hosts, 1), "10.0.0.7");
	chi_hosts_add_list(&hosts, 9, &list);
	assert_string_equal(list.data, "a:1,10.0.0.7:1");
	chi_text_free(&list);
	assert_int_equal(chi_hosts_read(&hosts, "a,b"), CHOIR_OK);
	assert_int_equal(chi_hosts_capacity(&hosts), 2); // b is another name than me@b.example
	assert_int_equal(chi_hosts_read(&hosts, NULL), CHOIR_OK);
	assert_int_equal(chi_hosts_capacity(&hosts), 0);
}

TEST_WITHIN(wrong_lists_are_refused, clear, NULL)
{
	static const struct {
		const char *list, *words;
	} wrong[] = { { "", "no host" }, { " , ", "no host" }, { "-oProxyCommand=x", "-oProxy" },
		{ "a:0", "a:0" }, { "a:-1", "a:-1" }, { "a:x", "a:x" }, { "a:99999", "99999" },
		{ "a b", "a b" }, { "a;reboot", "a;reboot" }, { ":2", ":2" }, { "a slots=", "slots=" },
		{ "/no/such/file", "/no/such/file" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaa" } };
	assert_int_equal(chi_hosts_read(&hosts, "kept:3"), CHOIR_OK);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		if (chi_hosts_read(&hosts, wrong[i].list) == CHOIR_OK)
			fail_msg("\"%s\" is accepted", wrong[i].list);
		if (strstr(choir_error(), wrong[i].words) == NULL)
			fail_msg("\"%s\": %s", wrong[i].list, choir_error());
		assert_int_equal(chi_hosts_capacity(&hosts), 3); // unchanged
	}
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

TEST_WITHIN(a_file_is_read_again, clear, NULL)
{
	char path[] = "/tmp/choir-hosts-XXXXXX";
	close(mkstemp(path));
	write_file(path, "# nodes\na slots=2 # the first\r\n\n b:3\nc\n");
	assert_int_equal(chi_hosts_read(&hosts, path), CHOIR_OK);
	assert_int_equal(chi_hosts_capacity(&hosts), 6);
	chi_hosts_lose(&hosts, "b.cluster");
	assert_int_equal(chi_hosts_read(&hosts, path), CHOIR_OK);
	assert_int_equal(chi_hosts_capacity(&hosts), 3);
	write_file(path, "a\nc\n"); // without it,
	assert_int_equal(chi_hosts_read(&hosts, path), CHOIR_OK);
	write_file(path, "a\nb:3\n"); // and then with it
	assert_int_equal(chi_hosts_read(&hosts, path), CHOIR_OK);
	assert_int_equal(chi_hosts_capacity(&hosts), 4);
	write_file(path, "a\nb x\n");
	assert_int_equal(chi_hosts_read(&hosts, path), CHOIR_INVALID);
	assert_text_holds(choir_error(), "b x");
	write_file(path, "a:2\n");
	choir_status status = CHOIR_NO_MEMORY;
	for (uint64_t n = 1; status != CHOIR_OK; n++) {
		assert_true(n < 50);
		chi_alloc_fail(n, false);
		status = chi_hosts_read(&hosts, path);
		chi_alloc_fail(0, false);
		if (status != CHOIR_OK)
			assert_int_equal(status, CHOIR_NO_MEMORY);
	}
	assert_int_equal(chi_hosts_capacity(&hosts), 2);
	unlink(path);
}
