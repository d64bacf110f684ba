// choir bench train: fixed models on random data in memory, so that other libraries can be
// measured on the same work (tools/bench-peers). Groups of three steps are measured, after five
// steps of warm-up.
#include "compare_options.h"
#include "bench/bench.h"
#include "bench/checkpoint_cost.h"
#include "trace_breakdown.h"
#include "precision_option.h"
#include "bench/roofline_gap.h"
#include "bench/roofline.h"
#include "model/model.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 5, GROUP = 3, MAX_GROUPS = 1 << 20, TRACED = 200, CLASSES = 10 };

// rate 0: the optimizer's default.
static const struct {
	const char *name, *model;
	int64_t batch;
	choir_shape image; // [context] for text
	model_size size;
	choir_optimizer_kind optimizer;
	double rate;
} kinds[] = {
	{ "mlp128", "mlp", 128, { 1, { 784 } }, { 0 }, CHOIR_MOMENTUM, 0.01 },
	{ "mlp1024", "mlp", 1024, { 1, { 784 } }, { 0 }, CHOIR_MOMENTUM, 0.01 },
	{ "cnn", "cnn", 128, { 2, { 28, 28 } }, { 0 }, CHOIR_ADAM, 1e-3 },
	{ "resnet20", "resnet20", 128, { 3, { 32, 32, 3 } }, { 0 }, CHOIR_MOMENTUM, 0.1 },
	{ "resnet18", "resnet18", 128, { 3, { 32, 32, 3 } }, { 0 }, CHOIR_MOMENTUM, 0.1 },
	{ "mobilenet", "mobilenet", 128, { 3, { 32, 32, 3 } }, { 0 }, CHOIR_MOMENTUM, 0.1 },
	{ "lstm", "lstm", 64, { 1, { 64 } }, { 0 }, CHOIR_ADAM, 1e-3 },
	{ "gpt128", "gpt", 16, { 1, { 128 } }, { .width = 128 }, CHOIR_ADAMW, 3e-4 },
	{ "gpt256", "gpt", 16, { 1, { 128 } }, { .width = 256 }, CHOIR_ADAMW, 3e-4 },
};
static const char *const cases[] = { "mlp128", "mlp1024", "cnn", "resnet20", "resnet18",
	"mobilenet", "lstm", "gpt128", "gpt256", NULL };

static struct {
	const char *which, *devices, *save, *precision, *wire;
	int64_t replicas, cores;
	double seconds;
	bool json, breakdown;
} given = {
	.which = "mlp128", .precision = "f32", .wire = "f32", .replicas = 2, .cores = 1, .seconds = 5
};

static const option options[] = {
	{ "--case", "NAME", OPTION_CHOICE, &given.which, .help = "model to train, see above (mlp128)",
			.choices = cases },
	{ "--replicas", "R", OPTION_INTEGER, &given.replicas,
			.help = "replicas that share the batch (2)", .min = 1, .max = 1 << 10 },
	{ "--devices", "LIST", OPTION_TEXT, &given.devices, .help = devices_help, .own = true },
	{ "--cores", "N", OPTION_INTEGER, &given.cores, .help = "threads per device (1)", .min = 1,
			.max = 1 << 10, .own = true },
	{ "--precision", "NAME", OPTION_CHOICE, &given.precision, .help = precision_help,
			.choices = precision_names },
	{ "--wire", "DTYPE", OPTION_CHOICE, &given.wire, .help = wire_help, .choices = wire_names },
	{ "--seconds", "S", OPTION_NUMBER, &given.seconds, .help = "seconds to measure (5)" },
	{ "--save", "DIR", OPTION_TEXT, &given.save,
			.help = "also save checkpoints to DIR, and measure how long an\n"
					"asynchronous save blocks the program: first_save_call_ms,\n"
					"save_call_ms, copy_ms (a memcpy of as many bytes), and the\n"
					"steps before and after a save (medians of 8 saves, except\n"
					"the first)" },
	{ "--breakdown", NULL, OPTION_FLAG, &given.breakdown,
			.help = "trace more steps (at most 200, or 2 s), and print where\n"
					"their time went and how far each kind of work is from its\n"
					"limit" },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = "also print --breakdown as JSON" },
};
static const command self = {
	.name = "choir bench train",
	.about =
			"Measures training steps of fixed models and prints one JSON object.\n\n"
			"mlp128, mlp1024: 784-512-512-10; batch 128 or 1024, SGD 0.01 with momentum 0.9\n"
			"cnn: two 3x3 convolutions (32, 64), max pool 2, dense 128, 10; batch 128, Adam 1e-3\n"
			"resnet20, resnet18, mobilenet: images of 32x32x3, 10 classes; batch 128, SGD 0.1\n"
			"with momentum 0.9\n"
			"lstm: an LSTM of width 256 on bytes, context 64; batch 64, Adam 1e-3\n"
			"gpt128, gpt256: 4 blocks of width 128 or 256, 4 heads, context 128; batch 16,\n"
			"AdamW 3e-4\n\n"
			"limit_ms is a lower bound of the step time. It assumes that products (step_mflop)\n"
			"run at the speed of multiply-adds (in mixed_bf16, of bf16 multiply-adds), and that\n"
			"other operations move their bytes (step_mb_moved) at the speed of a copy.\n"
			"share_of_limit is limit_ms divided by step_ms_median. It exceeds 1 if convolutions\n"
			"use an algorithm with fewer multiplications. reorders is how often a step reorders\n"
			"weights for oneDNN.\n\n"
			"Under mpirun -n N the replicas are divided among N processes, and there is no\n"
			"limit_ms. overlap_us is the median time to wake the thread that exchanges gradients\n"
			"during the backward pass, or 0 without this thread.",
	.examples = { "choir bench train --case cnn --replicas 2 --seconds 10",
			"choir bench train --case gpt128 --breakdown" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	int64_t batch;
	model_plan plan;
	choir_cluster *cluster;
	int workers;
	choir_strategy *strategy;
	model model;
	choir_optimizer *optimizer;
	float *image; // NULL: text
	uint8_t *text, *label;
	choir_values *args, *results;
	double *seconds; // per step, of each group
	size_t groups;
	double loss;
	double rss_mb; // before the limit is measured
	int slots; // per weight
	limit limit;
	int64_t reorders; // per step
	save_cost save;
} bench;

static choir_tensor *losses(choir_replica *r, const bench *b)
{
	choir_tensor *scores = model_apply(&b->model, choir_replica_arg(r, "input"));
	return model_losses(&b->model, choir_replica_arg(r, "label"), scores);
}

static choir_status step(choir_replica *r, void *user)
{
	const bench *b = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	return choir_optimizer_minimize(
			b->optimizer, choir_replica_average_loss(r, losses(r, b)), tape);
}

// Shows that the work was real.
static choir_status find_loss(choir_replica *r, void *user)
{
	return choir_replica_return(r, "loss", choir_replica_average_loss(r, losses(r, user)));
}

// Sums of four uniform numbers are close enough to normal ones.
static void fill_randomly(bench *b, int64_t elements, int64_t labels)
{
	uint64_t x = 88172645463325252u; // xorshift64 (Marsaglia 2003)
	for (int64_t i = 0; i < elements + labels; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		const uint64_t sum = (x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48);
		if (i >= elements)
			b->label[i - elements] = (uint8_t) (x % (uint64_t) b->plan.classes);
		else if (b->image == NULL)
			b->text[i] = (uint8_t) (x % BYTES);
		else
			b->image[i] = ((float) sum / 65536 - 2) * 1.7320508f;
	}
}

static choir_status make_data(bench *b)
{
	const bool text = model_plan_text(&b->plan);
	const int64_t elements = b->batch * choir_shape_elements(&b->plan.image);
	const int64_t labels = text ? elements : b->batch;
	const choir_shape *one = &b->plan.image;
	if (text)
		b->text = malloc((size_t) elements);
	else
		b->image = malloc((size_t) elements * sizeof *b->image);
	b->label = malloc((size_t) labels);
	if ((text ? b->text == NULL : b->image == NULL) || b->label == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "--case %s: no memory for %lld examples", given.which,
				(long long) b->batch);
	fill_randomly(b, elements, labels);
	b->args = choir_values_new(b->strategy);
	choir_frame *f = b->args == NULL ? NULL : choir_values_frame(b->args);
	choir_shape shape = { .rank = one->rank + 1, .dim = { b->batch } };
	for (int i = 0; i < one->rank; i++)
		shape.dim[i + 1] = one->dim[i];
	const choir_shape label = text ? shape : CHOIR_SHAPE(b->batch);
	CHOIR_TRY(choir_values_split(b->args, "input",
			text ? choir_borrow(f, CHOIR_U8, shape, b->text)
				 : choir_borrow(f, CHOIR_F32, shape, b->image)));
	return choir_values_split(b->args, "label", choir_borrow(f, CHOIR_U8, label, b->label));
}

static choir_status make_model(bench *b, choir_optimizer_kind kind, double rate)
{
	choir_scope scope;
	CHOIR_TRY(choir_scope_enter(&scope, b->strategy));
	choir_status status = model_build(&b->model, &b->plan);
	b->optimizer = choir_optimizer_new(kind,
			CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = rate,
					.loss_scale = precision_loss_scale(b->strategy, wire_of(given.wire))));
	if (status == CHOIR_OK && b->optimizer == NULL)
		status = choir_error_status();
	const choir_status left = choir_scope_exit(&scope);
	return status == CHOIR_OK ? left : status;
}

static choir_status prepare(bench *b)
{
	size_t k = 0;
	while (strcmp(kinds[k].name, given.which) != 0)
		k++;
	b->batch = kinds[k].batch;
	b->slots = kinds[k].optimizer == CHOIR_MOMENTUM ? 1 : 2;
	CHOIR_TRY(model_plan_set(&b->plan, kinds[k].model, NULL));
	CHOIR_TRY(model_plan_resize(&b->plan, &kinds[k].size));
	b->plan.image = kinds[k].image;
	b->plan.classes = model_plan_text(&b->plan) ? BYTES : CLASSES;
	b->plan.scale = 1;
	b->cluster = choir_cluster_new(NULL);
	if (b->cluster == NULL)
		return choir_error_status();
	CHOIR_TRY(options_check_equal(&self, b->cluster));
	b->workers = choir_cluster_workers(b->cluster);
	if (b->workers > 1 && given.breakdown)
		return choir_fail(
				CHOIR_UNSUPPORTED, "--breakdown: %d workers were started; needs one", b->workers);
	b->strategy = bench_strategy(given.replicas, given.devices, given.cores,
			CHOIR_OPTIONS(choir_strategy_options, .cluster = b->workers > 1 ? b->cluster : NULL,
					.precision = precision_of(given.precision), .wire = wire_of(given.wire)));
	if (b->strategy == NULL)
		return choir_error_status();
	b->seconds = malloc(MAX_GROUPS * sizeof *b->seconds);
	if (b->seconds == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "--case %s: no memory for the times", given.which);
	CHOIR_TRY(make_data(b));
	return make_model(b, kinds[k].optimizer, kinds[k].rate);
}

static choir_status steps(void *user, int n)
{
	bench *b = user;
	for (int i = 0; i < n; i++)
		CHOIR_TRY(choir_strategy_run(b->strategy, step, b, b->args, NULL));
	return CHOIR_OK;
}

static void count_reorder(const choir_trace_span *span, void *user)
{
	int64_t *reorders = user;
	*reorders += strcmp(span->name, "reorder") == 0;
}

static choir_status count_reorders(bench *b)
{
	CHOIR_TRY(choir_trace_start(NULL,
			CHOIR_OPTIONS(choir_trace_options, .span = count_reorder, .user = &b->reorders)));
	const choir_status status = steps(b, 1);
	const choir_status stopped = choir_trace_stop();
	return status == CHOIR_OK ? stopped : status;
}

// The first worker's clock decides.
static choir_status is_over(const bench *b, double end, bool *over)
{
	*over = now() >= end || b->groups == MAX_GROUPS;
	return b->workers == 1 ? CHOIR_OK : choir_cluster_broadcast(b->cluster, 0, over, sizeof *over);
}

static choir_status measure(bench *b)
{
	bool over = false;
	CHOIR_TRY(prepare(b));
	CHOIR_TRY(steps(b, WARM_UP));
	const double end = now() + given.seconds;
	while (!over) {
		const double start = now();
		CHOIR_TRY(steps(b, GROUP));
		b->seconds[b->groups++] = (now() - start) / GROUP;
		CHOIR_TRY(is_over(b, end, &over));
	}
	CHOIR_TRY(choir_strategy_run(b->strategy, find_loss, b, b->args, &b->results));
	choir_tensor *loss = choir_strategy_reduce(
			b->strategy, CHOIR_SUM, choir_values_find(b->results, "loss"), CHOIR_NO_AXIS);
	b->loss = choir_tensor_number(loss);
	if (loss == NULL)
		return choir_error_status();
	b->rss_mb = bench_peak_mb();
	CHOIR_TRY(count_reorders(b));
	if (given.save != NULL) {
		b->save.bytes = model_plan_weights(&b->plan) * (1 + b->slots) * (double) sizeof(float);
		CHOIR_TRY(save_measure(b->strategy, given.save, steps, b, &b->save));
	}
	return b->workers > 1 ? CHOIR_OK
						  : limit_find(&b->plan, b->strategy, b->batch, b->slots, &b->limit);
}

static void print_result(bench *b)
{
	char version[32];
	const double middle = median(b->groups, b->seconds);
	json_begin();
	json_text("peer", bench_version(version));
	json_text("strategy", b->workers > 1 ? "multi_worker_mirrored" : "mirrored");
	json_integer("workers", b->workers);
	json_text("case", given.which);
	json_text("precision", choir_precision_name(choir_strategy_precision(b->strategy)));
	json_text("wire", given.wire);
	json_integer("replicas", given.replicas);
	json_integer("cores", given.cores);
	json_integer("devices", choir_strategy_worker_devices(b->strategy));
	json_integer("steps", WARM_UP + GROUP * (int64_t) b->groups);
	json_number("step_ms_median", 1e3 * middle);
	json_number("step_ms_min", 1e3 * b->seconds[0]);
	json_number("examples_per_s", (double) b->batch / middle);
	json_number("loss", b->loss);
	json_number("rss_mb", b->rss_mb);
	json_integer("reorders", b->reorders);
	if (b->workers > 1)
		json_number("overlap_us", 1e6 * choir_strategy_overlap_latency(b->strategy));
	if (b->workers == 1) {
		json_number("step_mflop", 1e-6 * b->limit.operations);
		json_number("step_mb_moved", 1e-6 * b->limit.moved);
		json_number("peak_gflops", 1e-9 * b->limit.flops);
		json_number("copy_gb_per_s", 1e-9 * b->limit.copied);
		json_number("limit_ms", 1e3 * b->limit.seconds);
		json_number("share_of_limit", b->limit.seconds / middle);
	}
	if (given.save != NULL) {
		json_number("save_bytes", b->save.bytes);
		json_number("save_call_ms", 1e3 * b->save.save_seconds);
		json_number("first_save_call_ms", 1e3 * b->save.first_seconds);
		json_number("copy_ms", 1e3 * b->save.copy_seconds);
		json_number("step_before_save_ms", 1e3 * b->save.before_seconds);
		json_number("step_after_save_ms", 1e3 * b->save.after_seconds);
	}
	json_end();
}

// Traces further steps, since tracing takes time.
static choir_status break_down(bench *b)
{
	breakdown all = { .n = 0 };
	CHOIR_TRY(choir_trace_start(
			NULL, CHOIR_OPTIONS(choir_trace_options, .span = breakdown_add, .user = &all)));
	const double end = now() + 2;
	choir_status status = CHOIR_OK;
	for (int i = 0; i < TRACED && status == CHOIR_OK && now() < end; i++)
		status = steps(b, 1);
	const choir_status stopped = choir_trace_stop();
	if (status == CHOIR_OK && stopped == CHOIR_OK) {
		breakdown_print(&all, given.json);
		distance_print(&all, &b->limit, choir_strategy_worker_devices(b->strategy), given.json);
	}
	breakdown_free(&all);
	return status == CHOIR_OK ? stopped : status;
}

int bench_train_main(int argc, char **argv)
{
	options_read(&self, argc, argv, NULL);
	bench b = { .strategy = NULL };
	choir_status status = measure(&b);
	if (status == CHOIR_OK && choir_cluster_is_chief(b.cluster))
		print_result(&b);
	if (status == CHOIR_OK && given.breakdown)
		status = break_down(&b);
	const int code = status == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_values_free(b.args);
	choir_values_free(b.results);
	choir_strategy_free(b.strategy);
	choir_cluster_free(b.cluster);
	free(b.image);
	free(b.text);
	free(b.label);
	free(b.seconds);
	return code;
}
