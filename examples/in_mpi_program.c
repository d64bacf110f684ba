// Shows Choir inside an MPI program that has its own domain decomposition and its own gradients.
// The program simulates the temperature in a ring of cells. Each process has one part of the ring.
// A linear model learns from all parts how the temperature changes. Choir sums the gradients of
// all processes over a duplicate of the program's communicator. It updates the weights in place,
// to the same values in all processes.
// Run it in this folder: make mpi && mpirun -n 2 ./in_mpi_program
#include <choir/choir.h>

#include <math.h>
#include <mpi.h>
#include <stdio.h>

enum { CELLS = 400, WEIGHTS = 3, STEPS = 300 };

static float rod[CELLS + 2]; // cells of this process, and one cell of each neighbour
static float features[CELLS][WEIGHTS], change[CELLS];
static float w[WEIGHTS]; // the weights; they approach (0.2, -0.4, 0.2)

static void swap_ends(MPI_Comm comm) // the program's messages
{
	int rank, size;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	const int left = (rank + size - 1) % size, right = (rank + 1) % size;
	MPI_Sendrecv(&rod[1], 1, MPI_FLOAT, left, 0, &rod[CELLS + 1], 1, MPI_FLOAT, right, 0, comm,
			MPI_STATUS_IGNORE);
	MPI_Sendrecv(&rod[CELLS], 1, MPI_FLOAT, right, 1, &rod[0], 1, MPI_FLOAT, left, 1, comm,
			MPI_STATUS_IGNORE);
}

static void advance(MPI_Comm comm, int step) // the program's simulation
{
	int rank;
	MPI_Comm_rank(comm, &rank);
	swap_ends(comm);
	for (int c = 0; c < CELLS; c++) {
		for (int i = 0; i < WEIGHTS; i++)
			features[c][i] = rod[c + i];
		change[c] = 0.2f * (rod[c] - 2 * rod[c + 1] + rod[c + 2]);
	}
	for (int c = 0; c < CELLS; c++)
		rod[c + 1] += change[c] + sinf((float) ((rank * CELLS + c) * step)) / 10;
}

struct learning {
	choir_variable *w;
	choir_optimizer *adam;
	double loss; // this process's part of the mean loss
	float gradient[WEIGHTS];
};

// Computes a linear model's squared error on the cells of this process, and the error's gradient.
static choir_status learn(choir_replica *r, void *user)
{
	struct learning *l = (struct learning *) user;
	const float all = (float) (CELLS * choir_replica_count(r));
	l->loss = 0;
	for (int i = 0; i < WEIGHTS; i++)
		l->gradient[i] = 0;
	for (int c = 0; c < CELLS; c++) {
		float error = -change[c];
		for (int i = 0; i < WEIGHTS; i++)
			error += w[i] * features[c][i];
		for (int i = 0; i < WEIGHTS; i++)
			l->gradient[i] += 2 * error * features[c][i] / all;
		l->loss += error * error / all;
	}
	CHOIR_TRY(choir_optimizer_add_gradient_memory(
			l->adam, r, l->w, l->gradient, sizeof l->gradient));
	return choir_optimizer_apply_gradients(l->adam, r);
}

static void train(MPI_Comm comm, choir_cluster *workers, choir_strategy *s)
{
	struct learning l = { NULL, NULL, 0, { 0 } };
	CHOIR_SCOPE (s) {
		l.w = choir_variable_wrap("w", CHOIR_F32, CHOIR_SHAPE(WEIGHTS), w);
		l.adam = choir_optimizer_new(
				CHOIR_ADAM, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1e-2));
	}
	for (int step = 1; step <= STEPS; step++) {
		advance(comm, step);
		CHOIR_CHECK(choir_strategy_run(s, learn, &l, NULL, NULL));
		double loss = 0;
		MPI_Reduce(&l.loss, &loss, 1, MPI_DOUBLE, MPI_SUM, 0, comm);
		if (choir_strategy_is_chief(s) && step % 100 == 0)
			printf("step %d: loss %.2e\n", step, loss);
	}
	printf("worker %d: w is %.3f %.3f %.3f\n", choir_cluster_worker(workers), w[0], w[1], w[2]);
}

int main(int argc, char **argv)
{
	int level;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
	MPI_Comm comm = MPI_COMM_WORLD;
	choir_cluster *workers = choir_cluster_from_mpi(&comm, sizeof comm, NULL);
	// Without a cluster, each process would train alone.
	choir_strategy *s = workers == NULL
			? NULL
			: choir_multi_worker_mirrored_strategy_new(CHOIR_OPTIONS(
					  choir_strategy_options, .cluster = workers, .devices = "cpu:0"));
	if (s == NULL) {
		fprintf(stderr, "%s\n", choir_error());
		MPI_Abort(comm, 1);
	}
	train(comm, workers, s);
	choir_strategy_free(s);
	choir_cluster_free(workers);
	MPI_Finalize();
	return 0;
}
