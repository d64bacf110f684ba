// A variable's value, or a function of it, on a device of the caller's choice.
#include "choir/op.h"
#include "base/lock.h"
#include "strategy/replica/merge_call.h"

// The value in a frame of the context's: a copy that lies on d, else the first; of parts and
// shards the whole.
static choir_tensor *source_of(choir_cross *cross, choir_variable *v, choir_device *d)
{
	if (v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ || v->shards > 0)
		return choir_variable_read(v, cross->frame);
	int copy = v->copies - 1;
	while (copy > 0 && !chi_device_shares(v->copy[copy].device, d))
		copy--;
	choir_frame *f = chi_cross_frame_on(chi_cross_of(cross), v->copy[copy].device);
	return f == NULL ? NULL : chi_variable_alias(v, copy, f);
}

static choir_tensor *apply(choir_variable *v, choir_fetch_fn *fn, choir_tensor *t, void *user)
{
	choir_frame *f = t->frame;
	chi_fpenv host;
	chi_fpenv_enter(&host);
	chi_error_clear();
	chi_mutex_check_none_held();
	choir_tensor *result = fn(t, user);
	chi_fpenv_leave(&host);
	if (f->failed) {
		chi_frame_status(f);
		return NULL;
	}
	if (result == NULL && choir_error_status() == CHOIR_OK)
		choir_fail(CHOIR_INVALID, "fetch of \"%s\": the function returned NULL", v->name);
	if (result != NULL && result->frame != f) {
		choir_fail(CHOIR_INVALID,
				"fetch of \"%s\": the function's result belongs to another frame "
				"than what it was given",
				v->name);
		return NULL;
	}
	return result;
}

choir_tensor *choir_cross_fetch(
		choir_cross *cross, choir_variable *v, choir_device *d, choir_fetch_fn *fn, void *user)
{
	if (chi_cross_check(cross, "fetch") != CHOIR_OK || cross->frame->failed)
		return NULL;
	chi_cross *x = chi_cross_of(cross);
	if (v == NULL || d == NULL)
		return chi_frame_fail_null(cross->frame, CHOIR_INVALID, "fetch: the %s is NULL",
				v == NULL ? "variable" : "device");
	if (chi_cross_check_variable(x->strategy, cross->frame, v, "fetch") != CHOIR_OK)
		return NULL;
	choir_tensor *t = source_of(cross, v, d);
	if (t != NULL && fn != NULL)
		t = apply(v, fn, t, user);
	choir_frame *to = t == NULL ? NULL : chi_cross_frame_on(x, d);
	if (to != NULL && to != t->frame)
		t = t->is_number ? choir_number(to, t->number) : choir_move(t, to);
	if (t == NULL || to == NULL) {
		chi_frame_record_error(cross->frame);
		return NULL;
	}
	return t;
}
