// Fuzzes the reader of safetensors files; the input is a file. An accepted file must be
// consistent, by 128-bit sums, and must be readable again after it is printed. A refused file must
// give a message. The header is also given to the JSON reader, which must accept exactly what an
// independent recursive grammar accepts.
#include "fuzz.h"

#include "base/json.h"
#include "train/weights/safetensors.h"

// The grammar. Each function moves past the element in its name, or returns false.
typedef struct {
	const uint8_t *at, *end;
	int depth;
} text;

static bool value(text *t);

static bool take(text *t, int c)
{
	if (t->at == t->end || *t->at != c)
		return false;
	t->at++;
	return true;
}

static void space(text *t)
{
	while (take(t, ' ') || take(t, '\t') || take(t, '\n') || take(t, '\r'))
		;
}

static int hex(text *t)
{
	int code = 0;
	for (int i = 0; i < 4; i++, t->at++) {
		if (t->at == t->end || *t->at == '\0' || !strchr("0123456789abcdefABCDEF", *t->at))
			return -1;
		const int c = *t->at;
		code = 16 * code + (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
	}
	return code;
}

static bool escape(text *t)
{
	if (!take(t, 'u')) {
		for (const char *c = "\"\\/bfnrt"; *c; c++)
			if (take(t, *c))
				return true;
		return false;
	}
	const int code = hex(t);
	if (code < 0xd800 || code > 0xdfff)
		return code > 0;
	if (code > 0xdbff || !take(t, '\\') || !take(t, 'u'))
		return false;
	const int low = hex(t);
	return low >= 0xdc00 && low <= 0xdfff;
}

// Reads a character by the table of well-formed UTF-8 sequences.
static bool character(text *t)
{
	// First byte from, to; second byte from, to; number of following bytes.
	static const uint8_t rows[][5] = { { 0x20, 0x7f, 0, 0, 0 }, { 0xc2, 0xdf, 0x80, 0xbf, 1 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 2 }, { 0xe1, 0xec, 0x80, 0xbf, 2 },
		{ 0xed, 0xed, 0x80, 0x9f, 2 }, { 0xee, 0xef, 0x80, 0xbf, 2 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 3 }, { 0xf1, 0xf3, 0x80, 0xbf, 3 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 3 } };
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const uint8_t *r = rows[i], *s = t->at;
		if (*s < r[0] || *s > r[1] || t->end - s <= r[4] || (r[4] && (s[1] < r[2] || s[1] > r[3])))
			continue;
		for (int k = 2; k <= r[4]; k++)
			if (s[k] < 0x80 || s[k] > 0xbf)
				return false;
		t->at += r[4] + 1;
		return true;
	}
	return false;
}

static bool string(text *t)
{
	if (!take(t, '"'))
		return false;
	while (!take(t, '"'))
		if (t->at == t->end || (take(t, '\\') ? !escape(t) : !character(t)))
			return false;
	return true;
}

static size_t digits(text *t)
{
	const uint8_t *from = t->at;
	while (t->at < t->end && *t->at >= '0' && *t->at <= '9')
		t->at++;
	return (size_t) (t->at - from);
}

static bool number(text *t)
{
	take(t, '-');
	if (!take(t, '0') && !digits(t))
		return false;
	if (take(t, '.') && !digits(t))
		return false;
	if (take(t, 'e') || take(t, 'E')) {
		if (!take(t, '+'))
			take(t, '-');
		return digits(t) > 0;
	}
	return true;
}

// Reads the members of an object or array, and the closing bracket.
static bool members(text *t, bool object, int close)
{
	if (++t->depth > CHI_JSON_DEPTH)
		return false;
	space(t);
	bool first = true;
	while (!take(t, close)) {
		if (!first && !take(t, ','))
			return false;
		first = false;
		space(t);
		if (object) {
			if (!string(t))
				return false;
			space(t);
			if (!take(t, ':'))
				return false;
		}
		if (!value(t))
			return false;
		space(t);
	}
	t->depth--;
	return true;
}

static bool word(text *t, const char *w)
{
	for (; *w; w++)
		if (!take(t, *w))
			return false;
	return true;
}

static bool value(text *t)
{
	space(t);
	if (t->at == t->end)
		return false;
	switch (*t->at) {
	case '{':
		t->at++;
		return members(t, true, '}');
	case '[':
		t->at++;
		return members(t, false, ']');
	case '"':
		return string(t);
	case 't':
		return word(t, "true");
	case 'f':
		return word(t, "false");
	case 'n':
		return word(t, "null");
	default:
		return number(t);
	}
}

static void check_json(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	demand(copy != NULL, "no memory");
	if (size)
		memcpy(copy, data, size);
	chi_json j;
	chi_json_token token;
	chi_json_open(&j, copy, size);
	do
		token = chi_json_next(&j);
	while (token != CHI_JSON_END && token != CHI_JSON_WRONG);
	text t = { data, data + size, 0 };
	bool good = value(&t);
	space(&t);
	good = good && t.at == t.end;
	demand(good == (token == CHI_JSON_END), good ? "refused good JSON" : "took bad JSON");
	demand(token == CHI_JSON_END || j.error != NULL, "refused without a word");
	free(copy);
}

static const chi_st_tensor *at_place(const chi_safetensors *st, uint64_t begin)
{
	const chi_st_tensor *found = NULL;
	for (size_t i = 0; i < st->n; i++)
		if (st->tensor[i]->begin == begin && st->tensor[i]->end > begin)
			found = st->tensor[i];
	return found;
}

static void check_taken(const chi_safetensors *st, size_t size)
{
	wide covered = 0;
	for (size_t i = 0; i < st->n; i++) {
		const chi_st_tensor *t = st->tensor[i];
		wide bytes = t->element_bytes;
		for (int k = 0; k < t->shape.rank; k++) {
			bytes *= (uint64_t) t->shape.dim[k];
			demand(bytes <= UINT64_MAX, "a shape that is too large");
		}
		demand((wide) t->begin + bytes == t->end, "offsets that do not fit");
		demand(i == 0 || strcmp(st->tensor[i - 1]->name, t->name) < 0, "names out of order");
		covered += bytes;
	}
	demand(covered + st->data == size, "not all of the data is covered");
	uint64_t end = 0;
	for (const chi_st_tensor *t; (t = at_place(st, end)) != NULL;)
		end = t->end;
	demand(end + st->data == size, "the tensors do not tile the data");
}

static choir_status open_bytes(const void *data, size_t size, chi_safetensors *st)
{
	chi_file *f = chi_file_open(fuzz_file(data, size));
	demand(f != NULL, "no file");
	const choir_status status = chi_safetensors_open(st, f);
	chi_file_close(f);
	demand(status == CHOIR_OK || (choir_error()[0] != '\0' && choir_error_status() == status),
			"refused without a word");
	return status;
}

// Prints what was read and reads it again.
static void print_again(const chi_safetensors *st, const uint8_t *data, size_t bytes)
{
	chi_st_tensor *tensors = calloc(st->n + 1, sizeof *tensors);
	chi_st_pair *pairs = calloc(st->pairs + 1, sizeof *pairs);
	demand(tensors != NULL && pairs != NULL, "no memory");
	bool all = true;
	for (size_t i = 0; i < st->n; i++) {
		tensors[i] = *st->tensor[i];
		all = all && tensors[i].supported;
	}
	for (size_t i = 0; i < st->pairs; i++)
		pairs[i] = *st->pair[i];
	chi_text text = { 0 };
	chi_safetensors again = { 0 };
	chi_safetensors_print(&text, st->n, tensors, st->pairs, pairs);
	chi_text_add_bytes(&text, (const char *) data, bytes);
	demand(!text.failed, "no memory");
	if (all) {
		demand(open_bytes(text.data, text.length, &again) == CHOIR_OK,
				"what was printed is refused");
		demand(again.n == st->n && again.pairs == st->pairs, "something was lost");
		for (size_t i = 0; i < st->n; i++)
			demand(strcmp(again.tensor[i]->name, st->tensor[i]->name) == 0 &&
							again.tensor[i]->begin == st->tensor[i]->begin,
					"another tensor");
		for (size_t i = 0; i < st->pairs; i++)
			demand(strcmp(again.pair[i]->value, st->pair[i]->value) == 0, "other metadata");
	}
	chi_safetensors_close(&again);
	chi_text_free(&text);
	free(tensors);
	free(pairs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	chi_safetensors st = { 0 };
	if (size > 8)
		check_json(data + 8, size - 8);
	if (open_bytes(data, size, &st) == CHOIR_OK) {
		check_taken(&st, size);
		print_again(&st, data + st.data, size - (size_t) st.data);
	}
	chi_safetensors_close(&st);
	return 0;
}
