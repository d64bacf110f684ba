// Decompression of gzip files (RFC 1952) and zlib streams (RFC 1950) by zlib; several members
// behind each other are one, as gzip says. Threads: one at a time.
#pragma once

#include "base/file.h"

enum { CHI_GZIP_RATIO = 1032 }; // deflate cannot make its input more than so many times smaller

typedef enum {
	CHI_GZIP,
	CHI_ZLIB,
	CHI_DEFLATE
} chi_framing; // the last: none, as in a zip archive
typedef struct chi_gzip chi_gzip;
// What is in file from begin to end, or where it ends before. file and name (for messages) are
// borrowed. NULL: no memory, or no zlib (CHOIR_UNSUPPORTED).
chi_gzip *chi_gzip_new(
		chi_file *file, const char *name, chi_framing framing, uint64_t begin, uint64_t end);
void chi_gzip_free(chi_gzip *z);
// As chi_reader_read.
choir_status chi_gzip_read(chi_gzip *z, void *to, size_t bytes, size_t *got);
choir_status chi_gzip_rewind(chi_gzip *z);
// The checksum of gzip and zip, of more bytes: of none it is 0. Without zlib it is always 0.
uint32_t chi_gzip_checksum(uint32_t sum, const void *data, size_t bytes);
