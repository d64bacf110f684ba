// A few threads that do the pieces of one job together with whoever asks. A job is announced by a
// gate, at which the threads spin for a moment before they sleep, and its pieces are taken from a
// counter; who wakes up late finds nothing to do and is not waited for. Threads: one asker at a
// time.
#pragma once

#include "choir/status.h"

#include <stdint.h>

typedef struct chi_team chi_team;
typedef void chi_team_fn(void *arg, int member, int64_t piece);

typedef struct {
	const char *name; // of the threads, and in messages
	int threads; // with the asker
	bool spin; // there is a processor for each
	bool pin; // to one each: the number-th member to that after first
	int first;
} chi_team_options;

// They start with the first job. NULL: recorded.
chi_team *chi_team_new(const chi_team_options *o);
void chi_team_free(chi_team *t); // NULL is fine
int chi_team_members(const chi_team *t);
// Calls fn for pieces 0 .. pieces-1, each once, in no order, and returns when all are done.
// member, from 0 to members-1, is the thread's. CHOIR_STATE: in a child after a fork.
choir_status chi_team_run(chi_team *t, int64_t pieces, chi_team_fn *fn, void *arg);

// Makes t (NULL: none) this thread's team; gives the one it had.
chi_team *chi_team_use(chi_team *t);
// Of this thread's team; 1 without one, and within a piece.
int chi_team_own_members(void);
// The same as run, by this thread's team, or else by this thread alone.
choir_status chi_team_share(int64_t pieces, chi_team_fn *fn, void *arg);
