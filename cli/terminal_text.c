// One decoder of UTF-8 and one rule for terminals, for lines and JSON.
#include "terminal_text.h"

#include <string.h>

// 0: no character begins so.
static size_t length_of(uint8_t first)
{
	return first < 0x80	   ? 1
			: first < 0xc2 ? 0
			: first < 0xe0 ? 2
			: first < 0xf0 ? 3
			: first < 0xf5 ? 4
						   : 0;
}

size_t clean_character(const void *bytes, size_t n, uint32_t *code)
{
	static const uint32_t min[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t *c = bytes;
	const size_t length = n == 0 ? 0 : length_of(c[0]);
	if (length == 0 || length > n)
		return 0;
	uint32_t value = length == 1 ? c[0] : c[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (c[i] & 0x3f);
	}
	if (value < min[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
		return 0;
	*code = value;
	return length;
}

bool clean_shows(uint32_t code)
{
	static const uint32_t hidden[][2] = { { 0, 0x1f }, { 0x7f, 0x9f }, { 0x61c, 0x61c },
		{ 0x200e, 0x200f }, { 0x202a, 0x202e }, { 0x2066, 0x2069 } };
	for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
		if (code >= hidden[i][0] && code <= hidden[i][1])
			return false;
	return true;
}

// A character, or a byte that belongs to none. Returns its bytes.
static size_t next_piece(const uint8_t *bytes, size_t n, bool *shown, uint32_t *code)
{
	*code = bytes[0];
	const size_t length = clean_character(bytes, n, code);
	*shown = length > 0 && clean_shows(*code);
	return length == 0 ? 1 : length;
}

const char *clean_text(const char *text, char out[CLEAN_TEXT])
{
	enum { ESCAPED = 4 };
	size_t at = 0, left = strlen(text);
	for (size_t bytes = 0; left > 0; text += bytes, left -= bytes) {
		bool shown;
		uint32_t code;
		bytes = next_piece((const uint8_t *) text, left, &shown, &code);
		if (at + bytes * (shown ? 1 : ESCAPED) >= CLEAN_TEXT)
			break;
		for (size_t i = 0; i < bytes; i++)
			if (shown)
				out[at++] = text[i];
			else
				at += (size_t) snprintf(out + at, ESCAPED + 1, "\\x%02x", (uint8_t) text[i]);
	}
	out[at] = '\0';
	return out;
}

// Whether n bytes are an incomplete character.
static bool is_begun(const uint8_t *bytes, size_t n)
{
	const size_t length = length_of(bytes[0]);
	if (n >= length)
		return false;
	for (size_t i = 1; i < n; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return false;
	return true;
}

size_t clean_write(FILE *to, const void *bytes, size_t n, const clean_options *o)
{
	const uint8_t *all = bytes;
	size_t at = 0;
	for (size_t length = 0; at < n; at += length) {
		bool shown;
		uint32_t code;
		if (o->more && is_begun(all + at, n - at))
			break;
		length = next_piece(all + at, n - at, &shown, &code);
		if (shown || (o->lines && length == 1 && (code == '\n' || code == '\t')))
			fwrite(all + at, 1, length, to);
		else
			for (size_t i = 0; i < length; i++)
				fprintf(to, "\\x%02x", all[at + i]);
	}
	return at;
}

void clean_print(FILE *to, const char *text)
{
	clean_write(to, text, strlen(text), &(clean_options){ .lines = false });
}
