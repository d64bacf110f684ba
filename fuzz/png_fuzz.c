// Fuzzes the decoder of PNG images. Checksums of chunks are corrected, so that the code after the
// checks is reached.
#include "image_fuzz.h"

#include "data/source/gzip.h"

enum { MAX = 1 << 13, SIGNATURE = 8, AROUND = 12 };

static uint32_t load(const uint8_t *p)
{
	return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t file[MAX];
	if (size > sizeof file)
		return 0;
	memcpy(file, data, size);
	for (size_t at = SIGNATURE; at + AROUND <= size;) {
		const size_t bytes = load(file + at);
		if (bytes > size - at - AROUND)
			break;
		const uint32_t sum = chi_gzip_checksum(0, file + at + 4, bytes + 4);
		for (int i = 0; i < 4; i++)
			file[at + 8 + bytes + (size_t) i] = (uint8_t) (sum >> (24 - 8 * i));
		at += AROUND + bytes;
	}
	return decode_twice(file, size);
}
