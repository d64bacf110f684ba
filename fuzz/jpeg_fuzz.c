// Fuzzes the decoder of JPEG images.
#include "image_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return decode_twice(data, size);
}
