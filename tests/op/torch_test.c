// Operations and their gradients in f32 against PyTorch: against its numbers in torch_stored.txt,
// and against PyTorch itself where a Python has it (Debian: python3-torch, which tools/setup does
// not install, because it is large). For the second, cases are written as a text that names the
// formula and its numbers, each in full; torch_compare.py makes the same with PyTorch and
// compares. With CHOIR_TORCH_STORE=FILE it also writes torch_stored.txt anew.
#include "op/torch_cases.h"
#include "op/torch_stored.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX = 6 };

typedef struct {
	given g;
	FILE *out; // of the cases, or NULL
	FILE *stored; // the numbers of PyTorch, or NULL
} compare;

static choir_tensor *normal(compare *c, choir_shape shape)
{
	return choir_cast(given_normal(&c->g, shape), CHOIR_F32);
}

static choir_tensor *positive(compare *c, choir_shape shape)
{
	return choir_cast(given_positive(&c->g, shape), CHOIR_F32);
}

static void write_tensor(FILE *out, choir_tensor *t)
{
	const int64_t n = choir_shape_elements(&t->shape);
	const bool is_float = chi_dtype_is_float(t->dtype);
	void *data = calloc((size_t) n + 1, 8);

	assert_non_null(data);
	assert_int_equal(choir_tensor_to_host(t, data, chi_tensor_bytes(t)), CHOIR_OK);
	fprintf(out, "%s %d", is_float ? "float" : "int", t->shape.rank);
	for (int i = 0; i < t->shape.rank; i++)
		fprintf(out, " %lld", (long long) t->shape.dim[i]);
	for (int64_t i = 0; i < n; i++)
		fprintf(out, " %.9g", chi_dtype_load(t->dtype, data, i));
	fprintf(out, "\n");
	free(data);
}

// Writes inputs, the result of fn, what came back to it, and the gradients of all float inputs.
static void write_case(compare *c, const char *formula, size_t n, choir_tensor *const in[],
		choir_formula_fn *fn, void *user)
{
	choir_tensor *sources[MAX], *gradients[MAX];
	size_t floats = 0;
	choir_tape *tape = choir_tape_begin(c->g.frame);
	choir_tensor *y = fn(in, user);

	if (!y)
		fail_msg("%s: %s", formula, choir_error());
	choir_tensor *dy = normal(c, y->shape);
	for (size_t i = 0; i < n; i++)
		if (chi_dtype_is_float(in[i]->dtype))
			sources[floats++] = in[i];
	if (c->stored)
		torch_stored_check(c->stored, formula, "result", y);
	if (c->out) {
		fprintf(c->out, "%s\n%zu\n", formula, n);
		for (size_t i = 0; i < n; i++)
			write_tensor(c->out, in[i]);
		write_tensor(c->out, y);
		write_tensor(c->out, dy);
	}
	choir_tensor *sum = choir_sum(choir_multiply(y, dy), CHOIR_ALL_AXES);
	if (choir_tape_gradient(tape, sum, floats, sources, gradients) != CHOIR_OK)
		fail_msg("%s: %s", formula, choir_error());
	for (size_t i = 0; i < floats; i++) {
		if (c->stored)
			torch_stored_check(c->stored, formula, "gradient", gradients[i]);
		if (c->out)
			write_tensor(c->out, gradients[i]);
	}
	choir_frame_clear(c->g.frame);
}

static choir_tensor *unary(choir_tensor *const in[], void *user)
{
	return (*(choir_unary_op **) user)(in[0]);
}

static void elementwise(compare *c)
{
	static const struct {
		const char *formula;
		choir_unary_op *op;
	} all[] = {
		{ "torch.exp(a)", choir_exp },
		{ "torch.log(a)", choir_log },
		{ "torch.sqrt(a)", choir_sqrt },
		{ "a * a", choir_square },
		{ "torch.relu(a)", choir_relu },
		{ "F.gelu(a, approximate='tanh')", choir_gelu_tanh },
		{ "F.gelu(a)", choir_gelu },
		{ "F.silu(a)", choir_silu },
		{ "F.softplus(a)", choir_softplus },
		{ "torch.tanh(a)", choir_tanh },
		{ "torch.sigmoid(a)", choir_sigmoid },
		{ "torch.softmax(a, -1)", choir_softmax },
		{ "torch.log_softmax(a, -1)", choir_log_softmax },
	};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		choir_unary_op *op = all[i].op;
		const choir_shape shape = CHOIR_SHAPE(7, 33);
		choir_tensor *x = op == choir_log || op == choir_sqrt ? positive(c, shape)
															  : choir_scale(normal(c, shape), 3);
		write_case(c, all[i].formula, 1, &x, unary, &op);
	}
}

typedef choir_tensor *binary_op(choir_tensor *a, choir_tensor *b);

static choir_tensor *binary(choir_tensor *const in[], void *user)
{
	return (*(binary_op **) user)(in[0], in[1]);
}

// PyTorch's losses take the result first.
static choir_tensor *loss(choir_tensor *const in[], void *user)
{
	return (*(binary_op **) user)(in[1], in[0]);
}

// Also where one is repeated along axes of the other.
static void pairs(compare *c)
{
	const struct {
		const char *formula;
		binary_op *op;
		choir_shape a, b;
	} all[] = {
		{ "a + b", choir_add, CHOIR_SHAPE(3, 4, 5), CHOIR_SHAPE(4, 1) },
		{ "a - b", choir_subtract, CHOIR_SHAPE(4, 1), CHOIR_SHAPE(3, 4, 5) },
		{ "a * b", choir_multiply, CHOIR_SHAPE(3, 1, 5), CHOIR_SHAPE(6, 1) },
		{ "a / b", choir_divide, CHOIR_SHAPE(3, 4, 5), CHOIR_SHAPE(4, 5) },
		{ "torch.maximum(a, b)", choir_maximum, CHOIR_SHAPE(3, 4, 5), CHOIR_SHAPE(5) },
		{ "a + b", choir_bias_add, CHOIR_SHAPE(70, 33), CHOIR_SHAPE(33) },
		{ "((a - b) ** 2).mean((1, 2))", choir_mean_squared_error, CHOIR_SHAPE(6, 5, 4),
				CHOIR_SHAPE(6, 5, 4) },
	};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		binary_op *op = all[i].op;
		choir_tensor *const in[2] = { normal(c, all[i].a), positive(c, all[i].b) };
		write_case(c, all[i].formula, 2, in, binary, &op);
	}
}

static choir_tensor *multiply(choir_tensor *const in[], void *user)
{
	return choir_matmul(in[0], in[1], *(const choir_transposed *) user);
}

static choir_tensor *dense(choir_tensor *const in[], void *user)
{
	return chi_dense(in[0], in[1], in[2], *(const choir_activation *) user);
}

static void products(compare *c)
{
	const struct {
		const char *formula;
		choir_transposed which;
		choir_shape a, b;
	} all[] = {
		{ "a @ b", CHOIR_TRANSPOSED_NONE, CHOIR_SHAPE(40, 70), CHOIR_SHAPE(70, 50) },
		{ "a.T @ b", CHOIR_TRANSPOSED_A, CHOIR_SHAPE(64, 30), CHOIR_SHAPE(64, 80) },
		{ "a @ b.T", CHOIR_TRANSPOSED_B, CHOIR_SHAPE(52, 64), CHOIR_SHAPE(33, 64) },
		{ "a @ b", CHOIR_TRANSPOSED_NONE, CHOIR_SHAPE(3, 4, 5, 6), CHOIR_SHAPE(3, 4, 6, 7) },
		{ "a @ b", CHOIR_TRANSPOSED_NONE, CHOIR_SHAPE(3, 5, 6), CHOIR_SHAPE(6, 7) },
	};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		choir_transposed which = all[i].which;
		choir_tensor *const in[2] = { normal(c, all[i].a), normal(c, all[i].b) };
		write_case(c, all[i].formula, 2, in, multiply, &which);
	}
	static const char *const formulas[] = { "a @ b + c", "torch.relu(a @ b + c)",
		"torch.tanh(a @ b + c)" };
	choir_activation activations[] = { CHOIR_LINEAR, CHOIR_RELU, CHOIR_TANH };
	for (int i = 0; i < 3; i++) {
		choir_tensor *const in[3] = { normal(c, CHOIR_SHAPE(33, 20)),
			normal(c, CHOIR_SHAPE(20, 48)), normal(c, CHOIR_SHAPE(48)) };
		write_case(c, formulas[i], 3, in, dense, &activations[i]);
	}
}

static choir_tensor *reordered(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_transpose(in[0], (int[]){ 2, 0, 1 });
}

static choir_tensor *cut(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_slice(in[0], 1, 2, 3);
}

static choir_tensor *joined(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_concat(2, (choir_tensor *[]){ in[1], in[0] }, 1);
}

static choir_tensor *parts(choir_tensor *const in[], void *user)
{
	choir_tensor *part[3];

	(void) user;
	if (choir_split(in[0], 2, 3, part) != CHOIR_OK)
		return NULL;
	return choir_subtract(choir_multiply(part[0], part[2]), part[1]);
}

static choir_tensor *sum(choir_tensor *const in[], void *user)
{
	return choir_sum(in[0], *(const choir_axes *) user);
}

static choir_tensor *mean(choir_tensor *const in[], void *user)
{
	return choir_mean(in[0], *(const choir_axes *) user);
}

static void moves_and_reductions(compare *c)
{
	choir_axes ends = CHOIR_AXES(0, -1), middle = CHOIR_AXIS(1), all = CHOIR_ALL_AXES;
	choir_tensor *in[2] = { normal(c, CHOIR_SHAPE(3, 40, 50)) };

	write_case(c, "a.permute(2, 0, 1)", 1, in, reordered, NULL);
	in[0] = normal(c, CHOIR_SHAPE(3, 9, 5));
	write_case(c, "a[:, 2:5]", 1, in, cut, NULL);
	in[0] = normal(c, CHOIR_SHAPE(3, 4, 5));
	in[1] = normal(c, CHOIR_SHAPE(3, 2, 5));
	write_case(c, "torch.cat([b, a], 1)", 2, in, joined, NULL);
	in[0] = normal(c, CHOIR_SHAPE(3, 4, 9));
	write_case(c, "(lambda p, q, r: p * r - q)(*a.split(3, 2))", 1, in, parts, NULL);
	const struct {
		const char *formula;
		choir_formula_fn *fn;
		choir_axes *axes;
	} reductions[] = {
		{ "a.sum((0, 2))", sum, &ends },
		{ "a.sum(1)", sum, &middle },
		{ "a.mean((0, 2))", mean, &ends },
		{ "a.mean()", mean, &all },
	};
	for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) {
		in[0] = positive(c, CHOIR_SHAPE(7, 30, 20));
		write_case(c, reductions[i].formula, 1, in, reductions[i].fn, reductions[i].axes);
	}
}

static choir_tensor *layer_norm(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_layer_norm(in[0], in[1], in[2], 1e-5);
}

static choir_tensor *rms_norm(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_rms_norm(in[0], in[1], 1e-5);
}

static choir_tensor *batch_norm(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_batch_norm(
			in[0], in[1], in[2], CHOIR_OPTIONS(choir_batch_norm_options, .epsilon = 1e-5));
}

static void norms(compare *c)
{
	choir_tensor *in[3];

	for (int i = 0; i < 3; i++)
		in[i] = normal(c, i ? CHOIR_SHAPE(70) : CHOIR_SHAPE(9, 5, 70));
	write_case(c, "F.layer_norm(a, (70,), b, c, 1e-5)", 3, in, layer_norm, NULL);
	for (int i = 0; i < 2; i++)
		in[i] = normal(c, i ? CHOIR_SHAPE(70) : CHOIR_SHAPE(9, 5, 70));
	write_case(c, "a * torch.rsqrt((a * a).mean(-1, keepdim=True) + 1e-5) * b", 2, in, rms_norm,
			NULL);
	for (int i = 0; i < 3; i++)
		in[i] = normal(c, i ? CHOIR_SHAPE(6) : CHOIR_SHAPE(8, 5, 5, 6));
	write_case(c, "nhwc(F.batch_norm(nchw(a), None, None, b, c, True, 0, 1e-5))", 3, in,
			batch_norm, NULL);
}

static choir_tensor *convolve(choir_tensor *const in[], void *user)
{
	return in[0]->shape.rank == 3 ? choir_conv1d(in[0], in[1], user)
								  : choir_conv2d(in[0], in[1], user);
}

static void convolutions(compare *c)
{
	choir_conv_options o = { .size = sizeof o, .stride = 2, .padding = 1 };
	choir_tensor *in[2] = { normal(c, CHOIR_SHAPE(3, 9, 8, 6)),
		normal(c, CHOIR_SHAPE(3, 3, 6, 4)) };
	write_case(c, "nhwc(F.conv2d(nchw(a), oihw(b), None, 2, 1))", 2, in, convolve, &o);
	o = (choir_conv_options){ .size = sizeof o, .padding = 2, .dilation = 2, .groups = 2 };
	in[0] = normal(c, CHOIR_SHAPE(2, 9, 9, 6));
	in[1] = normal(c, CHOIR_SHAPE(3, 3, 3, 4));
	write_case(c, "nhwc(F.conv2d(nchw(a), oihw(b), None, 1, 2, 2, 2))", 2, in, convolve, &o);
	o = (choir_conv_options){ .size = sizeof o, .pad_before = { 4 }, .dilation = 2 };
	in[0] = normal(c, CHOIR_SHAPE(2, 11, 5));
	in[1] = normal(c, CHOIR_SHAPE(3, 5, 4));
	write_case(c,
			"F.conv1d(F.pad(a.permute(0, 2, 1), (4, 0)), b.permute(2, 1, 0), None, 1, 0, 2)"
			".permute(0, 2, 1)",
			2, in, convolve, &o);
	// As many groups as channels; SAME, of which the odd zero is behind; Winograd's.
	o = (choir_conv_options){ .size = sizeof o, .padding = 1, .groups = 8 };
	in[0] = normal(c, CHOIR_SHAPE(3, 9, 9, 8));
	in[1] = normal(c, CHOIR_SHAPE(3, 3, 1, 16));
	write_case(c, "nhwc(F.conv2d(nchw(a), oihw(b), None, 1, 1, 1, 8))", 2, in, convolve, &o);
	o = (choir_conv_options){ .size = sizeof o, .stride = 2, .padding = CHOIR_PADDING_SAME };
	in[0] = normal(c, CHOIR_SHAPE(2, 8, 8, 6));
	in[1] = normal(c, CHOIR_SHAPE(3, 3, 6, 4));
	write_case(c, "nhwc(F.conv2d(F.pad(nchw(a), (0, 1, 0, 1)), oihw(b), None, 2))", 2, in,
			convolve, &o);
	o = (choir_conv_options){ .size = sizeof o, .padding = 1 };
	in[0] = normal(c, CHOIR_SHAPE(2, 16, 16, 16));
	in[1] = normal(c, CHOIR_SHAPE(3, 3, 16, 64));
	write_case(c, "nhwc(F.conv2d(nchw(a), oihw(b), None, 1, 1))", 2, in, convolve, &o);
}

static choir_tensor *largest(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_max_pool2d(in[0], 3, 2, 1);
}

static choir_tensor *average(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_average_pool2d(in[0], 3, 2, 1);
}

static void pools(compare *c)
{
	choir_tensor *x = normal(c, CHOIR_SHAPE(4, 12, 13, 8));

	write_case(c, "nhwc(F.max_pool2d(nchw(a), 3, 2, 1))", 1, &x, largest, NULL);
	x = normal(c, CHOIR_SHAPE(4, 12, 13, 8));
	write_case(c, "nhwc(F.avg_pool2d(nchw(a), 3, 2, 1, count_include_pad=False))", 1, &x, average,
			NULL);
}

static choir_tensor *attend_self(choir_tensor *const in[], void *user)
{
	return choir_self_attention(in[0], user);
}

static choir_tensor *attend(choir_tensor *const in[], void *user)
{
	return choir_attention(in[0], in[1], in[2], user);
}

static choir_tensor *lstm(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_lstm(in[0], in[1], in[2], in[3], NULL);
}

static choir_tensor *gru(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_gru(in[0], in[1], in[2], in[3], in[4], NULL);
}

// Both directions of padded sequences, with the same weights, and the last states.
static choir_tensor *packed_lstm(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *y = choir_lstm(in[0], in[1], in[2], in[3], NULL);
	choir_tensor *back = choir_reverse_sequence(in[0], in[4]);
	back = choir_lstm(back, in[1], in[2], in[3], NULL);
	choir_tensor *const both[] = { y, choir_reverse_sequence(back, in[4]) };
	choir_tensor *const last[] = { choir_last_timestep(y, in[4]),
		choir_last_timestep(back, in[4]) };
	choir_tensor *const all[] = { choir_zero_padding(choir_concat(2, both, 2), in[4]),
		choir_reshape(choir_concat(2, last, 1), CHOIR_SHAPE(in[0]->shape.dim[0], 1, 8)) };
	return choir_concat(2, all, 1);
}

// Of padded sequences: the states, and the last cells.
static choir_tensor *packed_cell(choir_tensor *const in[], void *user)
{
	(void) user;
	choir_tensor *cell;
	choir_tensor *y = choir_lstm(in[0], in[1], in[2], in[3],
			CHOIR_OPTIONS(choir_recurrent_options, .last_cell = &cell, .lengths = in[4]));
	choir_tensor *const all[] = { choir_zero_padding(y, in[4]),
		cell == NULL
				? NULL
				: choir_reshape(cell, CHOIR_SHAPE(cell->shape.dim[0], 1, cell->shape.dim[1])) };
	return choir_concat(2, all, 1);
}

static void sequences(compare *c)
{
	choir_tensor *in[5] = { normal(c, CHOIR_SHAPE(2, 150, 3 * 24)) };
	choir_attention_options o = { .size = sizeof o, .heads = 3, .causal = CHOIR_ON };

	write_case(c, "attend(*a.split(24, 2), 3, True)", 1, in, attend_self, &o);
	o.causal = CHOIR_OFF;
	in[0] = normal(c, CHOIR_SHAPE(2, 20, 3 * 24));
	write_case(c, "attend(*a.split(24, 2), 3, False)", 1, in, attend_self, &o);
	o = (choir_attention_options){ .size = sizeof o, .heads = 2, .causal = CHOIR_ON };
	in[0] = normal(c, CHOIR_SHAPE(3, 33, 40));
	in[1] = normal(c, CHOIR_SHAPE(3, 50, 40));
	in[2] = normal(c, CHOIR_SHAPE(3, 50, 40));
	write_case(c, "attend(a, b, c, 2, True)", 3, in, attend, &o);
	in[0] = normal(c, CHOIR_SHAPE(3, 7, 5));
	in[1] = normal(c, CHOIR_SHAPE(5, 16));
	in[2] = normal(c, CHOIR_SHAPE(4, 16));
	in[3] = normal(c, CHOIR_SHAPE(16));
	write_case(c, "lstm(a, b, c, d)", 4, in, lstm, NULL);
	in[0] = normal(c, CHOIR_SHAPE(3, 7, 5));
	in[1] = normal(c, CHOIR_SHAPE(5, 12));
	in[2] = normal(c, CHOIR_SHAPE(4, 12));
	in[3] = normal(c, CHOIR_SHAPE(12));
	in[4] = normal(c, CHOIR_SHAPE(12));
	write_case(c, "gru(a, b, c, d, e)", 5, in, gru, NULL);
}

static choir_tensor *smoothed(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_sparse_softmax_cross_entropy_smoothed(in[1], in[0], 0.1);
}

static choir_tensor *huber(choir_tensor *const in[], void *user)
{
	(void) user;
	return choir_huber(in[1], in[0], 0.7);
}

static void losses(compare *c)
{
	choir_tensor *in[2] = { normal(c, CHOIR_SHAPE(9, 5)), given_labels(&c->g, 20, 9) };
	binary_op *op = choir_gather;

	write_case(c, "F.embedding(b, a)", 2, in, binary, &op);
	op = choir_sparse_softmax_cross_entropy;
	in[0] = normal(c, CHOIR_SHAPE(20, 7));
	in[1] = given_labels(&c->g, 20, 7);
	write_case(c, "F.cross_entropy(a, b, reduction='none')", 2, in, loss, &op);
	in[0] = normal(c, CHOIR_SHAPE(20, 7));
	in[1] = given_labels(&c->g, 20, 7);
	write_case(c, "F.cross_entropy(a, b, reduction='none', label_smoothing=0.1)", 2, in, smoothed,
			NULL);
	in[0] = normal(c, CHOIR_SHAPE(20, 7));
	in[1] = choir_sigmoid(normal(c, CHOIR_SHAPE(20, 7)));
	op = choir_sigmoid_cross_entropy;
	write_case(c, "F.binary_cross_entropy_with_logits(a, b, reduction='none').mean(1)", 2, in,
			loss, &op);
	in[0] = normal(c, CHOIR_SHAPE(20, 7));
	in[1] = normal(c, CHOIR_SHAPE(20, 7));
	write_case(c, "F.huber_loss(a, b, reduction='none', delta=0.7).mean(1)", 2, in, huber, NULL);
}

static void other_cases(compare *c)
{
	for (size_t i = 0; i < n_torch_cases; i++) {
		const torch_case *one = &torch_cases[i];
		choir_tensor *in[TORCH_CASE_INPUTS];
		for (size_t k = 0; k < one->n; k++)
			in[k] = one->positive ? positive(c, one->shape[k]) : normal(c, one->shape[k]);
		write_case(c, one->formula, one->n, in, one->fn, NULL);
	}
}

// A Python that has PyTorch; NULL: none here has.
static const char *find_python(void)
{
	static const char *const all[] = { "python3", "/usr/bin/python3" };
	char command[200];

	// A sanitizer is not meant for the other program.
	for (int i = 0; i < 2; i++) {
		snprintf(command, sizeof command,
				"env -u LD_PRELOAD %s -c 'import importlib.util as u; exit(not "
				"u.find_spec(\"torch\"))'",
				all[i]);
		if (system(command) == 0)
			return all[i];
	}
	return NULL;
}

static void padded_sequences(compare *c)
{
	static const int32_t lengths[] = { 4, 7, 1 };
	for (int i = 0; i < 2; i++) {
		choir_tensor *const in[] = { normal(c, CHOIR_SHAPE(3, 7, 5)),
			normal(c, CHOIR_SHAPE(5, 16)), normal(c, CHOIR_SHAPE(4, 16)),
			normal(c, CHOIR_SHAPE(16)),
			choir_constant(c->g.frame, CHOIR_I32, CHOIR_SHAPE(3), lengths) };
		write_case(c, i == 0 ? "packed_lstm(a, b, c, d, e)" : "packed_cell(a, b, c, d, e)", 5, in,
				i == 0 ? packed_lstm : packed_cell, NULL);
	}
}

static void run_cases(compare *c)
{
	given_open(&c->g, "cpu:0", 77);
	elementwise(c);
	pairs(c);
	products(c);
	moves_and_reductions(c);
	norms(c);
	convolutions(c);
	pools(c);
	sequences(c);
	losses(c);
	other_cases(c);
	padded_sequences(c);
	given_close(&c->g);
}

static void with_stored_numbers(void **state)
{
	(void) state;
	compare c = { .stored = fopen(CHOIR_SOURCE_DIR "/tests/op/torch_stored.txt", "r") };
	assert_non_null(c.stored);
	run_cases(&c);
	assert_int_equal(fgetc(c.stored), EOF);
	fclose(c.stored);
}

static void with_pytorch(void **state)
{
	char path[] = "/tmp/choir-torch-XXXXXX", command[1000];
	const char *python = find_python(), *store = getenv("CHOIR_TORCH_STORE");
	(void) state;
	if (!python) {
		print_message("no Python here has PyTorch\n");
		skip();
	}
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	compare c = { .out = fdopen(fd, "w") };
	assert_non_null(c.out);
	run_cases(&c);
	assert_int_equal(fclose(c.out), 0);
	snprintf(command, sizeof command, "env -u LD_PRELOAD %s -B %s/tests/op/torch_compare.py %s %s",
			python, CHOIR_SOURCE_DIR, path, store ? store : "");
	const int status = system(command);
	remove(path);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(with_pytorch),
		cmocka_unit_test(with_stored_numbers) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
