// PKWARE APPNOTE 6.3. A record at the file's end points to the directory, and its entries to the
// members. Little-endian numbers are checked against the file's size.
#include "data/source/array/zip_archive.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/text.h"
#include "data/source/gzip.h"

enum {
	END_BYTES = 22,
	MAX_COMMENT = 65535,
	LOCATOR_BYTES = 20,
	END64_BYTES = 56,
	ENTRY_BYTES = 46,
	LOCAL_BYTES = 30,
	MAX_DIRECTORY = 64 << 20,
	STORED = 0,
	DEFLATED = 8,
	ENCRYPTED = 1,
	WIDE = 1 // extra field with 64-bit sizes
};
static const uint32_t NARROW = 0xffffffff;

typedef struct {
	chi_file *file;
	const char *name;
	uint64_t size;
	uint64_t at, bytes, entries;
} archive;

static uint64_t number(const unsigned char *p, int bytes)
{
	uint64_t value = 0;
	for (int i = bytes - 1; i >= 0; i--)
		value = value << 8 | p[i];
	return value;
}

static bool is(const unsigned char *p, const char *mark)
{
	return p[0] == 'P' && p[1] == 'K' && p[2] == mark[0] && p[3] == mark[1];
}

static bool within(const archive *a, uint64_t at, uint64_t bytes)
{
	return at <= a->size && bytes <= a->size - at;
}

static choir_status read_wide_end(archive *a, uint64_t end)
{
	unsigned char locator[LOCATOR_BYTES], wide[END64_BYTES];
	if (end < sizeof locator)
		return CHOIR_OK;
	CHOIR_TRY(chi_file_read(a->file, end - sizeof locator, locator, sizeof locator));
	if (!is(locator, "\6\7"))
		return CHOIR_OK;
	const uint64_t at = number(locator + 8, 8);
	if (!within(a, at, sizeof wide))
		return choir_fail(CHOIR_CORRUPT,
				"%s: byte %llu: the locator places the zip64 record at byte %llu of %llu", a->name,
				(unsigned long long) (end - sizeof locator), (unsigned long long) at,
				(unsigned long long) a->size);
	CHOIR_TRY(chi_file_read(a->file, at, wide, sizeof wide));
	if (!is(wide, "\6\6"))
		return choir_fail(CHOIR_CORRUPT,
				"%s: byte %llu: no zip64 record, although the locator points here", a->name,
				(unsigned long long) at);
	a->entries = number(wide + 32, 8);
	a->bytes = number(wide + 40, 8);
	a->at = number(wide + 48, 8);
	return CHOIR_OK;
}

static choir_status find_end(archive *a, unsigned char *tail, size_t bytes)
{
	const uint64_t before = a->size - bytes;
	CHOIR_TRY(chi_file_read(a->file, before, tail, bytes));
	for (size_t back = END_BYTES; back <= bytes; back++) {
		const size_t i = bytes - back;
		const unsigned char *p = tail + i;
		if (!is(p, "\5\6") || number(p + 20, 2) != bytes - i - END_BYTES)
			continue;
		a->entries = number(p + 10, 2);
		a->bytes = number(p + 12, 4);
		a->at = number(p + 16, 4);
		CHOIR_TRY(read_wide_end(a, before + i));
		if (a->bytes > MAX_DIRECTORY || !within(a, a->at, a->bytes))
			return choir_fail(CHOIR_CORRUPT,
					"%s: byte %llu: the end record places a directory of "
					"%llu bytes at byte %llu of %llu",
					a->name, (unsigned long long) (before + i), (unsigned long long) a->bytes,
					(unsigned long long) a->at, (unsigned long long) a->size);
		return CHOIR_OK;
	}
	return choir_fail(
			CHOIR_CORRUPT, "%s: not a zip archive; its end has no directory record", a->name);
}

static choir_status read_end(archive *a)
{
	const size_t max = END_BYTES + MAX_COMMENT, bytes = a->size < max ? (size_t) a->size : max;
	if (bytes < END_BYTES)
		return choir_fail(CHOIR_CORRUPT, "%s: %llu bytes; a zip archive has at least %d", a->name,
				(unsigned long long) a->size, END_BYTES);
	unsigned char *tail = chi_alloc(bytes);
	CHOIR_TRY(chi_made(tail));
	const choir_status status = find_end(a, tail, bytes);
	chi_free(tail);
	return status;
}

// Numbers that do not fit in the entry.
static bool widen(const unsigned char *extra, size_t left, uint64_t *wide[], int n)
{
	while (left >= 4) {
		const size_t id = number(extra, 2), bytes = number(extra + 2, 2);
		extra += 4;
		left -= 4;
		if (bytes > left)
			return false;
		if (id == WIDE) {
			for (int i = 0; i < n; i++) {
				if (bytes < 8 * ((size_t) i + 1))
					return false;
				*wide[i] = number(extra + 8 * i, 8);
			}
			return true;
		}
		extra += bytes;
		left -= bytes;
	}
	return n == 0;
}

// A member's own header can have other lengths.
static choir_status find_data(const archive *a, chi_zip_member *m, uint64_t local)
{
	unsigned char h[LOCAL_BYTES];
	if (!within(a, local, sizeof h))
		return choir_fail(CHOIR_CORRUPT,
				"%s: the directory places member \"%s\" at byte %llu of %llu", a->name, m->name,
				(unsigned long long) local, (unsigned long long) a->size);
	CHOIR_TRY(chi_file_read(a->file, local, h, sizeof h));
	if (!is(h, "\3\4"))
		return choir_fail(CHOIR_CORRUPT, "%s: byte %llu: member \"%s\" does not begin here",
				a->name, (unsigned long long) local, m->name);
	m->local = local;
	m->begin = local + sizeof h + number(h + 26, 2) + number(h + 28, 2);
	if (!within(a, m->begin, m->compressed))
		return choir_fail(CHOIR_CORRUPT,
				"%s: member \"%s\": the directory places %llu bytes at byte %llu of %llu", a->name,
				m->name, (unsigned long long) m->compressed, (unsigned long long) m->begin,
				(unsigned long long) a->size);
	return CHOIR_OK;
}

static choir_status check_method(const archive *a, const chi_zip_member *m, const unsigned char *e)
{
	const unsigned method = (unsigned) number(e + 10, 2);
	if (e[8] & ENCRYPTED)
		return choir_fail(CHOIR_UNSUPPORTED, "%s: member \"%s\" is encrypted", a->name, m->name);
	if (method != STORED && method != DEFLATED)
		return choir_fail(CHOIR_UNSUPPORTED,
				"%s: member \"%s\" is compressed by method %u; only stored "
				"and deflated members can be read",
				a->name, m->name, method);
	if (method == STORED && m->compressed != m->bytes)
		return choir_fail(CHOIR_CORRUPT,
				"%s: member \"%s\" is stored with %llu bytes, but has %llu in the archive",
				a->name, m->name, (unsigned long long) m->bytes,
				(unsigned long long) m->compressed);
	const uint64_t min = m->bytes / CHI_GZIP_RATIO + (m->bytes % CHI_GZIP_RATIO != 0);
	if (m->compressed < min)
		return choir_fail(CHOIR_CORRUPT,
				"%s: member \"%s\" has %llu bytes compressed to %llu; deflate needs at least %llu",
				a->name, m->name, (unsigned long long) m->bytes,
				(unsigned long long) m->compressed, (unsigned long long) min);
	return CHOIR_OK;
}

static choir_status read_entry(const archive *a, const unsigned char *e, size_t name_bytes,
		size_t extra_bytes, chi_zip_member *m)
{
	char text[256], clean[512];
	uint64_t local = number(e + 42, 4), *wide[3];
	int n = 0;
	const size_t max = name_bytes < sizeof text ? name_bytes : sizeof text - 1;
	memcpy(text, e + ENTRY_BYTES, max);
	text[max] = '\0';
	m->name = chi_strdup(chi_text_clean(text, clean, sizeof clean));
	CHOIR_TRY(chi_made(m->name));
	m->crc = (uint32_t) number(e + 16, 4);
	m->compressed = number(e + 20, 4);
	m->bytes = number(e + 24, 4);
	m->deflated = number(e + 10, 2) == DEFLATED;
	if (m->bytes == NARROW)
		wide[n++] = &m->bytes;
	if (m->compressed == NARROW)
		wide[n++] = &m->compressed;
	if (local == NARROW)
		wide[n++] = &local;
	if (n > 0 && !widen(e + ENTRY_BYTES + name_bytes, extra_bytes, wide, n))
		return choir_fail(
				CHOIR_CORRUPT, "%s: member \"%s\": its zip64 sizes are missing", a->name, m->name);
	CHOIR_TRY(check_method(a, m, e));
	return find_data(a, m, local);
}

static choir_status read_entries(
		const archive *a, const unsigned char *p, chi_zip_members *members)
{
	size_t left = (size_t) a->bytes;
	for (uint64_t i = 0; i < a->entries; i++) {
		const unsigned long long place = a->at + (a->bytes - left);
		if (left < ENTRY_BYTES || !is(p, "\1\2"))
			return choir_fail(CHOIR_CORRUPT,
					"%s: byte %llu: no directory entry; the directory declares %llu of them",
					a->name, place, (unsigned long long) a->entries);
		const size_t name = number(p + 28, 2), extra = number(p + 30, 2),
					 comment = number(p + 32, 2);
		const size_t bytes = ENTRY_BYTES + name + extra + comment;
		if (bytes > left)
			return choir_fail(CHOIR_CORRUPT,
					"%s: byte %llu: an entry of %zu bytes; the directory has only %zu more",
					a->name, place, bytes, left);
		if (!chi_grow(
					&members->member, &members->capacity, members->n + 1, sizeof *members->member))
			return CHOIR_NO_MEMORY;
		chi_zip_member *m = &members->member[members->n++];
		*m = (chi_zip_member){ .name = NULL };
		CHOIR_TRY(read_entry(a, p, name, extra, m));
		p += bytes;
		left -= bytes;
	}
	return CHOIR_OK;
}

static int by_place(const void *a, const void *b)
{
	const chi_zip_member *const *x = a, *const *y = b;
	return ((*x)->local > (*y)->local) - ((*x)->local < (*y)->local);
}

static choir_status check_overlap(const archive *a, const chi_zip_members *members)
{
	const chi_zip_member **m = chi_alloc_array(members->n, sizeof(const chi_zip_member *));
	choir_status status = m ? CHOIR_OK : CHOIR_NO_MEMORY;
	for (size_t i = 0; m && i < members->n; i++)
		m[i] = &members->member[i];
	if (m)
		qsort(m, members->n, sizeof *m, by_place);
	for (size_t i = 1; i < members->n && status == CHOIR_OK; i++)
		if (m[i]->local < m[i - 1]->begin + m[i - 1]->compressed)
			status = choir_fail(CHOIR_CORRUPT,
					"%s: byte %llu: member \"%s\" begins within member \"%s\"", a->name,
					(unsigned long long) m[i]->local, m[i]->name, m[i - 1]->name);
	chi_free(m);
	return status;
}

choir_status chi_zip_read(chi_file *file, const char *name, chi_zip_members *members)
{
	archive a = { .file = file, .name = name, .size = chi_file_size(file) };
	CHOIR_TRY(read_end(&a));
	unsigned char *directory = chi_alloc((size_t) a.bytes);
	CHOIR_TRY(chi_made(directory));
	choir_status status = chi_file_read(file, a.at, directory, (size_t) a.bytes);
	if (status == CHOIR_OK)
		status = read_entries(&a, directory, members);
	if (status == CHOIR_OK && members->n > 1)
		status = check_overlap(&a, members);
	chi_free(directory);
	return status;
}

void chi_zip_members_free(chi_zip_members *members)
{
	for (size_t i = 0; i < members->n; i++)
		chi_free(members->member[i].name);
	chi_free(members->member);
	*members = (chi_zip_members){ 0 };
}
