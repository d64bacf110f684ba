// Directories of images. The first dataset lists the files; all later ones take them from it.
#include "data/image_data.h"
#include "terminal_text.h"

#include <stdio.h>

static choir_dataset *open_images(const source *s)
{
	const choir_shape *wanted = &s->wanted; // rank 0: by --image-size
	return choir_image_directory_dataset_new(s->data.path,
			CHOIR_OPTIONS(choir_image_directory_options,
					.height = wanted->rank == 0 ? s->image_side : wanted->dim[0],
					.width = wanted->rank == 0 ? s->image_side : wanted->dim[1],
					.channels = wanted->rank == 2 ? 1
							: wanted->rank == 3	  ? (int) wanted->dim[2]
												  : 0,
					.bad_record = s->wrong, .classes = s->given_classes,
					.class_name = s->given_class, .schema = s->names));
}

static choir_status check_wanted(const source *s)
{
	const choir_shape *wanted = &s->wanted;
	if (wanted->rank == 0 || wanted->rank == 2 ||
			(wanted->rank == 3 && (wanted->dim[2] == 1 || wanted->dim[2] == 3)))
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"data \"%s\": the model's inputs are no images; needs other data", s->name);
}

choir_status image_open(source *s)
{
	CHOIR_TRY(check_wanted(s));
	s->names = open_images(s);
	if (s->names == NULL)
		return choir_error_status();
	const choir_column *image = choir_dataset_column(s->names, 0);
	s->images = s->mixed = s->standardized = true;
	s->shape = s->wanted.rank == 0 ? image->shape : s->wanted;
	s->moments = image->shape.dim[2];
	s->scale = 1 / 255.0;
	s->examples = choir_dataset_cardinality(s->names);
	s->labelled = choir_dataset_columns(s->names) == 2;
	s->classes = (int64_t) choir_dataset_categories(s->names, "label");
	s->skipped = choir_dataset_skipped(s->names);
	return s->examples > 0
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID, "%s: none of %lld images can be decoded; needs one",
					  s->data.path, (long long) s->skipped);
}

choir_dataset *image_examples(const source *s)
{
	return choir_dataset_to_float(open_images(s), "image", s->scale);
}

void image_print(const source *s)
{
	enum { MAX = 8 };
	char name[CLEAN_TEXT];
	for (int64_t i = 0; i < s->classes && i < MAX; i++)
		printf("%s%s", i == 0 ? "classes: " : ", ",
				clean_text(choir_dataset_category(s->names, "label", i), name));
	if (s->classes > 0)
		printf("%s\n", s->classes > MAX ? ", ..." : "");
}

const char *image_path(const source *s, int64_t example)
{
	const char *path = choir_image_directory_dataset_path(s->names, example);
	return path == NULL ? "" : path;
}
