// Directories of images: pixels as in Pillow, classes, bad files, and wrong use.
#include "base/instruction_set.h"
#include "choir/library.h"
#include "data/elements.h"
#include "data/source/image/resize_loops.h"
#include "data/source/image/samples.h"
#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_SCRATCH(name) TEST_WITHIN(name, scratch_enter, scratch_leave)

static void write_file(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void write_sample(const char *folder, int i)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%d-%s", folder, i, samples[i].name);
	write_file(path, samples[i].bytes, samples[i].n);
}

// set/a has four samples, set/b two.
static const char *make_set(void)
{
	assert_int_equal(mkdir("set", 0777), 0);
	assert_int_equal(mkdir("set/a", 0777), 0);
	assert_int_equal(mkdir("set/b", 0777), 0);
	for (int i = 0; i < 6; i++)
		write_sample(i < 4 ? "set/a" : "set/b", i == 3 ? 9 : i); // 3 has the pixels of 0
	return "set";
}

static bool has_both(void)
{
	return choir_has_feature("png") && choir_has_feature("jpeg");
}

static choir_dataset *open_as(const char *path, int64_t side, int channels, choir_bad_record bad)
{
	return choir_image_directory_dataset_new(path,
			CHOIR_OPTIONS(choir_image_directory_options, .height = side, .width = side,
					.channels = channels, .bad_record = bad));
}

static void assert_pixels(
		const uint8_t *found, const uint8_t *expected, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (found[i] != expected[i])
			fail_msg("%s: value %zu is %d; needs %d", name, i, found[i], expected[i]);
}

IN_SCRATCH(pixels_are_those_of_pillow)
{
	(void) state;
	if (!has_both())
		skip();
	assert_int_equal(mkdir("all", 0777), 0);
	for (int i = 0; i < SAMPLES; i++)
		write_sample("all", i);
	for (int channels = 1; channels <= 3; channels += 2) {
		const int64_t side = channels == 3 ? SMALL : LARGE;
		uint8_t image[LARGE * LARGE * 3];
		chi_element e = { .column = { image }, .capacity = 1 };
		choir_dataset *d = open_as("all", side, channels, CHOIR_BAD_RECORD_ERROR);
		assert_non_null(d);
		assert_int_equal(chi_dataset_spec(d)->n, 1); // no classes
		for (int k = 0; k < SAMPLES; k++) {
			assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
			const char *name = strchr(choir_image_directory_dataset_path(d, k), '-') + 1;
			int i = 0;
			while (strcmp(samples[i].name, name) != 0)
				i++;
			assert_pixels(image, channels == 3 ? samples[i].small : samples[i].large,
					(size_t) (side * side * channels), name);
		}
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
		choir_dataset_free(d);
	}
}

// An example does not depend on what was decoded before it.
IN_SCRATCH(examples_have_random_access)
{
	(void) state;
	if (!has_both())
		skip();
	uint8_t all[6][SMALL * SMALL * 3], one[SMALL * SMALL * 3];
	int32_t label[6], at;
	make_set();
	write_file("set/notes.txt", "x", 1); // neither this
	write_file("set/a/notes.txt", "x", 1);
	write_file("set/a/.hidden.png", "x", 1); // nor this is read
	choir_dataset *d = choir_dataset_batch(open_as("set", SMALL, 3, CHOIR_BAD_RECORD_ERROR), 6);
	chi_element e = { .column = { all, label }, .capacity = 6 };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_int_equal(e.examples, 6);
	assert_int_equal(choir_dataset_categories(d, "label"), 2);
	assert_string_equal(choir_dataset_category(d, "label", 1), "b");
	choir_dataset_free(d);
	d = choir_dataset_shuffle(open_as("set", SMALL, 3, CHOIR_BAD_RECORD_ERROR), CHOIR_ALL, 1);
	int seen = 0;
	chi_element o = { .column = { one, &at }, .capacity = 1 };
	while (chi_dataset_next(d, &o) == CHOIR_OK) {
		int i = 0;
		while (i < 6 && memcmp(all[i], one, sizeof one) != 0)
			i++;
		assert_in_range(i, 0, 5);
		assert_int_equal(at, label[i]);
		assert_int_equal(label[i], i >= 4);
		seen |= 1 << i;
	}
	assert_int_equal(seen, 0x3f);
	choir_dataset_free(d);
}

IN_SCRATCH(a_bad_image_is_named_or_left_out)
{
	(void) state;
	if (!has_both())
		skip();
	make_set();
	write_file("set/a/9-cut.png", rgb_png, sizeof rgb_png - 40);
	write_file("set/b/9-cut.jpeg", rgb_jpeg, sizeof rgb_jpeg * 3 / 4);
	write_file("set/b/9-text.jpeg", "not an image", 12);
	write_file("set/b/9-empty.png", "", 0);
	choir_dataset *d = open_as("set", SMALL, 3, CHOIR_BAD_RECORD_ERROR);
	chi_element e = { .capacity = 1 };
	uint8_t image[SMALL * SMALL * 3];
	e.column[0] = image;
	for (int i = 0; i < 4; i++)
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_next_fails(d, CHOIR_CORRUPT, "set/a/9-cut.png:*PNG*decoded");
	choir_dataset_free(d);
	d = open_as("set", SMALL, 3, CHOIR_BAD_RECORD_SKIP);
	assert_non_null(d);
	assert_int_equal(choir_dataset_cardinality(d), 6);
	for (int again = 0; again < 2; again++) {
		int32_t label[6];
		for (int i = 0; i < 6; i++) {
			e.column[1] = &label[i];
			assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
			assert_int_equal(label[i], i >= 4);
		}
		assert_int_equal(choir_dataset_skipped(d), 4);
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_END);
		assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	}
	choir_dataset_free(d);
}

IN_SCRATCH(classes_can_be_given)
{
	(void) state;
	if (!has_both())
		skip();
	static const char *const names[] = { "c", "b", "a" }, *const twice[] = { "a", "a" };
	choir_image_directory_options o = { .size = sizeof o, .classes = 3, .class_name = names };
	uint8_t image[224 * 224 * 3];
	int32_t label;
	chi_element e = { .column = { image, &label }, .capacity = 1 };
	make_set();
	choir_dataset *d = choir_image_directory_dataset_new("set", &o);
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_int_equal(label, 2);
	assert_int_equal(choir_dataset_categories(d, "label"), 3);
	choir_dataset_free(d);
	o.classes = 2;
	assert_refused(
			choir_image_directory_dataset_new("set", &o), CHOIR_INVALID, "set/a:*known: c, b");
	o.class_name = twice;
	assert_refused(choir_image_directory_dataset_new("set", &o), CHOIR_INVALID, "1*twice");
}

// What a schema lists stays, although a file is added later.
IN_SCRATCH(a_schema_saves_the_listing)
{
	(void) state;
	make_set();
	choir_dataset *schema = choir_image_directory_dataset_new("set", NULL);
	write_sample("set/b", 7);
	choir_image_directory_options o = { .size = sizeof o, .schema = schema };
	choir_dataset *d = choir_image_directory_dataset_new(NULL, &o);
	assert_int_equal(choir_dataset_cardinality(d), 6);
	assert_string_equal(choir_image_directory_dataset_path(d, 5), "set/b/5-laced.png");
	assert_string_equal(choir_dataset_category(d, "label", 0), "a");
	choir_dataset_free(d);
	choir_dataset_free(schema);
	o.schema = schema = choir_range_dataset_new("x", 0, 3, 1);
	assert_refused(choir_image_directory_dataset_new("set", &o), CHOIR_INVALID, "range*needs");
	choir_dataset_free(schema);
}

IN_SCRATCH(wrong_use_is_refused)
{
	(void) state;
	choir_image_directory_options o = { .size = sizeof o, .height = -1 };
	make_set();
	assert_refused(choir_image_directory_dataset_new(NULL, NULL), CHOIR_INVALID, "directory*NULL");
	assert_refused(choir_image_directory_dataset_new("nowhere", NULL), CHOIR_NOT_FOUND, "nowhere");
	assert_refused(choir_image_directory_dataset_new("set", &o), CHOIR_INVALID, "-1 x 224*16384");
	o.height = 0;
	o.channels = 2;
	assert_refused(
			choir_image_directory_dataset_new("set", &o), CHOIR_INVALID, "2 channels*1 or 3");
	assert_int_equal(mkdir("set/c", 0777), 0);
	assert_refused(choir_image_directory_dataset_new("set", NULL), CHOIR_INVALID, "set/c:*no PNG");
	assert_int_equal(mkdir("none", 0777), 0);
	assert_refused(choir_image_directory_dataset_new("none", NULL), CHOIR_INVALID, "none:*no PNG");
	assert_null(choir_image_directory_dataset_path(NULL, 0));
}

static choir_status read_set(void *user)
{
	(void) user;
	static uint8_t image[SMALL * SMALL * 3];
	int32_t label;
	return read_to_end(open_as("set", SMALL, 3, CHOIR_BAD_RECORD_SKIP),
			(chi_element){ .column = { image, &label }, .capacity = 1 });
}

IN_SCRATCH(every_allocation_may_fail)
{
	(void) state;
	if (!has_both())
		skip();
	make_set();
	write_sample("set/b", 6);
	assert_every_allocation(read_set, NULL);
}

// ---- Sizes are untrusted.

// A PNG file whose header claims this size.
static choir_status decode_claim(uint32_t width, uint32_t height, uint64_t max)
{
	static uint8_t claim[sizeof rgb_png];
	chi_image image = { 0 };
	memcpy(claim, rgb_png, sizeof claim);
	const uint32_t size[] = { width, height };
	for (int i = 0; i < 8; i++)
		claim[16 + i] = (uint8_t) (size[i / 4] >> (24 - i % 4 * 8));
	const uint8_t *header = claim + 12;
	uint32_t sum = ~0u; // CRC-32 of the chunk
	for (int i = 0; i < 17; i++) {
		sum ^= header[i];
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
	}
	for (int i = 0; i < 4; i++)
		claim[29 + i] = (uint8_t) (~sum >> (24 - i * 8));
	const chi_image_file file = {
		.bytes = claim, .n = sizeof claim, .name = "claim", .max_pixels = max
	};
	const choir_status status = chi_image_decode(&file, &image);
	chi_image_free(&image);
	return status;
}

TEST(sizes_in_files_are_untrusted)
{
	if (!choir_has_feature("png"))
		skip();
	assert_int_equal(decode_claim(9, 6, 0), CHOIR_OK); // the truth
	const uint64_t before = chi_alloc_bytes();
	assert_int_equal(decode_claim(40000, 3000, 0), CHOIR_CORRUPT);
	assert_failure(CHOIR_CORRUPT, "claim: 3000 x 40000 pixels in *bytes");
	assert_int_equal(decode_claim(0x7fffffff, 0x7fffffff, 0), CHOIR_UNSUPPORTED);
	assert_failure(CHOIR_UNSUPPORTED, "2147483647 x 2147483647*134217728");
	assert_int_equal(decode_claim(9, 6, 53), CHOIR_UNSUPPORTED);
	assert_failure(CHOIR_UNSUPPORTED, "6 x 9*53");
	assert_true(chi_alloc_bytes() - before < 1 << 20);
}

// Enlarging, shrinking and cutting of images of one colour keep the colour.
TEST(a_colour_stays)
{
	chi_resize_scratch scratch = { .first = { NULL, 0 } };
	uint8_t to[31 * 17 * 3];
	for (int64_t height = 1; height < 70; height += 13)
		for (int64_t width = 1; width < 3000; width = width * 3 + 1) {
			chi_image image = { .height = height, .width = width, .channels = 3 };
			image.pixels = malloc((size_t) (height * width) * 3);
			memset(image.pixels, 255, (size_t) (height * width) * 3);
			assert_int_equal(chi_image_cover(&image, 31, 17, &scratch, to), CHOIR_OK);
			for (size_t i = 0; i < sizeof to; i++)
				assert_int_equal(to[i], 255);
			free(image.pixels);
		}
	chi_resize_scratch_free(&scratch);
}

// The loops of all instruction sets give the pixels that grey images of one colour have.
TEST(colours_are_scaled_as_grey_images)
{
	enum { TALL = 37, WIDE = 53, SIZE = 16, PIXELS = TALL * WIDE };
	chi_resize_scratch scratch = { .first = { NULL, 0 } };
	uint8_t to[SIZE * SIZE * 3], grey[SIZE * SIZE], *rgb = malloc(PIXELS * 3);
	uint8_t *plane = malloc(PIXELS), base[WIDE * 3];
	for (uint32_t i = 0, x = 1; i < PIXELS * 3; i++)
		rgb[i] = (uint8_t) ((x = x * 1664525u + 1013904223u) >> 24);
	const chi_image image = { .height = TALL, .width = WIDE, .channels = 3, .pixels = rgb };
	assert_int_equal(chi_image_cover(&image, SIZE, SIZE, &scratch, to), CHOIR_OK);
	for (int c = 0; c < 3; c++) {
		for (int i = 0; i < PIXELS; i++)
			plane[i] = rgb[3 * i + c];
		const chi_image one = { .height = TALL, .width = WIDE, .channels = 1, .pixels = plane };
		assert_int_equal(chi_image_cover(&one, SIZE, SIZE, &scratch, grey), CHOIR_OK);
		for (int i = 0; i < SIZE * SIZE; i++)
			assert_int_equal(to[3 * i + c], grey[i]);
	}
	int64_t first[] = { 0, 5, 7, 2, 48, 5 };
	int32_t weight[] = { 1 << 20, 9, 1 << 21, 77, 1 << 19, 1 << 22, 3, 0, 0, 0, 1, 2, 3, 4,
		1 << 22 };
	const chi_resize_axis axis = { .outputs = 3, .taps = 5, .first = first, .weight = weight };
	chi_resize_baseline.rgb(&axis, rgb, base);
#ifdef CHI_HAS_X86_KERNELS
	if (chi_instruction_set_of_processor() >= CHI_INSTRUCTION_SET_AVX2) {
		uint8_t other[WIDE * 3];
		chi_resize_avx2.rgb(&axis, rgb, other);
		assert_memory_equal(base, other, 9);
		chi_resize_avx2.column(weight, 5, rgb, WIDE * 3, other);
		chi_resize_baseline.column(weight, 5, rgb, WIDE * 3, base);
		assert_memory_equal(base, other, WIDE * 3);
	}
#endif
	chi_resize_scratch_free(&scratch);
	free(plane);
	free(rgb);
}

static void decode_damaged(const char *path, const char *how)
{
	size_t n;
	unsigned char *bytes = scratch_read(path, &n);
	chi_image image = { 0 };
	const chi_image_file file = { .bytes = bytes, .n = n, .name = how, .max_pixels = 1 << 16 };
	const choir_status status = chi_image_decode(&file, &image);
	assert_true(status == CHOIR_OK || status == CHOIR_CORRUPT || status == CHOIR_UNSUPPORTED);
	if (strstr(how, "trunc") != NULL && n < 60)
		assert_int_not_equal(status, CHOIR_OK);
	chi_image_free(&image);
	free(bytes);
}

IN_SCRATCH(damage_is_no_danger)
{
	(void) state;
	if (!has_both())
		skip();
	damage("rgb.png", rgb_png, sizeof rgb_png, decode_damaged);
	damage("grey.jpeg", grey_jpeg, sizeof grey_jpeg, decode_damaged);
}
