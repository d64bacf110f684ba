// HDF5 datasets of which some values, or all, were never written: they read as the fill value
// where a damaged header cannot look the same.
#include "data/elements.h"

#include "data/source/hdf5/hdf5_writer.h"
#include "data/source/scratch.h"
#include "test.h"

#ifdef CHI_HAS_HDF5

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	hsize_t chunk; // 0: in one piece
	hsize_t first, rows; // that are written, with 1, 2, ...
	bool fill; // with 7
	bool never; // no fill value is ever written or read
	bool grows, deflate;
	const char *found;
} dataset;

enum { ROWS = 5 };

static void add(const chi_hdf5 *h, hid_t file, const dataset *d)
{
	static const float numbers[ROWS] = { 1, 2, 3, 4, 5 };
	const hsize_t rows = ROWS, max = H5S_UNLIMITED;
	const hid_t f4 = *h->H5T_NATIVE_FLOAT_g;
	const hid_t space = h->H5Screate_simple(1, &rows, d->grows ? &max : NULL);
	const hid_t list = h->H5Pcreate(*hdf5_write.H5P_CLS_DATASET_CREATE_ID_g);
	if (d->chunk > 0)
		hdf5_write.H5Pset_chunk(list, 1, &d->chunk);
	if (d->deflate)
		hdf5_write.H5Pset_deflate(list, 1);
	if (d->fill)
		hdf5_write.H5Pset_fill_value(list, f4, &(const float){ 7 });
	if (d->never)
		hdf5_write.H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
	const hid_t set = hdf5_write.H5Dcreate2(file, "x", f4, space, H5P_DEFAULT, list, H5P_DEFAULT);
	assert_true(set >= 0);
	if (d->rows > 0) {
		const hid_t memory = h->H5Screate_simple(1, &d->rows, NULL);
		h->H5Sselect_hyperslab(space, H5S_SELECT_SET, &d->first, NULL, &d->rows, NULL);
		assert_true(hdf5_write.H5Dwrite(set, f4, memory, space, H5P_DEFAULT, numbers) >= 0);
		h->H5Sclose(memory);
	}
	h->H5Dclose(set);
	h->H5Pclose(list);
	h->H5Sclose(space);
}

static choir_dataset *written(const dataset *d)
{
	const char *path = scratch_path("unwritten.h5");
	const chi_hdf5 *h = hdf5_begin_writing();
	const hid_t file = hdf5_create(path);
	add(h, file, d);
	h->H5Fclose(file);
	chi_hdf5_end();
	return choir_hdf5_dataset_new(path, 1, (const char *const[]){ "x" });
}

TEST(values_never_written_are_the_fill_value)
{
	static const dataset datasets[] = {
		{ .chunk = 2, .found = "0\n0\n0\n0\n0\n" },
		{ .chunk = 2, .fill = true, .found = "7\n7\n7\n7\n7\n" },
		{ .chunk = 2, .never = true, .found = "0\n0\n0\n0\n0\n" },
		{ .chunk = 2, .deflate = true, .fill = true, .found = "7\n7\n7\n7\n7\n" },
		{ .chunk = 2, .first = 2, .rows = 1, .found = "0\n0\n1\n0\n0\n" },
		{ .chunk = 2, .first = 2, .rows = 3, .fill = true, .found = "7\n7\n1\n2\n3\n" },
		{ .chunk = 2, .first = 0, .rows = 4, .fill = true, .found = "1\n2\n3\n4\n7\n" },
		{ .chunk = 2, .first = 0, .rows = 4, .never = true, .found = "1\n2\n3\n4\n0\n" },
	};
	for (size_t i = 0; i < sizeof datasets / sizeof datasets[0]; i++)
		assert_pass(written(&datasets[i]), datasets[i].found);
}

// The header of such a file, damaged, may look the same.
TEST(what_damage_can_look_like_is_refused)
{
	assert_refused(written(&(dataset){ .chunk = 2, .rows = 2, .grows = true }), CHOIR_CORRUPT,
			"unwritten.h5:*x:*3 chunks*1");
	assert_refused(written(&(dataset){ .fill = true }), CHOIR_CORRUPT, "20 bytes");
	assert_refused(written(&(dataset){ .chunk = 2, .rows = 2, .deflate = true }), CHOIR_CORRUPT,
			"unwritten.h5:*x:*3 chunks*1");
}

TEST(what_h5py_leaves_unwritten_is_read)
{
	char command[1024];
	const char *path = scratch_path("py.h5");
	snprintf(command, sizeof command,
			"/usr/bin/python3 -c \"import h5py\n"
			"f = h5py.File('%s', 'w')\n"
			"a = f.create_dataset('a', (5, 3), 'f4', chunks=(2, 2))\n"
			"a[2, 2] = 1.5\n"
			"f.create_dataset('b', (5,), 'i4', chunks=(2,), fillvalue=-3)\n"
			"f.create_dataset('c', (5,), '>i8', chunks=(2,), fillvalue=9)\n"
			"f.close()\" 2>/dev/null",
			path);
	if (system(command) != 0) {
		print_message("there is no python3 with h5py\n");
		skip();
	}
	assert_pass(choir_hdf5_dataset_new(path, 0, NULL),
			"[0 0 0] -3 9\n[0 0 0] -3 9\n[0 0 1.5] -3 9\n[0 0 0] -3 9\n[0 0 0] -3 9\n");
}

TEST_GROUP(NULL, scratch_leave)

#else

int main(void)
{
	return 77;
}

#endif
