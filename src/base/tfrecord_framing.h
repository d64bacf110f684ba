// TFRecord and event files: 8 bytes of length (little endian), its checksum, the data, their
// checksum (chi_crc32c_masked).
#pragma once

#include <stddef.h>

enum { CHI_RECORD_LENGTH = 8, CHI_RECORD_HEADER = 12, CHI_RECORD_FOOTER = 4 };

void chi_record_frame(const void *data, size_t bytes, unsigned char header[CHI_RECORD_HEADER],
		unsigned char footer[CHI_RECORD_FOOTER]);
