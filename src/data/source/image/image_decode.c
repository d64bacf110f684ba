// Limits of images, and the conversion to grey.
#include "data/source/image/image.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "data/source/gzip.h"

// Deflate packs at most CHI_GZIP_RATIO bytes of up to 8 pixels into one; JPEG needs a bit per 64
// pixels. Small images are not checked.
enum { PIXELS_PER_BYTE = 8 * CHI_GZIP_RATIO, SMALL_PIXELS = 1 << 22 };

void chi_image_free(chi_image *image)
{
	chi_free(image->scratch.memory);
	chi_free(image->rows.memory);
	*image = (chi_image){ 0 };
}

choir_status chi_image_reserve(
		chi_image *image, const chi_image_file *file, uint64_t height, uint64_t width)
{
	const size_t max = file->max_pixels ? (size_t) file->max_pixels : CHI_IMAGE_MAX_PIXELS;
	size_t pixels = 0, bytes = 0;
	const bool fits = chi_size_multiply((size_t) height, (size_t) width, &pixels) &&
			pixels <= max && chi_size_multiply(pixels, CHI_IMAGE_CHANNELS, &bytes);
	if (pixels == 0 && fits)
		return choir_fail(CHOIR_CORRUPT,
				"%s: %" PRIu64 " x %" PRIu64 " pixels; needs at least one", file->name, height,
				width);
	if (!fits)
		return choir_fail(CHOIR_UNSUPPORTED,
				"%s: %" PRIu64 " x %" PRIu64 " pixels; needs at most %zu pixels", file->name,
				height, width, max);
	if (pixels > SMALL_PIXELS && pixels / PIXELS_PER_BYTE > file->n)
		return choir_fail(CHOIR_CORRUPT,
				"%s: %" PRIu64 " x %" PRIu64 " pixels in %zu bytes; needs more bytes", file->name,
				height, width, file->n);
	if (!chi_scratch_reserve(&image->scratch, bytes))
		return CHOIR_NO_MEMORY;
	image->pixels = (uint8_t *) image->scratch.memory;
	image->height = (int64_t) height;
	image->width = (int64_t) width;
	image->channels = CHI_IMAGE_CHANNELS;
	return CHOIR_OK;
}

choir_status chi_image_decode(const chi_image_file *file, chi_image *to)
{
	static const uint8_t png[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
	static const uint8_t jpeg[] = { 0xff, 0xd8, 0xff };
	if (file->n >= sizeof png && memcmp(file->bytes, png, sizeof png) == 0)
		return chi_png_decode(file, to);
	if (file->n >= sizeof jpeg && memcmp(file->bytes, jpeg, sizeof jpeg) == 0)
		return chi_jpeg_decode(file, to);
	return choir_fail(CHOIR_CORRUPT,
			"%s: its first bytes are not those of an image; needs PNG or "
			"JPEG",
			file->name);
}

void chi_image_to_grey(chi_image *image)
{
	const size_t pixels = (size_t) (image->height * image->width);
	uint8_t *to = image->pixels;
	const uint8_t *from = to;
	for (size_t i = 0; i < pixels; i++, from += CHI_IMAGE_CHANNELS)
		to[i] = (uint8_t) ((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >>
				16);
	image->channels = 1;
}
