// PNG and JPEG images, and their resizing. A size in a file is checked before memory is reserved.
// Threads: any, each with its own scratch memory.
#pragma once

#include "base/alloc.h"
#include "choir/status.h"

enum { CHI_IMAGE_CHANNELS = 3, CHI_IMAGE_MAX_PIXELS = 1 << 27 };

// 8 bits, without padding; reused.
typedef struct {
	int64_t height, width, channels;
	uint8_t *pixels;
	chi_scratch scratch, rows; // rows: for libpng
} chi_image;
void chi_image_free(chi_image *image);

typedef struct {
	const uint8_t *bytes;
	size_t n;
	const char *name;
	uint64_t max_pixels; // 0: CHI_IMAGE_MAX_PIXELS
} chi_image_file;

// RGB: grey becomes three channels, transparency is dropped, 16 bits become their high 8.
// CHOIR_CORRUPT: neither PNG nor JPEG, damaged, truncated, or larger than the file can hold.
// CHOIR_UNSUPPORTED: more than max_pixels, or no library.
choir_status chi_image_decode(const chi_image_file *file, chi_image *to);
choir_status chi_png_decode(const chi_image_file *file, chi_image *to);
choir_status chi_jpeg_decode(const chi_image_file *file, chi_image *to);
// RGB, after checking the size.
choir_status chi_image_reserve(
		chi_image *image, const chi_image_file *file, uint64_t height, uint64_t width);
// In place: ITU-R BT.601 luma, rounded as in Pillow.
void chi_image_to_grey(chi_image *image);

typedef struct {
	chi_scratch first, weight, rows;
} chi_resize_scratch;
void chi_resize_scratch_free(chi_resize_scratch *s);
// Covers height x width; writes the middle.
choir_status chi_image_cover(const chi_image *from, int64_t height, int64_t width,
		chi_resize_scratch *scratch, uint8_t *to);
