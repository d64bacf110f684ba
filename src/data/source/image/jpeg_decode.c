// Accurate DCT and smooth upsampling, as in Pillow. libjpeg's failures must not return, so a frame
// between its calls owns nothing. Its warnings are failures: a model must not learn from grey
// areas.
#include "data/source/image/image.h"

#ifdef CHI_HAS_JPEG

#include <setjmp.h>
#include <stdio.h> // before jpeglib.h

#include <jpeglib.h>

#include <jerror.h>

enum { CMYK = 4 };

typedef struct {
	struct jpeg_decompress_struct info;
	struct jpeg_error_mgr errors;
	struct jpeg_source_mgr source;
	jmp_buf failed;
	char reason[JMSG_LENGTH_MAX];
} decoder;

_Noreturn static void fail(j_common_ptr info)
{
	decoder *d = info->client_data;
	d->errors.format_message(info, d->reason);
	longjmp(d->failed, 1);
}

// Level -1; others are traces.
static void warn(j_common_ptr info, int level)
{
	const int code = info->err->msg_code;
	if (level == -1 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM &&
			code != JWRN_JFIF_MAJOR)
		fail(info);
}

static void begin(j_decompress_ptr info)
{
	(void) info;
}

static boolean fill(j_decompress_ptr info)
{
	ERREXIT(info, JERR_INPUT_EOF);
	return FALSE;
}

static void skip(j_decompress_ptr info, long bytes)
{
	struct jpeg_source_mgr *s = info->src;
	if (bytes <= 0)
		return;
	if ((size_t) bytes > s->bytes_in_buffer)
		ERREXIT(info, JERR_INPUT_EOF);
	s->next_input_byte += bytes;
	s->bytes_in_buffer -= (size_t) bytes;
}

// a * b / 255, rounded.
static unsigned scale(unsigned a, unsigned b)
{
	const unsigned x = a * b + 128;
	return ((x >> 8) + x) >> 8;
}

// Adobe's programs write inverted ink.
static void from_cmyk(uint8_t *to, const uint8_t *from, size_t pixels, bool inverted)
{
	for (size_t i = 0; i < pixels; i++, from += CMYK)
		for (int c = 0; c < CHI_IMAGE_CHANNELS; c++) {
			const unsigned paper = inverted ? from[3] : 255u - from[3];
			const unsigned ink = inverted ? 255u - from[c] : from[c];
			*to++ = (uint8_t) (paper - scale(ink, paper));
		}
}

static choir_status read_header(decoder *d, const chi_image_file *file, chi_image *to)
{
	struct jpeg_decompress_struct *info = &d->info;
	jpeg_read_header(info, TRUE);
	const bool inks = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
	info->out_color_space = inks ? JCS_CMYK : JCS_RGB;
	CHOIR_TRY(chi_image_reserve(to, file, info->image_height, info->image_width));
	return !inks || chi_scratch_reserve(&to->rows, (size_t) info->image_width * CMYK)
			? CHOIR_OK
			: CHOIR_NO_MEMORY;
}

static choir_status decode(decoder *d, const chi_image_file *file, chi_image *to)
{
	struct jpeg_decompress_struct *info = &d->info;
	CHOIR_TRY(read_header(d, file, to));
	jpeg_start_decompress(info);
	const size_t width = info->output_width;
	while (info->output_scanline < info->output_height) {
		uint8_t *row = to->pixels + (size_t) info->output_scanline * width * CHI_IMAGE_CHANNELS;
		JSAMPROW into = info->out_color_space == JCS_CMYK ? (uint8_t *) to->rows.memory : row;
		jpeg_read_scanlines(info, &into, 1);
		if (into != row)
			from_cmyk(row, into, width, info->saw_Adobe_marker);
	}
	return CHOIR_OK;
}

static choir_status fail_with_reason(const decoder *d, const chi_image_file *file)
{
	if (d->errors.msg_code == JERR_OUT_OF_MEMORY)
		return choir_fail(CHOIR_NO_MEMORY, "%s: libjpeg is out of memory", file->name);
	return choir_fail(CHOIR_CORRUPT, "%s: JPEG cannot be decoded: %s", file->name, d->reason);
}

choir_status chi_jpeg_decode(const chi_image_file *file, chi_image *to)
{
	decoder d = { .source = { .next_input_byte = file->bytes,
						  .bytes_in_buffer = file->n,
						  .init_source = begin,
						  .fill_input_buffer = fill,
						  .skip_input_data = skip,
						  .resync_to_restart = jpeg_resync_to_restart,
						  .term_source = begin } };
	choir_status status;
	d.info.err = jpeg_std_error(&d.errors);
	d.info.client_data = &d;
	d.errors.error_exit = fail;
	d.errors.emit_message = warn;
	if (setjmp(d.failed) == 0) {
		jpeg_create_decompress(&d.info);
		d.info.src = &d.source;
		status = decode(&d, file, to);
	} else {
		status = fail_with_reason(&d, file);
	}
	jpeg_destroy_decompress(&d.info);
	return status;
}

#else

choir_status chi_jpeg_decode(const chi_image_file *file, chi_image *to)
{
	(void) to;
	return choir_fail(CHOIR_UNSUPPORTED, "%s: is JPEG; needs a build with libjpeg", file->name);
}

#endif
