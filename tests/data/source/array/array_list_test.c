// The list of arrays in HDF5 files: every kind of member, and damage. Those of npz and npy files
// are tested with the command.
#include "data/elements.h"

#include "data/source/hdf5/hdf5_writer.h"
#include "data/source/scratch.h"
#include "test.h"

#ifdef CHI_HAS_HDF5

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *write_members(const char *name)
{
	static const float pairs[3][2] = { { 1, 2 }, { 3, 4 }, { 5, 6 } };
	static const int64_t wide[2] = { 7, 8 };
	static const hsize_t three_pairs[2] = { 3, 2 }, two[1] = { 2 };
	const char *path = scratch_path(name);
	const chi_hdf5 *h = hdf5_begin_writing();
	const hid_t file = hdf5_create(path), f4 = *h->H5T_NATIVE_FLOAT_g;
	const hid_t i8 = *h->H5T_NATIVE_INT64_g;
	hdf5_add(h, file, "x", f4, f4, 2, three_pairs, 2, 1, pairs);
	hdf5_add(h, file, "y", i8, i8, 1, two, 0, 0, wide);
	hdf5_add(h, file, "scalar", i8, i8, 0, NULL, 0, 0, wide);
	hdf5_add(h, file, "u8", *hdf5_write.H5T_STD_U64LE_g, i8, 1, two, 0, 0, wide);
	h->H5Gclose(hdf5_write.H5Gcreate2(file, "train", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	h->H5Fclose(file);
	chi_hdf5_end();
	return path;
}

// name type dtype shape, one a line
static const char *in_words(const char *path)
{
	static char text[2000];
	size_t n = 0;
	choir_array_list *l = choir_array_list_new(path);
	if (l == NULL) {
		snprintf(text, sizeof text, "! %s", choir_error());
		return text;
	}
	text[0] = '\0';
	for (size_t i = 0; i < choir_array_list_entries(l); i++) {
		const choir_array_entry *e = choir_array_list_entry(l, i);
		n += (size_t) snprintf(text + n, sizeof text - n, "%s %s %s", e->name, e->type,
				e->known == CHOIR_UNKNOWN_CARDINALITY ? "-"
													  : choir_dtype_name((choir_dtype) e->known));
		for (int k = 0; k < e->shape.rank; k++)
			n += (size_t) snprintf(
					text + n, sizeof text - n, " %lld", (long long) e->shape.dim[k]);
		n += (size_t) snprintf(text + n, sizeof text - n, "\n");
	}
	assert_null(choir_array_list_entry(l, choir_array_list_entries(l)));
	choir_array_list_free(l);
	return text;
}

static const char all_members[] =
		"scalar i8 i64\ntrain group -\nu8 u8 - 2\nx f4 f32 3 2\ny i8 i64 2\n";

TEST(members_of_every_kind_are_listed)
{
	assert_string_equal(in_words(write_members("members.h5")), all_members);
	const char *empty = scratch_path("empty.h5");
	const chi_hdf5 *h = hdf5_begin_writing();
	h->H5Fclose(hdf5_create(empty));
	chi_hdf5_end();
	assert_string_equal(in_words(empty), "");
}

TEST(what_h5py_writes_is_listed)
{
	char command[1024];
	const char *path = scratch_path("py.h5");
	snprintf(command, sizeof command,
			"/usr/bin/python3 -c \"import h5py, numpy as n\n"
			"f = h5py.File('%s', 'w')\n"
			"f['half'] = n.zeros((2, 3), 'f2')\n"
			"f['is'] = n.array([True, False])\n"
			"f['nothing'] = h5py.Empty('f4')\n"
			"f['pair'] = n.zeros(3, [('a', 'f4'), ('b', 'i4')])\n"
			"f['title'] = 'a text'\n"
			"f['type'] = n.dtype('f8')\n"
			"f['words'] = n.array([b'a', b'b'])\n"
			"f.close()\" 2>/dev/null",
			path);
	if (system(command) != 0) {
		print_message("there is no python3 with h5py\n");
		skip();
	}
	assert_string_equal(in_words(path),
			"half f2 f16 2 3\nis enum bool 2\nnothing f4 f32\npair record - 3\n"
			"title text -\ntype other -\nwords text - 2\n");
}

TEST(a_file_that_is_cut_short_is_refused)
{
	struct stat about;
	const char *path = write_members("cut.h5");
	assert_int_equal(stat(path, &about), 0);
	for (off_t length = about.st_size - 1; length > 8; length -= 97) {
		assert_int_equal(truncate(path, length), 0);
		assert_null(choir_array_list_new(path));
		assert_failure(CHOIR_CORRUPT, "cut.h5: ");
	}
}

// The library divides by the size of chunks.
TEST(damage_is_named)
{
	static const unsigned char chunks[] = { 2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0 };
	static unsigned char bytes[1 << 16];
	FILE *f = fopen(write_members("whole.h5"), "rb");
	assert_non_null(f);
	const size_t n = fread(bytes, 1, sizeof bytes, f);
	assert_int_equal(fclose(f), 0);
	unsigned char *place = memmem(bytes, n, chunks, sizeof chunks);
	assert_non_null(place);
	place[0] = 0;
	assert_null(choir_array_list_new(scratch_write("damaged.h5", bytes, n)));
	assert_failure(CHOIR_CORRUPT, "damaged.h5: x:");
}

TEST(without_memory_there_is_no_list)
{
	const char *path = write_members("memory.h5");
	for (uint64_t n = 1;; n++) {
		chi_alloc_fail(n, false);
		choir_array_list *l = choir_array_list_new(path);
		const bool failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		choir_array_list_free(l);
		if (!failed)
			break;
		if (l == NULL)
			assert_failure(CHOIR_NO_MEMORY, "bytes");
	}
}

TEST_GROUP(NULL, scratch_leave)

#else

TEST(without_the_library_it_is_said)
{
	assert_null(choir_array_list_new(scratch_write("x.h5", "\x89HDF\r\n\x1a\n", 8)));
	assert_failure(CHOIR_UNSUPPORTED, "HDF5");
}

TEST_GROUP(NULL, scratch_leave)

#endif
