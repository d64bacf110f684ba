// The bytes of a file in order, plain or compressed by gzip (told apart by how the file begins,
// not by its name). Threads: one at a time.
#pragma once

#include "base/file.h"

typedef struct chi_reader chi_reader;
// NULL: no such file, refused by the system, or compressed where this build has no zlib.
chi_reader *chi_reader_open(const char *path);
void chi_reader_close(chi_reader *r);
const char *chi_reader_name(const chi_reader *r); // the path, fit for a message
bool chi_reader_compressed(const chi_reader *r);
// The bytes there are; of a compressed file, the most there can be.
uint64_t chi_reader_size(const chi_reader *r);
// Reads the next bytes; *got is less only at the end, which then is sound (a compressed file:
// its checksum and length were right). to NULL: passes over them.
choir_status chi_reader_read(chi_reader *r, void *to, size_t bytes, size_t *got);
// Nothing must be left; CHOIR_CORRUPT if there is something.
choir_status chi_reader_end(chi_reader *r);
choir_status chi_reader_rewind(chi_reader *r);
