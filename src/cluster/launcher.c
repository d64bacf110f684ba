// mpirun and mpiexec come before Slurm: in a Slurm job they start the workers.
#include "cluster/launcher.h"

#include "base/text.h"

#include <limits.h>
#include <stdlib.h>

static choir_status number(const char *name, const char *text, int *out)
{
	int64_t value;
	if (!chi_parse_int64(text, &value) || value < 0 || value > INT_MAX)
		return choir_fail(
				CHOIR_INVALID, "%s: found \"%.40s\"; a number of 0 or more needed", name, text);
	*out = (int) value;
	return CHOIR_OK;
}

choir_status chi_launcher_pair(
		const char *worker, const char *workers, bool *there, int *index, int *count)
{
	const char *i = getenv(worker), *n = getenv(workers);
	*there = i != NULL && n != NULL && i[0] != '\0' && n[0] != '\0';
	if (!*there)
		return CHOIR_OK;
	CHOIR_TRY(number(worker, i, index));
	CHOIR_TRY(number(workers, n, count));
	if (*index >= *count)
		return choir_fail(
				CHOIR_INVALID, "%s is %d, but %s is only %d", worker, *index, workers, *count);
	return CHOIR_OK;
}

choir_status chi_launcher_find(chi_launcher *l)
{
	bool there;
	*l = (chi_launcher){ .workers = 1 };
	CHOIR_TRY(chi_launcher_pair(
			"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &there, &l->worker, &l->workers));
	if (there) {
		l->name = "mpirun of Open MPI";
		l->mpi = "openmpi";
		return CHOIR_OK;
	}
	CHOIR_TRY(chi_launcher_pair("PMI_RANK", "PMI_SIZE", &there, &l->worker, &l->workers));
	if (there) {
		l->name = "mpiexec of MPICH (PMI)";
		l->mpi = "mpich";
		return CHOIR_OK;
	}
	CHOIR_TRY(chi_launcher_pair(
			"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", &there, &l->worker, &l->workers));
	if (!there) {
		l->worker = 0;
		l->workers = 1;
		return CHOIR_OK;
	}
	const bool pmix = getenv("PMIX_RANK") != NULL;
	if (!pmix && l->workers > 1)
		return choir_fail(CHOIR_INVALID,
				"srun has started %d tasks without connecting them; use srun --mpi=pmix (Open "
				"MPI) or srun --mpi=pmi2 (MPICH)",
				l->workers);
	if (pmix) {
		l->name = "srun --mpi=pmix";
		l->mpi = "openmpi";
	}
	return CHOIR_OK;
}
