// Zip archives of npy files, one per column.
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/source/array/array.h"
#include "data/source/array/zip_archive.h"

static const char ending[] = ".npy";

// NULL matches any array.
static bool is_array(const chi_zip_member *m, const char *name)
{
	const size_t n = strlen(m->name), k = sizeof ending - 1;
	if (n <= k || strcmp(m->name + n - k, ending) != 0)
		return false;
	return !name || (strlen(name) == n - k && memcmp(m->name, name, n - k) == 0);
}

static choir_status no_such_array(
		const char *path, const chi_zip_members *members, const char *name)
{
	chi_text known = { NULL, 0, 0, false };
	for (size_t i = 0; i < members->n; i++)
		if (is_array(&members->member[i], NULL))
			chi_text_add(&known, "%s\"%.*s\"", known.length ? ", " : "",
					(int) (strlen(members->member[i].name) - sizeof ending + 1),
					members->member[i].name);
	const choir_status status = known.failed
			? choir_fail(CHOIR_NO_MEMORY, "npz dataset: out of memory")
			: choir_fail(CHOIR_NOT_FOUND, "%s: no array \"%s\"; it has %s", path,
					  name ? name : "(NULL)", known.length ? known.data : "none");
	chi_text_free(&known);
	return status;
}

static choir_status add_part(
		const char *path, const chi_zip_member *m, chi_array_file parts[], size_t *n)
{
	if (*n == CHI_MAX_COLUMNS)
		return choir_fail(CHOIR_INVALID, "%s: more than %d arrays; name the wanted ones", path,
				CHI_MAX_COLUMNS);
	chi_array_file *p = &parts[*n];
	*p = (chi_array_file){ .reader = chi_reader_open_member(path, m) };
	if (!p->reader)
		return choir_error_status();
	++*n;
	CHOIR_TRY(chi_npy_read_header(p));
	if (p->dim[0] != parts[0].dim[0])
		return choir_fail(CHOIR_INVALID,
				"%s has %lld examples, %s has %lld; all arrays need the same "
				"number, or name the wanted ones",
				chi_reader_name(p->reader), (long long) p->dim[0],
				chi_reader_name(parts[0].reader), (long long) parts[0].dim[0]);
	return CHOIR_OK;
}

static choir_status open_parts(const char *path, const chi_zip_members *members, size_t wanted,
		const char *const names[], chi_array_file parts[], size_t *n)
{
	for (size_t i = 0; wanted == 0 && i < members->n; i++)
		if (is_array(&members->member[i], NULL))
			CHOIR_TRY(add_part(path, &members->member[i], parts, n));
	for (size_t k = 0; k < wanted; k++) {
		size_t i = 0;
		while (i < members->n && (!names[k] || !is_array(&members->member[i], names[k])))
			i++;
		if (i == members->n)
			return no_such_array(path, members, names[k]);
		CHOIR_TRY(add_part(path, &members->member[i], parts, n));
	}
	return *n ? CHOIR_OK : choir_fail(CHOIR_CORRUPT, "%s: the archive has no arrays", path);
}

static void name_parts(const chi_zip_members *members, size_t wanted, const char *const names[],
		const char *columns[])
{
	size_t n = 0;
	for (size_t i = 0; i < wanted; i++)
		columns[i] = names[i];
	for (size_t i = 0; wanted == 0 && i < members->n; i++)
		if (is_array(&members->member[i], NULL)) {
			char *name = members->member[i].name;
			name[strlen(name) - sizeof ending + 1] = '\0';
			columns[n++] = name;
		}
}

static choir_dataset *make(
		const char *path, chi_zip_members *members, size_t wanted, const char *const names[])
{
	chi_array_file *parts = chi_alloc_array(CHI_MAX_COLUMNS, sizeof *parts);
	const char *columns[CHI_MAX_COLUMNS];
	choir_dataset *d = NULL;
	size_t n = 0;
	if (parts && open_parts(path, members, wanted, names, parts, &n) == CHOIR_OK) {
		name_parts(members, wanted, names, columns);
		d = chi_array_file_new(CHI_ARRAY_FILE_NPZ, n, parts, columns);
		if (!d)
			chi_error_prefix("%s", path);
	}
	for (size_t i = 0; i < n && !d; i++)
		chi_reader_close(parts[i].reader);
	chi_free(parts);
	return d;
}

choir_dataset *choir_npz_dataset_new(const char *path, size_t n, const char *const names[])
{
	if (!path || (n > 0 && !names))
		return chi_fail_null(
				CHOIR_INVALID, "npz dataset: the %s NULL", path ? "names are" : "path is");
#ifndef CHI_HAS_ZLIB
	choir_fail(CHOIR_UNSUPPORTED,
			"npz dataset: this build of Choir (without zlib) cannot read %s; unpack it", path);
	return NULL;
#endif
	char clean[256];
	chi_zip_members members = { 0 };
	chi_file *file = chi_file_open(path);
	choir_dataset *d = NULL;
	if (file &&
			chi_zip_read(file, chi_text_clean(path, clean, sizeof clean), &members) == CHOIR_OK)
		d = make(path, &members, n, names);
	chi_zip_members_free(&members);
	chi_file_close(file);
	return d;
}

choir_status chi_array_list_npz(choir_array_list *l, const char *path)
{
	char clean[256];
	chi_zip_members members = { 0 };
	chi_file *file = chi_file_open(path);
	choir_status status = file
			? chi_zip_read(file, chi_text_clean(path, clean, sizeof clean), &members)
			: choir_error_status();
	for (size_t i = 0; i < members.n && status == CHOIR_OK; i++) {
		chi_zip_member *m = &members.member[i];
		if (!is_array(m, NULL))
			continue;
		chi_reader *r = chi_reader_open_member(path, m);
		m->name[strlen(m->name) - sizeof ending + 1] = '\0';
		status = r ? chi_array_list_add_npy(l, m->name, r) : choir_error_status();
		chi_reader_close(r);
	}
	chi_zip_members_free(&members);
	chi_file_close(file);
	return status;
}
