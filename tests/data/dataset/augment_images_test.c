// Random crops and flips: where pixels go, and that the position alone decides.
#include "data/elements.h"
#include "test.h"

#include <string.h>

enum { EXAMPLES = 64, HEIGHT = 3, WIDTH = 4, PIXELS = HEIGHT * WIDTH };

// Pixel (y, x) of example i is 100 i + 10 y + x + 1, in i32 with one or two channels.
static choir_dataset *images(int channels)
{
	static int32_t pixel[EXAMPLES * PIXELS * 2];
	for (int i = 0; i < EXAMPLES * PIXELS; i++)
		for (int c = 0; c < channels; c++)
			pixel[i * channels + c] = (c ? -1 : 1) *
					(100 * (i / PIXELS) + 10 * (i / WIDTH % HEIGHT) + i % WIDTH + 1);
	const choir_column column = { .name = "image",
		.dtype = CHOIR_I32,
		.shape = channels == 1 ? CHOIR_SHAPE(HEIGHT, WIDTH) : CHOIR_SHAPE(HEIGHT, WIDTH, 2),
		.data = pixel };
	return choir_memory_dataset_new(EXAMPLES, 1, &column, true);
}

static choir_dataset *augmented(choir_dataset *d, int64_t padding, int64_t side, bool flip)
{
	return choir_dataset_augment_images(d, "image",
			CHOIR_OPTIONS(choir_augment_options, .padding = padding, .height = side, .width = side,
					.flip = flip, .seed = 5));
}

// Sets top, left and whether it is mirrored, from a crop that holds a pixel of the image.
static void place_of(
		const int32_t *crop, int rows, int columns, int example, int *top, int *left, bool *flip)
{
	for (int mirrored = 0; mirrored < 2; mirrored++)
		for (*top = -rows; *top < HEIGHT + rows; ++*top)
			for (*left = -columns; *left < WIDTH + columns; ++*left) {
				bool same = true, any = false;
				for (int y = 0; same && y < rows; y++)
					for (int x = 0; same && x < columns; x++) {
						const int at = *left + (mirrored ? columns - 1 - x : x), row = *top + y;
						const bool in = row >= 0 && row < HEIGHT && at >= 0 && at < WIDTH;
						same = crop[y * columns + x] ==
								(in ? 100 * example + 10 * row + at + 1 : 0);
						any = any || in;
					}
				*flip = mirrored;
				if (same && any)
					return;
			}
	fail_msg("example %d is no crop", example);
}

TEST(crops_and_flips_are_those_of_the_image)
{
	int32_t crop[PIXELS];
	unsigned tops = 0, lefts = 0;
	int flips = 0;
	choir_dataset *d = choir_dataset_augment_images(images(1), "image",
			CHOIR_OPTIONS(choir_augment_options, .padding = 1, .flip = true, .seed = 1));
	chi_element e = { .column = { crop }, .capacity = 1 };
	for (int i = 0; i < EXAMPLES; i++) {
		int top, left;
		bool flip;
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		place_of(crop, HEIGHT, WIDTH, i, &top, &left, &flip);
		assert_in_range(top + 1, 0, 2);
		assert_in_range(left + 1, 0, 2);
		tops |= 1u << (top + 1);
		lefts |= 1u << (left + 1);
		flips += flip;
	}
	assert_int_equal(tops, 7); // every place occurs
	assert_int_equal(lefts, 7);
	assert_in_range(flips, EXAMPLES / 4, EXAMPLES * 3 / 4);
	choir_dataset_free(d);
}

TEST(channels_stay_together)
{
	int32_t crop[2 * 2 * 2];
	choir_dataset *d = augmented(images(2), 0, 2, true);
	assert_int_equal(choir_dataset_column(d, 0)->shape.dim[1], 2);
	chi_element e = { .column = { crop }, .capacity = 1 };
	for (int i = 0; i < EXAMPLES; i++) {
		int top, left;
		bool flip;
		assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
		int32_t first[4];
		for (int k = 0; k < 4; k++) {
			first[k] = crop[2 * k];
			assert_int_equal(crop[2 * k], -crop[2 * k + 1]);
		}
		place_of(first, 2, 2, i, &top, &left, &flip);
	}
	choir_dataset_free(d);
}

// By batches, by single reads, after a seek and with examples skipped; another pass differs.
TEST(the_position_decides)
{
	static int32_t all[EXAMPLES][PIXELS], next[EXAMPLES][PIXELS];
	int32_t one[PIXELS];
	choir_dataset *d = choir_dataset_batch(augmented(images(1), 2, 3, true), EXAMPLES);
	chi_element e = { .column = { all }, .capacity = EXAMPLES };
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_int_equal(chi_dataset_rewind(d), CHOIR_OK);
	e.column[0] = next;
	assert_int_equal(chi_dataset_next(d, &e), CHOIR_OK);
	assert_memory_not_equal(all, next, sizeof all);
	choir_dataset_free(d);
	d = augmented(images(1), 2, 3, true);
	chi_element o = { .column = { one }, .capacity = 1 };
	const int32_t *first = all[0], *second = next[0]; // packed: 9 pixels each
	const size_t bytes = 9 * sizeof one[0];
	assert_int_equal(chi_dataset_seek(d, 0, 10), CHOIR_OK);
	for (int i = 10; i < 20; i++) {
		o.column[0] = i % 2 ? NULL : one;
		assert_int_equal(chi_dataset_next(d, &o), CHOIR_OK);
		if (i % 2 == 0)
			assert_memory_equal(one, first + 9 * i, bytes);
	}
	assert_int_equal(chi_dataset_seek(d, 1, 7), CHOIR_OK);
	o.column[0] = one;
	assert_int_equal(chi_dataset_next(d, &o), CHOIR_OK);
	assert_memory_equal(one, second + 9 * 7, bytes);
	choir_dataset_free(d);
}

TEST(wrong_use_is_refused)
{
	assert_refused(augmented(images(1), 0, 4, false), CHOIR_INVALID, "4 x 4*0*3 x 4");
	assert_refused(augmented(images(1), -1, 2, false), CHOIR_INVALID, "padding of -1");
	assert_refused(augmented(images(1), INT64_MAX, 2, false), CHOIR_INVALID,
			"padding of 9223372036854775807");
	assert_refused(augmented(choir_dataset_batch(images(1), 2), 0, 2, false), CHOIR_INVALID,
			"augment_images:*batches");
	assert_refused(augmented(choir_dataset_flatten(images(1), "image"), 0, 2, false),
			CHOIR_INVALID, "another shape");
	assert_refused(choir_dataset_augment_images(images(1), "picture", NULL), CHOIR_NOT_FOUND,
			"picture*image");
	assert_null(choir_dataset_augment_images(NULL, "image", NULL));
}

static choir_status read_all(void *user)
{
	(void) user;
	int32_t one[PIXELS];
	return read_to_end(
			augmented(images(1), 1, 3, true), (chi_element){ .column = { one }, .capacity = 1 });
}

TEST(every_allocation_may_fail)
{
	assert_every_allocation(read_all, NULL);
}
