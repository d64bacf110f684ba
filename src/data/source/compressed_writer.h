// Files that are written whole, plain or compressed: base/file.h's writer with zlib in front of
// it where that is asked for. Threads: one at a time.
#pragma once

#include "choir/source.h"

typedef struct chi_output chi_output;
// AUTO: gzip if path ends in ".gz", else plain. NULL: as chi_writer_new, or no zlib in this build.
chi_output *chi_output_new(const char *path, choir_compression compression);
choir_status chi_output_write(chi_output *o, const void *data, size_t bytes);
// Makes the file appear and frees o, also on failure, after which no file has appeared.
choir_status chi_output_commit(chi_output *o);
void chi_output_abort(chi_output *o); // no file appears; NULL is fine
