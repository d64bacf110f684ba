// Whole files, plain or compressed by zlib. Threads: one at a time.
#pragma once

#include "choir/source.h"

typedef struct chi_output chi_output;
// AUTO: gzip if path ends in ".gz". NULL: as chi_writer_new, or no zlib.
chi_output *chi_output_new(const char *path, choir_compression compression);
choir_status chi_output_write(chi_output *o, const void *data, size_t bytes);
// Frees o. After a failure there is no file.
choir_status chi_output_commit(chi_output *o);
void chi_output_abort(chi_output *o); // allows NULL
