// TFRecord files (base/tfrecord_framing.h). Threads: one at a time.
#pragma once

#include "base/tfrecord_framing.h"
#include "choir/source.h"

typedef struct chi_records chi_records;
// AUTO: plain if the first length's checksum is right; else by the first bytes.
chi_records *chi_records_open(const char *path, choir_compression compression);
void chi_records_close(chi_records *r);
// data: until the next call. CHOIR_CORRUPT names file, record and byte.
choir_status chi_records_next(chi_records *r, const unsigned char **data, size_t *bytes);
// After CHOIR_CORRUPT: whether the next record can be read.
bool chi_records_known_next(const chi_records *r);
// Prefixes a failure with "FILE: record N at byte B": N from 0, B its length's offset, unpacked.
choir_status chi_records_blame(const chi_records *r);
// Of the next record.
void chi_records_where(const chi_records *r, int64_t *byte, int64_t *record);
choir_status chi_records_jump(chi_records *r, int64_t byte, int64_t record);
