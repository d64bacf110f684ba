// choir bench closures: steps of a coordinator's job. Each process of the job runs this command
// (choir run --servers). The cases are those of the peer program with TensorFlow: each closure is
// a step with a whole batch, which the worker has in memory. With --threads the workers are
// threads of this process.
#include "bench/bench.h"
#include "model/model.h"
#include "output.h"

#include <choir/coordinator.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROWS = 1 << 18,
	WIDTH = 64,
	IDS = 26,
	EXAMPLES = 512,
	INPUTS = 784,
	CLASSES = 10,
	ROUNDS = 7,
	THREADS = 64
};

static const char *const cases[] = { "null", "mlp128", "mlp1024", "embed", "embed_zipf", NULL };
static struct {
	const char *which;
	int64_t workers;
	double seconds;
	bool threads, json; // json: also without the option
} given = { .which = "null", .workers = 2, .seconds = 5 };

static const option options[] = {
	{ "--case", "NAME", OPTION_CHOICE, &given.which,
			.help = "what a closure does, see above (null)", .choices = cases },
	{ "--workers", "N", OPTION_INTEGER, &given.workers,
			.help = "number of workers to wait for (2)", .min = 1, .max = 1024 },
	{ "--seconds", "S", OPTION_NUMBER, &given.seconds, .help = "seconds to measure (5)" },
	{ "--threads", NULL, OPTION_FLAG, &given.threads,
			.help = "measure N workers and one worker that are threads of this\n"
					"process, in turns, without a coordinator; needs --case" },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = "no effect: the output is always JSON" },
};
static const command self = {
	.name = "choir bench closures",
	.about = "Measures closures of a coordinator's job. Each process prints a JSON object.\n\n"
			 "null: an empty closure\n"
			 "mlp128, mlp1024: a step of 784-512-512-10; batch 128 or 1024, SGD 0.01 with\n"
			 "momentum 0.9\n"
			 "embed: a step with the mean of 26 of 262144 rows of width 64, dense 256, dense 1;\n"
			 "batch 512, SGD 0.01\n"
			 "embed_zipf: the same, but most examples use the same few rows\n\n"
			 "Each process of the job runs this command, and prints the most memory that it had\n"
			 "(rss_mb). steps_per_s is the median of seven rounds of all workers. staleness is\n"
			 "the mean number of changes on a server between a worker's pull and its push.",
	.examples = { "choir run -n 4 --servers 1 -- choir bench closures --case mlp128",
			"choir bench closures --case embed --threads" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	choir_coordinator *coordinator;
	model model; // of mlp
	choir_layer *table, *top; // of embed
	choir_optimizer *optimizer;
	int64_t batch;
	// A worker's.
	float *input;
	int32_t *id;
	uint8_t *label;
} bench;

static bool is_case(const char *begin)
{
	return strncmp(given.which, begin, strlen(begin)) == 0;
}

static choir_status build_mlp(bench *b)
{
	model_plan *plan = &b->model.plan;
	CHOIR_TRY(model_plan_set(plan, "mlp", NULL));
	CHOIR_TRY(model_plan_resize(plan, &(model_size){ 0 }));
	plan->image = (choir_shape){ 1, { INPUTS } };
	plan->classes = CLASSES;
	plan->scale = 1;
	return model_build(&b->model, plan);
}

static choir_status build(choir_strategy *s, void *user)
{
	bench *b = user;
	choir_scope scope;
	CHOIR_TRY(choir_scope_enter(&scope, s));
	choir_status status = is_case("mlp") ? build_mlp(b) : CHOIR_OK;
	if (is_case("embed")) {
		choir_layer *layers[] = { choir_dense_new("hidden", WIDTH, 256, CHOIR_RELU),
			choir_dense_new("output", 256, 1, CHOIR_LINEAR) };
		b->table = choir_embedding_new("table", ROWS, WIDTH);
		b->top = choir_sequential_new(2, layers);
		if (b->table == NULL || b->top == NULL)
			status = choir_error_status();
	}
	b->optimizer = choir_optimizer_new(is_case("mlp") ? CHOIR_MOMENTUM : CHOIR_SGD,
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.01));
	if (status == CHOIR_OK && b->optimizer == NULL)
		status = choir_error_status();
	const choir_status left = choir_scope_exit(&scope);
	return status == CHOIR_OK ? left : status;
}

static double draw(void) // from [0, 1)
{
	static uint64_t x = 88172645463325252u; // xorshift64 (Marsaglia 2003)
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (double) (x >> 11) * 0x1p-53;
}

// Rejection from a Pareto distribution (Devroye, Non-Uniform Random Variate Generation, 1986).
static int32_t draw_zipf(void)
{
	const double a = 0.2, b = exp2(a); // exponent 1.2
	for (;;) {
		const double v = draw(), x = floor(pow(1 - draw(), -1 / a)), t = pow(1 + 1 / x, a);
		if (x < 0x1p62 && v * x * (t - 1) / (b - 1) <= t / b)
			return (int32_t) ((int64_t) x % ROWS);
	}
}

static choir_status draw_batch(bench *b)
{
	const bool table = is_case("embed");
	b->batch = table ? EXAMPLES : strtoll(given.which + strlen("mlp"), NULL, 10);
	const int64_t inputs = b->batch * (table ? IDS : INPUTS);
	b->label = malloc((size_t) b->batch);
	b->id = table ? malloc((size_t) inputs * sizeof *b->id) : NULL;
	b->input = table ? NULL : malloc((size_t) inputs * sizeof *b->input);
	if (b->label == NULL || (b->id == NULL && b->input == NULL))
		return choir_fail(CHOIR_NO_MEMORY, "--case %s: no memory for a batch", given.which);
	for (int64_t i = 0; i < inputs; i++)
		if (!table)
			b->input[i] = (float) (draw() + draw() + draw() + draw() - 2) * 1.7320508f;
		else
			b->id[i] = is_case("embed_zipf") ? draw_zipf() : (int32_t) (draw() * ROWS);
	for (int64_t i = 0; i < b->batch; i++)
		b->label[i] = (uint8_t) (draw() * (table ? 2 : CLASSES));
	return CHOIR_OK;
}

static choir_status set_batch(const bench *b, choir_values *args)
{
	const bool table = b->id != NULL;
	choir_frame *f = choir_values_frame(args);
	CHOIR_TRY(choir_values_split(args, "input",
			table ? choir_borrow(f, CHOIR_I32, CHOIR_SHAPE(b->batch, IDS), b->id)
				  : choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(b->batch, INPUTS), b->input)));
	return choir_values_split(
			args, "label", choir_borrow(f, CHOIR_U8, CHOIR_SHAPE(b->batch), b->label));
}

static choir_tensor *losses_of(choir_replica *r, const bench *b)
{
	choir_tensor *label = choir_replica_arg(r, "label"), *input = choir_replica_arg(r, "input");
	if (b->table == NULL)
		return model_losses(&b->model, label, model_apply(&b->model, input));
	choir_tensor *mean = choir_mean(choir_layer_apply(b->table, input), CHOIR_AXIS(1));
	choir_tensor *logits = choir_layer_apply(b->top, mean);
	return choir_sigmoid_cross_entropy(
			choir_reshape(choir_cast(label, CHOIR_F32), *choir_tensor_shape(logits)), logits);
}

static choir_status step(choir_replica *r, void *user)
{
	const bench *b = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *loss = choir_mean(losses_of(r, b), CHOIR_ALL_AXES);
	CHOIR_TRY(choir_replica_return(r, "loss", loss));
	return choir_optimizer_minimize(b->optimizer, loss, tape);
}

static choir_status train(choir_closure *c, void *user)
{
	bench *b = user;
	choir_strategy *s = choir_closure_strategy(c);
	if (is_case("null"))
		return CHOIR_OK;
	if (b->label == NULL)
		CHOIR_TRY(draw_batch(b));
	choir_values *args = choir_values_new(s), *results = NULL;
	choir_status status = args == NULL ? choir_error_status() : set_batch(b, args);
	if (status == CHOIR_OK)
		status = choir_strategy_run(s, step, b, args, &results);
	if (status == CHOIR_OK)
		status = choir_closure_return(
				c, "loss", choir_value_local(choir_values_find(results, "loss"), 0));
	choir_values_free(args);
	choir_values_free(results);
	return status;
}

static const choir_function functions[] = { { "train", train, NULL }, { NULL, NULL, NULL } };

static choir_status find_loss(bench *b, double *loss)
{
	choir_remote_value *value;
	choir_values *set;
	CHOIR_TRY(choir_coordinator_schedule(b->coordinator, "train", NULL, &value));
	choir_status status = choir_coordinator_fetch(b->coordinator, value, &set);
	choir_tensor *t =
			status == CHOIR_OK ? choir_value_tensor(choir_values_find(set, "loss")) : NULL;
	*loss = t == NULL ? NAN : choir_tensor_number(t);
	choir_remote_value_free(value);
	return status;
}

static choir_status go(bench *b, int64_t n, double *rate)
{
	const double begin = now();
	for (int64_t i = 0; i < n; i++)
		CHOIR_TRY(choir_coordinator_schedule(b->coordinator, "train", NULL, NULL));
	CHOIR_TRY(choir_coordinator_join(b->coordinator));
	*rate = (double) n / (now() - begin);
	return CHOIR_OK;
}

static choir_status coordinate(bench *b)
{
	double rate, rates[ROUNDS], loss[2] = { NAN, NAN }, stale;
	int64_t stalest;
	char version[32];
	const double until = now() + 30;
	while (choir_coordinator_workers(b->coordinator) < given.workers && now() < until)
		CHOIR_TRY(go(b, 1, &rate));
	if (!is_case("null"))
		CHOIR_TRY(find_loss(b, &loss[0]));
	CHOIR_TRY(go(b, 4 * given.workers, &rate));
	CHOIR_TRY(go(b, 8 * given.workers, &rate));
	for (int i = 0; i < ROUNDS; i++) {
		const int64_t n = (int64_t) (rate * given.seconds / ROUNDS);
		CHOIR_TRY(go(b, n < 4 * given.workers ? 4 * given.workers : n, &rates[i]));
		rate = rates[i];
	}
	if (!is_case("null"))
		CHOIR_TRY(find_loss(b, &loss[1]));
	choir_coordinator_staleness(b->coordinator, &stale, &stalest);
	json_begin();
	json_text("peer", bench_version(version));
	json_text("strategy", "parameter_server");
	json_text("case", given.which);
	json_integer("workers", choir_coordinator_workers(b->coordinator));
	json_number("steps_per_s", median(ROUNDS, rates));
	json_number("steps_per_s_best", rates[ROUNDS - 1]);
	json_number("loss_first", loss[0]);
	json_number("loss_last", loss[1]);
	json_number("staleness", stale);
	json_integer("staleness_max", stalest);
	json_number("rss_mb", bench_peak_mb());
	json_end();
	return CHOIR_OK;
}

static choir_status serve(choir_task *task, const choir_coordinator_options *o)
{
	CHOIR_TRY(choir_task_serve(task, NULL, o));
	json_begin();
	json_text("task", choir_task_type(task));
	json_integer("index", choir_task_index(task));
	json_number("rss_mb", bench_peak_mb());
	json_end();
	return CHOIR_OK;
}

static void free_batch(bench *b)
{
	free(b->input);
	free(b->id);
	free(b->label);
}

// Workers as threads.

typedef struct {
	choir_strategy *strategy;
	bench worker[THREADS]; // with a batch each
	double until, rate[THREADS]; // rate: steps of each worker, per second
} side;

static choir_status work(choir_strategy *group, int worker, void *user)
{
	side *c = user;
	bench *b = &c->worker[worker];
	choir_values *args = choir_values_new(group);
	choir_status status = args == NULL ? choir_error_status() : set_batch(b, args);
	const double begin = now();
	int64_t steps = 0;
	for (; status == CHOIR_OK && (steps == 0 || now() < c->until); steps++)
		status = choir_strategy_run(group, step, b, args, NULL);
	c->rate[worker] = (double) steps / (now() - begin);
	choir_values_free(args);
	return status;
}

static choir_status open_side(side *c, int64_t workers)
{
	bench made = { .coordinator = NULL };
	c->strategy = choir_parameter_server_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .workers = (int) workers, .replicas = (int) workers));
	CHOIR_TRY(c->strategy == NULL ? choir_error_status() : build(c->strategy, &made));
	for (int64_t i = 0; i < workers; i++) {
		c->worker[i] = made;
		CHOIR_TRY(draw_batch(&c->worker[i]));
	}
	return CHOIR_OK;
}

// Workers that are ready do not wait for others.
static choir_status measure_side(side *c, double seconds, double *rate)
{
	c->until = now() + seconds;
	CHOIR_TRY(choir_strategy_run_workers(c->strategy, work, c));
	*rate = 0;
	for (int i = 0; i < choir_strategy_workers(c->strategy); i++)
		*rate += c->rate[i];
	return CHOIR_OK;
}

static choir_status compare_sides(side sides[2])
{
	double rates[2][ROUNDS], ratios[ROUNDS];
	const double seconds = given.seconds / (2 * ROUNDS);
	if (is_case("null") || given.workers > THREADS)
		return choir_fail(CHOIR_INVALID,
				"--threads: case %s with %lld workers; a case that trains, and at most %d needed",
				given.which, (long long) given.workers, THREADS);
	for (int k = 0; k < 2; k++) {
		CHOIR_TRY(open_side(&sides[k], k == 0 ? 1 : given.workers));
		CHOIR_TRY(measure_side(&sides[k], seconds, &rates[k][0])); // warm-up
	}
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < 2; k++)
			CHOIR_TRY(measure_side(&sides[k], seconds, &rates[k][i]));
		ratios[i] = rates[1][i] / rates[0][i];
	}
	char version[32];
	json_begin();
	json_text("peer", bench_version(version));
	json_text("case", given.which);
	json_integer("workers", given.workers);
	json_number("steps_per_s", median(ROUNDS, rates[1]));
	json_number("steps_per_s_of_one", median(ROUNDS, rates[0]));
	json_number("ratio", median(ROUNDS, ratios));
	json_number("rss_mb", bench_peak_mb());
	json_end();
	return CHOIR_OK;
}

static int run_threads(void)
{
	static side sides[2];
	const int code = compare_sides(sides) == CHOIR_OK ? EXIT_OK : failed(&self);
	for (int k = 0; k < 2; k++) {
		choir_strategy_free(sides[k].strategy);
		for (int i = 0; i < THREADS; i++)
			free_batch(&sides[k].worker[i]);
	}
	return code;
}

int bench_closures_main(int argc, char **argv)
{
	options_read(&self, argc, argv, NULL);
	if (given.threads)
		return run_threads();
	char program[64];
	static bench b;
	snprintf(program, sizeof program, "choir bench closures %s", given.which);
	const choir_coordinator_options o = {
		.size = sizeof o, .functions = functions, .build = build, .user = &b, .program = program
	};
	choir_task *task = choir_task_new(NULL);
	choir_status status = task == NULL ? choir_error_status() : CHOIR_OK;
	choir_strategy *s = NULL;
	if (status == CHOIR_OK && strcmp(choir_task_type(task), "coordinator") != 0) {
		status = serve(task, &o);
	} else if (status == CHOIR_OK) {
		s = choir_parameter_server_strategy_new(NULL);
		b.coordinator = choir_coordinator_new(s, task, &o);
		status = b.coordinator == NULL ? choir_error_status() : coordinate(&b);
	}
	const int code = status == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_coordinator_free(b.coordinator);
	choir_strategy_free(s);
	choir_task_free(task);
	free_batch(&b);
	return code;
}
