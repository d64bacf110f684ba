// L-BFGS (Liu and Nocedal, On the limited memory BFGS method, 1989), in f64 on one thread, so that
// the weights do not depend on devices. Both problems are convex.
#include "train/linear_solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY = 8, MAX_STEPS = 100, MAX_HALVINGS = 30 };

// Vectors of n numbers.
typedef struct {
	const linear_problem *of;
	size_t n;
	double *at, *gradient, *next, *next_gradient, *direction; // at: the weights
	double *moved, *changed; // the last steps, of weights and gradients; rings of MEMORY
	double factor[MEMORY]; // 1 / (moved * changed)
	double *score; // of a row
	size_t kept, newest;
} search;

// Of inputs that fit the rows in many ways, most are noise.
static double decay_of(const linear_problem *p)
{
	return p->rows > p->inputs ? 0.1 : 10;
}

static double dot(size_t n, const double a[], const double b[])
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static void add(size_t n, double factor, const double a[], double to[])
{
	for (size_t i = 0; i < n; i++)
		to[i] += factor * a[i];
}

// Four sums, which do not wait for each other.
static double score_of(int64_t n, const float x[], const double w[])
{
	double sum[4] = { w[n] };
	int64_t i = 0;
	for (; i + 4 <= n; i += 4)
		for (int k = 0; k < 4; k++)
			sum[k] += (double) x[i + k] * w[i + k];
	for (; i < n; i++)
		sum[0] += (double) x[i] * w[i];
	return sum[0] + sum[1] + sum[2] + sum[3];
}

// Replaces scores by their gradient. Returns the loss.
static double cross_entropy(int64_t n, int64_t label, double weight, double score[])
{
	double max = score[0], sum = 0;
	for (int64_t k = 1; k < n; k++)
		max = fmax(max, score[k]);
	const double right = score[label] - max;
	for (int64_t k = 0; k < n; k++) {
		score[k] = exp(score[k] - max);
		sum += score[k];
	}
	for (int64_t k = 0; k < n; k++)
		score[k] = weight * (score[k] / sum - (k == label));
	return weight * (log(sum) - right);
}

static double squared_error(int64_t n, const float number[], double score[])
{
	double sum = 0;
	for (int64_t k = 0; k < n; k++) {
		score[k] -= (double) number[k];
		sum += score[k] * score[k] / 2;
	}
	return sum;
}

static double evaluate(const search *s, const double weights[], double gradient[])
{
	const linear_problem *p = s->of;
	const int64_t n = p->inputs, row = n + 1;
	const double decay = decay_of(p);
	double loss = 0;
	memset(gradient, 0, s->n * sizeof *gradient);
	for (int64_t i = 0; i < p->rows; i++) {
		const float *x = p->input + i * n;
		for (int64_t k = 0; k < p->outputs; k++)
			s->score[k] = score_of(n, x, weights + k * row);
		const int64_t label = p->label == NULL ? 0 : p->label[i];
		const float weight = p->class_weight == NULL ? 1 : p->class_weight[label];
		loss += p->label != NULL ? cross_entropy(p->outputs, label, (double) weight, s->score)
								 : squared_error(p->outputs, p->number + i * p->outputs, s->score);
		for (int64_t k = 0; k < p->outputs; k++) {
			double *to = gradient + k * row;
			for (int64_t j = 0; j < n; j++)
				to[j] += s->score[k] * (double) x[j];
			to[n] += s->score[k];
		}
	}
	for (int64_t k = 0; k < p->outputs; k++) {
		loss += decay * dot((size_t) n, weights + k * row, weights + k * row) / 2;
		add((size_t) n, decay, weights + k * row, gradient + k * row);
	}
	return loss;
}

// The inverse Hessian, as the last steps show it, times the gradient; downhill.
static void find_direction(search *s)
{
	const size_t n = s->n;
	double part[MEMORY];
	for (size_t i = 0; i < n; i++)
		s->direction[i] = -s->gradient[i];
	for (size_t k = 0; k < s->kept; k++) {
		const size_t at = (s->newest + MEMORY - k) % MEMORY;
		part[at] = s->factor[at] * dot(n, s->moved + at * n, s->direction);
		add(n, -part[at], s->changed + at * n, s->direction);
	}
	if (s->kept > 0) {
		const double *changed = s->changed + s->newest * n;
		const double scale = 1 / (s->factor[s->newest] * dot(n, changed, changed));
		for (size_t i = 0; i < n; i++)
			s->direction[i] *= scale;
	}
	for (size_t k = s->kept; k-- > 0;) {
		const size_t at = (s->newest + MEMORY - k) % MEMORY;
		const double back = s->factor[at] * dot(n, s->changed + at * n, s->direction);
		add(n, part[at] - back, s->moved + at * n, s->direction);
	}
}

static void remember(search *s)
{
	const size_t n = s->n, at = (s->newest + 1) % MEMORY;
	double *moved = s->moved + at * n, *changed = s->changed + at * n;
	for (size_t i = 0; i < n; i++) {
		moved[i] = s->next[i] - s->at[i];
		changed[i] = s->next_gradient[i] - s->gradient[i];
	}
	const double both = dot(n, moved, changed);
	if (!(both > 0))
		return;
	s->factor[at] = 1 / both;
	s->newest = at;
	s->kept += s->kept < MEMORY;
}

// Steps until the loss hardly falls (Armijo's rule decides their lengths).
static void descend(search *s)
{
	static const double ENOUGH = 1e-4, SMALL = 1e-7;
	double loss = evaluate(s, s->at, s->gradient);
	for (int i = 0; i < MAX_STEPS; i++) {
		find_direction(s);
		const double slope = dot(s->n, s->gradient, s->direction);
		double length = s->kept > 0 ? 1 : 1 / sqrt(-slope), next = HUGE_VAL;
		int halvings = 0;
		for (; slope < 0 && halvings < MAX_HALVINGS; halvings++, length /= 2) {
			memcpy(s->next, s->at, s->n * sizeof *s->next);
			add(s->n, length, s->direction, s->next);
			next = evaluate(s, s->next, s->next_gradient);
			if (next <= loss + ENOUGH * length * slope)
				break;
		}
		if (!(slope < 0) || halvings == MAX_HALVINGS)
			return;
		remember(s);
		memcpy(s->at, s->next, s->n * sizeof *s->at);
		memcpy(s->gradient, s->next_gradient, s->n * sizeof *s->gradient);
		if (loss - next < SMALL * loss)
			return;
		loss = next;
	}
}

choir_status linear_solve(const linear_problem *p, double *weights)
{
	enum { VECTORS = 4 + 2 * MEMORY };
	search s = { .of = p, .n = (size_t) (p->outputs * (p->inputs + 1)), .at = weights };
	double *memory = calloc(VECTORS * s.n + (size_t) p->outputs, sizeof *memory);
	if (memory == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "no memory for a linear model of %zu weights", s.n);
	s.gradient = memory;
	s.next = memory + s.n;
	s.next_gradient = memory + 2 * s.n;
	s.direction = memory + 3 * s.n;
	s.moved = memory + 4 * s.n;
	s.changed = memory + (4 + MEMORY) * s.n;
	s.score = memory + VECTORS * s.n;
	memset(weights, 0, s.n * sizeof *weights);
	descend(&s);
	free(memory);
	return CHOIR_OK;
}
