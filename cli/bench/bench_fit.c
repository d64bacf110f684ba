// choir bench fit: the time of choir_fit compared with a loop by hand. Both train one MLP on the
// same batches, in turns, and the medians of their rounds are compared.
#include "bench/bench.h"
#include "output.h"

#include <stdio.h>

enum { CLASSES = 10, PIXELS = 784, WIDTH = 512, EXAMPLES = 4096, MAX_ROUNDS = 1 << 12 };

static struct {
	const char *devices;
	int64_t replicas, batch, steps, rounds;
	bool json;
} given = { .replicas = 2, .batch = 128, .steps = 40, .rounds = 30 };

static const option options[] = {
	{ "--batch", "G", OPTION_INTEGER, &given.batch, .help = "global batch size (128)", .min = 1,
			.max = 1 << 20 },
	{ "--steps", "N", OPTION_INTEGER, &given.steps,
			.help = "steps of a round, an epoch of choir_fit (40)", .min = 1, .max = 1 << 20 },
	{ "--rounds", "N", OPTION_INTEGER, &given.rounds, .help = "rounds of each loop, in turns (30)",
			.min = 1, .max = MAX_ROUNDS },
	{ "--replicas", "R", OPTION_INTEGER, &given.replicas, .help = "number of replicas (2)",
			.min = 1, .max = 1 << 10 },
	{ "--devices", "LIST", OPTION_TEXT, &given.devices, .help = devices_help },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir bench fit",
	.about = "Measures choir_fit and a loop by hand in turns, with an MLP 784-512-512-10.",
	.examples = { "choir bench fit", "choir bench fit --replicas 1 --batch 32 --rounds 100" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	choir_strategy *s;
	choir_layer *net;
	choir_optimizer *adam;
	choir_metric *loss, *accuracy, *fit_accuracy;
	choir_model *model;
	choir_distributed_dataset *data;
} loops;

static choir_status make_net(loops *l)
{
	choir_layer *layers[] = { choir_flatten_new(),
		choir_dense_new("one", PIXELS, WIDTH, CHOIR_RELU),
		choir_dense_new("two", WIDTH, WIDTH, CHOIR_RELU),
		choir_dense_new("scores", WIDTH, CLASSES, CHOIR_LINEAR) };
	l->net = choir_sequential_new(sizeof layers / sizeof layers[0], layers);
	l->adam = choir_optimizer_new(CHOIR_ADAM, NULL);
	l->loss = choir_metric_new("loss", CHOIR_METRIC_MEAN);
	l->accuracy = choir_metric_new("accuracy", CHOIR_METRIC_ACCURACY);
	l->fit_accuracy = choir_metric_new("fit_accuracy", CHOIR_METRIC_ACCURACY);
	if (l->net == NULL || l->adam == NULL || l->loss == NULL || l->accuracy == NULL ||
			l->fit_accuracy == NULL)
		return choir_error_status();
	l->model = choir_model_new(CHOIR_OPTIONS(choir_model_options, .layer = l->net,
			.loss = choir_sparse_softmax_cross_entropy, .optimizer = l->adam,
			.metrics = &l->fit_accuracy, .n_metrics = 1));
	return l->model == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status open_loops(loops *l)
{
	choir_scope scope;
	l->s = bench_strategy(given.replicas, given.devices, 1, NULL);
	if (l->s == NULL)
		return choir_error_status();
	CHOIR_TRY(choir_scope_enter(&scope, l->s));
	const choir_status made = make_net(l);
	CHOIR_TRY(choir_scope_exit(&scope));
	CHOIR_TRY(made);
	choir_dataset *d = choir_dataset_to_float(
			choir_synthetic_digits_dataset_new(EXAMPLES, 1), "image", 1 / 255.0);
	d = choir_dataset_repeat(choir_dataset_cache(d, NULL), CHOIR_FOREVER);
	l->data = choir_strategy_distribute_dataset(l->s, choir_dataset_batch(d, given.batch), NULL);
	return l->data == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status train_step(choir_replica *r, void *user)
{
	const loops *l = user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *scores = choir_layer_apply(l->net, choir_replica_arg(r, "image"));
	choir_tensor *labels = choir_replica_arg(r, "label");
	choir_tensor *losses = choir_sparse_softmax_cross_entropy(labels, scores);
	CHOIR_TRY(choir_metric_update(l->loss, losses, NULL));
	CHOIR_TRY(choir_metric_update(l->accuracy, labels, scores));
	return choir_optimizer_minimize(l->adam, choir_replica_average_loss(r, losses), tape);
}

static choir_status by_hand(loops *l)
{
	choir_values *batch = NULL;
	choir_status status = CHOIR_OK;
	for (int64_t i = 0; i < given.steps && status == CHOIR_OK; i++) {
		status = choir_distributed_dataset_next(l->data, &batch);
		if (status == CHOIR_OK)
			status = choir_strategy_run(l->s, train_step, l, batch, NULL);
	}
	choir_values_free(batch);
	CHOIR_TRY(status);
	choir_metric_result(l->loss);
	choir_metric_result(l->accuracy);
	CHOIR_TRY(choir_metric_reset(l->accuracy));
	return choir_metric_reset(l->loss);
}

static choir_status by_fit(loops *l)
{
	return choir_fit(
			l->model, l->data, CHOIR_OPTIONS(choir_fit_options, .steps_per_epoch = given.steps));
}

static void print_medians(double hand, double fit, double quotient)
{
	if (!given.json) {
		printf("a step by hand %.2f us, by choir_fit %.2f us: %+.2f %% (median of %lld pairs of "
			   "rounds)\n",
				1e6 * hand, 1e6 * fit, 100 * (quotient - 1), (long long) given.rounds);
		return;
	}
	json_begin();
	json_integer("batch", given.batch);
	json_integer("replicas", given.replicas);
	json_number("hand_us_median", 1e6 * hand);
	json_number("fit_us_median", 1e6 * fit);
	json_number("fit_over_hand_median", quotient);
	json_end();
}

// The first rounds of both are not counted. The order changes from round to round.
static choir_status measure(loops *l)
{
	static double hand[MAX_ROUNDS], fit[MAX_ROUNDS], quotient[MAX_ROUNDS];
	CHOIR_TRY(open_loops(l));
	CHOIR_TRY(by_hand(l));
	CHOIR_TRY(by_fit(l));
	for (int64_t i = 0; i < given.rounds; i++)
		for (int k = 0; k < 2; k++) {
			const bool first = (i + k) % 2 == 0;
			const double start = now();
			CHOIR_TRY(first ? by_hand(l) : by_fit(l));
			(first ? hand : fit)[i] = (now() - start) / (double) given.steps;
		}
	for (int64_t i = 0; i < given.rounds; i++)
		quotient[i] = fit[i] / hand[i];
	const size_t n = (size_t) given.rounds;
	print_medians(median(n, hand), median(n, fit), median(n, quotient));
	return CHOIR_OK;
}

int bench_fit_main(int argc, char **argv)
{
	loops l = { .s = NULL };
	options_read(&self, argc, argv, NULL);
	const int code = measure(&l) == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_strategy_free(l.s);
	return code;
}
