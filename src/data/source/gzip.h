// gzip (RFC 1952), zlib (RFC 1950), raw deflate. Consecutive gzip members are one stream. Threads:
// one at a time.
#pragma once

#include "base/file.h"

enum { CHI_GZIP_RATIO = 1032 }; // maximum of deflate

typedef enum { CHI_GZIP, CHI_ZLIB, CHI_DEFLATE } chi_framing; // DEFLATE: raw
typedef struct chi_gzip chi_gzip;
// From begin to end, or to an earlier end of the data. Borrows file and name. CHOIR_UNSUPPORTED:
// no zlib.
chi_gzip *chi_gzip_new(
		chi_file *file, const char *name, chi_framing framing, uint64_t begin, uint64_t end);
void chi_gzip_free(chi_gzip *z);
// As chi_reader_read.
choir_status chi_gzip_read(chi_gzip *z, void *to, size_t bytes, size_t *got);
choir_status chi_gzip_rewind(chi_gzip *z);
// CRC-32 of gzip and zip, from 0 on. Without zlib 0.
uint32_t chi_gzip_checksum(uint32_t sum, const void *data, size_t bytes);
// zlib's allocator.
void *chi_gzip_take(void *user, unsigned count, unsigned size);
void chi_gzip_give(void *user, void *memory);
