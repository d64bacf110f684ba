// A few threads that do pieces of one job together with whoever asks, for steps that work on the
// elements of a block at the same time. Threads: one asker at a time.
#pragma once

#include "choir/status.h"

#include <stdint.h>

typedef struct chi_team chi_team;
typedef void chi_team_fn(void *arg, int member, int64_t piece);

// threads: with the asker. They start with the first job. NULL: recorded.
chi_team *chi_team_new(int threads);
void chi_team_free(chi_team *t);
int chi_team_members(const chi_team *t);
// Calls fn for pieces 0 .. pieces-1, each once, in no order, and returns when all are done.
// member, from 0 to members-1, is the thread's. CHOIR_STATE: in a child after a fork.
choir_status chi_team_run(chi_team *t, int64_t pieces, chi_team_fn *fn, void *arg);
