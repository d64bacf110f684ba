// Splits "FILE#NAME,NAME" into a file and names of arrays.
#include "data/choose_arrays.h"

#include <string.h>
#include <unistd.h>

static choir_status take_names(array_names *a, const char *given)
{
	for (char *p = a->text; p != NULL;) {
		char *end = strchr(p, ',');
		if (end != NULL)
			*end++ = '\0';
		if (*p == '\0' || a->n == MAX_ARRAYS)
			return choir_fail(CHOIR_INVALID, "\"%s\": needs FILE#NAME,NAME with 1 to %d names",
					given, MAX_ARRAYS);
		a->name[a->n++] = p;
		p = end;
	}
	return CHOIR_OK;
}

choir_status array_names_set(array_names *a, const char *given)
{
	const char *hash = strrchr(given, '#');
	const bool named = hash != NULL && access(given, F_OK) != 0;
	const size_t bytes = named ? (size_t) (hash - given) : strlen(given);
	a->n = 0;
	if (bytes >= sizeof a->file || (named && strlen(hash) > sizeof a->text))
		return choir_fail(CHOIR_INVALID, "data: name too long: %zu bytes", strlen(given));
	memcpy(a->file, given, bytes);
	a->file[bytes] = '\0';
	if (!named)
		return CHOIR_OK;
	memcpy(a->text, hash + 1, strlen(hash));
	return take_names(a, given);
}
