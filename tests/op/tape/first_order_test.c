// What a step of first order costs beside the possibility of gradients of gradients (decision
// 0075): only the kernels of an ordinary backward pass, no recorded operation, and no memory after
// the pass beside that of the results.
#include "choir/trace.h"
#include "op/given.h"
#include "test.h"

#include <string.h>

enum { ROWS = 64, WIDTH = 32, CLASSES = 10, SOURCES = 4 };

typedef struct {
	choir_tensor *in[SOURCES + 1]; // the input; two kernels, gamma and beta
	int given; // tensors with memory before the first operation
	choir_tensor *loss;
	choir_tensor *gradient[SOURCES];
} step;

static int recorded(const choir_frame *f)
{
	int n = 0;
	for (const chi_node *node = f->tape->last; node; node = node->previous)
		n++;
	return n;
}

// Tensors with memory.
static int alive(const choir_frame *f)
{
	int n = 0;
	for (const choir_tensor *t = f->tensors; t; t = t->next)
		n += t->buffer != NULL;
	return n;
}

// An operation with a formula, one with a slope, and others.
static void forward(given *g, step *s)
{
	choir_frame *f = g->frame;
	choir_tape_begin(f);
	const choir_shape shapes[SOURCES + 1] = { CHOIR_SHAPE(ROWS, WIDTH), CHOIR_SHAPE(WIDTH, WIDTH),
		CHOIR_SHAPE(WIDTH, CLASSES), CHOIR_SHAPE(WIDTH), CHOIR_SHAPE(WIDTH) };
	for (int i = 0; i <= SOURCES; i++)
		s->in[i] = given_normal(g, shapes[i]);
	choir_tensor *labels = given_labels(g, ROWS, CLASSES);
	s->given = alive(f);
	choir_tensor *x = choir_tanh(choir_matmul(s->in[0], s->in[1], CHOIR_TRANSPOSED_NONE));
	x = choir_layer_norm(x, s->in[3], s->in[4], 0);
	x = choir_sparse_softmax_cross_entropy(
			labels, choir_matmul(x, s->in[2], CHOIR_TRANSPOSED_NONE));
	s->loss = choir_sum(x, CHOIR_ALL_AXES);
}

typedef enum { GRADIENT, READY, RECORDED } pass;

static choir_status count_ready(void *user, size_t index, choir_tensor *gradient)
{
	(void) gradient;
	(void) index;
	(*(int *) user)++;
	return CHOIR_OK;
}

static void backward(step *s, pass how)
{
	int ready = 0;
	choir_tape *tape = s->loss->frame->tape;
	const choir_status status = how == GRADIENT
			? choir_tape_gradient(tape, s->loss, SOURCES, s->in + 1, s->gradient)
			: how == RECORDED
			? choir_tape_gradient_recorded(tape, s->loss, SOURCES, s->in + 1, s->gradient)
			: chi_tape_backward(tape, s->loss, SOURCES, s->in + 1, count_ready, &ready);
	assert_int_equal(status, CHOIR_OK);
	assert_int_equal(ready, how == READY ? SOURCES : 0);
}

static void add_kernel(const choir_trace_span *span, void *user)
{
	char *text = user;
	strcat(strcat(text, text[0] == '\0' ? "" : " "), span->name);
}

typedef struct {
	char kernels[1000];
	int more; // operations that the pass recorded
	int alive; // new tensors with memory after it
} cost;

static cost cost_of(pass how)
{
	cost c = { 0 };
	given g;
	step s;
	given_open(&g, "cpu:0", 1);
	forward(&g, &s);
	const int before = recorded(g.frame);
	assert_int_equal(
			choir_trace_start(NULL,
					CHOIR_OPTIONS(choir_trace_options, .span = add_kernel, .user = c.kernels)),
			CHOIR_OK);
	backward(&s, how);
	assert_int_equal(choir_trace_stop(), CHOIR_OK);
	c.more = recorded(g.frame) - before;
	c.alive = alive(g.frame) - s.given;
	given_close(&g);
	return c;
}

TEST(a_first_order_step_pays_nothing_for_second_order)
{
	// Of the sum, the losses, the second product, the norm, tanh and the first product.
	static const char kernels[] = "backward fill broadcast softmax_cross_entropy_gradient "
								  "matmul matmul row_norm_gradient row_norm_sums tanh_gradient "
								  "matmul";
	const cost gradient = cost_of(GRADIENT), ready = cost_of(READY), second = cost_of(RECORDED);
	assert_string_equal(gradient.kernels, kernels);
	assert_string_equal(ready.kernels, kernels);
	assert_int_equal(gradient.more, 0);
	assert_int_equal(ready.more, 0);
	assert_int_equal(gradient.alive, SOURCES + 1); // gradients and the loss
	assert_int_equal(ready.alive, 1);
	// Only a pass that is asked to record pays.
	assert_true(second.more > 0 && second.alive > second.more);
	assert_true(strlen(second.kernels) > 2 * strlen(kernels));
}

TEST_GROUP(NULL, NULL)
