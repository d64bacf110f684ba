// Readers use pread, since truncating a mapped file raises SIGBUS. Writers fsync a temporary file,
// rename it and fsync the directory: the old file survives any failure. A failed fsync is not
// retried.
#pragma once

#include "base/directory.h"
#include "choir/status.h"

#include <stdint.h>

typedef struct chi_file chi_file;
chi_file *chi_file_open(const char *path); // NULL: CHOIR_NOT_FOUND, CHOIR_IO
// CHOIR_CORRUPT: it is a link.
chi_file *chi_file_open_in(const chi_directory *directory, const char *name);
void chi_file_close(chi_file *f);
const char *chi_file_path(const chi_file *f);
uint64_t chi_file_size(const chi_file *f);
// CHOIR_CORRUPT: the open file's size or change time has changed.
choir_status chi_file_check(chi_file *f);
// CHOIR_CORRUPT: it ends before bytes.
choir_status chi_file_read(chi_file *f, uint64_t offset, void *to, size_t bytes);
// *got 0: end of file.
choir_status chi_file_read_some(chi_file *f, uint64_t offset, void *to, size_t bytes, size_t *got);
// Consecutive bytes, at most SSIZE_MAX, into several places.
enum { CHI_MAX_PARTS = 256 };
typedef struct {
	void *to;
	size_t bytes;
} chi_file_part;
choir_status chi_file_read_parts(
		chi_file *f, uint64_t offset, const chi_file_part parts[], size_t n);

// "a file of 12 bytes, CRC-32C 0011aabb", or "unknown". Records no failure.
void chi_file_fingerprint(const char *path, char *out, size_t size);

typedef struct chi_writer chi_writer;
chi_writer *chi_writer_new(const char *path);
// For logs. The file must not exist, and has its name from the start. Others see data after a
// flush. abort keeps the file.
chi_writer *chi_writer_new_growing(const char *path);
chi_writer *chi_writer_new_growing_in(const chi_directory *directory, const char *name);
choir_status chi_writer_flush(chi_writer *w);
choir_status chi_writer_write(chi_writer *w, const void *data, size_t bytes);
// Frees the writer. If only the directory's fsync fails, a power cut may lose the complete file.
choir_status chi_writer_commit(chi_writer *w);
void chi_writer_abort(chi_writer *w);
