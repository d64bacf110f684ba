// Datasets of equal length, read side by side. A chunked dataset's cache holds a row of chunks:
// each is unpacked once.
#include "data/dataset.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "base/text.h"
#include "data/source/hdf5/hdf5.h"
#include "tensor/tensor.h"

static const char what[] = "hdf5 dataset";

#ifdef CHI_HAS_HDF5

enum { MAX_NAME = 256, MAX_CACHE = 256 << 20, USUAL_CACHE = 1 << 20, CACHE_SLOTS = 10007 };

typedef struct {
	hid_t id, type; // negative: none
	choir_dtype dtype;
	chi_hdf5_stored stored;
} part;

typedef struct {
	choir_dataset base;
	hid_t file;
	chi_file *seen;
	part *part;
	int64_t next;
	char *path;
} hdf5_source;

static choir_status library_failed(
		const chi_hdf5 *h, choir_status status, const char *path, const char *name)
{
	char text[256], clean[MAX_NAME];
	chi_hdf5_error(h, text);
	return choir_fail(status, "%s: %s%s%s", path, name ? chi_text_clean(name, clean, 64) : "",
			name ? ": " : "", text[0] ? text : "the HDF5 library gives no reason");
}

// Negative: a failure.
static ssize_t member_name(const chi_hdf5 *h, hid_t root, hsize_t i, char name[MAX_NAME])
{
	return h->H5Lget_name_by_idx(
			root, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, MAX_NAME, H5P_DEFAULT);
}

static choir_status check_header(
		const chi_hdf5 *h, hid_t file, const char *path, const char *name, uint32_t *value)
{
	char clean[64];
	return chi_hdf5_check_header(h, file, path, name, value) == CHOIR_OK
			? CHOIR_OK
			: chi_error_prefix("%s: %s", path, chi_text_clean(name, clean, sizeof clean));
}

static H5I_type_t member_type(const chi_hdf5 *h, hid_t root, const char *name)
{
	const hid_t object = h->H5Oopen(root, name, H5P_DEFAULT);
	const H5I_type_t type = object < 0 ? H5I_BADID : h->H5Iget_type(object);
	if (object >= 0)
		h->H5Oclose(object);
	return type;
}

typedef struct {
	size_t n;
	char name[CHI_MAX_COLUMNS][MAX_NAME];
	chi_text all;
} members;

static choir_status see_member(
		const chi_hdf5 *h, const char *path, hid_t root, hsize_t i, members *m)
{
	char name[MAX_NAME];
	const ssize_t length = member_name(h, root, i, name);
	if (length < 0)
		return library_failed(h, CHOIR_CORRUPT, path, NULL);
	uint32_t value;
	CHOIR_TRY(check_header(h, root, path, name, &value));
	const H5I_type_t type = member_type(h, root, name);
	if (m->all.length < 300)
		chi_text_add(&m->all, "%s\"%.64s%s\"%s", m->all.length ? ", " : "", name,
				type == H5I_GROUP ? "/" : "",
				type == H5I_BADID ? " (which the HDF5 library cannot open)" : "");
	if (type != H5I_DATASET)
		return CHOIR_OK;
	if (m->n == CHI_MAX_COLUMNS || length >= MAX_NAME)
		return choir_fail(CHOIR_INVALID,
				"%s: more than %d datasets, or names of %d bytes; name the wanted ones", path,
				(int) CHI_MAX_COLUMNS, (int) MAX_NAME);
	memcpy(m->name[m->n++], name, MAX_NAME);
	return CHOIR_OK;
}

static choir_status see_members(const chi_hdf5 *h, const char *path, hid_t file, members *m)
{
	H5G_info_t info;
	const hid_t root = h->H5Gopen2(file, "/", H5P_DEFAULT);
	if (root < 0)
		return library_failed(h, CHOIR_CORRUPT, path, NULL);
	choir_status status = h->H5Gget_info(root, &info) < 0
			? library_failed(h, CHOIR_CORRUPT, path, NULL)
			: CHOIR_OK;
	for (hsize_t i = 0; status == CHOIR_OK && i < info.nlinks; i++)
		status = see_member(h, path, root, i, m);
	h->H5Gclose(root);
	return status;
}

static choir_status no_such(const chi_hdf5 *h, const hdf5_source *s, const char *name)
{
	char clean[64];
	members *m = chi_alloc(sizeof *m);
	CHOIR_TRY(chi_made(m));
	choir_status status = see_members(h, s->path, s->file, m);
	if (status == CHOIR_OK || status == CHOIR_INVALID)
		status = choir_fail(CHOIR_NOT_FOUND, "%s: no dataset \"%s\"; it has %s", s->path,
				chi_text_clean(name, clean, sizeof clean),
				m->all.data && !m->all.failed ? m->all.data : "nothing");
	chi_text_free(&m->all);
	chi_free(m);
	return status;
}

// The caller closes it.
static hid_t memory_type(const chi_hdf5 *h, hid_t in_file, choir_dtype dtype)
{
	switch (dtype) {
	case CHOIR_F32:
		return h->H5Tcopy(*h->H5T_NATIVE_FLOAT_g);
	case CHOIR_F64:
		return h->H5Tcopy(*h->H5T_NATIVE_DOUBLE_g);
	case CHOIR_I32:
		return h->H5Tcopy(*h->H5T_NATIVE_INT32_g);
	case CHOIR_I64:
		return h->H5Tcopy(*h->H5T_NATIVE_INT64_g);
	case CHOIR_U8:
		return h->H5Tcopy(*h->H5T_NATIVE_UINT8_g);
	default:
		break;
	}
	const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	const hid_t type = h->H5Tcopy(in_file);
	if (type >= 0 && dtype == CHOIR_F16)
		h->H5Tset_order(type, big ? H5T_ORDER_BE : H5T_ORDER_LE);
	return type;
}

static choir_status take_type(
		const chi_hdf5 *h, const char *path, const char *name, part *p, size_t *value)
{
	const hid_t type = h->H5Dget_type(p->id);
	char clean[64];
	if (type < 0)
		return library_failed(h, CHOIR_CORRUPT, path, name);
	const bool possible = chi_hdf5_dtype(h, type, &p->dtype);
	p->type = possible ? memory_type(h, type, p->dtype) : -1;
	choir_status status = CHOIR_OK;
	if (!possible)
		status = choir_fail(CHOIR_UNSUPPORTED,
				"%s: %s: Choir has no dtype for its values; it reads f2, "
				"f4, f8, i1 to i8, u1 to u4 and bool",
				path, chi_text_clean(name, clean, sizeof clean));
	else if (p->type < 0)
		status = library_failed(h, CHOIR_CORRUPT, path, name);
	*value = h->H5Tget_size(type);
	h->H5Tclose(type);
	return status;
}

static choir_status take_shape(
		const chi_hdf5 *h, const char *path, const char *name, part *p, choir_column *c)
{
	char clean[64];
	hsize_t *dim = p->stored.dim;
	const hid_t space = h->H5Dget_space(p->id);
	const int rank = space < 0 ? -1 : h->H5Sget_simple_extent_ndims(space);
	if (rank > 0 && rank <= CHOIR_MAX_RANK)
		h->H5Sget_simple_extent_dims(space, dim, NULL);
	const choir_status status = rank < 0 ? library_failed(h, CHOIR_CORRUPT, path, name) : CHOIR_OK;
	if (space >= 0)
		h->H5Sclose(space);
	CHOIR_TRY(status);
	if (rank < 1 || rank > CHOIR_MAX_RANK)
		return choir_fail(CHOIR_INVALID,
				"%s: %s: rank %d; 1 to %d needed (axis 0 counts the examples)", path,
				chi_text_clean(name, clean, sizeof clean), rank, (int) CHOIR_MAX_RANK);
	p->stored.rank = rank;
	c->shape.rank = rank - 1;
	for (int i = 0; i < rank; i++) {
		if (dim[i] > INT64_MAX)
			return choir_fail(CHOIR_CORRUPT, "%s: %s: dimension %d has more than 63 bits", path,
					chi_text_clean(name, clean, sizeof clean), i);
		if (i > 0)
			c->shape.dim[i - 1] = (int64_t) dim[i];
	}
	return CHOIR_OK;
}

// 0: not chunked, or too large.
static size_t chunk_row_bytes(const part *p)
{
	const chi_hdf5_stored *s = &p->stored;
	size_t bytes = chi_dtype_size(p->dtype);
	for (int i = 0; i < s->rank; i++) {
		// Whole chunks extend beyond the end.
		const hsize_t chunk = s->chunk[i],
					  across = i == 0 || chunk == 0 ? 1 : (s->dim[i] + chunk - 1) / chunk;
		if (!chi_size_multiply(bytes, (size_t) chunk, &bytes) ||
				!chi_size_multiply(bytes, (size_t) across, &bytes))
			return 0;
	}
	return bytes <= MAX_CACHE ? bytes : 0;
}

static void widen_cache(const chi_hdf5 *h, hid_t file, const char *name, part *p)
{
	const size_t bytes = chunk_row_bytes(p);
	if (bytes <= USUAL_CACHE)
		return;
	const hid_t list = h->H5Pcreate(*h->H5P_CLS_DATASET_ACCESS_ID_g);
	if (list < 0)
		return;
	h->H5Pset_chunk_cache(list, CACHE_SLOTS, bytes, 1);
	h->H5Dclose(p->id); // open, it keeps its cache
	p->id = h->H5Dopen2(file, name, list);
	h->H5Pclose(list);
}

static choir_status open_part(
		const chi_hdf5 *h, const hdf5_source *s, const char *name, part *p, choir_column *c)
{
	size_t value = 0;
	char clean[64];
	if (!name || !name[0])
		return choir_fail(CHOIR_INVALID, "%s: a name is empty", s->path);
	CHOIR_TRY(check_header(h, s->file, s->path, name, &p->stored.value));
	p->id = h->H5Dopen2(s->file, name, H5P_DEFAULT);
	if (p->id < 0)
		return no_such(h, s, name);
	CHOIR_TRY(take_shape(h, s->path, name, p, c));
	CHOIR_TRY(take_type(h, s->path, name, p, &value));
	if (chi_hdf5_inspect(h, p->id, value, &p->stored) != CHOIR_OK)
		return chi_error_prefix("%s: %s", s->path, chi_text_clean(name, clean, sizeof clean));
	widen_cache(h, s->file, name, p);
	if (p->id < 0)
		return library_failed(h, CHOIR_CORRUPT, s->path, name);
	c->name = name;
	c->dtype = p->dtype;
	return CHOIR_OK;
}

static choir_status check_bools(const hdf5_source *s, size_t i, const uint8_t *values, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (values[k] > 1)
			return choir_fail(CHOIR_CORRUPT,
					"%s: %s: example %lld has a bool of %d; 0 or 1 needed", s->path,
					s->base.spec.column[i].name,
					(long long) (s->next + (int64_t) (k / s->base.bytes[i])), values[k]);
	return CHOIR_OK;
}

static choir_status blame(const hdf5_source *s, size_t i)
{
	return chi_error_prefix("%s: %s", s->path, s->base.spec.column[i].name);
}

static choir_status read_part(
		const chi_hdf5 *h, const hdf5_source *s, size_t i, void *to, int64_t count)
{
	part *p = &s->part[i];
	hsize_t start[CHOIR_MAX_RANK] = { (hsize_t) s->next }, size[CHOIR_MAX_RANK];
	if (chi_hdf5_check_rows(h, p->id, start[0], (hsize_t) count, &p->stored) != CHOIR_OK)
		return blame(s, i);
	if (p->stored.sparse) // the library skips missing values
		memset(to, 0, (size_t) count * s->base.bytes[i]);
	memcpy(size, p->stored.dim, sizeof size);
	size[0] = (hsize_t) count;
	const hid_t in_file = h->H5Dget_space(p->id);
	const hid_t in_memory = h->H5Screate_simple(p->stored.rank, size, NULL);
	const bool done = in_file >= 0 && in_memory >= 0 &&
			h->H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, size, NULL) >= 0 &&
			h->H5Dread(p->id, p->type, in_memory, in_file, H5P_DEFAULT, to) >= 0;
	const choir_status status = done
			? CHOIR_OK
			: library_failed(h, CHOIR_CORRUPT, s->path, s->base.spec.column[i].name);
	if (in_file >= 0)
		h->H5Sclose(in_file);
	if (in_memory >= 0)
		h->H5Sclose(in_memory);
	if (status != CHOIR_OK)
		return chi_error_prefix(
				"examples %lld to %lld", (long long) s->next, (long long) (s->next + count - 1));
	return p->dtype == CHOIR_BOOL ? check_bools(s, i, to, (size_t) count * s->base.bytes[i])
								  : CHOIR_OK;
}

static choir_status hdf5_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	hdf5_source *s = (hdf5_source *) d;
	const int64_t left = d->spec.examples - s->next, n = want < left ? want : left;
	if (n == 0)
		return CHOIR_END;
	const chi_hdf5 *h = chi_hdf5_begin();
	choir_status status = h ? CHOIR_OK : choir_error_status();
	for (size_t i = 0; i < d->spec.n && status == CHOIR_OK; i++)
		if (column[i])
			status = read_part(h, s, i, column[i], n);
	if (h)
		chi_hdf5_end();
	CHOIR_TRY(chi_file_check(s->seen));
	CHOIR_TRY(status);
	s->next += n;
	*got = n;
	return CHOIR_OK;
}

static choir_status hdf5_rewind(choir_dataset *d)
{
	((hdf5_source *) d)->next = 0;
	return CHOIR_OK;
}

static choir_status hdf5_seek(choir_dataset *d, int64_t elements)
{
	((hdf5_source *) d)->next = elements;
	return CHOIR_OK;
}

static void close_parts(const chi_hdf5 *h, size_t n, const part parts[])
{
	for (size_t i = 0; i < n; i++) {
		if (parts[i].type >= 0)
			h->H5Tclose(parts[i].type);
		if (parts[i].id >= 0)
			h->H5Dclose(parts[i].id);
	}
}

static void hdf5_free(choir_dataset *d)
{
	hdf5_source *s = (hdf5_source *) d;
	const chi_hdf5 *h = chi_hdf5_begin();
	if (h) {
		close_parts(h, d->spec.n, s->part);
		h->H5Fclose(s->file);
		chi_hdf5_end();
	}
	chi_file_close(s->seen);
	chi_free(s->part);
	chi_free(s->path);
}

static const char *hdf5_path(const choir_dataset *d, int64_t i)
{
	(void) i;
	return ((const hdf5_source *) d)->path;
}

static const chi_stage hdf5_stage = {
	.name = what,
	.read = hdf5_read,
	.rewind = hdf5_rewind,
	.free = hdf5_free,
	.seek = hdf5_seek,
	.files = CHI_FILES_HERE,
	.path = hdf5_path,
};

static choir_status same_lengths(
		const hdf5_source *s, size_t n, const char *const names[], const part parts[])
{
	for (size_t i = 1; i < n; i++)
		if (parts[i].stored.dim[0] != parts[0].stored.dim[0])
			return choir_fail(CHOIR_INVALID,
					"%s: %.64s has %lld examples, %.64s has %lld; "
					"all datasets need the same number",
					s->path, names[0], (long long) parts[0].stored.dim[0], names[i],
					(long long) parts[i].stored.dim[0]);
	return CHOIR_OK;
}

// Owns from's members.
static choir_dataset *make_source(const hdf5_source *from, size_t n, const choir_column columns[])
{
	const int64_t examples = (int64_t) from->part[0].stored.dim[0];
	hdf5_source *s = chi_source_new(&hdf5_stage, sizeof *s, n, columns, examples);
	if (!s) {
		chi_error_prefix("%s", from->path);
		return NULL;
	}
	s->path = from->path;
	s->file = from->file;
	s->seen = from->seen;
	s->part = from->part;
	s->base.files = 1;
	return &s->base;
}

static choir_dataset *open_parts(
		const chi_hdf5 *h, const hdf5_source *from, size_t n, const char *const names[])
{
	choir_column columns[CHI_MAX_COLUMNS] = { { .name = NULL } };
	choir_dataset *d = NULL;
	choir_status status = CHOIR_OK;
	for (size_t i = 0; i < n; i++)
		from->part[i] = (part){ .id = -1, .type = -1 };
	for (size_t i = 0; i < n && status == CHOIR_OK; i++)
		status = open_part(h, from, names[i], &from->part[i], &columns[i]);
	if (status == CHOIR_OK && same_lengths(from, n, names, from->part) == CHOIR_OK)
		d = make_source(from, n, columns);
	if (!d)
		close_parts(h, n, from->part);
	return d;
}

static choir_dataset *open_all(const chi_hdf5 *h, const hdf5_source *from)
{
	const char *names[CHI_MAX_COLUMNS];
	choir_dataset *d = NULL;
	members *m = chi_alloc(sizeof *m);
	if (m && see_members(h, from->path, from->file, m) == CHOIR_OK) {
		for (size_t i = 0; i < m->n; i++)
			names[i] = m->name[i];
		if (m->n == 0)
			choir_fail(CHOIR_NOT_FOUND, "%s: the root group has no datasets, only %s", from->path,
					m->all.data && !m->all.failed ? m->all.data : "nothing");
		else
			d = open_parts(h, from, m->n, names);
	}
	if (m)
		chi_text_free(&m->all);
	chi_free(m);
	return d;
}

static choir_dataset *open_file(
		const chi_hdf5 *h, const char *path, chi_file *seen, size_t n, const char *const names[])
{
	enum { READ_ONLY = 0 }; // H5F_ACC_RDONLY, whose macro may end the program
	hdf5_source from = { .path = chi_strdup(path), .seen = seen };
	from.part = from.path ? chi_alloc_array(CHI_MAX_COLUMNS, sizeof *from.part) : NULL;
	from.file = from.part ? h->H5Fopen(path, READ_ONLY, H5P_DEFAULT) : -1;
	choir_dataset *d = NULL;
	if (from.file >= 0)
		d = n > 0 ? open_parts(h, &from, n, names) : open_all(h, &from);
	else if (from.part)
		library_failed(h, CHOIR_CORRUPT, path, NULL);
	if (d)
		return d;
	if (from.file >= 0)
		h->H5Fclose(from.file);
	chi_free(from.part);
	chi_free(from.path);
	return NULL;
}

choir_dataset *choir_hdf5_dataset_new(const char *path, size_t n, const char *const names[])
{
	if (!path || (n > 0 && !names) || n > CHI_MAX_COLUMNS)
		return chi_fail_null(CHOIR_INVALID, "%s: the %s", what,
				!path					  ? "path is NULL"
						: n > 0 && !names ? "names are NULL"
										  : "names are more than 32");
	chi_file *file = chi_file_open(path);
	if (!file)
		return NULL;
	const chi_hdf5 *h = chi_hdf5_begin();
	choir_dataset *d = h ? open_file(h, path, file, n, names) : NULL;
	if (h)
		chi_hdf5_end();
	if (!d)
		chi_file_close(file);
	return d;
}

#else

choir_dataset *choir_hdf5_dataset_new(const char *path, size_t n, const char *const names[])
{
	(void) n;
	(void) names;
	choir_fail(CHOIR_UNSUPPORTED, "%s: this build of Choir (without HDF5) cannot read %s", what,
			path ? path : "it");
	return NULL;
}

#endif
