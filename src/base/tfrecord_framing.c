// Lengths and checksums around the data of TFRecord files and event files.
#include "base/tfrecord_framing.h"

#include "base/crc32c.h"

#include <stdint.h>

static void store(unsigned char *to, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[i] = (unsigned char) (value >> 8 * i);
}

void chi_record_frame(const void *data, size_t bytes, unsigned char header[CHI_RECORD_HEADER],
		unsigned char footer[CHI_RECORD_FOOTER])
{
	store(header, bytes, CHI_RECORD_LENGTH);
	store(header + CHI_RECORD_LENGTH, chi_crc32c_masked(header, CHI_RECORD_LENGTH), 4);
	store(footer, chi_crc32c_masked(data, bytes), CHI_RECORD_FOOTER);
}
