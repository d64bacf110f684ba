// MPI, which is looked for when it is asked for.
#pragma once

#include "cluster/cluster.h"
#include "cluster/launcher.h"

// Opens the library for one MPI; communicator NULL: MPI_COMM_WORLD of the launcher l.
choir_cluster *chi_mpi_open(const choir_cluster_options *o, const chi_launcher *l,
		const void *communicator, size_t size);
