// numpy's format: "\x93NUMPY", a version, a length, a Python dictionary such as {'descr': '<f4',
// 'fortran_order': False, 'shape': (3, 4), }, packed values.
#include "data/source/array/array.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/text.h"
#include "tensor/tensor.h"

enum { MAGIC_BYTES = 8, MAX_TEXT = 64 << 10, MAX_WORD = CHI_NPY_TYPE, ALIGNMENT = 64 };

static const char magic[] = "\x93NUMPY";

// Narrower types can only be read.
static const struct {
	const char *code;
	choir_dtype dtype;
	size_t stored;
	bool is_signed;
} types[] = {
	{ "f4", CHOIR_F32, 0, false },
	{ "f8", CHOIR_F64, 0, false },
	{ "i4", CHOIR_I32, 0, false },
	{ "i8", CHOIR_I64, 0, false },
	{ "u1", CHOIR_U8, 0, false },
	{ "b1", CHOIR_BOOL, 0, false },
	{ "f2", CHOIR_F16, 0, false },
	{ "i1", CHOIR_I32, 1, true },
	{ "i2", CHOIR_I32, 2, true },
	{ "u2", CHOIR_I32, 2, false },
	{ "u4", CHOIR_I64, 4, false },
};
enum { TYPES = sizeof types / sizeof types[0] };

typedef struct {
	const char *name;
	const char *text;
	size_t length, at;
	size_t before;
	bool has_descr, has_order, has_shape;
	char *type; // NULL: only types of datasets
	bool *known;
} parser;

static size_t place(const parser *p)
{
	return p->before + p->at;
}

static choir_status wrong(const parser *p, const char *needed)
{
	char found[16], clean[64];
	snprintf(found, sizeof found, "%.*s",
			(int) (p->length - p->at < sizeof found - 1 ? p->length - p->at : sizeof found - 1),
			p->text + p->at);
	return choir_fail(CHOIR_CORRUPT, "%s: byte %zu: found \"%s\"; %s needed", p->name, place(p),
			chi_text_clean(found, clean, sizeof clean), needed);
}

static void skip_space(parser *p)
{
	while (p->at < p->length && (p->text[p->at] == ' ' || p->text[p->at] == '\n'))
		p->at++;
}

static bool take(parser *p, const char *word)
{
	size_t n = strlen(word);
	skip_space(p);
	if (p->length - p->at < n || memcmp(p->text + p->at, word, n) != 0)
		return false;
	p->at += n;
	return true;
}

static choir_status take_word(parser *p, char word[MAX_WORD], const char *needed)
{
	skip_space(p);
	size_t start = p->at;
	if (start == p->length || (p->text[start] != '\'' && p->text[start] != '"'))
		return wrong(p, needed);
	size_t n = 0;
	for (size_t i = start + 1; i < p->length && n < MAX_WORD; i++) {
		if (p->text[i] == p->text[start]) {
			word[n] = '\0';
			p->at = i + 1;
			return CHOIR_OK;
		}
		word[n++] = p->text[i];
		if (n == MAX_WORD)
			break;
	}
	return wrong(p, needed);
}

static choir_status take_number(parser *p, int64_t *number)
{
	size_t digits = 0;
	*number = 0;
	skip_space(p);
	for (; p->at < p->length && p->text[p->at] >= '0' && p->text[p->at] <= '9'; digits++, p->at++)
		if (!chi_int64_multiply(*number, 10, number) ||
				!chi_int64_add(*number, p->text[p->at] - '0', number))
			return wrong(p, "a dimension of at most 63 bits");
	return digits ? CHOIR_OK : wrong(p, "a dimension");
}

static choir_status take_shape(parser *p, chi_array_file *h)
{
	if (!take(p, "("))
		return wrong(p, "the shape, (3, 4)");
	h->rank = 0;
	while (!take(p, ")")) {
		if (h->rank == CHI_ARRAY_FILE_RANK)
			return choir_fail(CHOIR_UNSUPPORTED,
					"%s: byte %zu: rank %d or more; at most %d needed", p->name, place(p),
					h->rank + 1, CHI_ARRAY_FILE_RANK);
		CHOIR_TRY(take_number(p, &h->dim[h->rank++]));
		if (!take(p, ",") && (p->at == p->length || p->text[p->at] != ')'))
			return wrong(p, "a comma or )");
	}
	return CHOIR_OK;
}

static choir_status skip_list(parser *p)
{
	int depth = 1;
	char quote = '\0';
	for (; p->at < p->length && depth > 0; p->at++) {
		const char c = p->text[p->at];
		if (quote != '\0')
			quote = c == quote ? '\0' : quote;
		else if (c == '\'' || c == '"')
			quote = c;
		else
			depth += (c == '[') - (c == ']');
	}
	return depth == 0 ? CHOIR_OK : wrong(p, "]");
}

static choir_status take_descr(parser *p, chi_array_file *h)
{
	char descr[MAX_WORD];
	const bool is_list = take(p, "[");
	if (is_list && p->type) {
		snprintf(p->type, CHI_NPY_TYPE, "record");
		return skip_list(p);
	}
	if (is_list)
		return choir_fail(CHOIR_UNSUPPORTED,
				"%s: byte %zu: each value is a record of several "
				"fields; values of one number needed",
				p->name, place(p));
	CHOIR_TRY(take_word(p, descr, "the type of the values, '<f4'"));
	if (p->type)
		snprintf(p->type, CHI_NPY_TYPE, "%s", descr);
	size_t i = 0;
	while (descr[0] && i < TYPES && strcmp(descr + 1, types[i].code) != 0)
		i++;
	const bool one_byte = descr[0] && i < TYPES && descr[2] == '1';
	if (descr[0] && i < TYPES && strchr(one_byte ? "<>|" : "<>", descr[0])) {
		h->dtype = types[i].dtype;
		h->stored = types[i].stored;
		h->is_signed = types[i].is_signed;
		h->big_endian = descr[0] == '>';
		if (p->known)
			*p->known = true;
		return CHOIR_OK;
	}
	if (p->type)
		return CHOIR_OK;
	char clean[2 * MAX_WORD];
	return choir_fail(CHOIR_UNSUPPORTED,
			"%s: byte %zu: the values are \"%s\"; Choir reads f2, f4, f8, i1, i2, i4, i8, u1, u2, "
			"u4 and b1, in either byte order",
			p->name, place(p) - strlen(descr) - 1, chi_text_clean(descr, clean, sizeof clean));
}

static choir_status take_entry(parser *p, chi_array_file *h)
{
	static const char keys[] = "'descr', 'fortran_order' or 'shape' (each once)";
	char key[MAX_WORD];
	size_t start = p->at;
	CHOIR_TRY(take_word(p, key, keys));
	bool *has = strcmp(key, "descr") == 0		? &p->has_descr
			: strcmp(key, "fortran_order") == 0 ? &p->has_order
			: strcmp(key, "shape") == 0			? &p->has_shape
												: NULL;
	if (!has || *has) {
		p->at = start;
		return wrong(p, keys);
	}
	*has = true;
	if (!take(p, ":"))
		return wrong(p, "a colon");
	if (has == &p->has_descr)
		return take_descr(p, h);
	if (has == &p->has_shape)
		return take_shape(p, h);
	h->fortran = take(p, "True");
	return h->fortran || take(p, "False") ? CHOIR_OK : wrong(p, "True or False");
}

static choir_status parse(parser *p, chi_array_file *h)
{
	if (!take(p, "{"))
		return wrong(p, "{");
	while (!take(p, "}")) {
		CHOIR_TRY(take_entry(p, h));
		if (!take(p, ",") && (p->at == p->length || p->text[p->at] != '}'))
			return wrong(p, "a comma or }");
	}
	skip_space(p);
	if (p->at < p->length)
		return wrong(p, "nothing more");
	if (!p->has_descr || !p->has_order || !p->has_shape)
		return choir_fail(CHOIR_CORRUPT, "%s: byte %zu: the header ends without '%s'", p->name,
				place(p),
				!p->has_descr			? "descr"
						: !p->has_order ? "fortran_order"
										: "shape");
	return CHOIR_OK;
}

static choir_status read_bytes(chi_array_file *h, void *to, size_t bytes, const char *what)
{
	size_t got;
	CHOIR_TRY(chi_reader_read(h->reader, to, bytes, &got));
	h->header_bytes += got;
	if (got == bytes)
		return CHOIR_OK;
	return choir_fail(CHOIR_CORRUPT, "%s: ends after %zu bytes, within %s",
			chi_reader_name(h->reader), h->header_bytes, what);
}

static choir_status read_length(chi_array_file *h, size_t *length)
{
	unsigned char m[MAGIC_BYTES], n[4] = { 0 };
	const char *name = chi_reader_name(h->reader);
	CHOIR_TRY(read_bytes(h, m, sizeof m, "the first 8 bytes of an npy file"));
	if (memcmp(m, magic, sizeof magic - 1) != 0)
		return choir_fail(CHOIR_CORRUPT,
				"%s: byte 0: found %02x %02x %02x %02x %02x %02x; an "
				"npy file begins with 93 and NUMPY",
				name, m[0], m[1], m[2], m[3], m[4], m[5]);
	if (m[6] < 1 || m[6] > 3 || m[7] != 0)
		return choir_fail(CHOIR_UNSUPPORTED, "%s: byte 6: version %d.%d; npy has 1.0, 2.0 and 3.0",
				name, m[6], m[7]);
	CHOIR_TRY(read_bytes(h, n, m[6] == 1 ? 2 : 4, "the length of its header"));
	*length = (size_t) n[0] | (size_t) n[1] << 8 | (size_t) n[2] << 16 | (size_t) n[3] << 24;
	if (*length > MAX_TEXT)
		return choir_fail(CHOIR_CORRUPT, "%s: byte 8: a header of %zu bytes; at most %d needed",
				name, *length, MAX_TEXT);
	return CHOIR_OK;
}

static choir_status read_header(chi_array_file *h, char *type, bool *known)
{
	size_t length = 0;
	CHOIR_TRY(read_length(h, &length));
	parser p = { .name = chi_reader_name(h->reader),
		.length = length,
		.before = h->header_bytes,
		.type = type,
		.known = known };
	char *text = chi_alloc(length);
	CHOIR_TRY(chi_made(text));
	p.text = text;
	choir_status status = read_bytes(h, text, length, "its header");
	if (status == CHOIR_OK)
		status = parse(&p, h);
	chi_free(text);
	return status;
}

choir_status chi_npy_read_header(chi_array_file *h)
{
	CHOIR_TRY(read_header(h, NULL, NULL));
	return chi_array_file_check(h);
}

choir_status chi_npy_infer(chi_array_file *h, char type[CHI_NPY_TYPE], bool *known)
{
	*known = false;
	return read_header(h, type, known);
}

choir_dataset *choir_npy_dataset_new(const char *path, const char *column)
{
	if (!path)
		return chi_fail_null(CHOIR_INVALID, "npy dataset: the path is NULL");
	chi_array_file h = { .reader = chi_reader_open(path) };
	if (!h.reader)
		return NULL;
	choir_dataset *d = NULL;
	if (chi_npy_read_header(&h) == CHOIR_OK)
		d = chi_array_file_new(CHI_ARRAY_FILE_NPY, 1, &h, &column);
	if (!d)
		chi_reader_close(h.reader);
	return d;
}

// Padded as in numpy.
static size_t make_header(char *text, size_t capacity, const char *code, const choir_shape *shape)
{
	const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	const char order = code[1] == '1' ? '|' : big ? '>' : '<';
	enum { BEFORE = MAGIC_BYTES + 2 };
	size_t n = BEFORE;
	n += (size_t) snprintf(text + n, capacity - n,
			"{'descr': '%c%s', 'fortran_order': False, 'shape': (", order, code);
	for (int i = 0; i < shape->rank; i++)
		n += (size_t) snprintf(text + n, capacity - n, "%lld%s", (long long) shape->dim[i],
				shape->rank == 1 || i + 1 < shape->rank ? "," : "");
	n += (size_t) snprintf(text + n, capacity - n, "), }");
	while ((n + 1) % ALIGNMENT != 0)
		text[n++] = ' ';
	text[n++] = '\n';
	memcpy(text, magic, sizeof magic - 1);
	text[6] = 1;
	text[7] = 0;
	text[8] = (char) ((n - BEFORE) & 255);
	text[9] = (char) ((n - BEFORE) >> 8);
	return n;
}

static choir_status check_array(
		const char *path, choir_dtype dtype, const choir_shape *shape, const void *data)
{
	size_t bytes;
	if (!path)
		return choir_fail(CHOIR_INVALID, "npy_write: the path is NULL");
	if (choir_shape_elements(shape) == CHOIR_NONE || !chi_shape_bytes(shape, dtype, &bytes))
		return choir_fail(CHOIR_INVALID, "npy_write: %s: the shape is invalid", path);
	if (!data && bytes > 0)
		return choir_fail(CHOIR_INVALID, "npy_write: %s: the data are NULL", path);
	return CHOIR_OK;
}

choir_status choir_npy_write(
		const char *path, choir_dtype dtype, choir_shape shape, const void *data)
{
	char header[4 * ALIGNMENT + 32 * CHOIR_MAX_RANK];
	CHOIR_TRY(check_array(path, dtype, &shape, data));
	size_t i = 0, bytes = 0;
	while (i < TYPES && types[i].dtype != dtype)
		i++;
	if (i == TYPES)
		return choir_fail(CHOIR_UNSUPPORTED, "npy_write: %s: npy has no type for %s", path,
				choir_dtype_name(dtype));
	chi_shape_bytes(&shape, dtype, &bytes);
	chi_writer *w = chi_writer_new(path);
	CHOIR_TRY(chi_made(w));
	choir_status status =
			chi_writer_write(w, header, make_header(header, sizeof header, types[i].code, &shape));
	if (status == CHOIR_OK)
		status = chi_writer_write(w, data, bytes);
	if (status == CHOIR_OK)
		return chi_writer_commit(w);
	chi_writer_abort(w);
	return status;
}
