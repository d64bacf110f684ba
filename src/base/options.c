// Copies callers' options and tables.
#include "base/options.h"

#include <string.h>

choir_status chi_options_take(const char *what, void *all, size_t size, const void *given)
{
	size_t theirs = size;

	if (given != NULL)
		memcpy(&theirs, given, sizeof theirs);
	if (theirs < sizeof theirs || theirs > size)
		return choir_fail(CHOIR_INVALID, "%s size is %zu, not %zu; set it with CHOIR_OPTIONS",
				what, theirs, size);
	memset(all, 0, size);
	if (given != NULL)
		memcpy(all, given, theirs);
	memcpy(all, &size, sizeof size);
	return CHOIR_OK;
}

choir_status chi_table_take(
		const char *what, void *own, size_t size, size_t min, const void *given)
{
	struct {
		size_t size;
		uint32_t version;
	} theirs;

	if (given == NULL)
		return choir_fail(CHOIR_INVALID, "%s: the table is NULL", what);
	memcpy(&theirs.size, given, sizeof theirs.size);
	if (theirs.size < min || theirs.size % sizeof(void *) != 0)
		return choir_fail(CHOIR_INVALID,
				"%s: the table's size is %zu, this Choir's %zu; "
				"at least %zu and a multiple of %zu is needed",
				what, theirs.size, size, min, sizeof(void *));
	memcpy(&theirs.version, (const char *) given + sizeof theirs.size, sizeof theirs.version);
	if (theirs.version != CHOIR_TABLE_VERSION)
		return choir_fail(CHOIR_INVALID, "%s: the table's version is %u; %d is needed", what,
				(unsigned) theirs.version, CHOIR_TABLE_VERSION);
	memset(own, 0, size);
	memcpy(own, given, theirs.size < size ? theirs.size : size);
	memcpy(own, &size, sizeof size);
	return CHOIR_OK;
}
