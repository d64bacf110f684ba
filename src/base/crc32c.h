// CRC-32C (Castagnoli), the checksum of records in files: that of iSCSI, RFC 3720 appendix B.4,
// with the polynomial 0x1edc6f41 and bits reflected. The processor's instruction is used where
// it has one; the result does not depend on it. Threads: any.
#pragma once

#include <stddef.h>
#include <stdint.h>

// The checksum of what crc is the checksum of (0: of nothing), followed by so many bytes.
uint32_t chi_crc32c(uint32_t crc, const void *data, size_t bytes);
// The same without that instruction: its oracle in tests.
uint32_t chi_crc32c_table(uint32_t crc, const void *data, size_t bytes);

// As it stands in TFRecord and event files: turned by 15 bits and moved on by a constant, so that
// the checksum of data that hold checksums is still a good one.
uint32_t chi_crc32c_masked(const void *data, size_t bytes);
