// What each transform makes of numbers: numbers again, in whatever order and of whatever count.
#include "data/kinds.h"

#include "data/data.h"

static const choir_column number_column = { .name = "number", .dtype = CHOIR_I64 };
enum { N = KIND_EXAMPLES };

// Another source, which is a stream.
static choir_dataset *count(void)
{
	return source_kinds[1].make();
}

static choir_status round_numbers(const choir_component in[], choir_component out[], void *user)
{
	const int64_t n = choir_shape_elements(&out[0].shape);
	(void) user;
	for (int64_t i = 0; i < n; i++)
		((int64_t *) out[0].data)[i] = in[0].dtype == CHOIR_I64
				? ((const int64_t *) in[0].data)[i]
				: (int64_t) ((const float *) in[0].data)[i];
	return CHOIR_OK;
}

// One column "number" again, of whatever d's first one became.
static choir_dataset *as_numbers(choir_dataset *d)
{
	return choir_dataset_map(d,
			CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &number_column), round_numbers,
			NULL);
}

static choir_dataset *plain(choir_dataset *d)
{
	return d;
}

static choir_dataset *taken(choir_dataset *d)
{
	return choir_dataset_take(d, 17);
}

static choir_dataset *skipped(choir_dataset *d)
{
	return choir_dataset_skip(d, 2);
}

static choir_dataset *sharded(choir_dataset *d)
{
	return choir_dataset_shard(d, 2, 1);
}

static choir_dataset *shuffled(choir_dataset *d)
{
	return choir_dataset_shuffle(d, 6, 9);
}

static choir_dataset *shuffled_once(choir_dataset *d)
{
	return choir_dataset_shuffle_once(d, CHOIR_ALL, 4);
}

static choir_dataset *repeated(choir_dataset *d)
{
	return choir_dataset_repeat(d, 2);
}

static choir_dataset *ahead(choir_dataset *d)
{
	return choir_dataset_prefetch(d, 3);
}

static choir_dataset *batched(choir_dataset *d)
{
	return choir_dataset_batch(d, 4);
}

static choir_dataset *batched_whole(choir_dataset *d)
{
	return choir_dataset_batch_drop_remainder(d, 3);
}

static choir_dataset *padded(choir_dataset *d)
{
	return choir_dataset_padded_batch(d, 5, NULL);
}

static choir_dataset *unbatched(choir_dataset *d)
{
	if (choir_dataset_batch_size(d) == 0)
		d = choir_dataset_batch(d, 5);
	return choir_dataset_unbatch(d);
}

static choir_dataset *windows(choir_dataset *d)
{
	return as_numbers(choir_dataset_window(d,
			CHOIR_OPTIONS(choir_window_options, .length = 2, .shift = 1, .drop_remainder = true)));
}

static choir_dataset *zipped(choir_dataset *d)
{
	static const int64_t zeros[N];
	const choir_column c = { .name = "other", .dtype = CHOIR_I64, .data = zeros };
	choir_dataset *other = choir_memory_dataset_new(N, 1, &c, false);
	if (choir_dataset_batch_size(d) > 0)
		other = choir_dataset_batch(other, choir_dataset_batch_size(d));
	return as_numbers(choir_dataset_zip(d, other));
}

static choir_dataset *concatenated(choir_dataset *d)
{
	choir_dataset *more = choir_dataset_take(count(), 6);
	if (choir_dataset_batch_size(d) > 0)
		more = choir_dataset_batch(more, choir_dataset_batch_size(d));
	return choir_dataset_concatenate(d, more);
}

static choir_dataset *cached(choir_dataset *d)
{
	return choir_dataset_cache(d, NULL);
}

static choir_dataset *as_float(choir_dataset *d)
{
	return as_numbers(choir_dataset_to_float(d, "number", 1));
}

static choir_dataset *flattened(choir_dataset *d)
{
	return as_numbers(choir_dataset_flatten(d, "number"));
}

static choir_dataset *standardized(choir_dataset *d)
{
	static const float mean = -1, deviation = 0.5f;
	d = choir_dataset_flatten(choir_dataset_to_float(d, "number", 1), "number");
	return as_numbers(choir_dataset_standardize(d, "number", 1, &mean, &deviation));
}

static choir_dataset *filled(choir_dataset *d)
{
	const float zero = 0;
	d = choir_dataset_to_float(d, "number", 1);
	return as_numbers(choir_dataset_fill_nan(d, "number", 1, &zero));
}

static choir_status negate(const choir_component in[], choir_component out[], void *user)
{
	(void) user;
	for (int64_t i = 0; i < choir_shape_elements(&in[0].shape); i++)
		((int64_t *) out[0].data)[i] = -1 - ((const int64_t *) in[0].data)[i];
	return CHOIR_OK;
}

static choir_dataset *mapped(choir_dataset *d)
{
	return choir_dataset_map(d, CHOIR_OPTIONS(choir_map_options, .threads = 2), negate, NULL);
}

// An image of four numbers of which each is another one.
static choir_status to_image(const choir_component in[], choir_component out[], void *user)
{
	(void) user;
	for (int64_t i = 0; i < 4; i++)
		((int64_t *) out[0].data)[i] = 4 * *(const int64_t *) in[0].data + i;
	return CHOIR_OK;
}

static choir_status from_image(const choir_component in[], choir_component out[], void *user)
{
	const int64_t *pixel = in[0].data;
	(void) user;
	*(int64_t *) out[0].data = pixel[0] + 3 * pixel[1] + 5 * pixel[2] + 7 * pixel[3];
	return CHOIR_OK;
}

static choir_dataset *augmented(choir_dataset *d)
{
	static const choir_column image = {
		.name = "image", .dtype = CHOIR_I64, .shape = { 2, { 2, 2 } }
	};
	d = choir_dataset_map(
			d, CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &image), to_image, NULL);
	d = choir_dataset_augment_images(d, "image",
			CHOIR_OPTIONS(choir_augment_options, .padding = 1, .flip = true, .seed = 5));
	return choir_dataset_map(d,
			CHOIR_OPTIONS(choir_map_options, .n = 1, .columns = &number_column), from_image, NULL);
}

static bool mostly(const choir_component in[], void *user)
{
	(void) user;
	return ((const int64_t *) in[0].data)[0] % 3 != 1;
}

static choir_dataset *filtered(choir_dataset *d)
{
	return choir_dataset_filter(d, mostly, NULL);
}

static choir_dataset *count_to(const choir_component in[], void *user)
{
	const int64_t n = ((const int64_t *) in[0].data)[0];
	(void) user;
	return choir_dataset_take(count(), (n < 0 ? -n : n) % 4);
}

static choir_dataset *interleaved(choir_dataset *d)
{
	return choir_dataset_interleave(d,
			CHOIR_OPTIONS(choir_interleave_options, .cycle_length = 3, .block_length = 2),
			count_to, NULL);
}

static choir_dataset *flat(choir_dataset *d)
{
	return choir_dataset_flat_map(
			d, CHOIR_OPTIONS(choir_interleave_options, .cycle_length = 1), count_to, NULL);
}

const transform_kind transform_kinds[] = {
	{ .constructor = NULL, .make = plain },
	{ .constructor = "choir_dataset_take", .make = taken },
	{ .constructor = "choir_dataset_skip", .make = skipped },
	{ .constructor = "choir_dataset_shard", .make = sharded },
	{ .constructor = "choir_dataset_shuffle", .make = shuffled },
	{ .constructor = "choir_dataset_shuffle_once", .make = shuffled_once },
	{ .constructor = "choir_dataset_repeat", .make = repeated },
	{ .constructor = "choir_dataset_prefetch", .make = ahead },
	{ .constructor = "choir_dataset_batch", .make = batched, .single = true, .batches = true },
	{ .constructor = "choir_dataset_batch_drop_remainder",
			.make = batched_whole,
			.single = true,
			.batches = true },
	{ .constructor = "choir_dataset_padded_batch",
			.make = padded,
			.single = true,
			.batches = true },
	{ .constructor = "choir_dataset_unbatch", .make = unbatched },
	{ .constructor = "choir_dataset_window", .make = windows, .single = true },
	{ .constructor = "choir_dataset_zip", .make = zipped, .whole = true },
	{ .constructor = "choir_dataset_concatenate", .make = concatenated },
	{ .constructor = "choir_dataset_cache", .make = cached },
	{ .constructor = "choir_dataset_to_float", .make = as_float },
	{ .constructor = "choir_dataset_flatten", .make = flattened },
	{ .constructor = "choir_dataset_standardize", .make = standardized },
	{ .constructor = "choir_dataset_fill_nan", .make = filled },
	{ .constructor = "choir_dataset_augment_images", .make = augmented, .single = true },
	{ .constructor = "choir_dataset_map", .make = mapped },
	{ .constructor = "choir_dataset_filter", .make = filtered },
	{ .constructor = "choir_dataset_interleave", .make = interleaved, .single = true },
	{ .constructor = "choir_dataset_flat_map", .make = flat, .single = true },
};
const size_t transform_kind_count = sizeof transform_kinds / sizeof transform_kinds[0];
