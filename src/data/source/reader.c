// A plain file is read with pread, a compressed one through gzip.
#include "data/source/reader.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/text.h"
#include "data/source/gzip.h"

// A check costs as much as reading a few thousand bytes. A read counts at least MIN_READ.
enum { CHECK_BYTES = 1 << 20, MIN_READ = CHECK_BYTES / 64 };

// At most the larger of MIN_HELD and MAX_TIMES its size is held of a compressed file.
enum { MIN_HELD = 16 << 20, MAX_TIMES = 4 };

struct chi_reader {
	chi_file *file;
	chi_gzip *gzip;
	uint64_t begin, end, offset;
	uint64_t unchecked; // plain: since the last check
	bool member;
	uint64_t at, bytes;
	uint32_t sum, crc;
	char name[256];
};

static bool detect(chi_reader *r, choir_compression *compression)
{
	unsigned char first[2];
	size_t got;
	if (*compression != CHOIR_COMPRESSION_AUTO)
		return true;
	if (chi_file_read_some(r->file, 0, first, sizeof first, &got) != CHOIR_OK)
		return false;
	const bool gzip = got == sizeof first && first[0] == 0x1f && first[1] == 0x8b;
	*compression = gzip ? CHOIR_COMPRESSION_GZIP : CHOIR_COMPRESSION_NONE;
	return true;
}

chi_reader *chi_reader_open_as(const char *path, choir_compression compression)
{
	chi_reader *r = chi_alloc(sizeof *r);
	if (!r)
		return NULL;
	chi_text_clean(path, r->name, sizeof r->name);
	r->file = chi_file_open(path);
	if (r->file && detect(r, &compression)) {
		r->end = chi_file_size(r->file);
		if (compression == CHOIR_COMPRESSION_NONE)
			return r;
		r->gzip = chi_gzip_new(r->file, r->name,
				compression == CHOIR_COMPRESSION_ZLIB ? CHI_ZLIB : CHI_GZIP, 0, UINT64_MAX);
		if (r->gzip)
			return r;
	}
	chi_reader_close(r);
	return NULL;
}

chi_reader *chi_reader_open(const char *path)
{
	return chi_reader_open_as(path, CHOIR_COMPRESSION_AUTO);
}

chi_reader *chi_reader_open_member(const char *path, const chi_zip_member *m)
{
	char clean[192];
	chi_reader *r = chi_alloc(sizeof *r);
	if (!r)
		return NULL;
	snprintf(r->name, sizeof r->name, "%s: %.48s", chi_text_clean(path, clean, sizeof clean),
			m->name);
	r->member = true;
	r->bytes = m->bytes;
	r->crc = m->crc;
	r->begin = r->offset = m->begin;
	r->end = m->begin + m->compressed;
	r->file = chi_file_open(path);
	if (r->file && !m->deflated)
		return r;
	if (r->file)
		r->gzip = chi_gzip_new(r->file, r->name, CHI_DEFLATE, r->begin, r->end);
	if (r->gzip)
		return r;
	chi_reader_close(r);
	return NULL;
}

void chi_reader_close(chi_reader *r)
{
	if (!r)
		return;
	chi_gzip_free(r->gzip);
	chi_file_close(r->file);
	chi_free(r);
}

const char *chi_reader_path(const chi_reader *r)
{
	return chi_file_path(r->file);
}

const char *chi_reader_name(const chi_reader *r)
{
	return r->name;
}

bool chi_reader_compressed(const chi_reader *r)
{
	return r->gzip != NULL && !r->member;
}

uint64_t chi_reader_size(const chi_reader *r)
{
	uint64_t size = r->member ? r->bytes : chi_file_size(r->file), max;
	if (!chi_reader_compressed(r))
		return size;
	return __builtin_mul_overflow(size, (uint64_t) CHI_GZIP_RATIO, &max) ? UINT64_MAX : max;
}

choir_status chi_reader_hold(const chi_reader *r, size_t bytes, const char *what)
{
	const uint64_t times = MAX_TIMES * chi_file_size(r->file);
	const uint64_t max = times > MIN_HELD ? times : MIN_HELD;
	if (!chi_reader_compressed(r) || bytes <= max)
		return CHOIR_OK;
	return choir_fail(CHOIR_UNSUPPORTED,
			"%s: %s of more than %llu bytes, too large for a compressed "
			"file of %llu bytes; unpack the file",
			r->name, what, (unsigned long long) max, (unsigned long long) chi_file_size(r->file));
}

// Also before the last bytes are used.
static choir_status check_plain(chi_reader *r, size_t bytes)
{
	r->unchecked += bytes > MIN_READ ? bytes : MIN_READ;
	if (r->offset < r->end && r->unchecked < CHECK_BYTES)
		return CHOIR_OK;
	r->unchecked = 0;
	return chi_file_check(r->file);
}

static choir_status read_plain(chi_reader *r, void *to, size_t bytes, size_t *got)
{
	uint64_t left = r->offset < r->end ? r->end - r->offset : 0;
	size_t n = bytes < left ? bytes : (size_t) left;
	*got = 0;
	if (to && n)
		CHOIR_TRY(chi_file_read(r->file, r->offset, to, n));
	r->offset += n;
	if (to && n)
		CHOIR_TRY(check_plain(r, n));
	*got = n;
	return CHOIR_OK;
}

static choir_status read_file(chi_reader *r, void *to, size_t bytes, size_t *got)
{
	return r->gzip ? chi_gzip_read(r->gzip, to, bytes, got) : read_plain(r, to, bytes, got);
}

static choir_status check_member(chi_reader *r)
{
	size_t more = 0;
	unsigned char byte;
	if (r->sum != r->crc)
		return choir_fail(CHOIR_CORRUPT,
				"%s: the checksum is %08x, in the archive it is %08x; the file is damaged",
				r->name, r->sum, r->crc);
	if (r->gzip)
		CHOIR_TRY(chi_gzip_read(r->gzip, &byte, 1, &more));
	return more ? choir_fail(CHOIR_CORRUPT,
						  "%s: has more than the %llu bytes that the archive declares", r->name,
						  (unsigned long long) r->bytes)
				: CHOIR_OK;
}

static choir_status read_member(chi_reader *r, void *to, size_t bytes, size_t *got)
{
	unsigned char scratch[4096];
	*got = 0;
	while (*got < bytes && r->at < r->bytes) {
		const uint64_t left = r->bytes - r->at;
		size_t n, want = bytes - *got < left ? bytes - *got : (size_t) left;
		if (!to && want > sizeof scratch)
			want = sizeof scratch;
		unsigned char *place = to ? (unsigned char *) to + *got : scratch;
		CHOIR_TRY(read_file(r, place, want, &n));
		if (n < want)
			return choir_fail(CHOIR_CORRUPT,
					"%s: ends after %llu bytes, the archive declares %llu", r->name,
					(unsigned long long) (r->at + n), (unsigned long long) r->bytes);
		r->sum = chi_gzip_checksum(r->sum, place, n);
		*got += n;
		r->at += n;
		if (r->at == r->bytes)
			CHOIR_TRY(check_member(r));
	}
	return CHOIR_OK;
}

choir_status chi_reader_read(chi_reader *r, void *to, size_t bytes, size_t *got)
{
	return r->member ? read_member(r, to, bytes, got) : read_file(r, to, bytes, got);
}

static bool whole_parts(const chi_reader *r, const chi_file_part parts[], size_t n, size_t *bytes)
{
	const uint64_t size = chi_file_size(r->file), left = r->offset < size ? size - r->offset : 0;
	*bytes = 0;
	for (size_t i = 0; i < n; i++)
		if (!chi_size_add(*bytes, parts[i].bytes, bytes))
			return false;
	return !r->gzip && !r->member && *bytes <= left && *bytes <= INT64_MAX;
}

choir_status chi_reader_read_parts(
		chi_reader *r, const chi_file_part parts[], size_t n, size_t *got)
{
	size_t bytes;
	*got = 0;
	if (n <= CHI_MAX_PARTS && whole_parts(r, parts, n, &bytes)) {
		CHOIR_TRY(chi_file_read_parts(r->file, r->offset, parts, n));
		r->offset += bytes;
		CHOIR_TRY(check_plain(r, bytes));
		*got = bytes;
		return CHOIR_OK;
	}
	for (size_t i = 0; i < n; i++) {
		const choir_status status = chi_reader_read(r, parts[i].to, parts[i].bytes, &bytes);
		*got += bytes;
		if (status != CHOIR_OK || bytes < parts[i].bytes)
			return status;
	}
	return CHOIR_OK;
}

choir_status chi_reader_end(chi_reader *r)
{
	size_t got;
	CHOIR_TRY(chi_reader_read(r, NULL, 1, &got));
	if (got)
		return choir_fail(CHOIR_CORRUPT, "%s: bytes after the end of the data", r->name);
	return CHOIR_OK;
}

choir_status chi_reader_rewind(chi_reader *r)
{
	r->offset = r->begin;
	r->at = 0;
	r->sum = 0;
	return r->gzip ? chi_gzip_rewind(r->gzip) : CHOIR_OK;
}
