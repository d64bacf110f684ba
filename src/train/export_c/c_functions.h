// The text of c/*.inc and parts of op/plain.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Each after those that it calls.
typedef enum {
	CHI_C_BITS,
	CHI_C_EXP,
	CHI_C_TANH_VALUE,
	CHI_C_ERF,
	CHI_C_SIGMOID_VALUE,
	CHI_C_SUM,
	CHI_C_ADD_PRODUCT,
	CHI_C_PREPARE, // instructions follow
	CHI_C_FILL_MISSING,
	CHI_C_TO_UNITS,
	CHI_C_EMBEDDING,
	CHI_C_ADD,
	CHI_C_DENSE,
	CHI_C_TIED,
	CHI_C_CONV2D,
	CHI_C_MAX_POOL2D,
	CHI_C_AVERAGE_POOL2D,
	CHI_C_MEAN_PIXELS,
	CHI_C_SCALE_CHANNELS,
	CHI_C_NORM_ROWS,
	CHI_C_ATTENTION,
	CHI_C_LSTM,
	CHI_C_GRU,
	CHI_C_LAST_PLACE,
	CHI_C_RELU,
	CHI_C_TANH,
	CHI_C_SIGMOID,
	CHI_C_GELU,
	CHI_C_GELU_TANH,
	CHI_C_SILU,
	CHI_C_FUNCTIONS
} chi_c_function;

typedef enum { CHI_COUNT_NONE, CHI_COUNT_ROWS, CHI_COUNT_ELEMENTS } chi_count;

typedef struct {
	const char *function;
	const char *const *lines;
	uint32_t needs; // directly
	chi_count count;
	bool by_rows; // a row of the result depends on that of x alone
	bool in_place;
} chi_c_function_facts;

extern const chi_c_function_facts chi_c_functions[CHI_C_FUNCTIONS];
extern const char *const *const chi_main_numbers, *const *const chi_main_text;
// With all that these need.
uint32_t chi_c_functions_needed(uint32_t used);
