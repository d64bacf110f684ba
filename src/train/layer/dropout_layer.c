// The random key contains the layer's name, so two layers drop different elements.
#include "train/layer/layer.h"

#include "base/hash.h"

typedef struct {
	choir_layer layer;
	double rate;
	uint64_t seed;
} dropout;

static choir_tensor *apply(choir_layer *l, choir_tensor *x)
{
	const dropout *d = (const dropout *) l;
	if (!chi_dtype_is_float(x->dtype))
		return chi_layer_fail(l, x, "dropout needs f32 or f64; the input is %s, cast it",
				choir_dtype_name(x->dtype));
	return choir_dropout(x, d->rate, d->seed);
}

static int describe(choir_layer *l, chi_export *e, int x)
{
	(void) l;
	(void) e;
	return x;
}

static const chi_layer_kind kind = {
	.name = "dropout", .sequences = true, .apply = apply, .describe = describe
};

choir_layer *choir_dropout_new(const char *name, double rate)
{
	if (chi_layer_check("dropout", name, true, CHOIR_LINEAR) != CHOIR_OK)
		return NULL;
	if (!(rate >= 0 && rate < 1))
		return chi_fail_null(CHOIR_INVALID,
				"layer \"%s\": the dropout rate is %g; 0 or more and less than 1 is needed", name,
				rate);
	dropout *d = (dropout *) chi_layer_new(sizeof *d, &kind, name);
	if (d == NULL)
		return NULL;
	d->rate = rate;
	d->seed = chi_hash_text(name);
	chi_layer_set(&d->layer, "rate %.17g", rate);
	return chi_layer_finish(&d->layer, CHOIR_OK);
}
