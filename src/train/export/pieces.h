// The functions that exported files are made of: C source with the plain kernels' arithmetic (the
// text of c/*.inc and of some files of op/plain), and what is known of each.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// In the order in which they stand in a file: each behind those that it calls.
typedef enum {
	CHI_PIECE_BITS,
	CHI_PIECE_EXP,
	CHI_PIECE_TANH_VALUE,
	CHI_PIECE_ERF,
	CHI_PIECE_SIGMOID_VALUE,
	CHI_PIECE_SUM,
	CHI_PIECE_ADD_PRODUCT,
	CHI_PIECE_PREPARE, // from here on, functions for steps
	CHI_PIECE_EMBEDDING,
	CHI_PIECE_ADD,
	CHI_PIECE_DENSE,
	CHI_PIECE_TIED,
	CHI_PIECE_CONV2D,
	CHI_PIECE_MAX_POOL2D,
	CHI_PIECE_AVERAGE_POOL2D,
	CHI_PIECE_MEAN_PIXELS,
	CHI_PIECE_SCALE_CHANNELS,
	CHI_PIECE_NORM_ROWS,
	CHI_PIECE_ATTENTION,
	CHI_PIECE_LSTM,
	CHI_PIECE_GRU,
	CHI_PIECE_LAST_PLACE,
	CHI_PIECE_RELU,
	CHI_PIECE_TANH,
	CHI_PIECE_SIGMOID,
	CHI_PIECE_GELU,
	CHI_PIECE_GELU_TANH,
	CHI_PIECE_SILU,
	CHI_PIECES
} chi_piece;

// The argument behind the tensors.
typedef enum { CHI_COUNT_NONE, CHI_COUNT_ROWS, CHI_COUNT_ELEMENTS } chi_count;

typedef struct {
	const char *function; // NULL: others call it, no step does
	const char *const *lines; // of the source, ending in NULL
	uint32_t needs; // a bit for each piece that it calls, which need others in turn
	chi_count count;
	bool by_rows; // a row of the result follows from that row of x alone
	bool in_place; // the result may stand where x does
} chi_piece_facts;

extern const chi_piece_facts chi_pieces[CHI_PIECES];
// A main for programs, of numbers or of text.
extern const char *const *const chi_main_numbers, *const *const chi_main_text;
// The pieces of used, and all that they need.
uint32_t chi_pieces_needed(uint32_t used);
