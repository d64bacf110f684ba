// The library does not compare a shape with the stored bytes. A contiguous dataset must be
// complete. Unwritten chunks read as the fill value: accepted only if no axis can grow and each
// stored chunk has the header's size. Else only their number would show damage.
#include "data/source/hdf5/hdf5.h"

#include "base/size.h"

enum { CHECKSUM = 4 };

// Calls reset the last failure.
static choir_status library_failed(const chi_hdf5 *h)
{
	char text[256];
	chi_hdf5_error(h, text);
	return choir_fail(CHOIR_CORRUPT, "%s", text[0] ? text : "the HDF5 library gives no reason");
}

static choir_status take_layout(
		const chi_hdf5 *h, hid_t id, H5D_layout_t *layout, chi_hdf5_stored *s)
{
	const hid_t list = h->H5Dget_create_plist(id);
	*layout = list < 0 ? H5D_LAYOUT_ERROR : h->H5Pget_layout(list);
	bool done = *layout != H5D_LAYOUT_ERROR;
	if (*layout == H5D_CHUNKED) {
		done = h->H5Pget_chunk(list, CHOIR_MAX_RANK, s->chunk) == s->rank;
		s->filtered = h->H5Pget_nfilters(list) > 0;
	}
	const choir_status status = done ? CHOIR_OK : library_failed(h);
	if (list >= 0)
		h->H5Pclose(list);
	return status;
}

// No chunk is larger than an axis that cannot grow.
static choir_status check_axes(const chi_hdf5 *h, hid_t id, chi_hdf5_stored *s)
{
	hsize_t dim[H5S_MAX_RANK], max[H5S_MAX_RANK];
	const hid_t space = h->H5Dget_space(id);
	const bool done = space >= 0 && h->H5Sget_simple_extent_dims(space, dim, max) == s->rank;
	const choir_status status = done ? CHOIR_OK : library_failed(h);
	if (space >= 0)
		h->H5Sclose(space);
	CHOIR_TRY(status);
	s->fixed = true;
	for (int i = 0; i < s->rank; i++) {
		s->fixed = s->fixed && dim[i] == max[i];
		if (dim[i] > max[i])
			return choir_fail(CHOIR_CORRUPT, "dimension %d is %llu, its maximum is %llu", i,
					(unsigned long long) dim[i], (unsigned long long) max[i]);
		if (s->chunk[i] > max[i])
			return choir_fail(CHOIR_CORRUPT, "chunks of %llu along axis %d, whose maximum is %llu",
					(unsigned long long) s->chunk[i], i, (unsigned long long) max[i]);
	}
	return CHOIR_OK;
}

static hsize_t chunks_along(const chi_hdf5_stored *s, int axis)
{
	const hsize_t n = s->dim[axis], chunk = s->chunk[axis];
	return n / chunk + (n % chunk != 0);
}

// Older libraries cannot: all are assumed.
static choir_status count_chunks(
		const chi_hdf5 *h, hid_t id, size_t needed, bool fits, hsize_t *found, chi_hdf5_stored *s)
{
	*found = needed;
	if (!h->H5Dget_num_chunks)
		return CHOIR_OK;
	const hid_t space = h->H5Dget_space(id);
	const bool done = space >= 0 && h->H5Dget_num_chunks(id, space, found) >= 0;
	const choir_status status = done ? CHOIR_OK : library_failed(h);
	if (space >= 0)
		h->H5Sclose(space);
	CHOIR_TRY(status);
	s->sparse = fits && *found < needed && s->fixed && (*found == 0 || !s->filtered);
	if (!fits || (*found != needed && !s->sparse))
		return choir_fail(CHOIR_CORRUPT,
				"its shape needs %zu chunks, the file has %llu; damaged, or never written",
				fits ? needed : SIZE_MAX, (unsigned long long) *found);
	return CHOIR_OK;
}

static choir_status check_chunks(const chi_hdf5 *h, hid_t id, size_t value, chi_hdf5_stored *s)
{
	size_t needed = 1, bytes = value;
	hsize_t found = 0;
	bool fits = true;
	if (s->value != 0 && s->value != value)
		return choir_fail(CHOIR_CORRUPT, "chunks for values of %u bytes, but the values have %zu",
				(unsigned) s->value, value);
	for (int i = 0; i < s->rank; i++) {
		if (s->chunk[i] == 0)
			return choir_fail(CHOIR_CORRUPT, "chunks of 0 along axis %d", i);
		fits = fits && chi_size_multiply(needed, (size_t) chunks_along(s, i), &needed) &&
				chi_size_multiply(bytes, (size_t) s->chunk[i], &bytes);
	}
	CHOIR_TRY(count_chunks(h, id, needed, fits, &found, s));
	const hsize_t stored = h->H5Dget_storage_size(id);
	if (!s->filtered &&
			(!fits || !chi_size_multiply(bytes, (size_t) found, &bytes) || stored != bytes))
		return choir_fail(CHOIR_CORRUPT, "the chunks have %llu bytes, its shape needs %zu%s",
				(unsigned long long) stored, fits ? bytes : SIZE_MAX, fits ? "" : " or more");
	return CHOIR_OK;
}

static choir_status check_piece(
		const chi_hdf5 *h, hid_t id, size_t value, const chi_hdf5_stored *s)
{
	const hsize_t stored = h->H5Dget_storage_size(id);
	size_t bytes = value;
	for (int i = 0; i < s->rank; i++)
		if (!chi_size_multiply(bytes, (size_t) s->dim[i], &bytes))
			bytes = SIZE_MAX;
	return stored >= bytes
			? CHOIR_OK
			: choir_fail(CHOIR_CORRUPT,
					  "its shape needs %zu bytes, the file has %llu; damaged, or never written",
					  bytes, (unsigned long long) stored);
}

choir_status chi_hdf5_inspect(const chi_hdf5 *h, hid_t id, size_t value, chi_hdf5_stored *s)
{
	H5D_layout_t layout;
	CHOIR_TRY(take_layout(h, id, &layout, s));
	CHOIR_TRY(check_axes(h, id, s));
	if (layout == H5D_CHUNKED)
		return check_chunks(h, id, value, s);
	return layout == H5D_COMPACT || layout == H5D_CONTIGUOUS ? check_piece(h, id, value, s)
															 : CHOIR_OK;
}

// Beyond axis 0. False: the last.
static bool next_chunk(const chi_hdf5_stored *s, hsize_t offset[])
{
	for (int i = s->rank - 1; i > 0; i--) {
		offset[i] += s->chunk[i];
		if (offset[i] < s->dim[i])
			return true;
		offset[i] = 0;
	}
	return false;
}

static choir_status check_row(const chi_hdf5 *h, hid_t id, hsize_t row, const chi_hdf5_stored *s)
{
	hsize_t offset[CHOIR_MAX_RANK] = { row };
	do {
		hsize_t bytes = 0;
		if (h->H5Dget_chunk_storage_size(id, offset, &bytes) < 0)
			return library_failed(h);
		if (bytes == 0 || (s->filtered && bytes <= CHECKSUM))
			return choir_fail(CHOIR_CORRUPT, "the chunk of row %llu has %llu bytes: %s",
					(unsigned long long) row, (unsigned long long) bytes,
					bytes == 0 ? "damaged, or never written" : "damaged");
	} while (next_chunk(s, offset));
	return CHOIR_OK;
}

choir_status chi_hdf5_check_rows(
		const chi_hdf5 *h, hid_t id, hsize_t first, hsize_t count, chi_hdf5_stored *s)
{
	if (s->chunk[0] == 0 || s->sparse || !h->H5Dget_chunk_storage_size)
		return CHOIR_OK;
	const hsize_t end = (first + count - 1) / s->chunk[0] + 1;
	for (hsize_t k = first / s->chunk[0]; k < end; k++)
		if (k + 1 != s->seen) {
			CHOIR_TRY(check_row(h, id, k * s->chunk[0], s));
			s->seen = k + 1;
		}
	return CHOIR_OK;
}
