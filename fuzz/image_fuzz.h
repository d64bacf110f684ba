// Shared by the fuzzers of images. An input is decoded twice, the second time into memory of other
// contents, and resized: both times the pixels and the status must be the same.
#include "fuzz.h"

#include "data/source/image/image.h"

enum { MAX_PIXELS = 1 << 16, COVER = 5 };

static choir_status decode(const uint8_t *data, size_t size, int dirt, uint8_t *cover)
{
	const chi_image_file file = {
		.bytes = data, .n = size, .name = "input", .max_pixels = MAX_PIXELS
	};
	chi_image image = { 0 };
	chi_resize_scratch scratch = { .first = { NULL, 0 } };
	demand(chi_scratch_reserve(&image.scratch, MAX_PIXELS * CHI_IMAGE_CHANNELS), "no memory");
	memset(image.scratch.memory, dirt, image.scratch.capacity);
	choir_status status = chi_image_decode(&file, &image);
	demand(status == CHOIR_OK || choir_error()[0] != '\0', "a failure without a text");
	if (status == CHOIR_OK) {
		demand(image.height > 0 && image.width > 0 && image.height * image.width <= MAX_PIXELS,
				"a size beyond the limit");
		status = chi_image_cover(&image, COVER, COVER, &scratch, cover);
		demand(status == CHOIR_OK, "not resized");
	}
	chi_resize_scratch_free(&scratch);
	chi_image_free(&image);
	return status;
}

static int decode_twice(const uint8_t *data, size_t size)
{
	uint8_t first[COVER * COVER * CHI_IMAGE_CHANNELS] = { 0 }, second[sizeof first] = { 0 };
	const choir_status status = decode(data, size, 0, first);
	demand(decode(data, size, 0xa5, second) == status, "another status");
	demand(memcmp(first, second, sizeof first) == 0, "pixels that were not written");
	return 0;
}
