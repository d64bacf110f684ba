// What launchers say of a process in its environment.
#pragma once

#include "choir/status.h"

#include <stdbool.h>

typedef struct {
	const char *name; // "mpirun of Open MPI"; NULL: no launcher
	const char *mpi; // the MPI it starts: "openmpi", "mpich"; NULL: not told
	int worker, workers;
} chi_launcher;

// The launcher of MPI that started this process; name NULL: none. CHOIR_INVALID: variables that
// are no numbers, or no number of a worker.
choir_status chi_launcher_find(chi_launcher *l);
// The value of two such variables. False: one of them is not set.
choir_status chi_launcher_pair(
		const char *worker, const char *workers, bool *there, int *index, int *count);
