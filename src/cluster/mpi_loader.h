// Loads MPI on request.
#pragma once

#include "cluster/cluster.h"
#include "cluster/launcher.h"

// communicator NULL: MPI_COMM_WORLD of launcher l.
choir_cluster *chi_mpi_open(const choir_cluster_options *o, const chi_launcher *l,
		const void *communicator, size_t size);
