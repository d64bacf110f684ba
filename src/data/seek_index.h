// Places in files with a known number of the next element, for sources that count records by
// reading them. A checkpoint saves some before its position. Threads: any.
#pragma once

#include "base/lock.h"
#include "base/glob.h"
#include "data/data.h"

// Before the index is thinned out.
enum { CHI_SEEK_POINT_EVERY = 1024 };

typedef struct chi_seek_index {
	chi_mutex lock;
	size_t n, capacity;
	chi_seek_point *point;
	int64_t every;
} chi_seek_index;

typedef struct chi_places {
	chi_seek_index seek_index;
	int64_t delivered, next;
} chi_places;

void chi_seek_index_init(chi_seek_index *m);
void chi_seek_index_free(chi_seek_index *m);
int64_t chi_seek_index_next(chi_seek_index *m, int64_t elements);
choir_status chi_seek_index_add(chi_seek_index *m, const chi_seek_point *point);
void chi_seek_index_keep(chi_seek_index *m, int64_t file);
// The last point at or before elements.
bool chi_seek_index_find(chi_seek_index *m, int64_t elements, chi_seek_point *found);
// Up to max, ascending: at doubling distances before elements, and the last two of a whole pass.
size_t chi_seek_index_choose(
		chi_seek_index *m, int64_t elements, chi_seek_point chosen[], size_t max);

void chi_places_init(chi_places *p, choir_dataset *d);
void chi_places_free(chi_places *p);
void chi_places_begin(chi_places *p);
// Counts an element. True: add the next place.
static inline bool chi_places_due(chi_places *p)
{
	return ++p->delivered == p->next;
}
// The caller sets its file, byte and record.
choir_status chi_places_add(choir_dataset *d, const chi_seek_point *place);
// The source must seek to it. Sets d's counts.
bool chi_places_find(choir_dataset *d, int64_t elements, chi_seek_point *place);
chi_seek_index *chi_places_index(choir_dataset *d);
bool chi_places_fit(const choir_dataset *d, const chi_seek_point *point);
