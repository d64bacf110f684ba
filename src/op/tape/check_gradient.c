// Random weights make the result one number, in which errors cannot cancel. All evaluations draw
// the same random numbers.
#include "base/alloc.h"
#include "base/lock.h"
#include "op/op.h"

#include <math.h>

static const double STEP = 6e-6; // cube root of f64's precision balances both errors
static const double TOLERANCE = 1e-6;
static const uint64_t WEIGHTS_SEED = 0x9e3779b97f4a7c15u;

typedef struct {
	choir_frame *frame;
	size_t n;
	choir_tensor **inputs;
	double **value, **gradient; // f64 on the host, or NULL
	choir_tensor **sources, **made;
	chi_random_key random;
	choir_formula_fn *fn;
	void *user;
} check;

static choir_tensor *evaluate(check *c)
{
	choir_frame *f = c->frame;

	f->random = c->random;
	chi_mutex_check_none_held();
	choir_tensor *y = c->fn(c->inputs, c->user);
	if (!y)
		return chi_frame_null_argument(f, "check_gradient: the formula");
	if (y->dtype != CHOIR_F64)
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"check_gradient: the formula gave %s; f64 is needed", choir_dtype_name(y->dtype));
	choir_tensor *weights = choir_random_normal(f, CHOIR_F64, y->shape, WEIGHTS_SEED);
	return choir_sum(choir_multiply(y, weights), CHOIR_ALL_AXES);
}

static choir_status go_back(check *c, double *value)
{
	choir_tape *tape = choir_tape_begin(c->frame);
	choir_tensor *sum = evaluate(c);
	size_t n = 0;

	if (!tape || !sum)
		return chi_frame_status(c->frame);
	*value = choir_tensor_number(sum);
	for (size_t i = 0; i < c->n; i++)
		if (c->value[i])
			c->sources[n++] = c->inputs[i];
	CHOIR_TRY(choir_tape_gradient(tape, sum, n, c->sources, c->made));
	n = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->value[i])
			CHOIR_TRY(chi_tensor_to_host(c->made[n++], c->gradient[i]));
	return CHOIR_OK;
}

// A tape turns dropout on.
static choir_status value_at(check *c, size_t input, int64_t element, double x, double *value)
{
	choir_frame *f = c->frame;
	const size_t mark = choir_frame_mark(f);
	choir_tensor *original = c->inputs[input];
	const double before = c->value[input][element];

	c->value[input][element] = x;
	c->inputs[input] = choir_constant(f, CHOIR_F64, original->shape, c->value[input]);
	choir_tensor *sum = choir_tape_begin(f) && c->inputs[input] ? evaluate(c) : NULL;
	*value = choir_tensor_number(sum);
	const choir_status status = sum ? choir_frame_status(f) : chi_frame_status(f);
	c->value[input][element] = before;
	c->inputs[input] = original;
	choir_frame_rewind(f, mark);
	return status;
}

typedef struct {
	size_t input;
	int64_t element;
	double made, measured, difference;
} worst;

static choir_status compare(check *c, size_t input, double min, worst *w)
{
	const int64_t elements = choir_shape_elements(&c->inputs[input]->shape);

	for (int64_t i = 0; i < elements; i++)
		min = fmax(min, 1e-2 * fabs(c->gradient[input][i]));
	for (int64_t i = 0; i < elements; i++) {
		const double x = c->value[input][i], made = c->gradient[input][i];
		const double high = x + STEP * fmax(1, fabs(x)), low = x - STEP * fmax(1, fabs(x));
		double above, below;
		CHOIR_TRY(value_at(c, input, i, high, &above));
		CHOIR_TRY(value_at(c, input, i, low, &below));
		const double measured = (above - below) / (high - low);
		const double size = fmax(fmax(fabs(made), fabs(measured)), min);
		double difference = made == measured ? 0 : fabs(made - measured) / size;
		if (isnan(difference))
			difference = (double) INFINITY;
		if (difference > w->difference)
			*w = (worst){ input, i, made, measured, difference };
	}
	return CHOIR_OK;
}

static choir_status run_checked(const check *c, const worst *w, double tolerance)
{
	char text[CHI_SHAPE_TEXT];
	choir_shape at = c->inputs[w->input]->shape;
	int64_t rest = w->element;

	if (w->difference <= tolerance)
		return CHOIR_OK;
	for (int i = at.rank; i-- > 0;) {
		const int64_t size = at.dim[i];
		at.dim[i] = rest % size;
		rest /= size;
	}
	return choir_fail(CHOIR_INVALID,
			"check_gradient: input %zu at %s: the tape gives %.9g, differences "
			"give %.9g; their relative difference is %.2g, allowed is %.2g",
			w->input, chi_shape_print(&at, text), w->made, w->measured, w->difference, tolerance);
}

static choir_status prepare(check *c, choir_tensor *const inputs[])
{
	size_t checked = 0;

	c->inputs = chi_alloc_array(c->n, sizeof(*c->inputs));
	c->value = chi_alloc_array(c->n, sizeof(*c->value));
	c->gradient = chi_alloc_array(c->n, sizeof(*c->gradient));
	c->sources = chi_alloc_array(c->n, sizeof(*c->sources));
	c->made = chi_alloc_array(c->n, sizeof(*c->made));
	if (!c->inputs || !c->value || !c->gradient || !c->sources || !c->made)
		return CHOIR_NO_MEMORY;
	for (size_t i = 0; i < c->n; i++) {
		const size_t bytes = chi_tensor_bytes(inputs[i]);
		c->inputs[i] = inputs[i];
		if (!chi_dtype_is_float(inputs[i]->dtype))
			continue;
		if (inputs[i]->dtype != CHOIR_F64)
			return choir_fail(CHOIR_INVALID, "check_gradient: input %zu is %s; f64 is needed", i,
					choir_dtype_name(inputs[i]->dtype));
		c->value[i] = chi_alloc(bytes);
		c->gradient[i] = chi_alloc(bytes);
		if (!c->value[i] || !c->gradient[i])
			return CHOIR_NO_MEMORY;
		CHOIR_TRY(chi_tensor_to_host(inputs[i], c->value[i]));
		checked++;
	}
	if (checked == 0)
		return choir_fail(
				CHOIR_INVALID, "check_gradient: no input is f64; at least one is needed");
	return CHOIR_OK;
}

static void clean(check *c)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->value)
			chi_free(c->value[i]);
		if (c->gradient)
			chi_free(c->gradient[i]);
	}
	chi_free(c->inputs);
	chi_free(c->value);
	chi_free(c->gradient);
	chi_free(c->sources);
	chi_free(c->made);
}

static choir_status run(check *c, choir_tensor *const inputs[], double tolerance)
{
	worst w = { 0 };
	double value = 0;

	CHOIR_TRY(prepare(c, inputs));
	const size_t mark = choir_frame_mark(c->frame);
	choir_status status = go_back(c, &value);
	choir_frame_rewind(c->frame, mark);
	for (size_t i = 0; i < c->n && status == CHOIR_OK; i++)
		if (c->value[i])
			status = compare(c, i, 1e-2 * fabs(value) + 1e-300, &w);
	c->frame->random = c->random;
	return status == CHOIR_OK ? run_checked(c, &w, tolerance > 0 ? tolerance : TOLERANCE) : status;
}

choir_status choir_check_gradient(
		size_t n, choir_tensor *const inputs[], double tolerance, choir_formula_fn *fn, void *user)
{
	choir_frame *f = NULL;

	for (size_t i = 0; i < n; i++) {
		CHOIR_TRY(chi_frame_made(f, inputs[i]));
		f = f ? f : inputs[i]->frame;
		if (inputs[i]->frame != f)
			return chi_frame_fail(f, CHOIR_INVALID,
					"check_gradient: input %zu is in another frame than input 0", i);
		CHOIR_TRY(chi_tensor_check(inputs[i]));
	}
	if (!f || !fn)
		return choir_fail(CHOIR_INVALID, "check_gradient: inputs and a formula are needed");
	if (f->failed)
		return chi_frame_status(f);
	if (f->tape)
		return chi_frame_fail(
				f, CHOIR_STATE, "check_gradient: a tape is recording in this frame already");
	check c = { .frame = f, .n = n, .random = f->random, .fn = fn, .user = user };
	const choir_status status = run(&c, inputs, tolerance);
	clean(&c);
	return status;
}
