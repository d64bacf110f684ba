// Seek points: places in files of which the number of the next element of a pass is known. A
// source whose records can only be counted by reading them goes to an element by a seek and a
// little reading. It remembers some of these while it reads; those close before where it stands
// go into the saved position, for a program that starts anew.
//
// A point is used only if it is of the files that the source has. Reading from there gives the
// elements that reading from the start gives. Threads: any.
#pragma once

#include "base/lock.h"
#include "base/glob.h"
#include "data/data.h"

// Elements between two points, until there are many.
enum { CHI_SEEK_POINT_EVERY = 1024 };

typedef struct chi_seek_index {
	chi_mutex lock;
	size_t n, capacity;
	chi_seek_point *point; // ascending
	int64_t every; // elements from one to the next
} chi_seek_index;

// The points of a source, and where it stands in this pass.
typedef struct {
	chi_seek_index seek_index;
	int64_t delivered, next; // elements; at how many the next place is remembered
} chi_places;

void chi_seek_index_init(chi_seek_index *m);
void chi_seek_index_free(chi_seek_index *m);
// When the next seek point behind so many elements is due.
int64_t chi_seek_index_next(chi_seek_index *m, int64_t elements);
choir_status chi_seek_index_add(chi_seek_index *m, const chi_seek_point *point);
// Forgets those of other files than this one.
void chi_seek_index_keep(chi_seek_index *m, int64_t file);
// The last one at or before so many elements; false: there is none.
bool chi_seek_index_find(chi_seek_index *m, int64_t elements, chi_seek_point *found);
// Up to most of them, ascending: those closest before so many elements, and ever fewer before
// those; the last ones of all too, for a pass that was read to its end.
size_t chi_seek_index_choose(
		chi_seek_index *m, int64_t elements, chi_seek_point chosen[], size_t max);
// A number for the first so many files by their names, without their folders.
int64_t chi_seek_index_files(const chi_glob *paths, size_t n);

void chi_places_init(chi_places *p);
void chi_places_free(chi_places *p);
void chi_places_begin(chi_places *p); // a pass
// One element more was delivered: whether the place behind it is to be remembered.
static inline bool chi_places_due(chi_places *p)
{
	return ++p->delivered == p->next;
}
// Remembers a place, of which file, byte and record are given; d: the source, whose counts are
// true for it.
choir_status chi_places_add(
		chi_places *p, choir_dataset *d, const chi_glob *paths, const chi_seek_point *place);
// The last place at or before so many elements; false: there is none. The source must go there.
bool chi_places_find(chi_places *p, choir_dataset *d, int64_t elements, chi_seek_point *place);
// Whether a seek point is of these files, and of numbers that can be.
bool chi_places_fit(const chi_glob *paths, const chi_seek_point *point);
