// The sizes are those of the models of choir bench train, or similar.
#include "bench/kernel_operations.h"

static choir_tensor *matmul(choir_tensor *const in[])
{
	return choir_matmul(in[0], in[1], CHOIR_TRANSPOSED_NONE);
}

static choir_tensor *conv(choir_tensor *const in[])
{
	return choir_conv2d(in[0], in[1], NULL);
}

static choir_tensor *conv_same(choir_tensor *const in[])
{
	return choir_conv2d(in[0], in[1], CHOIR_OPTIONS(choir_conv_options, .padding = 1));
}

static choir_tensor *conv_strided(choir_tensor *const in[])
{
	return choir_conv2d(
			in[0], in[1], CHOIR_OPTIONS(choir_conv_options, .stride = 2, .padding = 1));
}

static choir_tensor *conv_dilated(choir_tensor *const in[])
{
	return choir_conv2d(
			in[0], in[1], CHOIR_OPTIONS(choir_conv_options, .padding = 2, .dilation = 2));
}

static choir_tensor *conv_in_groups(choir_tensor *const in[])
{
	const int64_t groups = choir_tensor_shape(in[0])->dim[3] / choir_tensor_shape(in[1])->dim[2];
	return choir_conv2d(
			in[0], in[1], CHOIR_OPTIONS(choir_conv_options, .padding = 1, .groups = groups));
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

static choir_tensor *rms_norm(choir_tensor *const in[])
{
	return choir_rms_norm(in[0], in[1], 1e-5);
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

static choir_tensor *gelu_tanh(choir_tensor *const in[])
{
	return choir_gelu_tanh(in[0]);
}

static choir_tensor *gelu(choir_tensor *const in[])
{
	return choir_gelu(in[0]);
}

static choir_tensor *dropout(choir_tensor *const in[])
{
	return choir_dropout(in[0], 0.1, 1);
}

static choir_tensor *embedding(choir_tensor *const in[])
{
	return choir_gather(in[0], in[1]);
}

static choir_tensor *average_pool(choir_tensor *const in[])
{
	return choir_average_pool2d(in[0], 2, 2, 0);
}

static choir_tensor *lstm(choir_tensor *const in[])
{
	return choir_lstm(in[0], in[1], in[2], in[3], NULL);
}

static choir_tensor *gru(choir_tensor *const in[])
{
	return choir_gru(in[0], in[1], in[2], in[3], in[4], NULL);
}

static choir_tensor *max_pool(choir_tensor *const in[])
{
	return choir_max_pool2d(in[0], 2, 2, 0);
}

static choir_tensor *log_softmax(choir_tensor *const in[])
{
	return choir_log_softmax(in[0]);
}

const operation operations[] = {
	{ "matmul", "[128, 784] [784, 512]", matmul, { { 2, { 128, 784 } }, { 2, { 784, 512 } } },
			.n = 2, .flops = 2.0 * 128 * 784 * 512 },
	{ "matmul", "[1024, 784] [784, 512]", matmul, { { 2, { 1024, 784 } }, { 2, { 784, 512 } } },
			.n = 2, .flops = 2.0 * 1024 * 784 * 512 },
	{ "matmul", "[1024, 128] [128, 384]", matmul, { { 2, { 1024, 128 } }, { 2, { 128, 384 } } },
			.n = 2, .flops = 2.0 * 1024 * 128 * 384 },
	{ "matmul", "[1024, 512] [512, 128]", matmul, { { 2, { 1024, 512 } }, { 2, { 512, 128 } } },
			.n = 2, .flops = 2.0 * 1024 * 512 * 128 },
	{ "matmul", "[1024, 256] [256, 1024]", matmul, { { 2, { 1024, 256 } }, { 2, { 256, 1024 } } },
			.n = 2, .flops = 2.0 * 1024 * 256 * 1024 },
	{ "conv2d", "[64, 28, 28, 1] 3x3x32", conv,
			{ { 4, { 64, 28, 28, 1 } }, { 4, { 3, 3, 1, 32 } } }, .n = 2,
			.flops = 2.0 * 64 * 26 * 26 * 9 * 32 },
	{ "conv2d", "[64, 26, 26, 32] 3x3x64", conv,
			{ { 4, { 64, 26, 26, 32 } }, { 4, { 3, 3, 32, 64 } } }, .n = 2,
			.flops = 2.0 * 64 * 24 * 24 * 9 * 32 * 64 },
	{ "conv2d", "[64, 32, 32, 16] 3x3x16", conv_same,
			{ { 4, { 64, 32, 32, 16 } }, { 4, { 3, 3, 16, 16 } } }, .n = 2,
			.flops = 2.0 * 64 * 32 * 32 * 9 * 16 * 16 },
	{ "conv2d", "[64, 8, 8, 64] 3x3x64", conv_same,
			{ { 4, { 64, 8, 8, 64 } }, { 4, { 3, 3, 64, 64 } } }, .n = 2,
			.flops = 2.0 * 64 * 8 * 8 * 9 * 64 * 64 },
	{ "conv2d", "[64, 32, 32, 16] 3x3x32 /2", conv_strided,
			{ { 4, { 64, 32, 32, 16 } }, { 4, { 3, 3, 16, 32 } } }, .n = 2,
			.flops = 2.0 * 64 * 16 * 16 * 9 * 16 * 32 },
	{ "conv2d", "[64, 16, 16, 32] dilation 2", conv_dilated,
			{ { 4, { 64, 16, 16, 32 } }, { 4, { 3, 3, 32, 32 } } }, .n = 2,
			.flops = 2.0 * 64 * 16 * 16 * 9 * 32 * 32 },
	{ "conv2d", "[64, 16, 16, 32] 4 groups", conv_in_groups,
			{ { 4, { 64, 16, 16, 32 } }, { 4, { 3, 3, 8, 32 } } }, .n = 2,
			.flops = 2.0 * 64 * 16 * 16 * 9 * 8 * 32 },
	{ "conv2d", "[64, 16, 16, 32] depthwise", conv_in_groups,
			{ { 4, { 64, 16, 16, 32 } }, { 4, { 3, 3, 1, 32 } } }, .n = 2,
			.flops = 2.0 * 64 * 16 * 16 * 9 * 32 },
	// Two products of a triangle each; the backward pass computes one again.
	{ "attention", "[8, 128, 3 128]", attention, { { 3, { 8, 128, 384 } } }, .n = 1,
			.flops = 2.0 * 8 * 128 * 128 * 128 },
	{ "attention", "[8, 128, 3 256]", attention, { { 3, { 8, 128, 768 } } }, .n = 1,
			.flops = 2.0 * 8 * 128 * 128 * 256 },
	{ "layer_norm", "[1024, 128]", layer_norm,
			{ { 2, { 1024, 128 } }, { 1, { 128 } }, { 1, { 128 } } }, .n = 3 },
	{ "rms_norm", "[1024, 128]", rms_norm, { { 2, { 1024, 128 } }, { 1, { 128 } } }, .n = 2 },
	{ "batch_norm", "[64, 32, 32, 16]", batch_norm,
			{ { 4, { 64, 32, 32, 16 } }, { 1, { 16 } }, { 1, { 16 } } }, .n = 3 },
	{ "bias_add", "[1024, 512]", bias_add, { { 2, { 1024, 512 } }, { 1, { 512 } } }, .n = 2,
			.unread = 3, .unwritten = 1 },
	{ "add", "[1024, 512]", add, { { 2, { 1024, 512 } }, { 2, { 1024, 512 } } }, .n = 2,
			.unread = 3, .unwritten = 3 },
	{ "relu", "[1024, 512]", relu, { { 2, { 1024, 512 } } }, .n = 1 },
	{ "gelu_tanh", "[1024, 512]", gelu_tanh, { { 2, { 1024, 512 } } }, .n = 1 },
	{ "gelu", "[1024, 512]", gelu, { { 2, { 1024, 512 } } }, .n = 1 },
	{ "dropout", "[1024, 512]", dropout, { { 2, { 1024, 512 } } }, .n = 1, .unread = 1 },
	{ "embedding", "[256, 128] 2048 rows", embedding, { { 2, { 256, 128 } }, { 1, { 2048 } } },
			.n = 2, .rows = true, .unread = 1, .unwritten = 2 },
	{ "average_pool2d", "[64, 24, 24, 64] 2x2", average_pool, { { 4, { 64, 24, 24, 64 } } },
			.n = 1, .unread = 1 },
	{ "max_pool2d", "[64, 24, 24, 64] 2x2", max_pool, { { 4, { 64, 24, 24, 64 } } }, .n = 1 },
	{ "log_softmax", "[1024, 256]", log_softmax, { { 2, { 1024, 256 } } }, .n = 1 },
	{ "lstm", "[32, 64, 128] 128", lstm,
			{ { 3, { 32, 64, 128 } }, { 2, { 128, 512 } }, { 2, { 128, 512 } }, { 1, { 512 } } },
			.n = 4, .flops = 2.0 * 32 * 64 * (128 + 128) * 512 },
	{ "gru", "[32, 64, 128] 128", gru,
			{ { 3, { 32, 64, 128 } }, { 2, { 128, 384 } }, { 2, { 128, 384 } }, { 1, { 384 } },
					{ 1, { 384 } } },
			.n = 5, .flops = 2.0 * 32 * 64 * (128 + 128) * 384 },
};
const size_t n_operations = sizeof operations / sizeof operations[0];
