// Decompression of gzip files (RFC 1952) and zlib streams (RFC 1950) by zlib; several members
// behind each other are one, as gzip says. Threads: one at a time.
#pragma once

#include "base/file.h"

enum { CHI_GZIP_RATIO = 1032 }; // deflate cannot make its input more than so many times smaller

typedef struct chi_gzip chi_gzip;
// file and name (for messages) are borrowed. zlib: its framing, not that of gzip. NULL: no
// memory, or no zlib (CHOIR_UNSUPPORTED).
chi_gzip *chi_gzip_new(chi_file *file, const char *name, bool zlib);
void chi_gzip_free(chi_gzip *z);
// As chi_reader_read.
choir_status chi_gzip_read(chi_gzip *z, void *to, size_t bytes, size_t *got);
choir_status chi_gzip_rewind(chi_gzip *z);
