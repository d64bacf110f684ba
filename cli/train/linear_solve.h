// The linear model in which the training of a table begins.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <choir/choir.h>

// Rows of standardized inputs. A classification has labels, a regression numbers [rows, outputs].
typedef struct {
	int64_t rows, inputs, outputs;
	const float *input;
	const int64_t *label; // NULL: a regression
	const float *number;
	const float *class_weight; // NULL: 1
} linear_problem;

// Ridge or logistic regression: minimizes the sum of the squared errors / 2, or of the cross
// entropies, plus 0.05 times the sum of squared weights, or 5 times if the rows are not more than
// the inputs. weights: [outputs, inputs + 1], with biases at the end of rows.
choir_status linear_solve(const linear_problem *p, double *weights);
