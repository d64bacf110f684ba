// Compressed writing by zlib.
#include "data/source/compressed_writer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/source/gzip.h"

#ifdef CHI_HAS_ZLIB
#include <limits.h>
#include <zlib.h>

enum { OUT_BYTES = 64 * 1024, WINDOW_BITS = 15, GZIP_HEADER = 16, MEMORY_LEVEL = 8 };

typedef struct {
	z_stream stream;
	unsigned char out[OUT_BYTES];
} packer;

static packer *packer_new(const char *path, bool gzip)
{
	packer *p = chi_alloc(sizeof *p);
	if (!p)
		return NULL;
	p->stream.zalloc = chi_gzip_take;
	p->stream.zfree = chi_gzip_give;
	const int result = deflateInit2(&p->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
			gzip ? WINDOW_BITS + GZIP_HEADER : WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
	if (result == Z_OK)
		return p;
	if (result != Z_MEM_ERROR) // recorded by the allocator
		choir_fail(CHOIR_UNSUPPORTED, "%s: zlib %s cannot start (built with %s)", path,
				zlibVersion(), ZLIB_VERSION);
	chi_free(p);
	return NULL;
}

static void packer_free(packer *p)
{
	if (p)
		deflateEnd(&p->stream);
	chi_free(p);
}

static choir_status pack_some(
		packer *p, chi_writer *to, unsigned char *data, unsigned bytes, int flush)
{
	p->stream.next_in = data;
	p->stream.avail_in = bytes;
	do {
		p->stream.next_out = p->out;
		p->stream.avail_out = OUT_BYTES;
		deflate(&p->stream, flush);
		CHOIR_TRY(chi_writer_write(to, p->out, OUT_BYTES - p->stream.avail_out));
	} while (p->stream.avail_out == 0);
	return CHOIR_OK;
}

static choir_status pack(packer *p, chi_writer *to, const void *data, size_t bytes)
{
	// zlib's input is not const.
	union {
		const void *borrowed;
		unsigned char *bytes;
	} in = { data };
	while (bytes > 0) {
		const unsigned n = bytes < UINT_MAX ? (unsigned) bytes : UINT_MAX;
		CHOIR_TRY(pack_some(p, to, in.bytes, n, Z_NO_FLUSH));
		in.bytes += n;
		bytes -= n;
	}
	return CHOIR_OK;
}

static choir_status pack_end(packer *p, chi_writer *to)
{
	return pack_some(p, to, NULL, 0, Z_FINISH);
}

#else

typedef struct packer packer;

static packer *packer_new(const char *path, bool gzip)
{
	choir_fail(CHOIR_UNSUPPORTED, "%s: %s compression needs zlib, which this build of Choir lacks",
			path, gzip ? "gzip" : "zlib");
	return NULL;
}

static void packer_free(packer *p)
{
	(void) p;
}

static choir_status pack(packer *p, chi_writer *to, const void *data, size_t bytes)
{
	(void) p;
	return chi_writer_write(to, data, bytes);
}

static choir_status pack_end(packer *p, chi_writer *to)
{
	(void) p;
	(void) to;
	return CHOIR_OK;
}

#endif

struct chi_output {
	chi_writer *writer;
	packer *packer;
};

static choir_compression by_name(const char *path)
{
	const size_t n = strlen(path);
	const bool gz = n > 3 && strcmp(path + n - 3, ".gz") == 0;
	return gz ? CHOIR_COMPRESSION_GZIP : CHOIR_COMPRESSION_NONE;
}

chi_output *chi_output_new(const char *path, choir_compression compression)
{
	if (compression == CHOIR_COMPRESSION_AUTO)
		compression = by_name(path);
	chi_output *o = chi_alloc(sizeof *o);
	if (!o)
		return NULL;
	const bool plain = compression == CHOIR_COMPRESSION_NONE;
	if (!plain)
		o->packer = packer_new(path, compression == CHOIR_COMPRESSION_GZIP);
	if (plain || o->packer)
		o->writer = chi_writer_new(path);
	if (o->writer)
		return o;
	chi_output_abort(o);
	return NULL;
}

choir_status chi_output_write(chi_output *o, const void *data, size_t bytes)
{
	return o->packer ? pack(o->packer, o->writer, data, bytes)
					 : chi_writer_write(o->writer, data, bytes);
}

choir_status chi_output_commit(chi_output *o)
{
	choir_status status = o->packer ? pack_end(o->packer, o->writer) : CHOIR_OK;
	if (status == CHOIR_OK) {
		status = chi_writer_commit(o->writer);
		o->writer = NULL;
	}
	chi_output_abort(o);
	return status;
}

void chi_output_abort(chi_output *o)
{
	if (!o)
		return;
	chi_writer_abort(o->writer);
	packer_free(o->packer);
	chi_free(o);
}
