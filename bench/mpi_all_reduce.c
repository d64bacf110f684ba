// Measures MPI's all-reduce between processes, to compare it with choir bench all-reduce: the same
// sizes, each buffer written by its owner before, and the time of the slowest process after a
// barrier. One argument: the largest size. Several: the number of elements of each tensor; the
// tensors are contiguous and summed by one call each and by one call for all. tools/bench-mpi
// compiles it with each MPI of this machine; it is not part of the build.
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MIN_BYTES = 4 << 10,
	MAX_BYTES = 64 << 20,
	MIN_ROUNDS = 15,
	MAX_ROUNDS = 2001,
	TRAFFIC = 8 // rounds * bytes is about TRAFFIC * MAX_BYTES
};

static int compare(const void *a, const void *b)
{
	const double x = *(const double *) a, y = *(const double *) b;
	return (x > y) - (x < y);
}

// Runs one all-reduce. Returns the seconds of the slowest process.
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
	static double seconds[MAX_ROUNDS];
	long rounds = (long) TRAFFIC * MAX_BYTES / (long) bytes;
	rounds = rounds < MIN_ROUNDS ? MIN_ROUNDS : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
	for (long i = 0; i < rounds; i++)
		seconds[i] = sum_once(from, to, (int) (bytes / sizeof(float)), (float) i);
	qsort(seconds, (size_t) rounds, sizeof seconds[0], compare);
	return seconds[rounds / 2];
}

// Sums all tensors once; flat: by one call. Returns the seconds of the slowest process.
static double sum_tensors(float *from, float *to, int n, char **elements, int all, int flat)
{
	for (int i = 0; i < all; i++)
		from[i] = 1;
	MPI_Barrier(MPI_COMM_WORLD);
	const double start = MPI_Wtime();
	if (flat)
		MPI_Allreduce(from, to, all, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0, at = 0; i < n && !flat; at += atoi(elements[i++]))
		MPI_Allreduce(from + at, to + at, atoi(elements[i]), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	const double own = MPI_Wtime() - start;
	double slowest;
	MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return slowest;
}

static void measure_tensors(const char *name, int rank, int n, char **elements)
{
	double seconds[MIN_ROUNDS];
	int all = 0;
	for (int i = 0; i < n; i++)
		all += atoi(elements[i]);
	float *from = calloc((size_t) all, sizeof *from), *to = calloc((size_t) all, sizeof *to);
	if (from == NULL || to == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(to, 1, (size_t) all * sizeof *to);
	for (int flat = 0; flat < 2; flat++) {
		for (int i = 0; i < MIN_ROUNDS; i++)
			seconds[i] = sum_tensors(from, to, n, elements, all, flat);
		qsort(seconds, MIN_ROUNDS, sizeof seconds[0], compare);
		if (rank == 0)
			printf("{\"peer\": \"%s\", \"way\": \"%s\", \"tensors\": %d, \"ms_median\": %.6g}\n",
					name, flat ? "flat" : "per_tensor", n, 1e3 * seconds[MIN_ROUNDS / 2]);
	}
	free(from);
	free(to);
}

// Shortens the MPI's name to its first words ("Open MPI v4.1.4", "MPICH Version: 4.0.2").
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
	if (argc > 2) {
		measure_tensors(name, rank, argc - 1, argv + 1);
		MPI_Finalize();
		return 0;
	}
	float *from = malloc(MAX_BYTES), *to = malloc(MAX_BYTES);
	if (from == NULL || to == NULL)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(from, 0, MAX_BYTES);
	memset(to, 0, MAX_BYTES);
	const size_t max = argc > 1 ? strtoull(argv[1], NULL, 10) : MAX_BYTES;
	for (size_t bytes = MIN_BYTES; bytes <= max && bytes <= MAX_BYTES; bytes *= 4) {
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
