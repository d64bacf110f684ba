// Files of HDF5, through functions of the library that is loaded already.
#include "data/source/hdf5/hdf5_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef CHI_HAS_HDF5

#include "choir/status.h"

#include <dlfcn.h>
#include <string.h>

hdf5_writer hdf5_write;

const chi_hdf5 *hdf5_begin_writing(void)
{
	const chi_hdf5 *h = chi_hdf5_begin();
	if (!h)
		fail_msg("%s", choir_error());
	void *library = dlopen(CHI_HDF5_LIBRARY, RTLD_NOW);
	assert_non_null(library);
	void *found;
#define FIND(name) \
	found = dlsym(library, #name); \
	assert_non_null(found); \
	memcpy(&hdf5_write.name, &found, sizeof found);
	HDF5_WRITING(FIND)
#undef FIND
	return h;
}

void hdf5_add(const chi_hdf5 *h, hid_t file, const char *name, hid_t in_file, hid_t in_memory,
		int rank, const hsize_t dim[], hsize_t chunk, unsigned deflate, const void *data)
{
	const hid_t space = h->H5Screate_simple(rank, dim, NULL);
	const hid_t list = h->H5Pcreate(*hdf5_write.H5P_CLS_DATASET_CREATE_ID_g);
	hsize_t chunks[4] = { chunk };
	for (int i = 1; i < rank; i++)
		chunks[i] = (dim[i] + 1) / 2;
	if (chunk != 0)
		assert_true(hdf5_write.H5Pset_chunk(list, rank, chunks) >= 0);
	if (deflate != 0)
		assert_true(hdf5_write.H5Pset_deflate(list, deflate) >= 0);
	const hid_t set =
			hdf5_write.H5Dcreate2(file, name, in_file, space, H5P_DEFAULT, list, H5P_DEFAULT);
	assert_true(set >= 0);
	assert_true(hdf5_write.H5Dwrite(set, in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	h->H5Dclose(set);
	h->H5Pclose(list);
	h->H5Sclose(space);
}

hid_t hdf5_create(const char *path)
{
	enum { TRUNCATE = 2 }; // H5F_ACC_TRUNC without its check of versions
	const hid_t file = hdf5_write.H5Fcreate(path, TRUNCATE, H5P_DEFAULT, H5P_DEFAULT);
	assert_true(file >= 0);
	return file;
}

void hdf5_write_numbers(const char *path, const char *name, int64_t n, const int64_t numbers[])
{
	const chi_hdf5 *h = hdf5_begin_writing();
	const hid_t file = hdf5_create(path), i8 = *h->H5T_NATIVE_INT64_g;
	const hsize_t dim[] = { (hsize_t) n };
	hdf5_add(h, file, name, i8, i8, 1, dim, 5, 0, numbers);
	h->H5Fclose(file);
	chi_hdf5_end();
}

#else

void hdf5_write_numbers(const char *path, const char *name, int64_t n, const int64_t numbers[])
{
	(void) path;
	(void) name;
	(void) n;
	(void) numbers;
	fail_msg("this build has no HDF5");
}

#endif
