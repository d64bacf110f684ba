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

void chi_marks_init(chi_marks *m);
void chi_marks_free(chi_marks *m);
// When the next mark behind so many elements is due.
int64_t chi_marks_next(chi_marks *m, int64_t elements);
choir_status chi_marks_add(chi_marks *m, const chi_mark *mark);
// The last one at or before so many elements; false: there is none.
bool chi_marks_find(chi_marks *m, int64_t elements, chi_mark *found);
// Up to most of them, ascending: those closest before so many elements, and ever fewer before
// those; the last ones of all too, for a pass that was read to its end.
size_t chi_marks_choose(chi_marks *m, int64_t elements, chi_mark chosen[], size_t most);
// A number for the first so many files by their names, without their folders.
int64_t chi_marks_files(const chi_paths *paths, size_t n);
