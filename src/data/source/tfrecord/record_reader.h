// TFRecord files: length (64 bits, little-endian), a masked CRC-32C of it, data, and a masked
// CRC-32C of the data. Both are verified. Threads: one at a time.
#pragma once

#include "base/record.h"
#include "choir/source.h"

typedef struct chi_records chi_records;
// AUTO: plain if the first length's checksum is right; else by the first bytes. NULL: as
// chi_reader_open.
chi_records *chi_records_open(const char *path, choir_compression compression);
void chi_records_close(chi_records *r);
// data is valid until the next call. CHOIR_CORRUPT: a wrong checksum or a truncated record; names
// file, record and byte.
choir_status chi_records_next(chi_records *r, const unsigned char **data, size_t *bytes);
// After CHOIR_CORRUPT.
bool chi_records_known_next(const chi_records *r);
// Prefixes a failure with "FILE: record N at byte B" of the last record. N counts from 0. B is
// the offset of its length, in unpacked data.
choir_status chi_records_blame(const chi_records *r);
// Gives those of the next record, counted as above.
void chi_records_where(const chi_records *r, int64_t *byte, int64_t *record);
choir_status chi_records_jump(chi_records *r, int64_t byte, int64_t record);
