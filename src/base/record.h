// The records of TFRecord and event files: 8 bytes of length, little endian, a checksum of them,
// the data, a checksum of those; checksums are chi_crc32c_masked. How one is written.
#pragma once

#include <stddef.h>

enum { CHI_RECORD_LENGTH = 8, CHI_RECORD_HEADER = 12, CHI_RECORD_FOOTER = 4 };

// What stands before and behind so many bytes of data.
void chi_record_frame(const void *data, size_t bytes, unsigned char header[CHI_RECORD_HEADER],
		unsigned char footer[CHI_RECORD_FOOTER]);
