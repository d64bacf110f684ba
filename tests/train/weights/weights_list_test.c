// Looking at files of weights: what is told of each tensor, metadata, misuse, and allocations that
// fail.
#include "choir/weights.h"

#include "base/alloc.h"
#include "base/status.h"
#include "train/files.h"
#include "test.h"

#include <string.h>

static const char header[] = "{\"__metadata__\":{\"z\":\"last\",\"a\":\"first\"},"
							 "\"w\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[2,10]},"
							 "\"odd\":{\"dtype\":\"U16\",\"shape\":[1],\"data_offsets\":[0,2]}}";

static const char *given(void)
{
	static const char data[10] = { 0 };
	files_write_safetensors(files_path("w"), header, data, sizeof data);
	return files_path("w");
}

TEST(what_is_told)
{
	choir_weights_list *l = choir_weights_list_new(given());
	assert_non_null(l);
	assert_int_equal(choir_weights_list_entries(l), 2);
	const choir_weights_entry *odd = choir_weights_list_entry(l, 0);
	const choir_weights_entry *w = choir_weights_list_entry(l, 1);
	const uint64_t data = 8 + strlen(header);
	assert_string_equal(odd->name, "odd");
	assert_string_equal(odd->dtype, "U16");
	assert_int_equal(odd->known, CHOIR_NONE);
	assert_int_equal(odd->first, data);
	assert_int_equal(odd->bytes, 2);
	assert_string_equal(w->name, "w");
	assert_int_equal(w->known, CHOIR_F32);
	assert_int_equal(w->shape.rank, 2);
	assert_int_equal(w->shape.dim[0], 2);
	assert_int_equal(w->first, data + 2);
	assert_int_equal(w->bytes, 8);
	assert_null(choir_weights_list_entry(l, 2));
	assert_string_equal(choir_weights_list_key(l, 0), "a");
	assert_string_equal(choir_weights_list_value(l, 0), "first");
	assert_string_equal(choir_weights_list_key(l, 1), "z");
	assert_null(choir_weights_list_key(l, 2));
	assert_null(choir_weights_list_value(l, 2));
	choir_weights_list_free(l);
}

TEST(misuse)
{
	assert_null(choir_weights_list_new(NULL));
	assert_int_equal(choir_error_status(), CHOIR_INVALID);
	assert_null(choir_weights_list_new("/no/such/file"));
	assert_int_equal(choir_error_status(), CHOIR_NOT_FOUND);
	files_write(files_path("none"), "12345678{", 9);
	assert_null(choir_weights_list_new(files_path("none")));
	assert_int_equal(choir_error_status(), CHOIR_CORRUPT);
	assert_int_equal(choir_weights_list_entries(NULL), 0);
	assert_null(choir_weights_list_entry(NULL, 0));
	assert_null(choir_weights_list_key(NULL, 0));
	choir_weights_list_free(NULL);
}

TEST(no_memory)
{
	const char *path = given();
	uint64_t n = 1;
	for (bool done = false; !done; n++) {
		chi_alloc_fail(n, false);
		choir_weights_list *l = choir_weights_list_new(path);
		done = !chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(l != NULL, done);
		if (!done)
			assert_int_equal(choir_error_status(), CHOIR_NO_MEMORY);
		choir_weights_list_free(l);
	}
	assert_true(n > 5);
}

static int clean(void **state)
{
	(void) state;
	files_remove();
	return 0;
}

TEST_GROUP(NULL, clean)
