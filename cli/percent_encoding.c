// Percent encoding of everything that is not printable ASCII.
#include "percent_encoding.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

size_t percent_encode(const char *from, char *to, size_t size)
{
	size_t at = 0;
	for (; *from != '\0' && at < size; from++) {
		const unsigned char byte = (unsigned char) *from;
		const bool plain = byte >= 0x20 && byte < 0x7f && byte != '%';
		at += (size_t) snprintf(to + at, size - at, plain ? "%c" : "%%%02X", byte);
	}
	if (at < size)
		to[at] = '\0';
	return at < size ? at : size;
}

size_t percent_encode_to_list(char *list, size_t at, size_t size, const char *text)
{
	if (at > 0 && at < size)
		list[at++] = '\t';
	return at + percent_encode(text, list + at, size - at);
}

void percent_decode(char *text)
{
	char *to = text;
	for (; *text != '\0'; text++, to++) {
		*to = *text;
		if (text[0] != '%' || !isxdigit((unsigned char) text[1]) ||
				!isxdigit((unsigned char) text[2]))
			continue;
		const char digits[] = { text[1], text[2], '\0' };
		*to = (char) strtoul(digits, NULL, 16);
		text += 2;
	}
	*to = '\0';
}
