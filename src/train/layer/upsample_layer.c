// Upsampling of sequences, images and volumes.
#include "train/layer/layer.h"

#include "choir/nn.h"

#include <inttypes.h>

typedef struct {
	choir_layer layer;
	int64_t factor;
	choir_interpolation interpolation;
} upsampling;

static choir_tensor *apply_upsample(choir_layer *l, choir_tensor *x)
{
	const upsampling *u = (const upsampling *) l;
	return choir_upsample(x, u->factor, u->interpolation);
}

static const chi_layer_kind upsample_kind = { .name = "upsample", .apply = apply_upsample };

choir_layer *choir_upsample_new(int64_t factor, choir_interpolation interpolation)
{
	if (factor < 1 || (unsigned) interpolation > CHOIR_BILINEAR)
		return chi_fail_null(CHOIR_INVALID,
				"layer: upsample by %" PRId64 " with interpolation %d; 1 or more, and NEAREST or "
				"BILINEAR, are needed",
				factor, (int) interpolation);
	upsampling *u = (upsampling *) chi_layer_new(sizeof *u, &upsample_kind, NULL);
	if (u == NULL)
		return NULL;
	u->factor = factor;
	u->interpolation = interpolation;
	chi_layer_set(&u->layer, "factor %" PRId64 ", interpolation %d", factor, (int) interpolation);
	return chi_layer_finish(&u->layer, CHOIR_OK);
}
