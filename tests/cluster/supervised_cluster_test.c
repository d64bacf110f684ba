// A cluster tells the supervisor of its process how it goes (trace/health.h).
#include "base/shared_memory.h"
#include "choir/cluster.h"
#include "test.h"
#include "trace/health.h"

#include <stdio.h>
#include <stdlib.h>

static chi_health *page;

static chi_health_note note(void)
{
	chi_health_note n;
	chi_health_read(page, &n);
	return n;
}

static int open_page(void **state)
{
	(void) state;
	char number[16];
	const int fd = chi_shared_memory(sizeof *page);
	page = chi_shared_map(fd, sizeof *page);
	page->magic = CHI_HEALTH_MAGIC;
	snprintf(number, sizeof number, "%d", fd);
	return setenv(CHI_HEALTH_VARIABLE, number, 1);
}

TEST_WITHIN(a_cluster_reports, open_page, NULL)
{
	choir_cluster *c =
			choir_cluster_new(CHOIR_OPTIONS(choir_cluster_options, .transport = "alone"));
	assert_non_null(c);
	assert_int_equal(note().state, CHI_HEALTH_OPEN);
	choir_cluster_free(c);
	assert_int_equal(note().state, CHI_HEALTH_FINISHED);
	c = choir_cluster_new(CHOIR_OPTIONS(choir_cluster_options, .transport = "alone"));
	choir_cluster_abort(c, "no data");
	choir_cluster_free(c);
	assert_int_equal(note().state, CHI_HEALTH_FAILED);
	assert_text_holds(note().text, "no data");
}
