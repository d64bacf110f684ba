// The checks of kernels. Every kernel runs on random calls, and its results are compared with
// those of the CPU's plain kernel.
#include "kernel_sample.h"
#include "suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 5, LARGE = 3 }; // samples of each kernel

typedef struct {
	choir_device *device;
	const char *name, *operation; // of the kernels; NULL: any
	chi_suite_tally *tally;
} subject;

// Makes a copy of a sample in which tensors of the kernel's dtype have another dtype. out, which
// the kernel must write, begins as NANs.
static choir_status copy(const chi_sample *s, choir_dtype dtype, chi_sample *to)
{
	*to = (chi_sample){ .row = s->row, .cpu = s->cpu, .in_place = s->in_place };
	memcpy(to->attributes, s->attributes, sizeof s->attributes);
	while (to->n < s->n) {
		const choir_buffer *from = &s->in[to->n];
		choir_buffer *in = &to->in[to->n++];
		*in = *from;
		if (from->dtype == s->dtype)
			in->dtype = dtype;
		CHOIR_TRY(chi_sample_allocate(in));
		if (in->dtype == from->dtype)
			memcpy(in->data, from->data, chi_sample_bytes(from));
		else
			CHOIR_TRY(chi_sample_cast(s->cpu, from, in));
	}
	to->out = s->out;
	if (s->out.dtype == s->dtype)
		to->out.dtype = dtype;
	to->out.data = to->in[0].data;
	if (s->in_place)
		return CHOIR_OK;
	CHOIR_TRY(chi_sample_allocate(&to->out));
	memset(to->out.data, 0xff, chi_sample_bytes(&to->out));
	return CHOIR_OK;
}

static choir_status run(choir_device *d, const char *name, chi_sample *s)
{
	const char *operation = s->row->operation;
	const choir_kernel_call call = { .size = sizeof call,
		.n = s->n,
		.in = s->in,
		.out = &s->out,
		.attributes = choir_kernel_attribute_bytes(operation) > 0 ? s->attributes : NULL };
	return choir_kernel_run(d, operation, name, &call);
}

// The allowed error, relative to a result. A kernel of 16 bits computes in f32, and the last
// rounding may go to a neighbour.
static double tolerance(const chi_sample *s)
{
	const double ulps = s->row->ulps;
	switch (s->dtype) {
	case CHOIR_F32:
		return ulps * 0x1p-23;
	case CHOIR_F64:
		return ulps * 0x1p-52;
	case CHOIR_F16:
		return ulps > 0 ? 0x1p-10 + ulps * 0x1p-23 : 0;
	case CHOIR_BF16:
		return ulps > 0 ? 0x1p-7 + ulps * 0x1p-23 : 0;
	default:
		return 0;
	}
}

static double largest(const double *value, int64_t n)
{
	double most = 0.1; // results that are nearly 0 are sums of larger numbers
	for (int64_t i = 0; i < n; i++)
		if (isfinite(value[i]) && fabs(value[i]) > most)
			most = fabs(value[i]);
	return most;
}

static choir_status compare_numbers(const chi_sample *s, const char *what, const double *found,
		const double *expected, int64_t n)
{
	const double unit = tolerance(s);
	const double floor = s->row->floor > 0 ? s->row->floor : largest(expected, n);
	for (int64_t i = 0; i < n; i++) {
		const bool same = found[i] == expected[i] || (isnan(found[i]) && isnan(expected[i]));
		const double allowed = unit * fmax(fabs(expected[i]), floor);
		if (!same && !(fabs(found[i] - expected[i]) <= allowed))
			return choir_fail(CHOIR_INTERNAL,
					"%s: element %lld of %lld is %.9g; %.9g is needed, up to %.3g", what,
					(long long) i, (long long) n, found[i], expected[i], allowed);
	}
	return CHOIR_OK;
}

static choir_status compare(const chi_sample *s, const char *what, const choir_buffer *found,
		const choir_buffer *expected)
{
	choir_buffer a = { .dtype = CHOIR_F64, .shape = found->shape }, b = a;
	choir_status status = chi_sample_allocate(&a);
	if (status == CHOIR_OK)
		status = chi_sample_allocate(&b);
	if (status == CHOIR_OK)
		status = chi_sample_cast(s->cpu, found, &a);
	if (status == CHOIR_OK)
		status = chi_sample_cast(s->cpu, expected, &b);
	if (status == CHOIR_OK)
		status = compare_numbers(s, what, a.data, b.data, choir_shape_elements(&a.shape));
	free(a.data);
	free(b.data);
	return status;
}

static bool same_bytes(const choir_buffer *a, const choir_buffer *b)
{
	return memcmp(a->data, b->data, chi_sample_bytes(a)) == 0;
}

// A kernel writes its inputs only if it is an update.
static choir_status judge(const chi_sample *s, const chi_sample *found, const chi_sample *again,
		const chi_sample *expected)
{
	char what[24];
	for (size_t i = 0; i < s->n; i++) {
		snprintf(what, sizeof what, "input %zu", i);
		if (s->in_place)
			CHOIR_TRY(compare(s, what, &found->in[i], &expected->in[i]));
		else if (!same_bytes(&found->in[i], &s->in[i]))
			return choir_fail(CHOIR_INTERNAL, "%s: it is written; it must stay as it is", what);
		if (!same_bytes(&found->in[i], &again->in[i]))
			return choir_fail(CHOIR_INTERNAL,
					"%s: a second call gives other bits; the same are needed", what);
	}
	CHOIR_TRY(compare(s, "out", &found->out, &expected->out));
	if (!same_bytes(&found->out, &again->out))
		return choir_fail(
				CHOIR_INTERNAL, "out: a second call gives other bits; the same are needed");
	return CHOIR_OK;
}

// CHOIR_UNSUPPORTED: no kernel takes this call.
static choir_status check_sample(const subject *k, const chi_sample *s)
{
	const bool wide = s->dtype == CHOIR_F32 && s->row->ulps > 0;
	chi_sample expected = { .n = 0 }, found = { .n = 0 }, again = { .n = 0 };
	choir_status status = copy(s, wide ? CHOIR_F64 : s->dtype, &expected);
	if (status == CHOIR_OK)
		status = run(s->cpu, "plain", &expected);
	if (status == CHOIR_OK)
		status = copy(s, s->dtype, &found);
	if (status == CHOIR_OK)
		status = copy(s, s->dtype, &again);
	if (status == CHOIR_OK)
		status = run(k->device, k->name, &found);
	if (status == CHOIR_OK)
		status = chi_suite_expect("a second call", run(k->device, k->name, &again), CHOIR_OK);
	if (status == CHOIR_OK)
		status = judge(s, &found, &again, &expected);
	chi_sample_free(&expected);
	chi_sample_free(&found);
	chi_sample_free(&again);
	return status;
}

static void spoil(chi_sample *s)
{
	if (s->takes_nan && s->dtype == CHOIR_F32)
		*(float *) s->in[0].data = NAN;
	if (s->takes_nan && s->dtype == CHOIR_F64)
		*(double *) s->in[0].data = (double) NAN;
}

static bool is_wanted(const subject *k, const char *operation)
{
	return k->operation == NULL || strcmp(k->operation, operation) == 0;
}

static void check_kernel(const subject *k, const chi_kernel_row *row, choir_dtype dtype)
{
	bool found = false;
	choir_status status = CHOIR_OK;
	for (int i = 0; i < SMALL + LARGE && status == CHOIR_OK; i++) {
		chi_sample s;
		status = chi_sample_make(&s, row, dtype, (uint64_t) (i + 1), i >= SMALL);
		if (status == CHOIR_OK && i == 0)
			spoil(&s);
		if (status == CHOIR_OK)
			status = check_sample(k, &s);
		chi_sample_free(&s);
		found = found || status != CHOIR_UNSUPPORTED;
		if (status == CHOIR_UNSUPPORTED)
			status = CHOIR_OK;
	}
	char check[80];
	snprintf(check, sizeof check, "%s of %s", row->operation, choir_dtype_name(dtype));
	if (found)
		chi_suite_note(k->tally, check, status);
}

// An index beyond the end gives a failure, or the value that the header names.
static void check_bad_index(const subject *k, const char *operation, double needed)
{
	if (!is_wanted(k, operation))
		return;
	float x[3] = { 1, 2, 3 }, result = 7;
	int32_t index = 3;
	const bool rows = needed == 0; // of one element; else one row of classes
	const choir_cross_entropy_attributes a = { 0 };
	const choir_buffer in[] = {
		{ x, CHOIR_F32, rows ? CHOIR_SHAPE(3, 1) : CHOIR_SHAPE(1, 3) },
		{ &index, CHOIR_I32, CHOIR_SHAPE(1) },
	};
	choir_buffer out = { &result, CHOIR_F32, rows ? CHOIR_SHAPE(1, 1) : CHOIR_SHAPE(1) };
	const choir_kernel_call call = {
		.size = sizeof call, .n = 2, .in = in, .out = &out, .attributes = rows ? NULL : &a
	};
	const choir_status status = choir_kernel_run(k->device, operation, k->name, &call);
	if (status == CHOIR_UNSUPPORTED)
		return;
	choir_status result_status = CHOIR_OK;
	if (status != CHOIR_OK)
		result_status = chi_suite_expect("index 3 of 3", status, CHOIR_INVALID);
	else if (!((double) result == needed || (isnan(result) && isnan(needed))))
		result_status = choir_fail(CHOIR_INTERNAL,
				"index 3 of 3: it gives %g; %g or a failure is needed", (double) result, needed);
	char check[80];
	snprintf(check, sizeof check, "a bad index of %s", operation);
	chi_suite_note(k->tally, check, result_status);
}

choir_status chi_suite_kernels(const choir_suite_options *o, chi_suite_tally *t)
{
	const subject k = { .device = choir_device_find(o->kernels),
		.name = o->kernel_name,
		.operation = o->operation,
		.tally = t };
	if (k.device == NULL)
		return choir_error_status();
	for (const chi_kernel_row *row = chi_kernel_rows; row->operation != NULL; row++)
		for (int dtype = CHOIR_F32; dtype <= CHOIR_BF16 && is_wanted(&k, row->operation); dtype++)
			check_kernel(&k, row, (choir_dtype) dtype);
	check_bad_index(&k, "gather", 0);
	check_bad_index(&k, "softmax_cross_entropy", (double) NAN);
	if (t->ran == 0)
		return choir_fail(CHOIR_NOT_FOUND, "suite: %s has no kernel%s%s; one is needed",
				o->kernels, k.name == NULL ? "" : " named ", k.name == NULL ? "" : k.name);
	return chi_suite_end(t, "kernels of", o->kernels);
}
