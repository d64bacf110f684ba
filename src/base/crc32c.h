// Castagnoli: RFC 3720 appendix B.4, polynomial 0x1edc6f41, bits reflected. Threads: any.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Continues crc (0: of nothing).
uint32_t chi_crc32c(uint32_t crc, const void *data, size_t bytes);
// For tests.
uint32_t chi_crc32c_table(uint32_t crc, const void *data, size_t bytes);

// As TFRecord and event files store it: rotated by 15 bits, plus a constant.
uint32_t chi_crc32c_masked(const void *data, size_t bytes);
