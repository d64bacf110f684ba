// HDF5 1.10 trusts damaged headers of version 1: it divides by chunk sizes, copies as many values
// as an enumeration declares and as many bytes of a fill value as the type has, and follows shared
// messages. Format: "HDF5 File Format Specification Version 3.0", II.A and IV.A.
#include "data/source/hdf5/hdf5.h"

#ifndef H5_NO_DEPRECATED_SYMBOLS

#include <endian.h>
#include <string.h>

#include "base/file.h"

enum {
	OLD_FILES = 1, // superblocks without shared messages
	MAX_SIZE = 8,
	HEADER = 16,
	MESSAGE = 8,
	BODY = 2 * MAX_SIZE + 4 * (H5S_MAX_RANK + 1),
	MAX_MESSAGES = 1 << 16
};
enum { DATATYPE = 3, FILL_VALUE = 5, LAYOUT = 8, CONTINUATION = 16 };
enum { SHARED = 2, IN_HEAP = 1 }; // flag; way of sharing

typedef struct {
	chi_file *file;
	uint64_t base;
	int version;
	size_t offset, length;
} layout;

typedef struct {
	uint64_t at, end;
	uint64_t next, next_end;
} piece;

typedef struct {
	uint32_t value; // of chunks; 0: none
	uint64_t type;
	uint64_t fill;
	bool truncated; // by the fill value
} sizes;

static uint64_t number(const unsigned char *p, size_t bytes)
{
	uint64_t n = 0;
	memcpy(&n, p, bytes);
	return le64toh(n);
}

// At byte 0, 512, 1024 ... False: unknown structure.
static bool find_first_block(layout *l)
{
	static const unsigned char signature[8] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n' };
	unsigned char block[16];
	const uint64_t size = chi_file_size(l->file);
	size_t got;
	for (l->base = 0; l->base < size; l->base = l->base == 0 ? 512 : 2 * l->base) {
		if (chi_file_read_some(l->file, l->base, block, sizeof block, &got) != CHOIR_OK ||
				got < sizeof block)
			return false;
		if (memcmp(block, signature, sizeof signature) == 0)
			break;
	}
	l->version = block[8];
	l->offset = block[l->version <= OLD_FILES ? 13 : 9];
	l->length = block[l->version <= OLD_FILES ? 14 : 10];
	return l->base < size && l->offset >= 2 && l->offset <= MAX_SIZE && l->length >= 2 &&
			l->length <= MAX_SIZE;
}

static choir_status damaged(uint64_t at, const char *what)
{
	return choir_fail(CHOIR_CORRUPT, "byte %llu: %s", (unsigned long long) at, what);
}

// Chunks' last dimension is the bytes of a value.
static choir_status check_layout(
		const layout *l, uint64_t at, const unsigned char *body, uint64_t bytes, uint32_t *value)
{
	enum { CHUNKED = 2, FIRST_WITH_CLASS_FIRST = 3 };
	const bool first = body[0] >= FIRST_WITH_CLASS_FIRST;
	const unsigned dimensions = first ? body[2] : body[1];
	const size_t begin = (first ? 3 : 8) + l->offset;
	if (body[0] > FIRST_WITH_CLASS_FIRST || (first ? body[1] : body[2]) != CHUNKED)
		return CHOIR_OK;
	if (dimensions < 2 || dimensions > H5S_MAX_RANK + 1 || bytes < begin + 4 * (size_t) dimensions)
		return damaged(at, "chunks with less than 2 or more than 33 dimensions");
	for (unsigned i = 0; i < dimensions; i++) {
		*value = (uint32_t) number(body + begin + 4 * (size_t) i, 4);
		if (*value == 0)
			return damaged(at + begin + 4 * i, "chunks of size 0");
	}
	return CHOIR_OK;
}

// Names and values follow an enumeration's base type.
static choir_status check_type(uint64_t at, const unsigned char *body, uint64_t bytes)
{
	enum { ENUMERATION = 8, TYPE = 8 };
	const uint64_t members = number(body + 1, 2), size = number(body + 4, 4);
	if ((body[0] & 15) != ENUMERATION)
		return CHOIR_OK;
	if (size != number(body + TYPE + 4, 4) || bytes < 2 * TYPE || size > bytes ||
			members * size > bytes - 2 * TYPE)
		return damaged(at, "an enumeration whose values do not fit in its message");
	return CHOIR_OK;
}

// Version 3 has flags first.
static void take_fill(const unsigned char *body, uint64_t bytes, sizes *found)
{
	enum { WITH_FLAGS = 3, DEFINED = 1 << 5 };
	const bool flags = body[0] >= WITH_FLAGS;
	const size_t at = flags ? 2 : 4;
	if (body[0] == 0 || body[0] > WITH_FLAGS || (flags ? !(body[1] & DEFINED) : body[3] == 0))
		return;
	const uint64_t size = number(body + at, 4);
	found->fill = size > INT32_MAX ? 0 : size; // negative: undefined
	found->truncated = found->fill + at + 4 > bytes;
}

// body: padded with zeros.
static choir_status check_message(const layout *l, uint64_t at, const unsigned char head[MESSAGE],
		const unsigned char *body, sizes *found)
{
	const uint64_t type = number(head, 2), bytes = number(head + 2, 2);
	const bool shared = head[4] & SHARED;
	if (shared && l->version <= OLD_FILES &&
			(type != DATATYPE || (body[0] > 1 && body[1] == IN_HEAP)))
		return damaged(at, "a shared message, in a file without shared messages");
	if (shared)
		return CHOIR_OK;
	if (type == FILL_VALUE)
		take_fill(body, bytes, found);
	if (type == DATATYPE)
		found->type = number(body + 4, 4);
	return type == LAYOUT	   ? check_layout(l, at + MESSAGE, body, bytes, &found->value)
			: type == DATATYPE ? check_type(at + MESSAGE, body, bytes)
							   : CHOIR_OK;
}

// Advances. The library finds truncated ones.
static choir_status inspect_message(const layout *l, piece *p, sizes *found)
{
	unsigned char head[MESSAGE], body[BODY] = { 0 };
	size_t got;
	CHOIR_TRY(chi_file_read_some(l->file, p->at, head, sizeof head, &got));
	const uint64_t bytes = number(head + 2, 2), at = p->at;
	p->at = got < MESSAGE ? p->end : at + MESSAGE + bytes;
	CHOIR_TRY(chi_file_read_some(
			l->file, at + MESSAGE, body, bytes < BODY ? (size_t) bytes : BODY, &got));
	if (number(head, 2) == CONTINUATION) {
		p->next = l->base + number(body, l->offset);
		p->next_end = p->next + number(body + l->offset, l->length);
	}
	return check_message(l, at, head, body, found);
}

static choir_status inspect_messages(const layout *l, uint64_t at, sizes *found)
{
	unsigned char head[HEADER];
	size_t got;
	CHOIR_TRY(chi_file_read_some(l->file, at, head, sizeof head, &got));
	if (got < HEADER || head[0] != 1)
		return CHOIR_OK;
	piece p = { .at = at + HEADER, .end = at + HEADER + number(head + 8, 4) };
	for (int i = 0; i < MAX_MESSAGES; i++) {
		if (p.at + MESSAGE > p.end || p.at + MESSAGE > chi_file_size(l->file)) {
			if (p.next == 0)
				break;
			p = (piece){ .at = p.next, .end = p.next_end };
		}
		CHOIR_TRY(inspect_message(l, &p, found));
	}
	if (found->fill != 0 && found->type != 0 && (found->truncated || found->fill != found->type))
		return damaged(at, "a fill value of another size than the values");
	return CHOIR_OK;
}

choir_status chi_hdf5_check_header(
		const chi_hdf5 *h, hid_t file, const char *path, const char *name, uint32_t *value)
{
	H5G_stat_t root, object;
	sizes found = { 0 };
	*value = 0;
	if (!h->H5Gget_objinfo || h->H5Gget_objinfo(file, "/", true, &root) < 0 ||
			h->H5Gget_objinfo(file, name, true, &object) < 0 ||
			memcmp(root.fileno, object.fileno, sizeof root.fileno) != 0)
		return CHOIR_OK; // missing or external
	layout l = { .file = chi_file_open(path) };
	if (!l.file)
		return choir_error_status();
	const choir_status status = find_first_block(&l)
			? inspect_messages(&l, l.base + object.objno[0], &found)
			: CHOIR_OK;
	*value = found.value;
	chi_file_close(l.file);
	return status;
}

#else

choir_status chi_hdf5_check_header(
		const chi_hdf5 *h, hid_t file, const char *path, const char *name, uint32_t *value)
{
	(void) h;
	(void) file;
	(void) path;
	(void) name;
	*value = 0;
	return CHOIR_OK;
}

#endif
