// The bytes of a file in order, plain or compressed by gzip (told apart by how the file begins,
// not by its name). Threads: one at a time.
#pragma once

#include "base/file.h"
#include "choir/source.h"
#include "data/source/array/zip_archive.h"

typedef struct chi_reader chi_reader;
// NULL: no such file, refused by the system, or compressed where this build has no zlib.
chi_reader *chi_reader_open(const char *path);
// The same of a file that is compressed as the caller says; AUTO: by how it begins.
chi_reader *chi_reader_open_as(const char *path, choir_compression compression);
// The bytes of a member of a zip archive, whose size and checksum are held against the archive's
// when its end is read.
chi_reader *chi_reader_open_member(const char *path, const chi_zip_member *m);
void chi_reader_close(chi_reader *r);
const char *chi_reader_path(const chi_reader *r);
const char *chi_reader_name(const chi_reader *r); // the path, fit for a message
bool chi_reader_compressed(const chi_reader *r);
// The bytes there are; of a compressed file, the most there can be.
uint64_t chi_reader_size(const chi_reader *r);
// Whether a caller may hold so many bytes of one piece (a line, a row, a record) in memory: of a
// compressed file no more than 16 MiB or four times its size, since a small one can be unpacked to
// a thousand times as much. what: the piece, for the message of CHOIR_UNSUPPORTED.
choir_status chi_reader_hold(const chi_reader *r, size_t bytes, const char *what);
// Reads the next bytes; *got is less only at the end, which then is sound (a compressed file:
// its checksum and length were right). to NULL: passes over them. After a failure the first
// *got bytes are good.
choir_status chi_reader_read(chi_reader *r, void *to, size_t bytes, size_t *got);
// The same into several places, one behind the other.
choir_status chi_reader_read_parts(
		chi_reader *r, const chi_file_part parts[], size_t n, size_t *got);
// Nothing must be left; CHOIR_CORRUPT if there is something.
choir_status chi_reader_end(chi_reader *r);
choir_status chi_reader_rewind(chi_reader *r);
