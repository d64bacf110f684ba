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
	// Multiplications and additions of products, forward. The backward pass needs twice as many.
	// 0: only bytes limit the operation.
	double flops;
	bool rows; // the last operand is not f32: it indexes rows of the first
	// Bit i: the backward pass does not read operand i, or writes no gradient of its own for it.
	unsigned unread, unwritten;
} operation;

extern const operation operations[];
extern const size_t n_operations;
