// Threads that share a job with the caller. An atomic counter assigns the pieces, so late threads
// delay no others. One caller at a time.
#pragma once

#include "choir/status.h"

#include <stdint.h>

typedef struct chi_team chi_team;
typedef void chi_team_fn(void *arg, int member, int64_t piece);

typedef struct {
	const char *name;
	int threads; // including the caller
	bool spin; // each has its own processor
	bool pin; // member i to processor first + i
	int first;
} chi_team_options;

chi_team *chi_team_new(const chi_team_options *o);
void chi_team_free(chi_team *t);
int chi_team_members(const chi_team *t);
// Calls fn once for each piece, in any order. CHOIR_STATE: in a fork's child.
choir_status chi_team_run(chi_team *t, int64_t pieces, chi_team_fn *fn, void *arg);

// Returns the previous one.
chi_team *chi_team_use(chi_team *t);
// 1 without a team, and within a piece.
int chi_team_own_members(void);
choir_status chi_team_share(int64_t pieces, chi_team_fn *fn, void *arg);
