// As MNIST: two zero bytes, a value type, a rank, big-endian 32-bit dimensions, packed big-endian
// values.
#include "data/source/array/array.h"

#include <endian.h>
#include <string.h>

enum { MAGIC_BYTES = 4, DIM_BYTES = 4 };

static const struct {
	unsigned char code;
	const char *name;
	bool readable;
	choir_dtype dtype;
} types[] = {
	{ 0x08, "u8", true, CHOIR_U8 },
	{ 0x09, "i8", false, 0 },
	{ 0x0b, "i16", false, 0 },
	{ 0x0c, "i32", true, CHOIR_I32 },
	{ 0x0d, "f32", true, CHOIR_F32 },
	{ 0x0e, "f64", true, CHOIR_F64 },
};

static choir_status find_type(const char *name, unsigned char code, choir_dtype *dtype)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		if (types[i].code != code)
			continue;
		*dtype = types[i].dtype;
		if (types[i].readable)
			return CHOIR_OK;
		return choir_fail(CHOIR_UNSUPPORTED,
				"%s: byte 2: the values are %s; Choir reads u8, i32, f32 and f64", name,
				types[i].name);
	}
	return choir_fail(CHOIR_CORRUPT,
			"%s: byte 2: value type 0x%02x; IDX has only 08, 09, 0b, 0c, 0d and 0e", name, code);
}

static choir_status read_magic(chi_reader *r, chi_array_file *h)
{
	const char *name = chi_reader_name(r);
	unsigned char m[MAGIC_BYTES];
	size_t got;
	CHOIR_TRY(chi_reader_read(r, m, sizeof m, &got));
	if (got == 0)
		return choir_fail(
				CHOIR_CORRUPT, "%s: the file is empty; an IDX header has at least 8 bytes", name);
	if (got < sizeof m)
		return choir_fail(CHOIR_CORRUPT, "%s: ends after %zu bytes; an IDX header has at least 8",
				name, got);
	if (m[0] || m[1])
		return choir_fail(CHOIR_CORRUPT,
				"%s: byte 0: found %02x %02x %02x %02x; an IDX file "
				"begins with 00 00, type and rank",
				name, m[0], m[1], m[2], m[3]);
	CHOIR_TRY(find_type(name, m[2], &h->dtype));
	if (m[3] > CHI_ARRAY_FILE_RANK)
		return choir_fail(CHOIR_UNSUPPORTED, "%s: byte 3: rank %d; at most %d needed", name, m[3],
				CHI_ARRAY_FILE_RANK);
	h->rank = m[3];
	h->header_bytes = MAGIC_BYTES + DIM_BYTES * (size_t) h->rank;
	return CHOIR_OK;
}

static choir_status read_dims(chi_reader *r, chi_array_file *h)
{
	const char *name = chi_reader_name(r);
	unsigned char bytes[DIM_BYTES * CHI_ARRAY_FILE_RANK];
	size_t got, need = DIM_BYTES * (size_t) h->rank;
	CHOIR_TRY(chi_reader_read(r, bytes, need, &got));
	if (got < need)
		return choir_fail(CHOIR_CORRUPT, "%s: ends after %zu bytes; its header of rank %d has %zu",
				name, MAGIC_BYTES + got, h->rank, h->header_bytes);
	for (int i = 0; i < h->rank; i++) {
		uint32_t dim;
		memcpy(&dim, bytes + DIM_BYTES * i, sizeof dim);
		h->dim[i] = be32toh(dim);
	}
	return CHOIR_OK;
}

choir_dataset *choir_idx_dataset_new(const char *path, const char *column)
{
	if (!path)
		return chi_fail_null(CHOIR_INVALID, "idx dataset: the path is NULL");
	chi_array_file h = { .reader = chi_reader_open(path), .big_endian = true };
	if (!h.reader)
		return NULL;
	choir_dataset *d = NULL;
	if (read_magic(h.reader, &h) == CHOIR_OK && read_dims(h.reader, &h) == CHOIR_OK &&
			chi_array_file_check(&h) == CHOIR_OK)
		d = chi_array_file_new(CHI_ARRAY_FILE_IDX, 1, &h, &column);
	if (!d)
		chi_reader_close(h.reader);
	return d;
}
