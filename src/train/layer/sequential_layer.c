// A sequence of layers as one layer.
#include "train/layer/layer.h"

#include "base/hash.h"
#include "base/size.h"
#include "choir/nn.h"

#include <limits.h>
#include <string.h>

typedef struct {
	choir_layer layer;
	size_t n;
	choir_layer *inside[];
} sequential;

// ReLU and maximum commute, with the same bits in both passes, and ReLU is cheaper afterwards.
static bool changes_places(const sequential *s, size_t i)
{
	return s->inside[i]->rectifies && i + 1 < s->n && s->inside[i + 1]->kind->maximum;
}

static choir_tensor *apply(choir_layer *l, choir_tensor *x)
{
	const sequential *s = (const sequential *) l;
	for (size_t i = 0; i < s->n; i++) {
		if (changes_places(s, i)) {
			x = chi_layer_apply_linear(s->inside[i], x);
			x = choir_relu(choir_layer_apply(s->inside[++i], x));
		} else {
			x = choir_layer_apply(s->inside[i], x);
		}
	}
	return x;
}

static choir_variable *variable(choir_layer *l, int index)
{
	const sequential *s = (const sequential *) l;
	size_t i = 0;
	for (; index >= s->inside[i]->variables; i++)
		index -= s->inside[i]->variables;
	return choir_layer_variable(s->inside[i], index);
}

static int describe(choir_layer *l, chi_export *e, int x)
{
	const sequential *s = (const sequential *) l;
	for (size_t i = 0; i < s->n; i++)
		x = chi_layer_describe(s->inside[i], e, x);
	return x;
}

static void follow(choir_layer *l, chi_image *image)
{
	const sequential *s = (const sequential *) l;
	for (size_t i = 0; i < s->n; i++)
		chi_layer_follow(s->inside[i], image);
}

static const chi_layer_kind kind = { .name = "sequential",
	.follow = follow,
	.sequences = true,
	.apply = apply,
	.variable = variable,
	.describe = describe };

choir_layer *choir_sequential_new(size_t n, choir_layer *const layers[])
{
	size_t bytes;
	if (!chi_size_multiply(n, sizeof(choir_layer *), &bytes) ||
			!chi_size_add(bytes, sizeof(sequential), &bytes) || (n > 0 && layers == NULL))
		return chi_fail_null(CHOIR_INVALID, "sequential: the array of %zu layers is %s", n,
				layers == NULL ? "NULL" : "too large");
	if (chi_layer_check_inside("sequential", n, layers) != CHOIR_OK)
		return NULL;
	sequential *s = (sequential *) chi_layer_new(bytes, &kind, NULL);
	if (s == NULL)
		return NULL;
	s->n = n;
	if (n > 0)
		memcpy(s->inside, layers, n * sizeof *layers);
	int64_t variables = 0;
	uint64_t hash = n;
	for (size_t i = 0; i < n; i++) {
		variables += layers[i]->variables;
		hash = chi_hash_mix(hash ^ chi_layer_hash(layers[i]));
	}
	chi_layer_set(&s->layer, "%zu layers, contents %016llx", n, (unsigned long long) hash);
	choir_status status = CHOIR_OK;
	if (variables > INT_MAX)
		status = choir_fail(
				CHOIR_INVALID, "sequential: the layers have more than %d variables", INT_MAX);
	else
		s->layer.variables = (int) variables;
	choir_layer *made = chi_layer_finish_around(&s->layer, n, layers, status);
	if (made != NULL)
		chi_layer_follow(made, &(chi_image){ 0 });
	return made;
}
