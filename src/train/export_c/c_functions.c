// cmake/text.cmake turns the functions' text into arrays of lines.
#include "train/export_c/c_functions.h"

#include "exported_text.h"

#define BIT(function) ((uint32_t) 1 << CHI_C_##function)
#define RECURRENCE (BIT(ADD_PRODUCT) | BIT(SIGMOID_VALUE) | BIT(TANH_VALUE))

// clang-format off
const chi_c_function_facts chi_c_functions[CHI_C_FUNCTIONS] = {
	[CHI_C_BITS] = { .lines = text_bits },
	[CHI_C_EXP] = { .lines = text_exp_f32, .needs = BIT(BITS) },
	[CHI_C_TANH_VALUE] = { .lines = text_tanh_f32, .needs = BIT(EXP) },
	[CHI_C_ERF] = { .lines = text_erf_f32, .needs = BIT(EXP) },
	[CHI_C_SIGMOID_VALUE] = { .lines = text_sigmoid_f32, .needs = BIT(EXP) },
	[CHI_C_SUM] = { .lines = text_sum },
	[CHI_C_ADD_PRODUCT] = { .lines = text_add_product },
	[CHI_C_PREPARE] = { "prepare", text_prepare, 0, CHI_COUNT_ELEMENTS, false, true },
	[CHI_C_FILL_MISSING] = { "fill_missing", text_fill_missing, 0, CHI_COUNT_ELEMENTS, false,
			true },
	[CHI_C_TO_UNITS] = { "to_units", text_to_units, 0, CHI_COUNT_ELEMENTS, false, true },
	[CHI_C_EMBEDDING] = { "embedding", text_embedding, 0, CHI_COUNT_ROWS, false, false },
	[CHI_C_ADD] = { "add", text_add, 0, CHI_COUNT_ELEMENTS, false, true },
	[CHI_C_DENSE] = { "dense", text_dense, 0, CHI_COUNT_ROWS, true, false },
	[CHI_C_TIED] = { "tied", text_tied, 0, CHI_COUNT_ROWS, true, false },
	[CHI_C_CONV2D] = { "conv2d", text_conv2d, 0, CHI_COUNT_NONE, false, false },
	[CHI_C_MAX_POOL2D] = { "max_pool2d", text_max_pool2d, 0, CHI_COUNT_NONE, false, false },
	[CHI_C_AVERAGE_POOL2D] = { "average_pool2d", text_average_pool2d, 0, CHI_COUNT_NONE,
			false, false },
	[CHI_C_MEAN_PIXELS] = { "mean_pixels", text_mean_pixels, BIT(SUM), CHI_COUNT_ROWS,
			false, false },
	[CHI_C_SCALE_CHANNELS] = { "scale_channels", text_scale_channels, 0, CHI_COUNT_ROWS,
			true, true },
	[CHI_C_NORM_ROWS] = { "norm_rows", text_norm_rows, BIT(SUM), CHI_COUNT_ROWS, true, true },
	[CHI_C_ATTENTION] = { "attention", text_attention, BIT(SUM) | BIT(EXP), CHI_COUNT_ROWS,
			false, false },
	[CHI_C_LSTM] = { "lstm", text_lstm, RECURRENCE, CHI_COUNT_ROWS, false, false },
	[CHI_C_GRU] = { "gru", text_gru, RECURRENCE, CHI_COUNT_ROWS, false, false },
	[CHI_C_LAST_PLACE] = { "last_place", text_last_place, 0, CHI_COUNT_ROWS, false, false },
	[CHI_C_RELU] = { "apply_relu", text_relu, 0, CHI_COUNT_ELEMENTS, true, true },
	[CHI_C_TANH] = { "apply_tanh", text_tanh, BIT(TANH_VALUE), CHI_COUNT_ELEMENTS, true,
			true },
	[CHI_C_SIGMOID] = { "apply_sigmoid", text_sigmoid, BIT(SIGMOID_VALUE), CHI_COUNT_ELEMENTS,
			true, true },
	[CHI_C_GELU] = { "apply_gelu", text_gelu, BIT(ERF), CHI_COUNT_ELEMENTS, true, true },
	[CHI_C_GELU_TANH] = { "apply_gelu_tanh", text_gelu_tanh, BIT(SIGMOID_VALUE),
			CHI_COUNT_ELEMENTS, true, true },
	[CHI_C_SILU] = { "apply_silu", text_silu, BIT(SIGMOID_VALUE), CHI_COUNT_ELEMENTS, true,
			true },
};
// clang-format on

const char *const *const chi_main_numbers = text_main_numbers;
const char *const *const chi_main_text = text_main_text;

uint32_t chi_c_functions_needed(uint32_t used)
{
	for (int i = CHI_C_FUNCTIONS; i-- > 0;)
		if (used >> i & 1)
			used |= chi_c_functions[i].needs;
	return used;
}
