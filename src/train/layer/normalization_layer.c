// In training, a batch norm uses the batch's statistics, of one replica or all, and updates the
// moving statistics, which evaluation uses.
#include "base/alloc.h"
#include "base/options.h"
#include "train/layer/layer.h"
#include "train/weights/weights.h"

#include "choir/nn.h"
#include "choir/replica.h"
#include "op/tape/tape.h"

#include <inttypes.h>
#include <math.h>

typedef struct {
	choir_layer layer;
	int64_t channels;
	double epsilon, momentum;
	bool over_replicas;
	int64_t groups;
} norm;

enum { GAMMA, BETA, MEAN, VARIANCE };

static bool read_all(const choir_layer *l, const choir_tensor *x, choir_tensor *read[])
{
	for (int i = 0; i < l->variables; i++)
		if ((read[i] = choir_variable_read(l->variable[i], x->frame)) == NULL)
			return false;
	return true;
}

static bool fits(choir_layer *l, choir_tensor *x)
{
	const norm *n = (const norm *) l;
	char got[CHI_SHAPE_TEXT];
	if (x->shape.rank >= 1 && x->shape.dim[x->shape.rank - 1] == n->channels)
		return true;
	chi_layer_fail(l, x, "%s needs [.., %" PRId64 "]; the input is %s", l->kind->name, n->channels,
			chi_shape_print(&x->shape, got));
	return false;
}

static choir_tensor *apply_row_norm(choir_layer *l, choir_tensor *x)
{
	const norm *n = (const norm *) l;
	choir_tensor *read[CHI_LAYER_VARIABLES];
	if (!fits(l, x) || !read_all(l, x, read))
		return NULL;
	if (n->groups > 0)
		return choir_group_norm(x, read[GAMMA], read[BETA], n->groups, n->epsilon);
	return l->variables > BETA ? choir_layer_norm(x, read[GAMMA], read[BETA], n->epsilon)
							   : choir_rms_norm(x, read[GAMMA], n->epsilon);
}

static choir_tensor *sum_replicas(choir_tensor *t, void *user)
{
	return choir_replica_all_reduce(user, CHOIR_SUM, t);
}

static choir_status move(choir_variable *v, double momentum, choir_tensor *old, choir_tensor *now)
{
	return choir_variable_assign(
			v, choir_add(choir_scale(old, momentum), choir_scale(now, 1 - momentum)));
}

static choir_tensor *train_batch_norm(choir_layer *l, choir_tensor *x, choir_tensor *read[])
{
	const norm *n = (const norm *) l;
	choir_replica *r = n->over_replicas ? choir_frame_replica(x->frame) : NULL;
	choir_tensor *mean, *variance;
	const choir_batch_norm_options o = {
		.size = sizeof o,
		.epsilon = n->epsilon == 0 ? CHOIR_ZERO : n->epsilon,
		.sum = r != NULL ? sum_replicas : NULL,
		.user = r,
		.mean = &mean,
		.variance = &variance,
	};
	choir_tensor *y = choir_batch_norm(x, read[GAMMA], read[BETA], &o);
	// A replica without examples has no statistics; a recomputed segment must not move them twice.
	if (y == NULL || x->frame->tape->again || (r == NULL && choir_shape_elements(&x->shape) == 0))
		return y;
	if (move(l->variable[MEAN], n->momentum, read[MEAN], mean) != CHOIR_OK ||
			move(l->variable[VARIANCE], n->momentum, read[VARIANCE], variance) != CHOIR_OK)
		return chi_frame_record_null(x->frame);
	return y;
}

static choir_tensor *apply_batch_norm(choir_layer *l, choir_tensor *x)
{
	const norm *n = (const norm *) l;
	choir_tensor *read[CHI_LAYER_VARIABLES];
	if (!fits(l, x) || !read_all(l, x, read))
		return NULL;
	if (choir_frame_is_training(x->frame))
		return train_batch_norm(l, x, read);
	choir_tensor *factor = choir_divide(read[GAMMA],
			choir_sqrt(choir_add(read[VARIANCE], choir_number(x->frame, n->epsilon))));
	choir_tensor *offset = choir_subtract(read[BETA], choir_multiply(read[MEAN], factor));
	return choir_add(choir_multiply(x, factor), offset);
}

static bool fits_value(const choir_layer *l, const chi_export *e, int x)
{
	const choir_shape *s = chi_export_shape(e, x);
	const int64_t channels = ((const norm *) l)->channels;
	if (s->rank >= 1 && s->dim[s->rank - 1] == channels)
		return true;
	chi_export_refuse(l, e, x, "%s needs [.., %" PRId64 "]", l->kind->name, channels);
	return false;
}

static int describe_row_norm(choir_layer *l, chi_export *e, int x)
{
	const norm *n = (const norm *) l;
	const bool centered = l->variables > BETA;
	if (!fits_value(l, e, x))
		return CHOIR_NONE;
	const char *gamma = chi_export_variable(e, l->variable[GAMMA]);
	const char *beta = centered ? chi_export_variable(e, l->variable[BETA]) : "";
	if (gamma == NULL || beta == NULL)
		return CHOIR_NONE;
	return chi_export_call(e, CHI_C_NORM_ROWS, x, *chi_export_shape(e, x),
			", %" PRId64 ", %d, %.17g, %s.at, %s%s", n->channels, centered, n->epsilon, gamma,
			centered ? beta : "NULL", centered ? ".at" : "");
}

static void fold(const norm *n, const float *value, float *factor, float *offset)
{
	const int64_t c = n->channels;
	const float *gamma = value, *beta = value + c, *mean = value + 2 * c,
				*variance = value + 3 * c;
	for (int64_t i = 0; i < c; i++) {
		factor[i] = gamma[i] / sqrtf(variance[i] + (float) n->epsilon);
		offset[i] = beta[i] - mean[i] * factor[i];
	}
}

static int describe_batch_norm(choir_layer *l, chi_export *e, int x)
{
	const norm *n = (const norm *) l;
	const size_t c = (size_t) n->channels;
	if (!fits_value(l, e, x))
		return CHOIR_NONE;
	choir_frame *f = choir_frame_new(NULL);
	float *value = f == NULL ? NULL : chi_alloc_array(c, 6 * sizeof *value);
	choir_status status = chi_made(value);
	for (int i = 0; status == CHOIR_OK && i < l->variables; i++)
		status = chi_weights_fetch(l->variable[i], f, value + (size_t) i * c);
	const char *factor = NULL, *offset = NULL;
	if (status == CHOIR_OK) {
		fold(n, value, value + 4 * c, value + 5 * c);
		factor = chi_export_constants(e, l->name, "factor", c, value + 4 * c);
		offset = chi_export_constants(e, l->name, "offset", c, value + 5 * c);
	}
	chi_free(value);
	choir_frame_free(f);
	if (factor == NULL || offset == NULL)
		return CHOIR_NONE;
	return chi_export_call(e, CHI_C_SCALE_CHANNELS, x, *chi_export_shape(e, x),
			", %" PRId64 ", %s.at, %s.at", n->channels, factor, offset);
}

static const chi_layer_kind layer_kind = { .name = "layer_normalization",
	.sequences = true,
	.apply = apply_row_norm,
	.describe = describe_row_norm };
static const chi_layer_kind rms_kind = { .name = "rms_normalization",
	.sequences = true,
	.apply = apply_row_norm,
	.describe = describe_row_norm };
static const chi_layer_kind group_kind = { .name = "group_normalization",
	.apply = apply_row_norm };
static const chi_layer_kind batch_kind = {
	.name = "batch_normalization", .apply = apply_batch_norm, .describe = describe_batch_norm
};

// 0 means standard, CHOIR_NONE 0. False: out of range.
static bool resolve(double *value, double standard, double below)
{
	*value = *value == 0 ? standard : *value == CHOIR_NONE ? 0 : *value;
	return *value >= 0 && *value < below;
}

static choir_layer *make(
		const chi_layer_kind *kind, const char *name, int64_t channels, const norm *options)
{
	norm n = *options;
	if (chi_layer_check(kind->name, name, true, CHOIR_LINEAR) != CHOIR_OK)
		return NULL;
	if (channels < 1 || !resolve(&n.epsilon, 1e-3, HUGE_VAL) || !resolve(&n.momentum, 0.99, 1))
		return chi_fail_null(CHOIR_INVALID,
				"layer \"%s\": %s of %" PRId64 " channels with epsilon %g "
				"and momentum %g; channels of 1 or more, an epsilon of 0 "
				"or more and a momentum from 0 to below 1 are needed",
				name, kind->name, channels, options->epsilon, options->momentum);
	norm *made = (norm *) chi_layer_new(sizeof *made, kind, name);
	if (made == NULL)
		return NULL;
	n.layer = made->layer;
	*made = n;
	made->channels = channels;
	chi_layer_set(&made->layer, "epsilon %.9g, momentum %.9g, over_replicas %d, groups %" PRId64,
			n.epsilon, n.momentum, (int) n.over_replicas, n.groups);
	return &made->layer;
}

static choir_status make_scale(choir_layer *l, bool beta)
{
	const choir_shape shape = CHOIR_SHAPE(((const norm *) l)->channels);
	const choir_variable_options ones = { .size = sizeof ones,
		.initializer = CHOIR_INITIALIZER_ONES };
	CHOIR_TRY(chi_layer_make_variable(l, "gamma", shape, &ones));
	return beta ? chi_layer_make_variable(l, "beta", shape, NULL) : CHOIR_OK;
}

choir_layer *choir_layer_normalization_new(const char *name, int64_t channels, double epsilon)
{
	const norm n = { .epsilon = epsilon };
	choir_layer *l = make(&layer_kind, name, channels, &n);
	return l == NULL ? NULL : chi_layer_finish(l, make_scale(l, true));
}

choir_layer *choir_rms_normalization_new(const char *name, int64_t channels, double epsilon)
{
	const norm n = { .epsilon = epsilon };
	choir_layer *l = make(&rms_kind, name, channels, &n);
	return l == NULL ? NULL : chi_layer_finish(l, make_scale(l, false));
}

choir_layer *choir_group_normalization_new(
		const char *name, int64_t channels, int64_t groups, double epsilon)
{
	if (groups < 1 || channels % groups != 0)
		return chi_fail_null(CHOIR_INVALID,
				"layer \"%s\": %" PRId64 " groups of %" PRId64
				" channels; groups of 1 or more that "
				"divide the channels are needed",
				name == NULL ? "group_normalization" : name, groups, channels);
	const norm n = { .epsilon = epsilon, .groups = groups };
	choir_layer *l = make(&group_kind, name, channels, &n);
	return l == NULL ? NULL : chi_layer_finish(l, make_scale(l, true));
}

static choir_status make_statistics(choir_layer *l)
{
	const choir_shape shape = CHOIR_SHAPE(((const norm *) l)->channels);
	choir_variable_options o = { .size = sizeof o,
		.synchronization = CHOIR_SYNCHRONIZATION_ON_READ,
		.aggregation = CHOIR_AGGREGATION_MEAN };
	CHOIR_TRY(make_scale(l, true));
	CHOIR_TRY(chi_layer_make_variable(l, "moving_mean", shape, &o));
	o.initializer = CHOIR_INITIALIZER_ONES;
	return chi_layer_make_variable(l, "moving_variance", shape, &o);
}

choir_layer *choir_batch_normalization_new(
		const char *name, int64_t channels, const choir_batch_normalization_options *o)
{
	choir_batch_normalization_options all;
	if (chi_options_take("the options'", &all, sizeof all, o) != CHOIR_OK) {
		chi_error_prefix("layer \"%s\"", name == NULL ? "batch_normalization" : name);
		return NULL;
	}
	if ((unsigned) all.over_replicas > CHOIR_OFF)
		return chi_fail_null(CHOIR_INVALID,
				"layer \"%s\": over_replicas is %d; CHOIR_ON or CHOIR_OFF is needed",
				name == NULL ? "batch_normalization" : name, (int) all.over_replicas);
	const norm n = { .epsilon = all.epsilon,
		.momentum = all.momentum,
		.over_replicas = all.over_replicas == CHOIR_ON };
	choir_layer *l = make(&batch_kind, name, channels, &n);
	return l == NULL ? NULL : chi_layer_finish(l, make_statistics(l));
}
