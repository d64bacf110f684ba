// The datasets of a file.
#include "base/text.h"
#include "data/source/array/array.h"
#include "data/source/hdf5/hdf5.h"

#include <stdio.h>

enum { MAX_NAME = 256 };

bool chi_hdf5_dtype(const chi_hdf5 *h, hid_t type, choir_dtype *dtype)
{
	const size_t size = h->H5Tget_size(type);
	switch (h->H5Tget_class(type)) {
	case H5T_FLOAT:
		*dtype = size == 8 ? CHOIR_F64 : size == 4 ? CHOIR_F32 : CHOIR_F16;
		return size == 8 || size == 4 || (size == 2 && h->H5Tget_ebias(type) == 15);
	case H5T_INTEGER: {
		const bool is_signed = h->H5Tget_sign(type) == H5T_SGN_2;
		*dtype = size == 1 && !is_signed			   ? CHOIR_U8
				: size < 4 || (size == 4 && is_signed) ? CHOIR_I32
													   : CHOIR_I64;
		return size < 8 || (size == 8 && is_signed);
	}
	case H5T_ENUM: // as h5py writes bool
		*dtype = CHOIR_BOOL;
		return size == 1 && h->H5Tget_nmembers(type) == 2;
	default:
		return false;
	}
}

static const char *type_name(const chi_hdf5 *h, hid_t type, char text[32])
{
	const char *kind = "other";
	switch (h->H5Tget_class(type)) {
	case H5T_FLOAT:
		kind = "f";
		break;
	case H5T_INTEGER:
		kind = h->H5Tget_sign(type) == H5T_SGN_2 ? "i" : "u";
		break;
	case H5T_STRING:
		return "text";
	case H5T_COMPOUND:
		return "record";
	case H5T_ENUM:
		return "enum";
	default:
		return kind;
	}
	snprintf(text, 32, "%s%zu", kind, h->H5Tget_size(type));
	return text;
}

// A dataset with more axes than a tensor gets no shape.
static choir_status add_dataset(const chi_hdf5 *h, choir_array_list *l, hid_t id, const char *name)
{
	char text[32];
	hsize_t dim[H5S_MAX_RANK] = { 0 };
	int64_t shape[CHOIR_MAX_RANK];
	choir_dtype dtype;
	const hid_t space = h->H5Dget_space(id), type = h->H5Dget_type(id);
	int rank = space < 0 ? -1 : h->H5Sget_simple_extent_dims(space, dim, NULL);
	bool known =
			type >= 0 && rank >= 0 && rank <= CHOIR_MAX_RANK && chi_hdf5_dtype(h, type, &dtype);
	for (int i = 0; i < rank && i < CHOIR_MAX_RANK; i++) {
		known = known && dim[i] <= INT64_MAX;
		shape[i] = (int64_t) dim[i];
	}
	const choir_status status =
			chi_array_list_add(l, name, type < 0 ? "unknown" : type_name(h, type, text),
					known ? (int) dtype : (int) CHOIR_NONE,
					rank < 0 || rank > CHOIR_MAX_RANK ? 0 : rank, shape, 0);
	if (type >= 0)
		h->H5Tclose(type);
	if (space >= 0)
		h->H5Sclose(space);
	return status;
}

static choir_status add_member(
		const chi_hdf5 *h, choir_array_list *l, const char *path, hid_t root, hsize_t i)
{
	char name[MAX_NAME], clean[64];
	uint32_t value;
	const ssize_t length = h->H5Lget_name_by_idx(
			root, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, MAX_NAME, H5P_DEFAULT);
	if (length < 0)
		return choir_fail(CHOIR_CORRUPT, "%s: its root group cannot be read", path);
	if (length >= MAX_NAME)
		return CHOIR_OK;
	if (chi_hdf5_check_header(h, root, path, name, &value) != CHOIR_OK)
		return chi_error_prefix("%s: %s", path, chi_text_clean(name, clean, sizeof clean));
	const hid_t object = h->H5Oopen(root, name, H5P_DEFAULT);
	const H5I_type_t kind = object < 0 ? H5I_BADID : h->H5Iget_type(object);
	const choir_status status = kind == H5I_DATASET
			? add_dataset(h, l, object, name)
			: chi_array_list_add(l, name, kind == H5I_GROUP ? "group" : "other", (int) CHOIR_NONE,
					  0, NULL, 0);
	if (object >= 0)
		h->H5Oclose(object);
	return status;
}

static choir_status add_members(const chi_hdf5 *h, choir_array_list *l, const char *path)
{
	enum { READ_ONLY = 0 }; // H5F_ACC_RDONLY
	H5G_info_t info = { .nlinks = 0 };
	const hid_t file = h->H5Fopen(path, READ_ONLY, H5P_DEFAULT);
	const hid_t root = file < 0 ? -1 : h->H5Gopen2(file, "/", H5P_DEFAULT);
	choir_status status = root >= 0 && h->H5Gget_info(root, &info) >= 0
			? CHOIR_OK
			: choir_fail(CHOIR_CORRUPT, "%s: the HDF5 library cannot open it", path);
	for (hsize_t i = 0; status == CHOIR_OK && i < info.nlinks; i++)
		status = add_member(h, l, path, root, i);
	if (root >= 0)
		h->H5Gclose(root);
	if (file >= 0)
		h->H5Fclose(file);
	return status;
}

choir_status chi_array_list_hdf5(choir_array_list *l, const char *path)
{
	const chi_hdf5 *h = chi_hdf5_begin();
	CHOIR_TRY(chi_made(h));
	const choir_status status = add_members(h, l, path);
	chi_hdf5_end();
	return status;
}
