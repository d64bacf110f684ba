// Launchers, by their environment variables.
#pragma once

#include "choir/status.h"

#include <stdbool.h>

typedef struct {
	const char *name;
	const char *mpi;
	int worker, workers;
} chi_launcher;

// CHOIR_INVALID: malformed variables.
choir_status chi_launcher_find(chi_launcher *l);
choir_status chi_launcher_pair(
		const char *worker, const char *workers, bool *there, int *index, int *count);
