// The interface between libchoir and libchoir-mpi. A site can build libchoir-mpi with its own MPI
// from Choir's mpi.c: mpicc -shared -fPIC -o libchoir-mpi-site.so mpi.c. Of Choir's functions,
// libchoir-mpi calls only those in choir_mpi_argument.
#pragma once

#include "transport_table.h"

CHOIR_C_BEGIN

// The version of this interface.
#define CHOIR_MPI_PLUGIN_VERSION 4

// The argument of the table's open.
typedef struct {
	const void *communicator; // NULL: MPI_COMM_WORLD; open initializes MPI if necessary
	size_t size; // of the communicator's handle
	choir_status (*fail)(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);
	double (*now)(void); // seconds on a monotonic clock
	void (*yield)(void); // lets other processes run
	double seconds; // until all processes have joined; negative: no limit
	// Whether MPI accepts GPU memory: the environment variable CHOIR_GPU_AWARE_MPI. CHOIR_DEFAULT:
	// libchoir-mpi asks MPI.
	choir_toggle gpu_aware;
} choir_mpi_argument;

// libchoir-mpi's one symbol is a constant of this type.
#define CHOIR_MPI_PLUGIN_SYMBOL "choir_mpi_plugin_data"
typedef struct {
	uint32_t version; // CHOIR_MPI_PLUGIN_VERSION
	const char *mpi; // as in choir_cluster_options: "openmpi", "mpich"
	const choir_transport_table *table;
	// Whether only the thread that initialized MPI may use the open transport (a thread level
	// below MPI_THREAD_SERIALIZED). If so, slots fail with CHOIR_UNSUPPORTED on other threads.
	bool (*one_thread)(const void *self);
} choir_mpi_plugin;

CHOIR_C_END
