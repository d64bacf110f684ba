// A failed constructor leaves no variables, so that its name is free again.
#include "train/layer/layer.h"

#include "base/hash.h"
#include "op/nn/nn.h"
#include "strategy/context.h"
#include "strategy/variable/create.h"
#include "strategy/worker_sync.h"

static void free_layer(void *self)
{
	choir_layer *l = self;
	chi_free(l->name);
	chi_free(l);
}

choir_layer *chi_layer_new(size_t bytes, const chi_layer_kind *kind, const char *name)
{
	choir_strategy *s = choir_strategy_current();
	if (s == NULL || chi_strategy_check(s) != CHOIR_OK)
		return NULL;
	choir_layer *l = chi_alloc(bytes);
	if (l == NULL)
		return NULL;
	l->kind = kind;
	l->strategy = s->owner;
	if (name != NULL && (l->name = chi_strdup(name)) == NULL) {
		chi_free(l);
		return NULL;
	}
	return l;
}

// In a replica they stay: others wait for replica 0's variable; the next attempt gets it.
static void unmake(choir_variable *const variable[CHI_LAYER_VARIABLES])
{
	const chi_context *c = chi_context_current();
	if (c != NULL && c->kind == CHI_IN_REPLICA)
		return;
	for (int i = CHI_LAYER_VARIABLES; i-- > 0;)
		if (variable[i] != NULL)
			chi_strategy_delete_variable(variable[i]);
}

void chi_layer_set(choir_layer *l, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	chi_text_format(l->setting, sizeof l->setting, fmt, args);
	va_end(args);
}

uint64_t chi_layer_hash(const choir_layer *l)
{
	if (l == NULL)
		return 0;
	return chi_hash_mix(chi_hash_mix(chi_hash_text(l->kind->name) ^ chi_hash_text(l->setting)) ^
			(l->name == NULL ? 0 : chi_hash_text(l->name)));
}

static choir_status note(const choir_layer *l)
{
	const bool named = l->name != NULL;
	return chi_strategy_note(l->strategy, "%s%s%s%s%s%s", named ? "layer \"" : "",
			named ? l->name : "", named ? "\", " : "", l->kind->name,
			l->setting[0] == '\0' ? "" : " with ", l->setting);
}

// One worker may make layers without variables, so these are compared only inside one with
// variables.
static choir_status note_made(const choir_layer *l, size_t n, choir_layer *const inside[])
{
	const chi_context *c = chi_context_current();
	choir_status status = CHOIR_OK;
	if (l->variables == 0 || (c != NULL && c->kind == CHI_IN_REPLICA) ||
			(l->variable[0] == NULL && l->strategy->compared > 0))
		return CHOIR_OK;
	for (size_t i = 0; i < n && status == CHOIR_OK; i++)
		if (inside[i] != NULL && inside[i]->variables == 0)
			status = note(inside[i]);
	return status == CHOIR_OK ? note(l) : status;
}

choir_layer *chi_layer_finish(choir_layer *l, choir_status status)
{
	return chi_layer_finish_around(l, 0, NULL, status);
}

choir_layer *chi_layer_finish_around(
		choir_layer *l, size_t n, choir_layer *const inside[], choir_status status)
{
	if (l == NULL)
		return NULL;
	const size_t noted = l->strategy->notes.length;
	if (status == CHOIR_OK)
		status = note_made(l, n, inside);
	const choir_layer made = *l;
	if (status == CHOIR_OK)
		status = chi_strategy_own(l->strategy, free_layer, l);
	else
		free_layer(l);
	if (status == CHOIR_OK)
		return l;
	chi_strategy_forget_notes(made.strategy, noted);
	unmake(made.variable);
	return NULL;
}

choir_status chi_layer_make_variable(
		choir_layer *l, const char *what, choir_shape shape, const choir_variable_options *o)
{
	chi_text name = { 0 };
	chi_text_add(&name, "%s/%s", l->name, what);
	choir_variable *v = name.failed ? NULL : choir_variable_new(name.data, shape, o);
	chi_text_free(&name);
	if (v == NULL)
		return chi_error_prefix("layer \"%s\"", l->name);
	l->variable[l->variables++] = v;
	return CHOIR_OK;
}

choir_status chi_layer_make_weights(choir_layer *l, const choir_shape *kernel, bool bias)
{
	const choir_variable_options o = { .size = sizeof o,
		.initializer = CHOIR_INITIALIZER_GLOROT_UNIFORM };
	CHOIR_TRY(chi_layer_make_variable(l, "kernel", *kernel, &o));
	return bias
			? chi_layer_make_variable(l, "bias", CHOIR_SHAPE(kernel->dim[kernel->rank - 1]), NULL)
			: CHOIR_OK;
}

choir_status chi_layer_check(
		const char *kind, const char *name, bool needs_name, choir_activation activation)
{
	if (needs_name && (name == NULL || name[0] == '\0'))
		return choir_fail(CHOIR_INVALID, "layer: a %s layer has no name; one is needed", kind);
	return chi_activation_check(activation) == CHOIR_OK
			? CHOIR_OK
			: chi_error_prefix("layer \"%s\"", name == NULL ? kind : name);
}

choir_tensor *chi_layer_fail(const choir_layer *l, choir_tensor *x, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	chi_fail_v(CHOIR_INVALID, fmt, args);
	va_end(args);
	chi_error_prefix("layer \"%s\"", l->name != NULL ? l->name : l->kind->name);
	return chi_frame_record_null(x->frame);
}

const char *chi_layer_activation(choir_activation activation)
{
	static const char *const names[] = { [CHOIR_LINEAR] = "linear",
		[CHOIR_RELU] = "relu",
		[CHOIR_TANH] = "tanh",
		[CHOIR_SIGMOID] = "sigmoid",
		[CHOIR_GELU] = "gelu",
		[CHOIR_GELU_TANH] = "gelu_tanh",
		[CHOIR_SILU] = "silu" };
	return names[activation];
}

// NULL: its constructor left an error.
choir_status chi_layer_check_inside(const char *kind, size_t n, choir_layer *const layers[])
{
	const choir_strategy *current = choir_strategy_current();
	for (size_t i = 0; i < n && current != NULL; i++) {
		if (layers[i] == NULL)
			return chi_error_null("%s: layer %zu is NULL", kind, i);
		if (layers[i]->strategy != current->owner)
			return choir_fail(CHOIR_STATE,
					"%s: mixing strategies: layer %zu belongs to %s, the current strategy is %s",
					kind, i, layers[i]->strategy->label, current->label);
	}
	return chi_made(current);
}

static bool takes_sequences(const choir_layer *l, choir_tensor *x)
{
	char got[CHI_SHAPE_TEXT];
	if (!l->kind->sequences)
		chi_layer_fail(l, x, "%s does not take sequences of different lengths", l->kind->name);
	else if (l->variable[0] != NULL && !l->kind->any_dtype && x->shape.rank < 3)
		chi_layer_fail(l, x, "%s needs sequences [n, timesteps, ..]; the input is %s",
				l->kind->name, chi_shape_print(&x->shape, got));
	else
		return true;
	return false;
}

static bool check_input(const choir_layer *l, choir_tensor *x)
{
	if (l == NULL) {
		chi_frame_null_argument(x->frame, "layer");
		return false;
	}
	if (chi_tensor_check(x) != CHOIR_OK)
		return false;
	if (x->frame->lengths != NULL && !takes_sequences(l, x))
		return false;
	if (l->variable[0] == NULL || x->dtype == CHOIR_F32 || l->kind->any_dtype ||
			(chi_dtype_is_half(x->dtype) && x->frame->narrow != CHOIR_F32))
		return true;
	chi_layer_fail(l, x, "%s needs f32; the input is %s, cast it", l->kind->name,
			choir_dtype_name(x->dtype));
	return false;
}

static choir_tensor *apply_by(
		choir_layer *l, choir_tensor *x, choir_tensor *(*apply)(choir_layer *l, choir_tensor *x))
{
	choir_frame *f = x->frame;
	if (l->precision == CHOIR_PRECISION_DEFAULT)
		return apply(l, x);
	const choir_precision before = choir_frame_set_precision(f, l->precision);
	if (l->precision <= CHOIR_PRECISION_TF32 && chi_dtype_is_half(x->dtype))
		x = choir_cast(x, CHOIR_F32);
	choir_tensor *y = x == NULL ? NULL : apply(l, x);
	choir_frame_set_precision(f, before);
	return y;
}

choir_tensor *choir_layer_apply(choir_layer *l, choir_tensor *x)
{
	return x != NULL && check_input(l, x) ? apply_by(l, x, l->kind->apply) : NULL;
}

choir_tensor *chi_layer_apply_linear(choir_layer *l, choir_tensor *x)
{
	return x != NULL && check_input(l, x) ? apply_by(l, x, l->kind->apply_linear) : NULL;
}

choir_tensor *chi_layer_apply_sequences(
		choir_layer *l, choir_tensor *x, choir_tensor *lengths, bool *ended)
{
	*ended = false;
	if (x == NULL || lengths == NULL)
		return chi_frame_null_argument(choir_tensor_frame(x != NULL ? x : lengths), "layer");
	choir_frame *f = x->frame;
	choir_tensor *before = f->lengths;
	f->lengths = lengths;
	choir_tensor *y = choir_layer_apply(l, x);
	*ended = f->lengths == NULL;
	if (y != NULL && !*ended)
		y = choir_zero_padding(y, lengths);
	f->lengths = before;
	return y;
}

choir_tensor *choir_layer_apply_sequences(choir_layer *l, choir_tensor *x, choir_tensor *lengths)
{
	bool ended;
	return chi_layer_apply_sequences(l, x, lengths, &ended);
}

choir_status choir_layer_set_precision(choir_layer *l, choir_precision p)
{
	if (l == NULL || (unsigned) p >= CHOIR_PRECISION_AUTO)
		return choir_fail(CHOIR_INVALID,
				"layer \"%s\": the precision is %s; DEFAULT, F32, TF32, MIXED_BF16 or "
				"MIXED_F16 is needed",
				l == NULL				  ? "NULL"
						: l->name != NULL ? l->name
										  : l->kind->name,
				choir_precision_name(p));
	l->precision = p;
	return CHOIR_OK;
}

void chi_layer_follow(choir_layer *l, chi_image *image)
{
	if (l->kind->follow != NULL) {
		l->kind->follow(l, image);
		return;
	}
	switch (l->kind->image) {
	case CHI_IMAGE_KEPT:
		return;
	case CHI_IMAGE_MADE:
		*image = (chi_image){ .channels = l->channels };
		return;
	case CHI_IMAGE_FLATTENED:
		image->flat = image->channels > 0;
		return;
	case CHI_IMAGE_USED:
		if (image->flat)
			l->variable[0]->flattened_channels = image->channels;
		break;
	case CHI_IMAGE_ENDED:
		break;
	}
	*image = (chi_image){ 0 };
}

int choir_layer_variables(const choir_layer *l)
{
	return l == NULL ? 0 : l->variables;
}

choir_variable *choir_layer_variable(choir_layer *l, int index)
{
	if (l == NULL || index < 0 || index >= l->variables)
		return chi_fail_null(CHOIR_INVALID, "layer \"%s\": has no variable %d; it has %d",
				l == NULL				  ? "NULL"
						: l->name != NULL ? l->name
										  : l->kind->name,
				index, choir_layer_variables(l));
	return l->kind->variable != NULL ? l->kind->variable(l, index) : l->variable[index];
}
