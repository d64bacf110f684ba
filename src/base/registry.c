// All tables begin with a chi_table_head.
#include "base/registry.h"

#include "base/options.h"
#include "base/status.h"
#include "base/text.h"

#include <string.h>

static const char *name_of(const void *table)
{
	const char *name;
	memcpy(&name, (const char *) table + offsetof(chi_table_head, name), sizeof name);
	return name;
}

const void *chi_registry_at(const chi_registry *r, int i)
{
	const void *const *t = r->builtin;
	while (*t != NULL && i > 0)
		t++, i--;
	if (*t != NULL || i >= (int) chi_atomic32_load(&r->count))
		return *t;
	return (const char *) r->registered + (size_t) i * r->size;
}

static const void *find(const chi_registry *r, const char *name)
{
	const void *t;
	for (int i = 0; (t = chi_registry_at(r, i)) != NULL; i++)
		if (strcmp(name_of(t), name) == 0)
			break;
	return t;
}

const void *chi_registry_find(const chi_registry *r, const char *name)
{
	const void *t = find(r, name);
	if (t != NULL)
		return t;
	chi_text names = { 0 };
	for (int i = 0; (t = chi_registry_at(r, i)) != NULL; i++)
		chi_text_add(&names, "%s%s", i == 0 ? "" : ", ", name_of(t));
	choir_fail(CHOIR_NOT_FOUND, "%s \"%s\": is unknown; known: %s", r->what, name,
			names.data == NULL ? "others" : names.data);
	chi_text_free(&names);
	return NULL;
}

void *chi_registry_add(chi_registry *r, const void *given)
{
	const uint32_t count = chi_atomic32_load(&r->count);
	if (count == CHI_REGISTRY_MAX)
		return chi_fail_null(CHOIR_INVALID,
				"%s: %d tables are registered already; no more are possible", r->what,
				(int) count);
	void *own = (char *) r->registered + (size_t) count * r->size;
	if (chi_table_take(r->what, own, r->size, sizeof(chi_table_head), given) != CHOIR_OK)
		return NULL;
	const char *name = name_of(own);
	if (name == NULL || name[0] == '\0')
		return chi_fail_null(CHOIR_INVALID, "%s: the table has no name", r->what);
	if (find(r, name) != NULL)
		return chi_fail_null(CHOIR_INVALID, "%s \"%s\": is registered already", r->what, name);
	chi_atomic32_store(&r->count, count + 1);
	return own;
}
