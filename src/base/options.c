// Taking over a caller's options.
#include "base/options.h"

#include <string.h>

choir_status chi_options_take(const char *what, void *all, size_t size, const void *given)
{
	size_t theirs = size;

	if (given != NULL)
		memcpy(&theirs, given, sizeof theirs);
	if (theirs < sizeof theirs || theirs > size)
		return choir_fail(CHOIR_INVALID, "%s size is %zu, not %zu: set it with CHOIR_OPTIONS",
				what, theirs, size);
	memset(all, 0, size);
	if (given != NULL)
		memcpy(all, given, theirs);
	memcpy(all, &size, sizeof size);
	return CHOIR_OK;
}
