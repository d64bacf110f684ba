// libpng's failures longjmp, so a frame between its calls owns nothing.
#include "data/source/image/image.h"

#ifdef CHI_HAS_PNG

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CHUNK = 8 << 20, REASON = 120 };

typedef struct {
	const chi_image_file *file;
	chi_image *to;
	size_t at;
	choir_status status; // CHOIR_OK: reason has it
	char reason[REASON];
	png_structp png;
	png_infop info;
} decoder;

static png_voidp take(png_structp png, png_alloc_size_t bytes)
{
	decoder *d = png_get_mem_ptr(png);
	void *memory = chi_alloc(bytes);
	if (memory == NULL)
		d->status = CHOIR_NO_MEMORY;
	return memory;
}

static void give(png_structp png, png_voidp memory)
{
	(void) png;
	chi_free(memory);
}

static void read_bytes(png_structp png, png_bytep to, size_t bytes)
{
	decoder *d = png_get_io_ptr(png);
	if (bytes > d->file->n - d->at)
		png_error(png, "the file ends too early");
	memcpy(to, d->file->bytes + d->at, bytes);
	d->at += bytes;
}

_Noreturn static void fail(png_structp png, png_const_charp text)
{
	decoder *d = png_get_error_ptr(png);
	snprintf(d->reason, sizeof d->reason, "%s", text);
	png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp text)
{
	(void) png;
	(void) text;
}

static void decode(decoder *d)
{
	png_structp png = d->png;
	png_set_read_fn(png, d, read_bytes);
	png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); // chi_image_reserve limits
	png_set_chunk_malloc_max(png, MAX_CHUNK);
	png_read_info(png, d->info);
	png_set_palette_to_rgb(png);
	png_set_expand_gray_1_2_4_to_8(png);
	png_set_strip_16(png);
	png_set_strip_alpha(png);
	png_set_gray_to_rgb(png);
	png_set_interlace_handling(png);
	const size_t height = png_get_image_height(png, d->info);
	const size_t width = png_get_image_width(png, d->info);
	d->status = chi_image_reserve(d->to, d->file, height, width);
	if (d->status == CHOIR_OK && !chi_scratch_reserve(&d->to->rows, height * sizeof(png_bytep)))
		d->status = CHOIR_NO_MEMORY;
	if (d->status != CHOIR_OK)
		return;
	png_read_update_info(png, d->info);
	const size_t row = png_get_rowbytes(png, d->info);
	if (row != width * CHI_IMAGE_CHANNELS)
		png_error(png, "its pixels cannot become RGB");
	png_bytep *rows = (void *) d->to->rows.memory;
	for (size_t i = 0; i < height; i++)
		rows[i] = d->to->pixels + i * row;
	png_read_image(png, rows);
}

choir_status chi_png_decode(const chi_image_file *file, chi_image *to)
{
	decoder d = { .file = file, .to = to };
	d.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &d, fail, ignore, &d, take, give);
	d.info = d.png == NULL ? NULL : png_create_info_struct(d.png);
	if (d.info == NULL) {
		png_destroy_read_struct(&d.png, NULL, NULL);
		return d.status != CHOIR_OK
				? d.status
				: choir_fail(CHOIR_UNSUPPORTED, "%s: libpng differs from the one of the build",
						  file->name);
	}
	if (setjmp(png_jmpbuf(d.png)) == 0)
		decode(&d);
	png_destroy_read_struct(&d.png, &d.info, NULL);
	if (d.status != CHOIR_OK)
		return d.status;
	return d.reason[0] == '\0'
			? CHOIR_OK
			: choir_fail(CHOIR_CORRUPT, "%s: PNG cannot be decoded: %s", file->name, d.reason);
}

#else

choir_status chi_png_decode(const chi_image_file *file, chi_image *to)
{
	(void) to;
	return choir_fail(CHOIR_UNSUPPORTED, "%s: is PNG; needs a build with libpng", file->name);
}

#endif
