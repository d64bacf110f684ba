// The first bytes show the format.
#include "data/source/array/array.h"
#include "data/source/hdf5/hdf5.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "tensor/tensor.h"

struct choir_array_list {
	size_t n, capacity;
	choir_array_entry *entry;
};

choir_status chi_array_list_add(choir_array_list *l, const char *name, const char *type, int known,
		int rank, const int64_t dim[], int64_t held)
{
	if (!chi_grow(&l->entry, &l->capacity, l->n + 1, sizeof *l->entry))
		return CHOIR_NO_MEMORY;
	choir_array_entry *e = &l->entry[l->n++];
	*e = (choir_array_entry){ .known = known, .held = held };
	e->shape.rank = rank;
	if (rank > 0)
		memcpy(e->shape.dim, dim, (size_t) rank * sizeof dim[0]);
	e->name = chi_strdup(name);
	e->type = chi_strdup(type);
	return e->name && e->type ? CHOIR_OK : CHOIR_NO_MEMORY;
}

static int64_t held_bytes(const chi_array_file *p)
{
	int64_t bytes = (int64_t) chi_dtype_size(p->dtype);
	for (int i = 0; i < p->rank; i++)
		if (!chi_int64_multiply(bytes, p->dim[i], &bytes))
			return INT64_MAX;
	return p->fortran && p->rank > 1 ? bytes : 0;
}

choir_status chi_array_list_add_npy(choir_array_list *l, const char *name, chi_reader *r)
{
	char type[CHI_NPY_TYPE];
	chi_array_file p = { .reader = r };
	bool known = false;
	const choir_status status = chi_npy_infer(&p, type, &known);
	if (status == CHOIR_UNSUPPORTED)
		return chi_array_list_add(l, name, "unknown", (int) CHOIR_NONE, 0, NULL, 0);
	CHOIR_TRY(status);
	return chi_array_list_add(l, name, type, known ? (int) p.dtype : (int) CHOIR_NONE, p.rank,
			p.dim, known ? held_bytes(&p) : 0);
}

#ifndef CHI_HAS_HDF5
choir_status chi_array_list_hdf5(choir_array_list *l, const char *path)
{
	(void) l;
	return choir_fail(CHOIR_UNSUPPORTED,
			"array list: this build of Choir (without HDF5) cannot read %s", path);
}
#endif

static choir_status list_file(choir_array_list *l, const char *path)
{
	static const char hdf5[] = "\x89HDF\r\n\x1a\n", zip[] = "PK";
	char begin[sizeof hdf5 - 1] = "";
	size_t got;
	chi_reader *r = chi_reader_open(path);
	CHOIR_TRY(chi_made(r));
	choir_status status = chi_reader_read(r, begin, sizeof begin, &got);
	if (status == CHOIR_OK && memcmp(begin, hdf5, sizeof begin) == 0)
		status = chi_array_list_hdf5(l, path);
	else if (status == CHOIR_OK && memcmp(begin, zip, sizeof zip - 1) == 0)
		status = chi_array_list_npz(l, path);
	else if (status == CHOIR_OK && (status = chi_reader_rewind(r)) == CHOIR_OK)
		status = chi_array_list_add_npy(l, "", r);
	chi_reader_close(r);
	return status;
}

choir_array_list *choir_array_list_new(const char *path)
{
	if (!path)
		return chi_fail_null(CHOIR_INVALID, "array list: the path is NULL");
	choir_array_list *l = chi_alloc(sizeof *l);
	if (l && list_file(l, path) == CHOIR_OK)
		return l;
	choir_array_list_free(l);
	return NULL;
}

void choir_array_list_free(choir_array_list *l)
{
	for (size_t i = 0; l && i < l->n; i++) {
		chi_free((char *) (uintptr_t) l->entry[i].name);
		chi_free((char *) (uintptr_t) l->entry[i].type);
	}
	if (l)
		chi_free(l->entry);
	chi_free(l);
}

size_t choir_array_list_entries(const choir_array_list *l)
{
	return l ? l->n : 0;
}

const choir_array_entry *choir_array_list_entry(const choir_array_list *l, size_t i)
{
	return l && i < l->n ? &l->entry[i] : NULL;
}
