// Plain or compressed files. Threads: one at a time.
#pragma once

#include "choir/source.h"

typedef struct chi_output chi_output;
// AUTO: gzip for ".gz".
chi_output *chi_output_new(const char *path, choir_compression compression);
choir_status chi_output_write(chi_output *o, const void *data, size_t bytes);
// A failure leaves no file.
choir_status chi_output_commit(chi_output *o);
void chi_output_abort(chi_output *o);
