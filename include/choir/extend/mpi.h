// What a libchoir-mpi and libchoir say to each other, for those who build one against their
// site's MPI: mpicc -shared -fPIC -o libchoir-mpi-site.so mpi.c, with the mpi.c that comes with
// Choir. The library is opened by name when a program asks for MPI, one for each MPI, and calls
// nothing of libchoir but what it is given here: so it works with a program that has Choir linked
// in as well as with the shared library.
#pragma once

#include "cluster.h"

CHOIR_C_BEGIN

#define CHOIR_MPI_PLUGIN_VERSION 3

// The argument of the table's open.
typedef struct {
	const void *communicator; // NULL: MPI_COMM_WORLD, and MPI is initialised if it is not
	size_t size; // of the communicator's handle
	choir_status (*fail)(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);
	double (*now)(void); // seconds of a clock that only goes forward
	void (*yield)(void); // lets other processes run
	double seconds; // until all processes are there; negative: no limit
} choir_mpi_argument;

// The library's one symbol, CHOIR_MPI_PLUGIN_SYMBOL, is a constant of this type.
#define CHOIR_MPI_PLUGIN_SYMBOL "choir_mpi_plugin_data"
typedef struct {
	uint32_t version; // CHOIR_MPI_PLUGIN_VERSION
	const char *mpi; // "openmpi", "mpich": as in choir_cluster_options
	const choir_cluster_table *table;
	// Of an open transport: whether only the thread that initialised MPI may move bytes (a level
	// below MPI_THREAD_SERIALIZED). Its slots fail on others with CHOIR_UNSUPPORTED.
	bool (*one_thread)(const void *self);
} choir_mpi_plugin;

CHOIR_C_END
