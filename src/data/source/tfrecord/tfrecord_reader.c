// Blocks of 256 KiB stay in the second-level cache. For a larger record the block at most doubles
// per read: a wrong length allocates at most twice the file's size.
#include "data/source/tfrecord/tfrecord_reader.h"

#include <endian.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "data/source/reader.h"

enum { BLOCK = 256 * 1024, LENGTH = CHI_RECORD_LENGTH };

struct chi_records {
	chi_reader *reader;
	unsigned char *block;
	// Unread: first .. last.
	size_t capacity, first, last;
	uint64_t offset;
	uint64_t record_offset;
	int64_t number;
	bool known_next;
	bool ended;
	chi_error failure;
};

static uint64_t load64(const unsigned char *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return le64toh(v);
}

static uint32_t load32(const unsigned char *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return le32toh(v);
}

// A plain file's first length may look compressed, but its checksum matches.
static choir_compression framing(const unsigned char *p, size_t bytes)
{
	if (bytes >= CHI_RECORD_HEADER && load32(p + LENGTH) == chi_crc32c_masked(p, LENGTH))
		return CHOIR_COMPRESSION_NONE;
	if (bytes >= 2 && p[0] == 0x1f && p[1] == 0x8b)
		return CHOIR_COMPRESSION_GZIP;
	// RFC 1950: deflate, a window of at most 32 KiB, a multiple of 31, no dictionary.
	if (bytes >= 2 && (p[0] & 15) == 8 && p[0] >> 4 <= 7 && (p[0] * 256 + p[1]) % 31 == 0 &&
			!(p[1] & 32))
		return CHOIR_COMPRESSION_ZLIB;
	return CHOIR_COMPRESSION_NONE;
}

static chi_reader *open_reader(const char *path, choir_compression compression)
{
	unsigned char begin[CHI_RECORD_HEADER];
	size_t got;
	if (compression != CHOIR_COMPRESSION_AUTO)
		return chi_reader_open_as(path, compression);
	chi_reader *plain = chi_reader_open_as(path, CHOIR_COMPRESSION_NONE);
	if (!plain)
		return NULL;
	if (chi_reader_read(plain, begin, sizeof begin, &got) == CHOIR_OK) {
		compression = framing(begin, got);
		if (compression == CHOIR_COMPRESSION_NONE && chi_reader_rewind(plain) == CHOIR_OK)
			return plain;
	}
	chi_reader_close(plain);
	return compression > CHOIR_COMPRESSION_NONE ? chi_reader_open_as(path, compression) : NULL;
}

chi_records *chi_records_open(const char *path, choir_compression compression)
{
	chi_records *r = chi_alloc(sizeof *r);
	if (!r)
		return NULL;
	r->reader = open_reader(path, compression);
	r->capacity = BLOCK;
	r->block = r->reader ? chi_alloc_aligned(r->capacity) : NULL;
	if (!r->block) {
		chi_records_close(r);
		return NULL;
	}
	r->number = -1;
	return r;
}

void chi_records_close(chi_records *r)
{
	if (!r)
		return;
	chi_reader_close(r->reader);
	chi_free(r->block);
	chi_free(r);
}

static choir_status rewind_records(chi_records *r)
{
	r->first = r->last = 0;
	r->offset = r->record_offset = 0;
	r->number = -1;
	r->ended = false;
	r->failure.status = CHOIR_OK;
	return chi_reader_rewind(r->reader);
}

choir_status chi_records_blame(const chi_records *r)
{
	return chi_error_prefix("%s: record %lld at byte %llu", chi_reader_name(r->reader),
			(long long) r->number, (unsigned long long) r->record_offset);
}

bool chi_records_known_next(const chi_records *r)
{
	return r->known_next;
}

static choir_status reserve(chi_records *r, size_t need)
{
	memmove(r->block, r->block + r->first, r->last - r->first);
	r->last -= r->first;
	r->first = 0;
	if (r->last < r->capacity)
		return CHOIR_OK;
	const size_t capacity = need < r->capacity ? r->capacity
			: need - r->capacity < r->capacity ? need
											   : 2 * r->capacity;
	unsigned char *block = chi_realloc(r->block, capacity);
	CHOIR_TRY(chi_made(block));
	r->block = block;
	r->capacity = capacity;
	return CHOIR_OK;
}

static choir_status fill(chi_records *r, size_t need)
{
	while (r->last - r->first < need && !r->ended) {
		size_t got;
		CHOIR_TRY(reserve(r, need));
		const size_t want = r->capacity - r->last;
		// Bytes before a failure are good.
		choir_status status = chi_reader_read(r->reader, r->block + r->last, want, &got);
		if (status != CHOIR_OK)
			chi_error_save(&r->failure);
		r->last += got;
		r->ended = status != CHOIR_OK || got < want;
	}
	return CHOIR_OK;
}

static choir_status truncated(
		const chi_records *r, const char *what, uint64_t need, uint64_t there)
{
	if (r->ended && r->failure.status != CHOIR_OK)
		return chi_error_restore(&r->failure);
	choir_fail(CHOIR_CORRUPT, "%s %llu bytes, the file has %s%llu more", what,
			(unsigned long long) need,
			r->ended || !chi_reader_compressed(r->reader) ? "" : "at most ",
			(unsigned long long) there);
	return chi_records_blame(r);
}

static choir_status bad_checksum(
		const chi_records *r, const char *what, uint32_t stored, uint32_t found)
{
	choir_fail(CHOIR_CORRUPT, "the checksum of its %s is %08x, the stored one is %08x", what,
			found, stored);
	return chi_records_blame(r);
}

void chi_records_where(const chi_records *r, int64_t *byte, int64_t *record)
{
	*byte = (int64_t) r->offset;
	*record = r->number + 1;
}

choir_status chi_records_jump(chi_records *r, int64_t byte, int64_t record)
{
	size_t got;
	CHOIR_TRY(rewind_records(r));
	CHOIR_TRY(chi_reader_read(r->reader, NULL, (size_t) byte, &got));
	r->offset = (uint64_t) byte;
	r->number = record - 1;
	if (got == (size_t) byte) {
		CHOIR_TRY(fill(r, CHI_RECORD_HEADER));
		const unsigned char *p = r->block + r->first;
		const size_t there = r->last - r->first;
		if (there == 0 ||
				(there >= CHI_RECORD_HEADER && load32(p + LENGTH) == chi_crc32c_masked(p, LENGTH)))
			return CHOIR_OK;
	}
	return choir_fail(CHOIR_INVALID,
			"%s: no record begins at byte %lld; the position "
			"needs the file that it was saved with",
			chi_reader_name(r->reader), (long long) byte);
}

static choir_status read_length(chi_records *r, uint64_t *length)
{
	CHOIR_TRY(fill(r, CHI_RECORD_HEADER));
	const size_t there = r->last - r->first;
	if (there == 0 && r->failure.status == CHOIR_OK)
		return CHOIR_END;
	r->known_next = false;
	r->record_offset = r->offset;
	r->number++;
	if (there < CHI_RECORD_HEADER)
		return truncated(r, "its header has", CHI_RECORD_HEADER, there);
	const unsigned char *p = r->block + r->first;
	const uint32_t stored = load32(p + LENGTH), found = chi_crc32c_masked(p, LENGTH);
	if (stored != found)
		return bad_checksum(r, "length", stored, found);
	*length = load64(p);
	return CHOIR_OK;
}

static choir_status check_length(const chi_records *r, uint64_t length)
{
	const uint64_t size = chi_reader_size(r->reader), used = r->offset + CHI_RECORD_HEADER;
	const uint64_t left = size > used ? size - used : 0;
	if (left >= CHI_RECORD_FOOTER && length <= left - CHI_RECORD_FOOTER && length <= SIZE_MAX / 2)
		return CHOIR_OK;
	return truncated(r, "its data have", length, left);
}

choir_status chi_records_next(chi_records *r, const unsigned char **data, size_t *bytes)
{
	uint64_t length = 0;
	CHOIR_TRY(read_length(r, &length));
	CHOIR_TRY(check_length(r, length));
	const size_t whole = CHI_RECORD_HEADER + (size_t) length + CHI_RECORD_FOOTER;
	if (chi_reader_hold(r->reader, whole, "a record") != CHOIR_OK)
		return chi_records_blame(r);
	CHOIR_TRY(fill(r, whole));
	if (r->last - r->first < whole)
		return truncated(r, "with header and checksum it has", whole, r->last - r->first);
	*data = r->block + r->first + CHI_RECORD_HEADER;
	*bytes = (size_t) length;
	r->first += whole;
	r->offset += whole;
	r->known_next = true;
	const uint32_t stored = load32(*data + length), found = chi_crc32c_masked(*data, *bytes);
	return stored == found ? CHOIR_OK : bad_checksum(r, "data", stored, found);
}
