// What MPI's own all-reduce takes between processes, for comparison with choir bench all-reduce:
// the same sizes, each buffer written by its owner right before, the time of the slowest process
// from a common start. Its argument is the largest size. Not part of the build: tools/bench-mpi
// compiles it with each MPI there is.
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEAST_BYTES = 4 << 10,
	MOST_BYTES = 64 << 20,
	LEAST_ROUNDS = 15,
	MOST_ROUNDS = 2001,
	TRAFFIC = 8 // rounds are fewer for larger buffers: about so many times MOST_BYTES in all
};

static int compare(const void *a, const void *b)
{
	const double x = *(const double *) a, y = *(const double *) b;
	return (x > y) - (x < y);
}

// One all-reduce: the seconds of the slowest process.
static double sum_once(float *from, float *to, int count, float value)
{
	for (int i = 0; i < count; i++)
		from[i] = value;
	MPI_Barrier(MPI_COMM_WORLD);
	const double start = MPI_Wtime();
	MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	const double own = MPI_Wtime() - start;
	double slowest;
	MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return slowest;
}

static double median_of(float *from, float *to, size_t bytes)
{
	static double seconds[MOST_ROUNDS];
	long rounds = (long) TRAFFIC * MOST_BYTES / (long) bytes;
	rounds = rounds < LEAST_ROUNDS ? LEAST_ROUNDS : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
	for (long i = 0; i < rounds; i++)
		seconds[i] = sum_once(from, to, (int) (bytes / sizeof(float)), (float) i);
	qsort(seconds, (size_t) rounds, sizeof seconds[0], compare);
	return seconds[rounds / 2];
}

// "Open MPI v4.1.4", "MPICH Version: 4.0.2": the first words, with one space between.
static void tidy(char *name)
{
	size_t to = 0;
	name[strcspn(name, ",\n")] = '\0';
	for (size_t i = 0; name[i] != '\0'; i++) {
		const char c = name[i] == '\t' ? ' ' : name[i];
		if (c != ' ' || (to > 0 && name[to - 1] != ' '))
			name[to++] = c;
	}
	name[to] = '\0';
}

int main(int argc, char **argv)
{
	char name[MPI_MAX_LIBRARY_VERSION_STRING];
	int rank, size, length;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_library_version(name, &length);
	tidy(name);
	float *from = malloc(MOST_BYTES), *to = malloc(MOST_BYTES);
	if (from == NULL || to == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(from, 0, MOST_BYTES);
	memset(to, 0, MOST_BYTES);
	const size_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : MOST_BYTES;
	for (size_t bytes = LEAST_BYTES; bytes <= most && bytes <= MOST_BYTES; bytes *= 4) {
		const double seconds = median_of(from, to, bytes);
		if (rank == 0)
			printf("{\"peer\": \"%s\", \"processes\": %d, \"bytes\": %zu, \"us_median\": %.6g, "
				   "\"gb_per_s\": %.6g}\n",
					name, size, bytes, 1e6 * seconds, (double) bytes / seconds / 1e9);
	}
	free(from);
	free(to);
	MPI_Finalize();
	return 0;
}
