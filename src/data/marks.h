// Marks: places in files at which so many elements of a pass had been handed out, so that going
// to an element of a source whose records can only be counted by reading them costs a seek and a
// little reading. A source remembers some of them while it reads; those that lie close before
// where it stands go into the saved position, for a program that starts anew.
//
// A mark says where, never what: it is used only if it is of the files that the source has, and
// who goes there finds the same elements as who reads up to there. Threads: any.
#pragma once

#include "base/lock.h"
#include "base/paths.h"
#include "data/dataset.h"

// How many elements lie between two marks that are remembered, as long as there are few.
enum { CHI_MARK_EVERY = 1024 };

typedef struct chi_marks {
	chi_mutex lock;
	size_t n, room;
	chi_mark *mark; // ascending
	int64_t every; // elements from one to the next
} chi_marks;

// What a source that remembers places holds: the marks, and where it stands in this pass.
typedef struct {
	chi_marks marks;
	int64_t delivered, next; // elements; at how many the next place is remembered
} chi_places;

void chi_marks_init(chi_marks *m);
void chi_marks_free(chi_marks *m);
// When the next mark behind so many elements is due.
int64_t chi_marks_next(chi_marks *m, int64_t elements);
choir_status chi_marks_add(chi_marks *m, const chi_mark *mark);
// Forgets those of other files than this one.
void chi_marks_keep(chi_marks *m, int64_t file);
// The last one at or before so many elements; false: there is none.
bool chi_marks_find(chi_marks *m, int64_t elements, chi_mark *found);
// Up to most of them, ascending: those closest before so many elements, and ever fewer before
// those; the last ones of all too, for a pass that was read to its end.
size_t chi_marks_choose(chi_marks *m, int64_t elements, chi_mark chosen[], size_t most);
// A number for the first so many files by their names, without their folders.
int64_t chi_marks_files(const chi_paths *paths, size_t n);

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
		chi_places *p, choir_dataset *d, const chi_paths *paths, const chi_mark *place);
// The last place at or before so many elements; false: there is none. The source must go there.
bool chi_places_find(chi_places *p, choir_dataset *d, int64_t elements, chi_mark *place);
// Whether a mark is of these files, and of numbers that can be.
bool chi_places_fit(const chi_paths *paths, const chi_mark *mark);
