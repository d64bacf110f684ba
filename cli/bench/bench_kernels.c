// choir bench kernels: each operation and the limit of one core. The limit is the longer of two
// times, measured in the same process: the operation's multiplications and additions as fused
// multiply-adds, and a copy of its bytes. Functions like exp are not counted.
#include "bench/bench.h"
#include "bench/peak_rates.h"
#include "bench/kernel_operations.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TIMES = 2001, WARM_UP = 1, UPDATED = 1024 };

static struct {
	const char *only;
	double seconds;
	bool json;
} given = { .seconds = 0.2 };

static const option options[] = {
	{ "--only", "TEXT", OPTION_TEXT, &given.only,
			.help = "measure only operations whose name contains TEXT (all)" },
	{ "--seconds", "S", OPTION_NUMBER, &given.seconds, .help = "seconds per operation (0.2)" },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir bench kernels",
	.about = "Measures operations on one core, compared with the machine's limits.\n\n"
			 "It measures the forward and backward pass of operations with the sizes of choir\n"
			 "bench train, and updates of weights. The limits come from a loop of multiply-adds\n"
			 "and from a copy of memory.",
	.examples = { "choir bench kernels --only matmul", "choir bench kernels --seconds 1 --json" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	double flops; // the machine's, per second
	double forward, both; // seconds
} measured;

// The median of as many calls as the time allows.
typedef choir_status once_fn(void *user, double *seconds);
static choir_status often(once_fn *once, void *user, double *result)
{
	static double seconds[MAX_TIMES];
	size_t n = 0;
	for (int i = 0; i < WARM_UP; i++)
		CHOIR_TRY(once(user, &seconds[0]));
	const double end = now() + given.seconds / 2;
	do
		CHOIR_TRY(once(user, &seconds[n++]));
	while (n < MAX_TIMES && now() < end);
	*result = median(n, seconds);
	return CHOIR_OK;
}

static double share(const measured *m, double flops, double bytes, double seconds)
{
	const double by_flops = m->flops > 0 ? flops / m->flops : 0,
				 by_bytes = machine_copy((size_t) bytes, given.seconds / 2);
	return (by_flops > by_bytes ? by_flops : by_bytes) / seconds;
}

static void print_measured(const char *name, const char *shape, const char *pass,
		const measured *m, double flops, double bytes, double seconds)
{
	const double part = share(m, flops, bytes, seconds);
	if (!given.json) {
		printf("%-15s%-28s%-9s%10.1f us%9.1f GF/s%9.1f GB/s%8.0f %%\n", name, shape, pass,
				1e6 * seconds, 1e-9 * flops / seconds, 1e-9 * bytes / seconds, 100 * part);
		return;
	}
	json_begin();
	json_text("operation", name);
	json_text("shape", shape);
	json_text("pass", pass);
	json_number("us_median", 1e6 * seconds);
	json_number("bytes", bytes);
	json_number("gflops", 1e-9 * flops / seconds);
	json_number("gb_per_s", 1e-9 * bytes / seconds);
	json_number("share_of_limit", part);
	json_end();
}

typedef struct {
	choir_frame *frame;
	const operation *o;
	choir_tensor *in[MAX_IN];
	bool back; // forward and backward
} call;

static choir_status call_once(void *user, double *seconds)
{
	const call *c = user;
	choir_tensor *gradients[MAX_IN];
	const size_t mark = choir_frame_mark(c->frame);
	const double start = now();
	choir_tape *tape = choir_tape_begin(c->frame); // also forward, as in training
	choir_tensor *out = c->o->apply(c->in);
	choir_status status = choir_frame_status(c->frame);
	if (c->back && status == CHOIR_OK)
		status = choir_tape_gradient(tape, out, c->o->n - c->o->rows, c->in, gradients);
	*seconds = now() - start;
	choir_frame_rewind(c->frame, mark);
	return status;
}

static choir_tensor *row_numbers(choir_frame *f, choir_shape shape, int64_t rows)
{
	int32_t *numbers = malloc((size_t) shape.dim[0] * sizeof *numbers);
	for (int64_t i = 0; numbers != NULL && i < shape.dim[0]; i++)
		numbers[i] = (int32_t) (i * 7919 % rows); // in no order
	choir_tensor *t = choir_constant(f, CHOIR_I32, shape, numbers);
	free(numbers);
	return t;
}

// left_out: a bit mask.
static double bytes_of(const operation *o, unsigned left_out)
{
	double sum = 0;
	for (size_t i = 0; i < o->n; i++)
		if (!(left_out >> i & 1))
			sum += sizeof(float) * (double) choir_shape_elements(&o->in[i]);
	return sum;
}

static choir_status measure_operation(choir_frame *f, const operation *o, measured *m)
{
	call c = { .frame = f, .o = o };
	const size_t mark = choir_frame_mark(f);
	for (size_t i = 0; i < o->n; i++)
		c.in[i] = o->rows && i == o->n - 1 ? row_numbers(f, o->in[i], o->in[0].dim[0])
										   : choir_random_normal(f, CHOIR_F32, o->in[i], i);
	choir_tensor *out = o->apply(c.in);
	CHOIR_TRY(choir_frame_status(f));
	const double written = sizeof(float) * (double) choir_shape_elements(choir_tensor_shape(out));
	CHOIR_TRY(often(call_once, &c, &m->forward));
	c.back = true;
	CHOIR_TRY(often(call_once, &c, &m->both));
	choir_frame_rewind(f, mark);
	print_measured(
			o->name, o->shape, "forward", m, o->flops, bytes_of(o, 0) + written, m->forward);
	// The backward pass reads the operands and the result's gradient, and writes gradients.
	print_measured(o->name, o->shape, "backward", m, 2 * o->flops,
			bytes_of(o, o->unread) + written + bytes_of(o, o->unwritten), m->both - m->forward);
	return CHOIR_OK;
}

static bool is_wanted(const char *name)
{
	return given.only == NULL || strstr(name, given.only) != NULL;
}

static choir_status measure_operations(choir_replica *r, void *user)
{
	measured *m = user;
	m->flops = machine_flops();
	if (given.json) {
		json_begin();
		json_number("peak_gflops", 1e-9 * m->flops);
		json_end();
	} else {
		printf("one core: %.1f GF/s of multiply-adds in registers\n", 1e-9 * m->flops);
	}
	for (size_t i = 0; i < n_operations; i++)
		if (is_wanted(operations[i].name))
			CHOIR_TRY(measure_operation(r->frame, &operations[i], m));
	return CHOIR_OK;
}

static const struct {
	const char *name;
	choir_optimizer_kind kind;
	int slots; // per weight
} updates[] = {
	{ "sgd", CHOIR_SGD, 0 },
	{ "momentum", CHOIR_MOMENTUM, 1 },
	{ "adagrad", CHOIR_ADAGRAD, 1 },
	{ "lion", CHOIR_LION, 1 },
	{ "rmsprop", CHOIR_RMSPROP, 2 },
	{ "nadam", CHOIR_NADAM, 2 },
	{ "adam", CHOIR_ADAM, 2 },
	{ "adamw", CHOIR_ADAMW, 2 },
};

typedef struct {
	choir_strategy *strategy;
	choir_variable *weights;
	choir_optimizer *optimizer;
	float gradient[UPDATED * UPDATED];
} update;

static choir_status give(choir_replica *r, void *user)
{
	const update *u = user;
	CHOIR_TRY(choir_optimizer_add_gradient_memory(
			u->optimizer, r, u->weights, u->gradient, sizeof u->gradient));
	return choir_optimizer_apply_gradients(u->optimizer, r);
}

static choir_status update_once(void *user, double *seconds)
{
	update *u = user;
	const double start = now();
	CHOIR_TRY(choir_strategy_run(u->strategy, give, u, NULL, NULL));
	*seconds = now() - start;
	return CHOIR_OK;
}

static choir_status measure_updates(choir_strategy *s, const measured *m)
{
	static update u;
	char name[32];
	choir_scope scope;
	u.strategy = s;
	for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++) {
		double seconds;
		if (!is_wanted(updates[i].name))
			continue;
		snprintf(name, sizeof name, "%s weights", updates[i].name);
		CHOIR_TRY(choir_scope_enter(&scope, s));
		u.weights = choir_variable_new(name, CHOIR_SHAPE(UPDATED, UPDATED), NULL);
		u.optimizer = choir_optimizer_new(updates[i].kind, NULL);
		CHOIR_TRY(choir_scope_exit(&scope));
		if (u.weights == NULL || u.optimizer == NULL)
			return choir_error_status();
		CHOIR_TRY(often(update_once, &u, &seconds));
		// Weights and slots are read and written, the gradient is read.
		print_measured(updates[i].name, "[1024, 1024]", "update", m, 0,
				(3 + 2 * updates[i].slots) * (double) sizeof u.gradient, seconds);
	}
	return CHOIR_OK;
}

int bench_kernels_main(int argc, char **argv)
{
	options_read(&self, argc, argv, NULL);
	measured m = { .flops = 0 };
	choir_strategy *s = bench_strategy(1, "cpu:0", 1, NULL);
	choir_status status = s == NULL ? choir_error_status()
									: choir_strategy_run(s, measure_operations, &m, NULL, NULL);
	if (status == CHOIR_OK)
		status = measure_updates(s, &m);
	const int code = status == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_strategy_free(s);
	return code;
}
