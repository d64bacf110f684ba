// The canonical tree as one would write it down: sums by plain recursion on host memory, against
// which folds, cross-device operations and strategies are checked bit by bit.
#pragma once

#include "choir/tensor.h"

// out = a + b, element by element; out may be either.
void oracle_add(choir_dtype dtype, void *out, const void *a, const void *b, int64_t n);
// Divides floating elements.
void oracle_divide(choir_dtype dtype, void *x, double by, int64_t n);
// The sum of replicas lo .. hi-1, whose elements lie one replica after the other in all.
void oracle_sum(choir_dtype dtype, const void *all, int lo, int hi, int64_t n, void *out);
// Values that no two orders of summing round alike, of replicas one after the other.
void oracle_fill(choir_dtype dtype, void *all, int replicas, int64_t n, uint64_t seed);
// Writes the maximal nodes of the tree over replicas that lie in [lo, hi); their number.
int oracle_nodes(int replicas, int lo, int hi, int nodes[][2]);
size_t oracle_size(choir_dtype dtype);
