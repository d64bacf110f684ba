// One bit per level, and a state for what may come next. A decoded string overwrites its source,
// which is never shorter.
#include "base/json.h"

#include "base/text.h"

#include <string.h>

enum {
	WANT_VALUE,
	WANT_VALUE_OR_END,
	WANT_KEY,
	WANT_KEY_OR_END,
	WANT_COMMA_OR_END,
	WANT_NOTHING,
	IS_WRONG
};

void chi_json_open(chi_json *j, char *data, size_t size)
{
	*j = (chi_json){ .data = data, .size = size, .state = WANT_VALUE };
}

static chi_json_token wrong(chi_json *j, const char *error)
{
	j->error = error;
	j->state = IS_WRONG;
	return CHI_JSON_WRONG;
}

static void skip_space(chi_json *j)
{
	while (j->at < j->size && j->data[j->at] != '\0' && strchr(" \t\n\r", j->data[j->at]) != NULL)
		j->at++;
}

static bool read_hex(chi_json *j, uint32_t *code)
{
	*code = 0;
	if (j->size - j->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		const char c = j->data[j->at++];
		const int digit = c >= '0' && c <= '9' ? c - '0'
				: c >= 'a' && c <= 'f'		   ? c - 'a' + 10
				: c >= 'A' && c <= 'F'		   ? c - 'A' + 10
											   : -1;
		if (digit < 0)
			return false;
		*code = *code << 4 | (uint32_t) digit;
	}
	return true;
}

static size_t encode(uint32_t code, char *out)
{
	if (code < 0x80) {
		out[0] = (char) code;
		return 1;
	}
	const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = length; i-- > 1; code >>= 6)
		out[i] = (char) (0x80 | (code & 0x3f));
	out[0] = (char) ((0xf00u >> length & 0xff) | code);
	return length;
}

// With its second surrogate. 0: invalid.
static uint32_t read_code(chi_json *j)
{
	uint32_t code, second;
	if (!read_hex(j, &code) || (code >= 0xdc00 && code < 0xe000))
		return 0;
	if (code < 0xd800 || code >= 0xe000)
		return code;
	if (j->size - j->at < 6 || j->data[j->at] != '\\' || j->data[j->at + 1] != 'u')
		return 0;
	j->at += 2;
	if (!read_hex(j, &second) || second < 0xdc00 || second >= 0xe000)
		return 0;
	return 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
}

static size_t read_escape(chi_json *j, char *out)
{
	static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	if (j->at == j->size)
		return 0;
	const char c = j->data[j->at++];
	if (c == 'u') {
		const uint32_t code = read_code(j);
		return code == 0 ? 0 : encode(code, out);
	}
	const char *name = c == '\0' ? NULL : strchr(names, c);
	if (name == NULL)
		return 0;
	*out = meant[name - names];
	return 1;
}

static bool read_string(chi_json *j)
{
	char *out = j->data + j->at;
	j->text = out;
	while (j->at < j->size && j->data[j->at] != '"') {
		size_t length;
		if (j->data[j->at] == '\\') {
			j->at++;
			length = read_escape(j, out);
		} else {
			length = chi_utf8_length(j->data + j->at, j->size - j->at);
			if (length == 1 && (unsigned char) j->data[j->at] < 0x20)
				length = 0;
			memmove(out, j->data + j->at, length);
			j->at += length;
		}
		if (length == 0) {
			wrong(j, "a string contains an invalid character");
			return false;
		}
		out += length;
	}
	if (j->at == j->size) {
		wrong(j, "a string has no end");
		return false;
	}
	j->at++;
	j->length = (size_t) (out - j->text);
	*out = '\0';
	return true;
}

static size_t count_digits(const chi_json *j, size_t from)
{
	size_t at = from;
	while (at < j->size && j->data[at] >= '0' && j->data[at] <= '9')
		at++;
	return at - from;
}

static bool is_at(const chi_json *j, size_t at, const char *any)
{
	return at < j->size && j->data[at] != '\0' && strchr(any, j->data[at]) != NULL;
}

static chi_json_token read_number(chi_json *j)
{
	size_t at = j->at + is_at(j, j->at, "-");
	const size_t whole = count_digits(j, at);
	bool good = whole > 0 && (whole == 1 || j->data[at] != '0');
	at += whole;
	if (good && is_at(j, at, ".")) {
		const size_t digits = count_digits(j, at + 1);
		good = digits > 0;
		at += 1 + digits;
	}
	if (good && is_at(j, at, "eE")) {
		at += 1 + (size_t) is_at(j, at + 1, "+-");
		const size_t digits = count_digits(j, at);
		good = digits > 0;
		at += digits;
	}
	if (!good)
		return wrong(j, "a value is invalid");
	j->text = j->data + j->at;
	j->length = at - j->at;
	j->at = at;
	return CHI_JSON_NUMBER;
}

static chi_json_token read_word(chi_json *j, const char *word, chi_json_token token)
{
	const size_t length = strlen(word);
	if (j->size - j->at < length || memcmp(j->data + j->at, word, length) != 0)
		return wrong(j, "a value is invalid");
	j->at += length;
	return token;
}

static chi_json_token begin(chi_json *j, bool object)
{
	if (j->depth == CHI_JSON_DEPTH)
		return wrong(j, "objects and arrays are nested too deeply");
	j->at++;
	const uint32_t bit = 1u << j->depth++;
	j->objects = object ? j->objects | bit : j->objects & ~bit;
	j->state = object ? WANT_KEY_OR_END : WANT_VALUE_OR_END;
	return object ? CHI_JSON_OBJECT : CHI_JSON_ARRAY;
}

static bool in_object(const chi_json *j)
{
	return j->depth > 0 && (j->objects >> (j->depth - 1) & 1) != 0;
}

static void after_value(chi_json *j)
{
	j->state = j->depth == 0 ? WANT_NOTHING : WANT_COMMA_OR_END;
}

static chi_json_token end(chi_json *j)
{
	const bool object = in_object(j);
	j->at++;
	j->depth--;
	after_value(j);
	return object ? CHI_JSON_OBJECT_END : CHI_JSON_ARRAY_END;
}

static chi_json_token read_value(chi_json *j)
{
	chi_json_token token;
	switch (j->data[j->at]) {
	case '{':
		return begin(j, true);
	case '[':
		return begin(j, false);
	case 't':
		token = read_word(j, "true", CHI_JSON_TRUE);
		break;
	case 'f':
		token = read_word(j, "false", CHI_JSON_FALSE);
		break;
	case 'n':
		token = read_word(j, "null", CHI_JSON_NULL);
		break;
	case '"':
		j->at++;
		token = read_string(j) ? CHI_JSON_STRING : CHI_JSON_WRONG;
		break;
	default:
		token = read_number(j);
	}
	if (token != CHI_JSON_WRONG)
		after_value(j);
	return token;
}

static chi_json_token read_key(chi_json *j)
{
	if (j->data[j->at] != '"')
		return wrong(j, "a key is missing");
	j->at++;
	if (!read_string(j))
		return CHI_JSON_WRONG;
	skip_space(j);
	if (!is_at(j, j->at, ":"))
		return wrong(j, "a key has no colon");
	j->at++;
	j->state = WANT_VALUE;
	return CHI_JSON_KEY;
}

chi_json_token chi_json_next(chi_json *j)
{
	if (j->state == IS_WRONG)
		return CHI_JSON_WRONG;
	skip_space(j);
	if (j->state == WANT_NOTHING)
		return j->at == j->size ? CHI_JSON_END : wrong(j, "there is text after the end");
	const char *ending = in_object(j) ? "}" : "]";
	const bool may_end = j->depth > 0 && j->state != WANT_VALUE && j->state != WANT_KEY;
	if (may_end && is_at(j, j->at, ending))
		return end(j);
	if (j->state == WANT_COMMA_OR_END) {
		if (!is_at(j, j->at, ","))
			return wrong(j, "a comma is missing");
		j->at++;
		j->state = in_object(j) ? WANT_KEY : WANT_VALUE;
		skip_space(j);
	}
	if (j->at == j->size)
		return wrong(j, "the text ends too early");
	return j->state == WANT_KEY || j->state == WANT_KEY_OR_END ? read_key(j) : read_value(j);
}

bool chi_json_uint64(const chi_json *j, uint64_t *out)
{
	uint64_t value = 0;
	for (size_t i = 0; i < j->length; i++) {
		const char c = j->text[i];
		if (c < '0' || c > '9' || __builtin_mul_overflow(value, (uint64_t) 10, &value) ||
				__builtin_add_overflow(value, (uint64_t) (c - '0'), &value))
			return false;
	}
	*out = value;
	return j->length > 0;
}
