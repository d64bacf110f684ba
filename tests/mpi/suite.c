// The conformance suite over MPI: a program with an MPI of its own, which Choir borrows, as one
// worker of several that a launcher has started. Each program of the suite gets a new cluster;
// between them the processes meet by MPI itself.
#include "choir/choir.h"
#include "cluster/message.h"
#include "cluster/suite.h"
#include "strategies/mismatch.h"

#include <mpi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int rank, failures;

static void report(const char *name, const char *wrong)
{
	if (wrong == NULL)
		return;
	fprintf(stderr, "worker %d: %s: %s\n", rank, name, wrong);
	failures++;
}

// A barrier without the spinning of MPI's own: the others may need the processors.
static void meet(void)
{
	MPI_Request all;
	int there = 0;
	MPI_Ibarrier(MPI_COMM_WORLD, &all);
	while (MPI_Test(&all, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS && !there)
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
}

enum { PATIENCE = 60 }; // seconds: no program takes so long on a busy machine

static choir_cluster *borrow(double timeout)
{
	MPI_Comm world = MPI_COMM_WORLD;
	choir_cluster *c = choir_cluster_from_mpi(
			&world, sizeof world, CHOIR_OPTIONS(choir_cluster_options, .timeout = timeout));
	if (c == NULL)
		report("from_mpi", choir_error());
	meet();
	return c;
}

// An address space of so many bytes that is one short file, again and again: large messages
// without large memory.
static unsigned char *long_view(size_t bytes, size_t step)
{
	const int file = memfd_create("view", 0);
	unsigned char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file < 0 || ftruncate(file, (off_t) step) != 0 || at == MAP_FAILED)
		return NULL;
	for (size_t i = 0; i < bytes; i += step)
		if (mmap(at + i, bytes - i < step ? bytes - i : step, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
			return NULL;
	return at;
}

static const char *more_than_two_gigabytes(choir_cluster *c)
{
	const size_t step = (size_t) 16 << 20, bytes = ((size_t) 1 << 31) + 12345;
	if (rank > 1)
		return NULL;
	unsigned char *data = long_view(bytes, step);
	if (data == NULL)
		return "no address space";
	for (size_t i = 0; rank == 0 && i < step; i++)
		data[i] = (unsigned char) (i % 251);
	chi_fingerprint f;
	chi_fingerprint_set(&f, 1, "a large message");
	chi_message *m = calloc(1, sizeof *m);
	choir_status status = m == NULL ? CHOIR_NO_MEMORY
			: rank == 0				? chi_message_send(m, c, 1, 7, &f, data, bytes)
									: chi_message_receive(m, c, 0, 7, &f, data, bytes);
	if (status == CHOIR_OK)
		status = chi_message_wait(&m, 1, chi_cluster_deadline(c, PATIENCE));
	free(m);
	if (status != CHOIR_OK)
		return choir_error();
	// Both views are shorter than they look: the last bytes are those of the file's beginning.
	for (size_t i = 0; i < step; i++)
		if (data[i] != (unsigned char) (i % 251))
			return "the bytes that came are others";
	return NULL;
}

static const suite_program large = { "more than 2^31 bytes", 2, false, false,
	more_than_two_gigabytes };

static int all_workers(void)
{
	int size = 1;
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	return size;
}

static void run(const suite_program *p)
{
	const double timeout = p->waits ? SUITE_TIMEOUT : PATIENCE;
	choir_cluster *c = all_workers() < p->min ? NULL : borrow(timeout);
	if (c != NULL)
		report(p->name, p->run(c));
	choir_cluster_free(c);
	meet(); // MPI is still the program's
}

// Many to a launch, each on a communicator of its own.
static void run_mismatches(int count)
{
	for (int seed = 0; seed < count; seed++) {
		char name[32];
		snprintf(name, sizeof name, "mismatch %d", seed);
		choir_cluster *c = borrow(PATIENCE);
		if (c != NULL)
			report(name, suite_mismatch(c, (uint64_t) seed));
		choir_cluster_free(c);
		meet();
	}
}

// The same of strategies.
static void run_strategies_that_differ(int count)
{
	for (int seed = 1; seed <= count; seed++) {
		choir_cluster *c = borrow(PATIENCE);
		choir_strategy *s =
				choir_multi_worker_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
						.cluster = c, .devices = "cpu:0", .replicas = 5, .timeout = 20));
		if (c != NULL)
			report("strategies", mismatch_run(s, rank, all_workers(), (uint64_t) seed));
		choir_strategy_free(s);
		choir_cluster_free(c);
		meet();
	}
}

// ---- Hosts with other levels of threads.

static choir_status add_ones(choir_replica *r, void *user)
{
	choir_tensor *sum = choir_replica_all_reduce(
			r, CHOIR_SUM, choir_fill(r->frame, CHOIR_F64, CHOIR_SCALAR, 1));
	if (sum != NULL && choir_replica_id(r) == *(int *) user)
		*(int *) user = (int) choir_tensor_number(sum);
	return sum == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_strategy *strategy_on(choir_cluster *c, const char *devices)
{
	return choir_multi_worker_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.cluster = c, .devices = devices, .timeout = 20, .overlap = CHOIR_ON));
}

static void *meet_elsewhere(void *c)
{
	report("another thread", suite_failure(choir_cluster_barrier(c), CHOIR_UNSUPPORTED, "thread"));
	return NULL;
}

// What one device needs is there on every level; what more need is refused on the lower ones.
static void use_level(int level)
{
	int all = 0, sum = rank;
	choir_cluster *c = borrow(PATIENCE);
	choir_strategy *s = c == NULL ? NULL : strategy_on(c, "cpu:0");
	MPI_Comm_size(MPI_COMM_WORLD, &all);
	if (s == NULL || choir_strategy_run(s, add_ones, &sum, NULL, NULL) != CHOIR_OK || sum != all)
		report("one device", choir_error());
	choir_strategy_free(s);
	s = c == NULL ? NULL : strategy_on(c, "cpu:0,cpu:1");
	if (level >= MPI_THREAD_SERIALIZED && s == NULL)
		report("two devices", choir_error());
	if (level < MPI_THREAD_SERIALIZED)
		report("two devices",
				s != NULL ? "one thread was enough"
						  : suite_failure(choir_error_status(), CHOIR_UNSUPPORTED,
									"MPI_THREAD_SERIALIZED"));
	choir_strategy_free(s);
	choir_cluster_free(c);
	meet();
	pthread_t other;
	c = level < MPI_THREAD_SERIALIZED ? borrow(PATIENCE) : NULL;
	if (c != NULL && pthread_create(&other, NULL, meet_elsewhere, c) == 0)
		pthread_join(other, NULL);
	choir_cluster_free(c);
	meet();
}

static void refuse(MPI_Comm comm, const char *name)
{
	choir_cluster *c = choir_cluster_from_mpi(&comm, sizeof comm, NULL);
	report(name,
			c != NULL ? "a cluster" : suite_failure(choir_error_status(), CHOIR_INVALID, name));
	choir_cluster_free(c);
}

static void refuse_what_is_no_group(void)
{
	MPI_Comm half, both;
	refuse(MPI_COMM_NULL, "MPI_COMM_NULL"); // as from MPI_Comm_split with MPI_UNDEFINED
	if (all_workers() == 1)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 0, &both);
	refuse(both, "intercommunicator");
	MPI_Comm_free(&both);
	MPI_Comm_free(&half);
}

// A host that has asked for a level, "" for MPI_Init; and one that hands over what is none.
static int be_host(const char *asked)
{
	const int wanted = strcmp(asked, "funneled") == 0 ? MPI_THREAD_FUNNELED
			: strcmp(asked, "serialized") == 0		  ? MPI_THREAD_SERIALIZED
													  : MPI_THREAD_SINGLE;
	int level;
	MPI_Comm world = MPI_COMM_WORLD;
	if (asked[0] == '\0')
		MPI_Init(NULL, NULL);
	else
		MPI_Init_thread(NULL, NULL, wanted, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (choir_cluster_from_mpi(&world, 3, NULL) != NULL)
		report("handle", "three bytes were taken for a communicator");
	report("handle", suite_failure(choir_error_status(), CHOIR_INVALID, "3 bytes"));
	refuse_what_is_no_group();
	const MPI_Fint number = MPI_Comm_c2f(MPI_COMM_WORLD); // as Fortran has it
	choir_cluster *c = choir_cluster_from_mpi(&number, sizeof number, NULL);
	report("Fortran's communicator", c == NULL ? choir_error() : NULL);
	choir_cluster_free(c);
	MPI_Query_thread(&level);
	use_level(level);
	MPI_Finalize(); // still the program's
	return failures != 0;
}

// The last process does not come until the others have given up; then nobody is there for it.
static void come_late(void)
{
	const int last = all_workers() - 1;
	char word = 0;
	MPI_Comm world = MPI_COMM_WORLD;
	for (int i = 0; rank == last && i < last; i++)
		MPI_Recv(&word, 1, MPI_CHAR, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	choir_cluster *c = choir_cluster_from_mpi(
			&world, sizeof world, CHOIR_OPTIONS(choir_cluster_options, .start_timeout = 0.2));
	report("late",
			c != NULL ? "a cluster without all"
					  : suite_failure(choir_error_status(), CHOIR_TIMEOUT,
								rank == last ? "waited"
											 : "0.2 s")); // the last may have waited longer
	if (rank != last)
		MPI_Send(&word, 1, MPI_CHAR, last, 0, MPI_COMM_WORLD);
}

static int count_of(const char *setting, int otherwise)
{
	const char *value = getenv(setting);
	return value == NULL ? otherwise : atoi(value);
}

int main(int argc, char **argv)
{
	int level, all = 0;
	if (argc > 1 && strncmp(argv[1], "host ", 5) == 0)
		return be_host(argv[1] + 5);
	if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS)
		return 1;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	const char *only = argc > 1 ? argv[1] : "";
	if (strcmp(only, "late") == 0)
		come_late();
	for (int i = 0; i < suite_count; i++)
		if (strstr(suite_programs[i].name, only) != NULL)
			run(&suite_programs[i]);
	if (strstr(large.name, only) != NULL && all_workers() == 2)
		run(&large);
	if (strstr("mismatches", only) != NULL && all_workers() > 1)
		run_mismatches(100);
	if (strstr("strategies", only) != NULL && all_workers() > 1)
		run_strategies_that_differ(count_of("CHOIR_MISMATCHES", all_workers() == 2 ? 100 : 25));
	MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
