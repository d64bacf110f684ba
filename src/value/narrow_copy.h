// A variable in f16 and bf16. The first 16-bit read after a write makes a copy, which devices that
// share memory use. Updates keep the copies read since the update before.
#pragma once

#include "value/variable.h"

void chi_narrow_copy_open(chi_copy *c);
void chi_narrow_copy_close(chi_copy *c); // also of a copy that was never opened

// An update calls begin, follow after each chunk that it writes (threads: any), end before it
// counts the version. Rows without follow leave the copy to the next read.
void chi_narrow_copy_begin(chi_copy *c);
choir_status chi_narrow_copy_follow(chi_copy *c, chi_stream *stream, int64_t first, int64_t count);
void chi_narrow_copy_end(chi_copy *c);
