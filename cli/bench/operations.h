// The operations of choir bench kernels.
#pragma once

#include <choir/choir.h>
#include <choir/nn.h>

enum { MAX_IN = 5 };

typedef struct {
	const char *name, *shape;
	choir_tensor *(*apply)(choir_tensor *const in[]);
	choir_shape in[MAX_IN];
	size_t n;
	// Multiplications and additions of products on the way there; the way back costs twice as
	// many. 0: none, the bytes are the limit.
	double flops;
	bool rows; // the last operand is not f32 but numbers of rows of the first
	// Bit i: the way back needs not read the i-th operand, or writes no gradient for it, since
	// that is the result's own or there is none.
	unsigned unread, unwritten;
} operation;

extern const operation operations[];
extern const size_t n_operations;
