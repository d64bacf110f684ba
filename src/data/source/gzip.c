// Decompression by zlib, whose memory comes from Choir's allocator. zlib checks the checksum and
// the length at the end of each member; this file sees to it that the end is reached and that
// nothing but another member follows.
#include "data/source/gzip.h"

#include "base/alloc.h"

#ifdef CHI_HAS_ZLIB

#include <limits.h>
#include <zlib.h>

enum { IN_BYTES = 64 * 1024, OUT_BYTES = 16 * 1024, WINDOW_BITS = 15, GZIP_HEADER = 16 };

struct chi_gzip {
	chi_file *file;
	const char *name;
	const char *framing; // "gzip" or "zlib"
	z_stream stream;
	uint64_t offset; // of the file: what was read so far
	bool between; // a member has ended, and the next has not begun
	bool ended;
	unsigned char in[IN_BYTES];
	unsigned char out[OUT_BYTES]; // for what is passed over
};

static void *take(void *user, unsigned count, unsigned size)
{
	(void) user;
	return chi_alloc_array(count, size);
}

static void give(void *user, void *memory)
{
	(void) user;
	chi_free(memory);
}

chi_gzip *chi_gzip_new(chi_file *file, const char *name, bool zlib)
{
	chi_gzip *z = chi_alloc(sizeof *z);
	if (!z)
		return NULL;
	z->file = file;
	z->name = name;
	z->framing = zlib ? "zlib" : "gzip";
	z->stream.zalloc = take;
	z->stream.zfree = give;
	int result = inflateInit2(&z->stream, zlib ? WINDOW_BITS : WINDOW_BITS + GZIP_HEADER);
	if (result == Z_OK)
		return z;
	if (result != Z_MEM_ERROR) // that is recorded
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
	z->offset = 0;
	z->between = z->ended = false;
	return CHOIR_OK;
}

// The place in the compressed file, for messages.
static unsigned long long place(const chi_gzip *z)
{
	return z->offset - z->stream.avail_in;
}

static choir_status refill(chi_gzip *z)
{
	size_t got;
	CHOIR_TRY(chi_file_read_some(z->file, z->offset, z->in, sizeof z->in, &got));
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

// Lets zlib write up to so many bytes.
static choir_status inflate_some(chi_gzip *z, unsigned char *to, size_t room, size_t *got)
{
	z->stream.next_out = to;
	z->stream.avail_out = room < UINT_MAX ? (unsigned) room : UINT_MAX;
	unsigned before = z->stream.avail_out;
	if (z->between)
		inflateReset(&z->stream);
	z->between = false;
	int result = inflate(&z->stream, Z_NO_FLUSH);
	*got = before - z->stream.avail_out;
	z->between = result == Z_STREAM_END;
	if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR)
		return CHOIR_OK;
	if (result == Z_MEM_ERROR)
		return CHOIR_NO_MEMORY; // recorded by the allocator
	return choir_fail(CHOIR_CORRUPT, "%s: the %s data are damaged before byte %llu: %s", z->name,
			z->framing, place(z), z->stream.msg ? z->stream.msg : "no reason given");
}

choir_status chi_gzip_read(chi_gzip *z, void *to, size_t bytes, size_t *got)
{
	*got = 0;
	while (*got < bytes && !z->ended) {
		if (z->stream.avail_in == 0) {
			CHOIR_TRY(refill(z));
			continue;
		}
		size_t room = bytes - *got, n;
		if (!to && room > sizeof z->out)
			room = sizeof z->out;
		CHOIR_TRY(inflate_some(z, to ? (unsigned char *) to + *got : z->out, room, &n));
		*got += n;
	}
	return CHOIR_OK;
}

#else

chi_gzip *chi_gzip_new(chi_file *file, const char *name, bool zlib)
{
	(void) file;
	choir_fail(CHOIR_UNSUPPORTED,
			"%s: compressed by %s, which this build of Choir (without zlib) cannot read; unpack "
			"it",
			name, zlib ? "zlib" : "gzip");
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

#endif
