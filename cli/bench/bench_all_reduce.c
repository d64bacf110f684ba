// choir bench all-reduce: sums of buffers that each replica has just written. No sum is faster
// than reading its operands, so the read bandwidth of all replicas is measured before and after.
#include "compare_options.h"
#include "bench/bench.h"
#include "output.h"
#include "precision_option.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MIN_BYTES = 4 << 10,
	DEFAULT_MAX = 64 << 20,
	READ_BYTES = 256 << 20,
	MAX_REPLICAS = 64,
	MIN_ROUNDS = 15,
	MAX_ROUNDS = 2001,
	READ_ROUNDS = 5,
	MAX_SHAPES = 161,
	TWICE_A_BYTE = 8 // rounds per size: TWICE_A_BYTE * DEFAULT_MAX / bytes
};

static struct {
	const char *devices, *operations, *shapes, *wire;
	int64_t replicas, max, rounds;
	bool json;
} given = { .replicas = 2, .max = DEFAULT_MAX, .rounds = MAX_ROUNDS };

static const char *const operations[] = { "direct", "ring", "hierarchical_copy",
	"reduce_to_one_device", NULL };
static const char *const shapes[] = { "resnet50", "gpt2", NULL };

static const option options[] = {
	{ "--replicas", "R", OPTION_INTEGER, &given.replicas, .help = "number of replicas (2)",
			.min = 1, .max = MAX_REPLICAS },
	{ "--devices", "LIST", OPTION_TEXT, &given.devices, .help = devices_help, .own = true },
	{ "--most", "BYTES", OPTION_INTEGER, &given.max,
			.help = "size of the largest buffer (67108864)", .min = MIN_BYTES, .max = 1 << 30 },
	{ "--rounds", "N", OPTION_INTEGER, &given.rounds,
			.help = "at most N rounds for each size (2001)", .min = 1, .max = MAX_ROUNDS },
	{ "--operations", "NAME", OPTION_CHOICE, &given.operations,
			.help = "algorithm: direct, ring, hierarchical_copy or\n"
					"reduce_to_one_device (chosen by the strategy)",
			.choices = operations },
	{ "--shapes", "NET", OPTION_CHOICE, &given.shapes,
			.help = "instead of buffers, reduce all gradients of resnet50 or\ngpt2 in one batch",
			.choices = shapes },
	{ "--wire", "DTYPE", OPTION_CHOICE, &given.wire,
			.help = "measure updates of variables instead, with gradients\n"
					"summed and sent in f32, f16 or bf16",
			.choices = wire_names },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir bench all-reduce",
	.about =
			"Measures all-reduce between replicas.\n\n"
			"Buffers grow from 4 KiB by factors of 4. Each size is measured in several\n"
			"rounds. In each round every replica first writes its buffer. Then all start the\n"
			"all-reduce together, and the slowest replica's time counts. GB/s is the size of one\n"
			"buffer divided by the median time of all rounds. Under mpirun -n N the replicas are\n"
			"divided among N processes.\n\n"
			"With --wire, each buffer is the f32 gradient of a variable, and the time is that of\n"
			"the whole update by SGD: the gradient is rounded, summed and widened.",
	.examples = { "choir bench all-reduce --replicas 4 --operations ring",
			"mpirun -n 2 choir bench all-reduce --shapes resnet50 --json" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	int64_t bytes;
	size_t n; // tensors of --shapes, or gradients
	int64_t elements[MAX_SHAPES];
	choir_optimizer *optimizer; // --wire
	choir_variable *variable[MAX_SHAPES];
	int rounds;
	bool together; // each replica has its own device
	choir_cluster *cluster; // NULL: one worker
	int first; // this worker's first replica
	atomic_int arrived;
	atomic_bool stopped;
	double *seconds[MAX_REPLICAS]; // of each round
	const uint64_t *memory;
	_Atomic uint64_t sum; // so that the reads are not removed
} bench;

// Replicas that share a device cannot spin: a small all-reduce synchronizes them.
static choir_status start_together(choir_replica *r, bench *b, int round)
{
	if (!b->together)
		return choir_replica_all_reduce(
					   r, CHOIR_SUM, choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(1), 1)) == NULL
				? choir_error_status()
				: CHOIR_OK;
	const int all = (round + 1) * choir_replica_count(r);
	atomic_fetch_add(&b->arrived, 1);
	while (atomic_load(&b->arrived) < all)
		if (atomic_load(&b->stopped))
			return choir_fail(CHOIR_CANCELLED, "another replica failed");
	return CHOIR_OK;
}

static choir_status sum_round(choir_replica *r, bench *b, int round)
{
	const size_t mark = choir_frame_mark(r->frame);
	const choir_shape shape = CHOIR_SHAPE(b->bytes / (int64_t) sizeof(float));
	choir_tensor *t = choir_fill(r->frame, CHOIR_F32, shape, round + choir_replica_id(r));
	if (t == NULL)
		return choir_error_status();
	CHOIR_TRY(start_together(r, b, round));
	const double start = now();
	choir_tensor *sum = choir_replica_all_reduce(r, CHOIR_SUM, t);
	b->seconds[choir_replica_id(r) - b->first][round] = now() - start;
	if (sum == NULL)
		return choir_error_status();
	choir_frame_rewind(r->frame, mark);
	return CHOIR_OK;
}

// A read waits for the update.
static choir_status update(choir_replica *r, const bench *b, choir_tensor *const gradients[])
{
	for (size_t i = 0; i < b->n; i++)
		CHOIR_TRY(choir_optimizer_add_gradient(b->optimizer, r, b->variable[i], gradients[i]));
	CHOIR_TRY(choir_optimizer_apply_gradients(b->optimizer, r));
	for (size_t i = 0; i < b->n; i++)
		if (choir_variable_read(b->variable[i], r->frame) == NULL)
			return choir_error_status();
	return CHOIR_OK;
}

static choir_status sum_tensors(choir_replica *r, bench *b, int round)
{
	const size_t mark = choir_frame_mark(r->frame);
	choir_tensor *t[MAX_SHAPES];
	for (size_t i = 0; i < b->n; i++)
		t[i] = choir_fill(
				r->frame, CHOIR_F32, CHOIR_SHAPE(b->elements[i]), round + choir_replica_id(r));
	CHOIR_TRY(choir_frame_status(r->frame));
	CHOIR_TRY(start_together(r, b, round));
	const double start = now();
	CHOIR_TRY(b->optimizer != NULL ? update(r, b, t)
								   : choir_replica_batch_all_reduce(r, CHOIR_SUM, b->n, t, t));
	b->seconds[choir_replica_id(r) - b->first][round] = now() - start;
	choir_frame_rewind(r->frame, mark);
	return CHOIR_OK;
}

static choir_status sum_rounds(choir_replica *r, void *user)
{
	bench *b = user;
	choir_status status = CHOIR_OK;
	for (int round = 0; status == CHOIR_OK && round < b->rounds; round++)
		status = b->n > 0 ? sum_tensors(r, b, round) : sum_round(r, b, round);
	if (status != CHOIR_OK)
		atomic_store(&b->stopped, true);
	return status;
}

static choir_status read_rounds(choir_replica *r, void *user)
{
	bench *b = user;
	const size_t words = READ_BYTES / sizeof(uint64_t) / (size_t) choir_replica_count(r);
	const uint64_t *own = b->memory + words * (size_t) choir_replica_id(r);
	for (int round = 0; round < b->rounds; round++) {
		CHOIR_TRY(start_together(r, b, round));
		const double start = now();
		uint64_t sum = 0;
		for (size_t i = 0; i < words; i++)
			sum += own[i];
		atomic_fetch_add(&b->sum, sum);
		b->seconds[choir_replica_id(r)][round] = now() - start;
	}
	return CHOIR_OK;
}

static choir_status meet_workers(bench *b)
{
	const int workers = b->cluster == NULL ? 1 : choir_cluster_workers(b->cluster);
	const size_t rounds = (size_t) b->rounds, bytes = rounds * sizeof(double);
	double *all = workers == 1 ? NULL : malloc((size_t) workers * bytes);
	if (workers == 1 || all == NULL)
		return workers == 1
				? CHOIR_OK
				: choir_fail(CHOIR_NO_MEMORY, "no memory for the times of %d workers", workers);
	const choir_status status = choir_cluster_all_gather(b->cluster, b->seconds[0], bytes, all);
	for (size_t i = 0; status == CHOIR_OK && i < (size_t) workers * rounds; i++)
		if (all[i] > b->seconds[0][i % rounds])
			b->seconds[0][i % rounds] = all[i];
	free(all);
	return status;
}

// The median of the slowest replica's times.
static choir_status slowest(choir_strategy *s, choir_replica_fn *fn, bench *b, double *seconds)
{
	const int replicas = choir_strategy_local_replicas(s);
	atomic_store(&b->arrived, 0);
	CHOIR_TRY(choir_strategy_run(s, fn, b, NULL, NULL));
	for (int round = 0; round < b->rounds; round++)
		for (int r = 1; r < replicas; r++)
			if (b->seconds[r][round] > b->seconds[0][round])
				b->seconds[0][round] = b->seconds[r][round];
	CHOIR_TRY(meet_workers(b));
	*seconds = median((size_t) b->rounds, b->seconds[0]);
	return CHOIR_OK;
}

static void print_read(double rate)
{
	if (given.json) {
		json_begin();
		json_number("read_gb_per_s", rate);
		json_end();
	} else {
		printf("read bandwidth %.1f GB/s\n", rate);
	}
	fflush(stdout);
}

static bool speaks(const bench *b)
{
	return b->cluster == NULL || choir_cluster_is_chief(b->cluster);
}

static void print_sum(const bench *b, double seconds)
{
	if (!speaks(b))
		return;
	const double rate = (double) b->bytes / seconds / 1e9;
	if (given.json) {
		json_begin();
		if (given.wire != NULL)
			json_text("wire", given.wire);
		json_integer("bytes", b->bytes);
		json_integer("rounds", b->rounds);
		json_number("us_median", 1e6 * seconds);
		json_number("gb_per_s", rate);
		json_end();
	} else {
		printf("%10lld bytes %10.2f us %8.2f GB/s\n", (long long) b->bytes, 1e6 * seconds, rate);
	}
	fflush(stdout);
}

static void print_shapes(const bench *b, double seconds)
{
	if (!speaks(b))
		return;
	const double rate = (double) b->bytes / seconds / 1e9;
	if (given.json) {
		json_begin();
		json_text("shapes", given.shapes);
		if (given.wire != NULL)
			json_text("wire", given.wire);
		json_integer("tensors", (int64_t) b->n);
		json_integer("bytes", b->bytes);
		json_list("elements", b->n, b->elements);
		json_integer("rounds", b->rounds);
		json_number("ms_median", 1e3 * seconds);
		json_number("gb_per_s", rate);
		json_end();
	} else {
		printf("%s: %zu tensors, %lld bytes %10.3f ms %8.2f GB/s\n", given.shapes, b->n,
				(long long) b->bytes, 1e3 * seconds, rate);
	}
}

// Rates this small leave no trace in f32 numbers of other sizes.
static choir_status make_optimizer(choir_strategy *s, bench *b)
{
	choir_scope scope;
	CHOIR_TRY(choir_scope_enter(&scope, s));
	b->optimizer = choir_optimizer_new(
			CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1e-20));
	const choir_status status = b->optimizer == NULL ? choir_error_status() : CHOIR_OK;
	const choir_status left = choir_scope_exit(&scope);
	return status == CHOIR_OK ? left : status;
}

static choir_status make_variables(choir_strategy *s, bench *b)
{
	char name[48];
	choir_scope scope;
	choir_status status = CHOIR_OK;
	CHOIR_TRY(choir_scope_enter(&scope, s));
	for (size_t i = 0; i < b->n && status == CHOIR_OK; i++) {
		snprintf(name, sizeof name, "of_%lld_bytes/%zu", (long long) b->bytes, i);
		b->variable[i] = choir_variable_new(name, CHOIR_SHAPE(b->elements[i]), NULL);
		status = b->variable[i] == NULL ? choir_error_status() : CHOIR_OK;
	}
	const choir_status left = choir_scope_exit(&scope);
	return status == CHOIR_OK ? left : status;
}

static int bounded(int64_t rounds)
{
	return (int) (rounds < given.rounds ? rounds : given.rounds);
}

static choir_status measure_shapes(choir_strategy *s, bench *b)
{
	double seconds;
	b->n = bench_shapes(given.shapes, b->elements);
	b->bytes = 0;
	for (size_t i = 0; i < b->n; i++)
		b->bytes += b->elements[i] * (int64_t) sizeof(float);
	if (b->optimizer != NULL)
		CHOIR_TRY(make_variables(s, b));
	b->rounds = bounded(MIN_ROUNDS);
	CHOIR_TRY(slowest(s, sum_rounds, b, &seconds));
	print_shapes(b, seconds);
	return CHOIR_OK;
}

// The shortest time: other work can only make it longer.
static choir_status measure_read(choir_strategy *s, bench *b)
{
	double seconds;
	b->rounds = bounded(READ_ROUNDS);
	CHOIR_TRY(slowest(s, read_rounds, b, &seconds));
	print_read(READ_BYTES / b->seconds[0][0] / 1e9);
	return CHOIR_OK;
}

static choir_status measure_sums(choir_strategy *s, bench *b)
{
	for (b->bytes = MIN_BYTES; b->bytes <= given.max; b->bytes *= 4) {
		const int64_t rounds = (int64_t) TWICE_A_BYTE * DEFAULT_MAX / b->bytes;
		double seconds;
		b->rounds = bounded(rounds < MIN_ROUNDS ? MIN_ROUNDS : rounds);
		if (b->optimizer != NULL) {
			b->n = 1;
			b->elements[0] = b->bytes / (int64_t) sizeof(float);
			CHOIR_TRY(make_variables(s, b));
		}
		CHOIR_TRY(slowest(s, sum_rounds, b, &seconds));
		print_sum(b, seconds);
	}
	return CHOIR_OK;
}

static choir_status measure(choir_strategy *s, bench *b)
{
	uint64_t *memory = malloc(READ_BYTES);
	choir_status status = CHOIR_OK;
	for (int64_t r = 0; r < given.replicas; r++)
		if ((b->seconds[r] = malloc(MAX_ROUNDS * sizeof *b->seconds[r])) == NULL)
			status = CHOIR_NO_MEMORY;
	if (memory == NULL || status != CHOIR_OK) {
		free(memory);
		return choir_fail(
				CHOIR_NO_MEMORY, "no memory for %d bytes to read, and the times", READ_BYTES);
	}
	memset(memory, 1, READ_BYTES);
	b->memory = memory;
	b->cluster = choir_strategy_cluster(s);
	b->first = choir_strategy_first_replica_id(s);
	b->together = choir_strategy_worker_devices(s) == given.replicas;
	if (b->cluster == NULL) // measured in one process only
		status = measure_read(s, b);
	if (status == CHOIR_OK && given.wire != NULL)
		status = make_optimizer(s, b);
	if (status == CHOIR_OK)
		status = given.shapes != NULL ? measure_shapes(s, b) : measure_sums(s, b);
	b->n = 0;
	if (status == CHOIR_OK && b->cluster == NULL)
		status = measure_read(s, b);
	free(memory);
	return status;
}

static choir_strategy *make_strategy(choir_cluster *c)
{
	if (choir_cluster_workers(c) == 1)
		return bench_strategy(given.replicas, given.devices, 1,
				CHOIR_OPTIONS(choir_strategy_options, .cross_device_ops = given.operations,
						.wire = wire_of(given.wire)));
	if (given.operations == NULL)
		return bench_strategy(given.replicas, given.devices, 1,
				CHOIR_OPTIONS(choir_strategy_options, .cluster = c, .wire = wire_of(given.wire)));
	choir_fail(CHOIR_INVALID,
			"--operations %s: %d processes were started, "
			"which have one algorithm; needs one process",
			given.operations, choir_cluster_workers(c));
	return NULL;
}

int bench_all_reduce_main(int argc, char **argv)
{
	options_read(&self, argc, argv, NULL);
	static bench b;
	choir_cluster *c = choir_cluster_new(NULL);
	if (c == NULL)
		return failed(&self);
	choir_strategy *s = options_check_equal(&self, c) == CHOIR_OK ? make_strategy(c) : NULL;
	const int code = s != NULL && measure(s, &b) == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_strategy_free(s);
	choir_cluster_free(c);
	for (int64_t r = 0; r < given.replicas; r++)
		free(b.seconds[r]);
	return code;
}
