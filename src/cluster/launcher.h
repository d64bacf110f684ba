// Launchers, by their environment variables.
#pragma once

#include "choir/status.h"

#include <stdbool.h>

typedef struct {
	const char *name; // "mpirun of Open MPI"; NULL: none
	const char *mpi;
	int worker, workers;
} chi_launcher;

// CHOIR_INVALID: malformed variables or worker number.
choir_status chi_launcher_find(chi_launcher *l);
// *there: both variables are set.
choir_status chi_launcher_pair(
		const char *worker, const char *workers, bool *there, int *index, int *count);
