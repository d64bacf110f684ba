// The framing of TFRecord files: each record is its length (64 bits, little-endian), a masked
// CRC-32C of those eight bytes, the data, and a masked CRC-32C of the data. Both checksums are
// always verified. Threads: one at a time.
#pragma once

#include "base/record.h"
#include "choir/source.h"

typedef struct chi_records chi_records;
// AUTO: plain if the first record's length has the checksum that it should have; else gzip or zlib
// if the file begins like that. NULL: as chi_reader_open.
chi_records *chi_records_open(const char *path, choir_compression compression);
void chi_records_close(chi_records *r);
// The next record's data, in memory of r's until the next call. CHOIR_END behind the last one.
// CHOIR_CORRUPT, with file, record and byte: a checksum that is wrong, a record that is cut short.
choir_status chi_records_next(chi_records *r, const unsigned char **data, size_t *bytes);
// After CHOIR_CORRUPT: whether it is known where the next record begins, so that next may go on.
bool chi_records_known_next(const chi_records *r);
// Puts "FILE: record N at byte B" before the text of a failure that the last record caused. N
// counts from 0, B is that of the record's length, in a compressed file of the data unpacked.
choir_status chi_records_blame(const chi_records *r);
choir_status chi_records_rewind(chi_records *r);
// Where the next record begins, as blame counts bytes, and which one it is.
void chi_records_where(const chi_records *r, int64_t *byte, int64_t *record);
// Goes there. CHOIR_INVALID: no record can begin there.
choir_status chi_records_jump(chi_records *r, int64_t byte, int64_t record);
