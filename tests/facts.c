// Searches a text for the facts that it must hold.
#include "facts.h"

#include <string.h>

bool text_holds(const char *text, const char *facts)
{
	const size_t length = strlen(text);
	for (const char *at = facts, *end; *at != '\0'; at = *end == '*' ? end + 1 : end) {
		end = at + strcspn(at, "*");
		if (memmem(text, length, at, (size_t) (end - at)) == NULL)
			return false;
	}
	return true;
}
