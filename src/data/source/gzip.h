// Decompression: gzip (RFC 1952), zlib (RFC 1950), raw deflate. Consecutive gzip members are one
// stream. Threads: one at a time.
#pragma once

#include "base/file.h"

enum { CHI_GZIP_RATIO = 1032 }; // maximum of deflate

typedef enum { CHI_GZIP, CHI_ZLIB, CHI_DEFLATE } chi_framing; // DEFLATE: raw
typedef struct chi_gzip chi_gzip;
// Reads from begin to end, or to an earlier end of the data. Borrows file and name. NULL: no
// memory, or no zlib (CHOIR_UNSUPPORTED).
chi_gzip *chi_gzip_new(
		chi_file *file, const char *name, chi_framing framing, uint64_t begin, uint64_t end);
void chi_gzip_free(chi_gzip *z);
// Reads as chi_reader_read does.
choir_status chi_gzip_read(chi_gzip *z, void *to, size_t bytes, size_t *got);
choir_status chi_gzip_rewind(chi_gzip *z);
// The CRC-32 of gzip and zip; begin with 0. Without zlib it is 0.
uint32_t chi_gzip_checksum(uint32_t sum, const void *data, size_t bytes);
