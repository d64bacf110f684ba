// zlib verifies members; here: the last is complete, and only members follow.
#include "data/source/gzip.h"

#include "base/alloc.h"

#ifdef CHI_HAS_ZLIB

#include <limits.h>
#include <zlib.h>

enum { IN_BYTES = 64 * 1024, OUT_BYTES = 16 * 1024, WINDOW_BITS = 15, GZIP_HEADER = 16 };

struct chi_gzip {
	chi_file *file;
	const char *name;
	const char *framing;
	uint64_t begin, end;
	z_stream stream;
	uint64_t offset;
	bool between;
	bool holds; // zlib may have more output
	bool ended;
	unsigned char in[IN_BYTES];
	unsigned char out[OUT_BYTES];
};

void *chi_gzip_take(void *user, unsigned count, unsigned size)
{
	(void) user;
	return chi_alloc_array(count, size);
}

void chi_gzip_give(void *user, void *memory)
{
	(void) user;
	chi_free(memory);
}

static const struct {
	const char *name;
	int window_bits;
} framings[] = {
	[CHI_GZIP] = { "gzip", WINDOW_BITS + GZIP_HEADER },
	[CHI_ZLIB] = { "zlib", WINDOW_BITS },
	[CHI_DEFLATE] = { "deflated", -WINDOW_BITS },
};

chi_gzip *chi_gzip_new(
		chi_file *file, const char *name, chi_framing framing, uint64_t begin, uint64_t end)
{
	chi_gzip *z = chi_alloc(sizeof *z);
	if (!z)
		return NULL;
	z->file = file;
	z->name = name;
	z->framing = framings[framing].name;
	z->begin = z->offset = begin;
	z->end = end;
	z->stream.zalloc = chi_gzip_take;
	z->stream.zfree = chi_gzip_give;
	int result = inflateInit2(&z->stream, framings[framing].window_bits);
	if (result == Z_OK)
		return z;
	if (result != Z_MEM_ERROR) // recorded by the allocator
		choir_fail(CHOIR_UNSUPPORTED, "%s: zlib %s cannot start (built with %s)", name,
				zlibVersion(), ZLIB_VERSION);
	chi_free(z);
	return NULL;
}

void chi_gzip_free(chi_gzip *z)
{
	if (z)
		inflateEnd(&z->stream);
	chi_free(z);
}

choir_status chi_gzip_rewind(chi_gzip *z)
{
	inflateReset(&z->stream);
	z->stream.avail_in = 0;
	z->offset = z->begin;
	z->between = z->ended = z->holds = false;
	return CHOIR_OK;
}

static unsigned long long place(const chi_gzip *z)
{
	return z->offset - z->stream.avail_in;
}

static choir_status refill(chi_gzip *z)
{
	const uint64_t left = z->end - z->offset;
	size_t got, want = left < sizeof z->in ? (size_t) left : sizeof z->in;
	CHOIR_TRY(chi_file_read_some(z->file, z->offset, z->in, want, &got));
	CHOIR_TRY(chi_file_check(z->file));
	z->offset += got;
	z->stream.next_in = z->in;
	z->stream.avail_in = (unsigned) got;
	if (got)
		return CHOIR_OK;
	z->ended = z->between;
	if (!z->ended)
		return choir_fail(CHOIR_CORRUPT, "%s: the file ends within the %s data, after %llu bytes",
				z->name, z->framing, place(z));
	return CHOIR_OK;
}

// Raw deflate has no trailer, so output may follow all input.
static choir_status inflate_some(chi_gzip *z, unsigned char *to, size_t capacity, size_t *got)
{
	z->stream.next_out = to;
	z->stream.avail_out = capacity < UINT_MAX ? (unsigned) capacity : UINT_MAX;
	unsigned before = z->stream.avail_out;
	if (z->between)
		inflateReset(&z->stream);
	z->between = false;
	int result = inflate(&z->stream, Z_NO_FLUSH);
	*got = before - z->stream.avail_out;
	z->between = result == Z_STREAM_END;
	z->holds = z->stream.avail_out == 0 && !z->between;
	if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR)
		return CHOIR_OK;
	if (result == Z_MEM_ERROR)
		return CHOIR_NO_MEMORY;
	return choir_fail(CHOIR_CORRUPT, "%s: the %s data are damaged before byte %llu: %s", z->name,
			z->framing, place(z), z->stream.msg ? z->stream.msg : "no reason given");
}

choir_status chi_gzip_read(chi_gzip *z, void *to, size_t bytes, size_t *got)
{
	*got = 0;
	while (*got < bytes && !z->ended) {
		if (z->stream.avail_in == 0 && !z->holds) {
			CHOIR_TRY(refill(z));
			continue;
		}
		size_t capacity = bytes - *got, n;
		if (!to && capacity > sizeof z->out)
			capacity = sizeof z->out;
		CHOIR_TRY(inflate_some(z, to ? (unsigned char *) to + *got : z->out, capacity, &n));
		*got += n;
	}
	return CHOIR_OK;
}

uint32_t chi_gzip_checksum(uint32_t sum, const void *data, size_t bytes)
{
	const unsigned char *p = data;
	for (size_t n; bytes > 0; bytes -= n, p += n) {
		n = bytes < UINT_MAX ? bytes : UINT_MAX;
		sum = (uint32_t) crc32(sum, p, (unsigned) n);
	}
	return sum;
}

#else

chi_gzip *chi_gzip_new(
		chi_file *file, const char *name, chi_framing framing, uint64_t begin, uint64_t end)
{
	(void) file;
	(void) begin;
	(void) end;
	choir_fail(CHOIR_UNSUPPORTED,
			"%s: compressed by %s, which this build of Choir cannot "
			"read without zlib; unpack the file",
			name, framing == CHI_GZIP ? "gzip" : "zlib");
	return NULL;
}

void chi_gzip_free(chi_gzip *z)
{
	(void) z;
}

choir_status chi_gzip_read(chi_gzip *z, void *to, size_t bytes, size_t *got)
{
	(void) z;
	(void) to;
	(void) bytes;
	*got = 0;
	return choir_fail(CHOIR_UNSUPPORTED, "gzip: this build of Choir has no zlib");
}

choir_status chi_gzip_rewind(chi_gzip *z)
{
	(void) z;
	return CHOIR_OK;
}

uint32_t chi_gzip_checksum(uint32_t sum, const void *data, size_t bytes)
{
	(void) sum;
	(void) data;
	(void) bytes;
	return 0;
}

#endif
