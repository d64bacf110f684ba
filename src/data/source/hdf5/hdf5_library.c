// Most builds are not thread-safe, so a lock is held. The library's version check could abort, so
// functions are called by their exported names, unchanged since 1.8.
#include "data/source/hdf5/hdf5_library.h"

#include <string.h>

#include "base/status.h"
#include "base/lock.h"
#include "base/dynamic_library.h"
#include "base/text.h"

static chi_mutex hdf5_mutex = CHI_MUTEX_STATIC(CHI_RANK_DATA, "hdf5");
static chi_hdf5 hdf5; // under hdf5_mutex
static H5E_auto2_t hdf5_print;
static void *hdf5_print_data;

static bool find_optional(chi_dynamic_library *library, const char *name, void *to)
{
	void *found = chi_dynamic_library_symbol(library, name);
	memcpy(to, &found, sizeof found);
	return found != NULL;
}

static bool find(chi_dynamic_library *library, const char *name, void *to)
{
	if (find_optional(library, name, to))
		return true;
	choir_fail(CHOIR_UNSUPPORTED, "hdf5: %s has no %s", CHI_HDF5_LIBRARY, name);
	return false;
}

// Never unloaded.
static bool load(void)
{
	chi_dynamic_library *library = chi_dynamic_library_open_alone(CHI_HDF5_LIBRARY);
	if (!library) {
		chi_error why;
		chi_error_save(&why);
		choir_fail(CHOIR_UNSUPPORTED, "hdf5: the library could not be loaded: %.400s", why.text);
		return false;
	}
	chi_hdf5 table;
#define FIND(name) &&find(library, #name, &table.name)
	if (!(true CHI_HDF5_FUNCTIONS(FIND) CHI_HDF5_TYPES(FIND)))
		return false;
#undef FIND
#define FIND_OPTIONAL(name) (void) find_optional(library, #name, &table.name);
	CHI_HDF5_LATER(FIND_OPTIONAL)
	CHI_HDF5_DEPRECATED(FIND_OPTIONAL)
#undef FIND_OPTIONAL
	if (table.H5open() < 0) {
		choir_fail(CHOIR_UNSUPPORTED, "hdf5: the library does not start");
		return false;
	}
	hdf5 = table;
	return true;
}

const chi_hdf5 *chi_hdf5_begin(void)
{
	chi_mutex_lock(&hdf5_mutex);
	if (!hdf5.H5open && !load()) {
		chi_mutex_unlock(&hdf5_mutex);
		return NULL;
	}
	if (hdf5.H5Eget_auto2(H5E_DEFAULT, &hdf5_print, &hdf5_print_data) < 0)
		hdf5_print = NULL;
	hdf5.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	return &hdf5;
}

void chi_hdf5_end(void)
{
	hdf5.H5Eclear2(H5E_DEFAULT);
	hdf5.H5Eset_auto2(H5E_DEFAULT, hdf5_print, hdf5_print_data);
	chi_mutex_unlock(&hdf5_mutex);
}

// The cause comes last.
static herr_t take_text(unsigned n, const H5E_error2_t *e, void *to)
{
	(void) n;
	if (e->desc)
		chi_text_clean(e->desc, to, 256);
	return 0;
}

const char *chi_hdf5_error(const chi_hdf5 *h, char text[256])
{
	text[0] = '\0';
	h->H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, take_text, text);
	return text;
}
