// choir_layer_export_c: a layer as a C file.
#include "train/export_c/export_c.h"

#include "base/alloc.h"
#include "base/options.h"
#include "strategy/context.h"
#include "tensor/tensor.h"
#include "train/layer/layer.h"

#include <math.h>
#include <string.h>

enum { MAX_NAME = 64 };

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static choir_status check_options(const choir_export_options *o)
{
	bool good = is_letter(o->name[0]) && strlen(o->name) <= MAX_NAME;
	for (const char *c = o->name; *c != '\0'; c++)
		good = good && (is_letter(*c) || (*c >= '0' && *c <= '9'));
	if (!good)
		return choir_fail(CHOIR_INVALID,
				"export: the name is \"%.100s\"; letters, digits "
				"and _ are needed, at most %d, and no digit first",
				o->name, MAX_NAME);
	if (!isfinite(o->scale) || (o->mean == NULL) != (o->deviation == NULL))
		return choir_fail(CHOIR_INVALID,
				"export: the scale is %g, %s means and %s deviations; a "
				"finite scale, and both or none of the others are needed",
				o->scale, o->mean == NULL ? "no" : "with", o->deviation == NULL ? "no" : "with");
	if ((o->output_mean == NULL) != (o->output_deviation == NULL) ||
			(o->fill_nan == CHOIR_ON && o->mean == NULL))
		return choir_fail(CHOIR_INVALID,
				"export: fill_nan needs .mean, and .output_mean needs .output_deviation; one is "
				"NULL");
	return CHOIR_OK;
}

static choir_status check_input(choir_dtype dtype, const choir_shape *input)
{
	char got[CHI_SHAPE_TEXT];
	bool good =
			dtype == CHOIR_F32 || ((dtype == CHOIR_U8 || dtype == CHOIR_I32) && input->rank == 1);
	good = good && input->rank >= 1 && input->rank < CHOIR_MAX_RANK;
	for (int i = 0; good && i < input->rank; i++)
		good = input->dim[i] >= 1;
	return good
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID,
					  "export: the input of one example is %s %s; f32 of 1 to "
					  "%d dimensions, or u8 or i32 [positions], is needed",
					  choir_dtype_name(dtype), chi_shape_print(input, got), CHOIR_MAX_RANK - 1);
}

static int prepare(chi_export *e, const choir_export_options *o, int x)
{
	const double scale = o->scale == 0 ? 1 : o->scale;
	if (x == CHOIR_NONE || (scale == 1 && o->mean == NULL))
		return x;
	if (o->mean == NULL)
		return chi_export_call(
				e, CHI_C_PREPARE, x, e->input, ", %.9ef, NULL, NULL", (double) (float) scale);
	const size_t n = (size_t) choir_shape_elements(&e->input);
	float *factor = chi_alloc_array(n, sizeof *factor);
	if (factor == NULL)
		return CHOIR_NONE;
	for (size_t i = 0; i < n; i++) // as choir_dataset_standardize does
		factor[i] = o->deviation[i] > 0 ? 1 / o->deviation[i] : 1;
	const char *means = chi_export_constants(e, "input", "mean", n, o->mean);
	const char *factors = chi_export_constants(e, "input", "factor", n, factor);
	chi_free(factor);
	if (means == NULL || factors == NULL)
		return CHOIR_NONE;
	x = chi_export_call(e, CHI_C_PREPARE, x, e->input, ", %.9ef, %s.at, %s.at",
			(double) (float) scale, means, factors);
	return o->fill_nan == CHOIR_ON ? chi_export_call(e, CHI_C_FILL_MISSING, x, e->input, "%s", "")
								   : x;
}

static int to_units(chi_export *e, const choir_export_options *o, int y)
{
	y = chi_export_keep_last_place(e, y);
	if (y == CHOIR_NONE || o->output_mean == NULL)
		return y;
	const choir_shape shape = *chi_export_shape(e, y);
	const size_t n = (size_t) choir_shape_elements(&shape);
	const char *means = chi_export_constants(e, "output", "mean", n, o->output_mean);
	const char *factors = chi_export_constants(e, "output", "deviation", n, o->output_deviation);
	return means == NULL || factors == NULL
			? CHOIR_NONE
			: chi_export_call(e, CHI_C_TO_UNITS, y, shape, ", %s.at, %s.at", factors, means);
}

static choir_status describe(chi_export *e, choir_layer *l, const choir_export_options *o)
{
	int x;
	if (e->dtype == CHOIR_F32)
		x = prepare(e, o, chi_export_new_value(e, e->input, false, true));
	else
		x = chi_export_new_value(e, CHOIR_SHAPE(e->input.dim[0], 1), true, true);
	return chi_export_finish(e, to_units(e, o, chi_layer_describe(l, e, x)));
}

static choir_status write_file(
		const chi_export *e, const choir_export_options *o, const char *path)
{
	chi_writer *to = chi_writer_new(path);
	CHOIR_TRY(chi_made(to));
	const choir_status status = chi_export_print(e, o, to);
	if (status == CHOIR_OK)
		return chi_writer_commit(to);
	chi_writer_abort(to);
	return status;
}

choir_status choir_layer_export_c(choir_layer *l, choir_dtype dtype, choir_shape input,
		const choir_export_options *options, const char *path)
{
	choir_export_options o;
	if (l == NULL || path == NULL)
		return choir_fail(CHOIR_INVALID, "export: the %s is NULL", l == NULL ? "layer" : "path");
	CHOIR_TRY(chi_options_take("export: the options'", &o, sizeof o, options));
	CHOIR_TRY(chi_strategy_check(l->strategy));
	CHOIR_TRY(chi_context_need_cross(l->strategy, "export"));
	if (o.name == NULL)
		o.name = "model";
	CHOIR_TRY(check_options(&o));
	CHOIR_TRY(check_input(dtype, &input));
	chi_export e = { .dtype = dtype, .input = input };
	choir_status status = describe(&e, l, &o);
	if (status == CHOIR_OK)
		status = write_file(&e, &o, path);
	chi_export_free(&e);
	return status;
}
