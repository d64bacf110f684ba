// Tables by name: which are found, and which are refused.
#include "base/registry.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

typedef struct {
	size_t size;
	uint32_t version;
	const char *name;
	int (*number)(void);
} table;

static int one(void)
{
	return 1;
}

static const table first = { sizeof first, CHOIR_TABLE_VERSION, "first", NULL },
				   second = { sizeof second, CHOIR_TABLE_VERSION, "second", NULL };
static const void *const builtin[] = { &first, &second, NULL };

TEST(tables_are_found)
{
	table own[CHI_REGISTRY_MAX];
	chi_registry r = { "thing", sizeof own[0], builtin, own, { 0 } };
	const table third = { sizeof third, CHOIR_TABLE_VERSION, "third", one };
	assert_ptr_equal(chi_registry_at(&r, 1), &second);
	assert_null(chi_registry_at(&r, 2));
	assert_null(chi_registry_find(&r, "third"));
	assert_int_equal(choir_error_status(), CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "thing \"third\":*second");
	table *t = chi_registry_add(&r, &third);
	assert_non_null(t);
	assert_int_equal(t->number(), 1);
	assert_ptr_equal(chi_registry_find(&r, "third"), t);
	assert_ptr_equal(chi_registry_find(&r, "first"), &first);
	assert_ptr_equal(chi_registry_at(&r, 2), t);
	assert_null(chi_registry_at(&r, 3));
	assert_null(chi_registry_find(&r, ""));
	assert_text_holds(choir_error(), "second");
}

static void refuse(chi_registry *r, const table *t, const char *text)
{
	assert_null(chi_registry_add(r, t));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_text_holds(choir_error(), text);
}

TEST(tables_are_refused)
{
	table own[CHI_REGISTRY_MAX];
	chi_registry r = { "thing", sizeof own[0], builtin, own, { 0 } };
	table t = first;
	refuse(&r, NULL, "thing:*NULL");
	refuse(&r, &t, "thing \"first\":*already");
	t.name = "";
	refuse(&r, &t, "thing:*table");
	t.name = NULL;
	refuse(&r, &t, "thing:*table");
	t.version++;
	refuse(&r, &t, "thing:*2*1");
	char names[CHI_REGISTRY_MAX][8];
	for (int i = 0; i < CHI_REGISTRY_MAX; i++) {
		snprintf(names[i], sizeof names[i], "n%d", i);
		const table n = { sizeof n, CHOIR_TABLE_VERSION, names[i], NULL };
		assert_non_null(chi_registry_add(&r, &n));
	}
	refuse(&r, &second, "thing:*16");
}
