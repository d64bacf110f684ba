// choir bench kernels: how near each operation comes to what one core can do. The limit of an
// operation is the time for its multiplications and additions at the speed of a loop of fused
// multiply-adds, or the time to copy as many bytes as its operands and its result have, whichever
// is longer; both loops are measured in the same run. What exp and its like cost is not in the
// limit.
#include "bench/bench.h"
#include "bench/machine.h"
#include "report.h"

#include <stdio.h>
#include <string.h>

enum { MOST_TIMES = 2001, WARM_UP = 1, MOST_IN = 3 };

static struct {
	const char *only;
	double seconds;
	bool json;
} given = { .seconds = 0.2 };

// clang-format off
static const option options[] = {
	{ .name = "--only", .value = "TEXT", .kind = OPTION_TEXT, .to = &given.only,
		.help = "operations that have it in their names (all)" },
	{ .name = "--seconds", .value = "S", .kind = OPTION_NUMBER, .to = &given.seconds,
		.help = "to measure each (0.2)" },
	{ .name = "--json", .kind = OPTION_FLAG, .to = &given.json, .help = "one JSON object a line" },
};
// clang-format on
static const command self = {
	.name = "choir bench kernels",
	.operands = "",
	.about = "Measures operations on one core, there and back, with the sizes of choir bench\n"
			 "train, beside the limit that a loop of multiply-adds and a copy set.",
	.n = sizeof options / sizeof options[0],
	.options = options,
};

// ---- The operations.

static choir_tensor *matmul(choir_tensor *const in[])
{
	return choir_matmul(in[0], in[1], CHOIR_TRANSPOSED_NONE);
}

static choir_tensor *conv(choir_tensor *const in[])
{
	return choir_conv2d(in[0], in[1], 1, 0);
}

static choir_tensor *conv_same(choir_tensor *const in[])
{
	return choir_conv2d(in[0], in[1], 1, 1);
}

static choir_tensor *attention(choir_tensor *const in[])
{
	return choir_self_attention(
			in[0], CHOIR_OPTIONS(choir_attention_options, .heads = 4, .causal = CHOIR_ON));
}

static choir_tensor *layer_norm(choir_tensor *const in[])
{
	return choir_layer_norm(in[0], in[1], in[2], 1e-5);
}

static choir_tensor *batch_norm(choir_tensor *const in[])
{
	return choir_batch_norm(in[0], in[1], in[2], NULL);
}

static choir_tensor *bias_add(choir_tensor *const in[])
{
	return choir_bias_add(in[0], in[1]);
}

static choir_tensor *add(choir_tensor *const in[])
{
	return choir_add(in[0], in[1]);
}

static choir_tensor *relu(choir_tensor *const in[])
{
	return choir_relu(in[0]);
}

static choir_tensor *gelu(choir_tensor *const in[])
{
	return choir_gelu(in[0]);
}

static choir_tensor *max_pool(choir_tensor *const in[])
{
	return choir_max_pool2d(in[0], 2, 2, 0);
}

static choir_tensor *log_softmax(choir_tensor *const in[])
{
	return choir_log_softmax(in[0]);
}

// flops: multiplications and additions of products on the way there; the way back to n inputs
// costs as much for each. 0: none, the bytes are the limit.
static const struct {
	const char *name, *shape;
	choir_tensor *(*apply)(choir_tensor *const in[]);
	choir_shape in[MOST_IN];
	size_t n;
	double flops;
} cases[] = {
	{ "matmul", "[128, 784] [784, 512]", matmul, { { 2, { 128, 784 } }, { 2, { 784, 512 } } }, 2,
			2.0 * 128 * 784 * 512 },
	{ "matmul", "[1024, 784] [784, 512]", matmul, { { 2, { 1024, 784 } }, { 2, { 784, 512 } } }, 2,
			2.0 * 1024 * 784 * 512 },
	{ "matmul", "[1024, 128] [128, 384]", matmul, { { 2, { 1024, 128 } }, { 2, { 128, 384 } } }, 2,
			2.0 * 1024 * 128 * 384 },
	{ "matmul", "[1024, 512] [512, 128]", matmul, { { 2, { 1024, 512 } }, { 2, { 512, 128 } } }, 2,
			2.0 * 1024 * 512 * 128 },
	{ "matmul", "[1024, 256] [256, 1024]", matmul, { { 2, { 1024, 256 } }, { 2, { 256, 1024 } } },
			2, 2.0 * 1024 * 256 * 1024 },
	{ "conv2d", "[64, 28, 28, 1] 3x3x32", conv,
			{ { 4, { 64, 28, 28, 1 } }, { 4, { 3, 3, 1, 32 } } }, 2, 2.0 * 64 * 26 * 26 * 9 * 32 },
	{ "conv2d", "[64, 26, 26, 32] 3x3x64", conv,
			{ { 4, { 64, 26, 26, 32 } }, { 4, { 3, 3, 32, 64 } } }, 2,
			2.0 * 64 * 24 * 24 * 9 * 32 * 64 },
	{ "conv2d", "[64, 32, 32, 16] 3x3x16", conv_same,
			{ { 4, { 64, 32, 32, 16 } }, { 4, { 3, 3, 16, 16 } } }, 2,
			2.0 * 64 * 32 * 32 * 9 * 16 * 16 },
	{ "conv2d", "[64, 8, 8, 64] 3x3x64", conv_same,
			{ { 4, { 64, 8, 8, 64 } }, { 4, { 3, 3, 64, 64 } } }, 2,
			2.0 * 64 * 8 * 8 * 9 * 64 * 64 },
	// Of two products of a triangle each; on the way back one is made again.
	{ "attention", "[8, 128, 3 128]", attention, { { 3, { 8, 128, 384 } } }, 1,
			2.0 * 8 * 128 * 128 * 128 },
	{ "attention", "[8, 128, 3 256]", attention, { { 3, { 8, 128, 768 } } }, 1,
			2.0 * 8 * 128 * 128 * 256 },
	{ "layer_norm", "[1024, 128]", layer_norm,
			{ { 2, { 1024, 128 } }, { 1, { 128 } }, { 1, { 128 } } }, 3, 0 },
	{ "batch_norm", "[64, 32, 32, 16]", batch_norm,
			{ { 4, { 64, 32, 32, 16 } }, { 1, { 16 } }, { 1, { 16 } } }, 3, 0 },
	{ "bias_add", "[1024, 512]", bias_add, { { 2, { 1024, 512 } }, { 1, { 512 } } }, 2, 0 },
	{ "add", "[1024, 512]", add, { { 2, { 1024, 512 } }, { 2, { 1024, 512 } } }, 2, 0 },
	{ "relu", "[1024, 512]", relu, { { 2, { 1024, 512 } } }, 1, 0 },
	{ "gelu", "[1024, 512]", gelu, { { 2, { 1024, 512 } } }, 1, 0 },
	{ "max_pool2d", "[64, 24, 24, 64] 2x2", max_pool, { { 4, { 64, 24, 24, 64 } } }, 1, 0 },
	{ "log_softmax", "[1024, 256]", log_softmax, { { 2, { 1024, 256 } } }, 1, 0 },
};
enum { CASES = sizeof cases / sizeof cases[0] };

// ---- Measuring.

typedef struct {
	double flops; // of the machine, a second
	double there, both; // seconds of the case
	double bytes; // of its operands and its result
} measured;

static choir_status once(
		choir_frame *f, size_t c, choir_tensor *const in[], bool back, double *seconds)
{
	choir_tensor *gradients[MOST_IN];
	const size_t mark = choir_frame_mark(f);
	const double start = now();
	choir_tape *tape = back ? choir_tape_begin(f) : NULL;
	choir_tensor *out = cases[c].apply(in);
	choir_status status = choir_frame_status(f);
	if (back && status == CHOIR_OK)
		status = choir_tape_gradient(tape, out, cases[c].n, in, gradients);
	*seconds = now() - start;
	choir_frame_rewind(f, mark);
	return status;
}

// The median; back: there and back.
static choir_status often(
		choir_frame *f, size_t c, choir_tensor *const in[], bool back, double *result)
{
	static double seconds[MOST_TIMES];
	size_t n = 0;
	for (int i = 0; i < WARM_UP; i++)
		CHOIR_TRY(once(f, c, in, back, &seconds[0]));
	const double end = now() + given.seconds / 2;
	do
		CHOIR_TRY(once(f, c, in, back, &seconds[n++]));
	while (n < MOST_TIMES && now() < end);
	*result = median(n, seconds);
	return CHOIR_OK;
}

// flops, bytes: of one direction. n: how often it stands in the limit.
static double share(const measured *m, double flops, double bytes, double seconds)
{
	const double by_flops = m->flops > 0 ? flops / m->flops : 0,
				 by_bytes = machine_copy((size_t) bytes);
	return (by_flops > by_bytes ? by_flops : by_bytes) / seconds;
}

static void say(
		size_t c, const char *way, const measured *m, double flops, double bytes, double seconds)
{
	const double part = share(m, flops, bytes, seconds);
	if (!given.json) {
		printf("%-12s%-26s%-6s%10.1f us%9.1f GF/s%9.1f GB/s%8.0f %%\n", cases[c].name,
				cases[c].shape, way, 1e6 * seconds, 1e-9 * flops / seconds, 1e-9 * bytes / seconds,
				100 * part);
		return;
	}
	json_begin();
	json_text("operation", cases[c].name);
	json_text("shape", cases[c].shape);
	json_text("way", way);
	json_number("us_median", 1e6 * seconds);
	json_number("gflops", 1e-9 * flops / seconds);
	json_number("gb_per_s", 1e-9 * bytes / seconds);
	json_number("share_of_limit", part);
	json_end();
}

static choir_status measure_case(choir_frame *f, size_t c, measured *m)
{
	choir_tensor *in[MOST_IN];
	double read = 0;
	const size_t mark = choir_frame_mark(f);
	for (size_t i = 0; i < cases[c].n; i++) {
		in[i] = choir_random_normal(f, CHOIR_F32, cases[c].in[i], i);
		read += sizeof(float) * (double) choir_shape_elements(&cases[c].in[i]);
	}
	choir_tensor *out = cases[c].apply(in);
	CHOIR_TRY(choir_frame_status(f));
	const double written = sizeof(float) * (double) choir_shape_elements(choir_tensor_shape(out));
	CHOIR_TRY(often(f, c, in, false, &m->there));
	CHOIR_TRY(often(f, c, in, true, &m->both));
	choir_frame_rewind(f, mark);
	say(c, "there", m, cases[c].flops, read + written, m->there);
	// Back: the operands and the result's gradient are read, gradients written.
	const double products = cases[c].n == 1 ? 2 : (double) cases[c].n;
	say(c, "back", m, products * cases[c].flops, 2 * read + written, m->both - m->there);
	return CHOIR_OK;
}

static choir_status measure(choir_replica *r, void *user)
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
	for (size_t c = 0; c < CASES; c++)
		if (given.only == NULL || strstr(cases[c].name, given.only) != NULL)
			CHOIR_TRY(measure_case(r->frame, c, m));
	return CHOIR_OK;
}

int bench_kernels_main(int argc, char **argv)
{
	const options_result result = options_read(&self, argc, argv, NULL);
	if (result != OPTIONS_GIVEN)
		return result == OPTIONS_HELP ? EXIT_OK : EXIT_USAGE;
	measured m = { .flops = 0 };
	choir_strategy *s = bench_strategy(1, "cpu:0", 1, NULL);
	const choir_status status =
			s == NULL ? choir_error_status() : choir_strategy_run(s, measure, &m, NULL, NULL);
	const int code = status == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_strategy_free(s);
	return code;
}
