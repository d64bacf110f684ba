// Files. Reading is by pread, never mmap (a file cut short under a mapping is SIGBUS). Writing
// goes to a temporary name beside the target, then fsync, rename, fsync of the folder, so that
// the old file stays whole whatever happens. A failed fsync is never retried: the file is thrown
// away.
#pragma once

#include "base/directory.h"
#include "choir/status.h"

#include <stdint.h>

typedef struct chi_file chi_file; // open for reading
chi_file *chi_file_open(const char *path); // NULL: CHOIR_NOT_FOUND or CHOIR_IO with the path
// The file of this name in a folder; CHOIR_CORRUPT: it is a link.
chi_file *chi_file_open_in(const chi_directory *directory, const char *name);
void chi_file_close(chi_file *f);
const char *chi_file_path(const chi_file *f);
uint64_t chi_file_size(const chi_file *f);
// CHOIR_CORRUPT: somebody has written to it, or cut it, since it was opened, by what the system
// says of its size and of when it was changed last. A file of another name that took its name is
// another file.
choir_status chi_file_check(chi_file *f);
// Exactly bytes from offset; a file that ends before is CHOIR_CORRUPT with both numbers.
choir_status chi_file_read(chi_file *f, uint64_t offset, void *to, size_t bytes);
// At most bytes; *got says how many (0: the end).
choir_status chi_file_read_some(chi_file *f, uint64_t offset, void *to, size_t bytes, size_t *got);
// The same into several places, one behind the other: at most CHI_MAX_PARTS, whose bytes
// together fit ssize_t.
enum { CHI_MAX_PARTS = 256 };
typedef struct {
	void *to;
	size_t bytes;
} chi_file_part;
choir_status chi_file_read_parts(
		chi_file *f, uint64_t offset, const chi_file_part parts[], size_t n);

typedef struct chi_writer chi_writer;
chi_writer *chi_writer_new(const char *path); // creates the temporary file
// For files that are read while they grow, as logs are: there under its name at once, which must
// be new. What is written reaches others with chi_writer_flush; commit is flush, fsync and close;
// abort leaves what is there.
chi_writer *chi_writer_new_growing(const char *path);
chi_writer *chi_writer_new_growing_in(const chi_directory *directory, const char *name);
choir_status chi_writer_flush(chi_writer *w);
choir_status chi_writer_write(chi_writer *w, const void *data, size_t bytes); // buffered
// Makes the file appear under its name. The writer is freed, whatever happens; after a failure the
// temporary file is gone and the old file is as it was. One exception: if the folder's fsync, the
// last step, fails, then the new file is there, whole, but may not outlive a power cut.
choir_status chi_writer_commit(chi_writer *w);
void chi_writer_abort(chi_writer *w); // removes the temporary file and frees
