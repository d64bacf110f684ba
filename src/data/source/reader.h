// Sequential reading of plain and gzip files. Threads: one at a time.
#pragma once

#include "base/file.h"
#include "choir/source.h"
#include "data/source/array/zip_archive.h"

typedef struct chi_reader chi_reader;
// The first bytes decide. NULL: it cannot be opened, or needs zlib.
chi_reader *chi_reader_open(const char *path);
chi_reader *chi_reader_open_as(const char *path, choir_compression compression);
// Verifies size and checksum at the end.
chi_reader *chi_reader_open_member(const char *path, const chi_zip_member *m);
void chi_reader_close(chi_reader *r);
const char *chi_reader_path(const chi_reader *r);
const char *chi_reader_name(const chi_reader *r);
bool chi_reader_compressed(const chi_reader *r);
// Compressed: an upper bound.
uint64_t chi_reader_size(const chi_reader *r);
// Limits what is held of a compressed file for an item (a line, a row, a record): a small file can
// unpack to a thousand times its size. what: the item.
choir_status chi_reader_hold(const chi_reader *r, size_t bytes, const char *what);
// *got is less than bytes only at the end, where checksum and length are verified. to NULL: skips.
// After a failure the first *got bytes are good.
choir_status chi_reader_read(chi_reader *r, void *to, size_t bytes, size_t *got);
choir_status chi_reader_read_parts(
		chi_reader *r, const chi_file_part parts[], size_t n, size_t *got);
// CHOIR_CORRUPT: bytes are left.
choir_status chi_reader_end(chi_reader *r);
choir_status chi_reader_rewind(chi_reader *r);
