// Searches a text for the facts that it must hold.
#include "facts.h"

#include <ctype.h>
#include <string.h>

static bool digit(char c)
{
	return isdigit((unsigned char) c) != 0;
}

// Whether a fact found here begins a number, not the middle of one or of a name such as f32.
static bool number_begins(const char *text, const char *at)
{
	if (at == text || !digit(*at))
		return true;
	const char before = at[-1];
	return !isalnum((unsigned char) before) && before != '_' &&
			!(before == '.' && at - text > 1 && digit(at[-2]));
}

static bool number_ends(const char *end)
{
	return !digit(end[-1]) || !(digit(*end) || (*end == '.' && digit(end[1])));
}

static bool holds(const char *text, const char *fact, size_t length)
{
	const char *end = text + strlen(text);
	for (const char *at = text;
			length > 0 && (at = memmem(at, (size_t) (end - at), fact, length)) != NULL; at++)
		if (number_begins(text, at) && number_ends(at + length))
			return true;
	return false;
}

bool text_holds(const char *text, const char *facts)
{
	for (;;) {
		const size_t length = strcspn(facts, "*");
		if (!holds(text, facts, length))
			return false;
		if (facts[length] == '\0')
			return true;
		facts += length + 1;
	}
}
