// Gradient sizes of known networks: a few large tensors among many small ones.
#include "bench/bench.h"

#include <string.h>

typedef struct {
	size_t n;
	int64_t *elements; // NULL: only count
} list;

static void add(list *l, int64_t elements)
{
	if (l->elements != NULL)
		l->elements[l->n] = elements;
	l->n++;
}

// With the two vectors of its normalization.
static void add_convolution(list *l, int64_t side, int64_t in, int64_t out)
{
	add(l, side * side * in * out);
	add(l, out);
	add(l, out);
}

// He, Zhang, Ren, Sun: Deep residual learning for image recognition, 2016: 25,557,032 elements.
static void resnet50(list *l)
{
	static const int blocks[] = { 3, 4, 6, 3 };
	int64_t in = 64;
	add_convolution(l, 7, 3, in);
	for (int stage = 0; stage < 4; stage++) {
		const int64_t width = (int64_t) 64 << stage, out = 4 * width;
		for (int block = 0; block < blocks[stage]; block++) {
			add_convolution(l, 1, in, width);
			add_convolution(l, 3, width, width);
			add_convolution(l, 1, width, out);
			if (block == 0)
				add_convolution(l, 1, in, out);
			in = out;
		}
	}
	add(l, in * 1000);
	add(l, 1000);
}

static void add_pair(list *l, int64_t weights, int64_t biases)
{
	add(l, weights);
	add(l, biases);
}

// Radford and others: Language models are unsupervised multitask learners, 2019, the smallest:
// 124,439,808 elements.
static void gpt2(list *l)
{
	const int64_t width = 768;
	add(l, 50257 * width);
	add(l, 1024 * width);
	for (int block = 0; block < 12; block++) {
		add_pair(l, width, width);
		add_pair(l, width * 3 * width, 3 * width);
		add_pair(l, width * width, width);
		add_pair(l, width, width);
		add_pair(l, width * 4 * width, 4 * width);
		add_pair(l, 4 * width * width, width);
	}
	add_pair(l, width, width);
}

size_t bench_shapes(const char *name, int64_t *elements)
{
	list l = { .elements = elements };
	if (strcmp(name, "resnet50") == 0)
		resnet50(&l);
	else
		gpt2(&l);
	return l.n;
}
