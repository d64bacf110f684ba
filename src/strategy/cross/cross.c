// Cross-replica context: its frames, named values, and calls.
#include "strategy/cross/cross.h"

#include "choir/op.h"

choir_cross *chi_cross_new(choir_strategy *s, chi_run *run)
{
	chi_cross *x = chi_alloc(sizeof *x);
	if (x == NULL)
		return NULL;
	chi_mutex_init(&x->lock, CHI_RANK_RUN, "spare frames");
	x->strategy = s;
	x->run = run;
	x->base.frame = choir_frame_new(s->device[0]);
	choir_values **sets[] = { &x->args, &x->returned, &x->call_args, &x->call_results,
		&x->next_results };
	bool failed = x->base.frame == NULL;
	for (size_t i = 0; !failed && i < sizeof sets / sizeof sets[0]; i++)
		failed = (*sets[i] = choir_values_new(s)) == NULL;
	if (failed) {
		chi_cross_free(&x->base);
		return NULL;
	}
	x->base.frame->context = x;
	x->base.frame->context_kind = CHI_IN_CROSS;
	return &x->base;
}

void chi_cross_free(choir_cross *cross)
{
	if (cross == NULL)
		return;
	chi_cross *x = chi_cross_of(cross);
	choir_values_free(x->args);
	choir_values_free(x->returned);
	choir_values_free(x->call_args);
	choir_values_free(x->call_results);
	choir_values_free(x->next_results);
	for (size_t i = 0; i < x->device_frames; i++)
		choir_frame_free(x->device_frame[i].frame);
	chi_free(x->device_frame);
	while (x->spare != NULL) {
		choir_frame *next = x->spare->next;
		choir_frame_free(x->spare);
		x->spare = next;
	}
	choir_frame_free(cross->frame);
	chi_mutex_destroy(&x->lock);
	chi_free(x);
}

static void clear_frames(chi_cross *x)
{
	if (x->emptied == x->base.frame->emptied)
		return;
	for (size_t i = 0; i < x->device_frames; i++)
		choir_frame_clear(x->device_frame[i].frame);
	x->emptied = x->base.frame->emptied;
}

void chi_cross_clear(choir_cross *cross)
{
	chi_cross *x = chi_cross_of(cross);
	choir_values_clear(x->args);
	choir_values_clear(x->returned);
	choir_values_clear(x->call_args);
	choir_values_clear(x->call_results);
	choir_values_clear(x->next_results);
	choir_frame_clear(cross->frame);
	clear_frames(x);
}

choir_status chi_cross_publish(chi_cross *x)
{
	CHOIR_TRY(chi_frame_publish(x->base.frame));
	for (size_t i = 0; i < x->device_frames; i++)
		CHOIR_TRY(chi_frame_publish(x->device_frame[i].frame));
	return CHOIR_OK;
}

void chi_cross_end_call(chi_cross *x)
{
	choir_values *before = x->call_results;
	x->call_results = x->next_results;
	x->next_results = before;
	choir_values_clear(x->call_args);
	choir_values_clear(before);
}

choir_frame *chi_cross_frame_on(chi_cross *x, choir_device *d)
{
	choir_frame *own = x->base.frame;
	if (chi_device_shares(own->device, d))
		return own;
	clear_frames(x);
	for (size_t i = 0; i < x->device_frames; i++)
		if (chi_device_shares(x->device_frame[i].device, d))
			return x->device_frame[i].frame;
	const bool grown = chi_grow(&x->device_frame, &x->device_frames_capacity, x->device_frames + 1,
			sizeof *x->device_frame);
	choir_frame *f = grown ? choir_frame_new(d) : NULL;
	if (f == NULL)
		return chi_frame_record_null(own);
	f->context = own->context;
	f->context_kind = own->context_kind;
	x->device_frame[x->device_frames++] = (chi_cross_frame){ d, f };
	return f;
}

choir_frame *chi_cross_acquire_frame(chi_cross *x, choir_device *d)
{
	chi_mutex_lock(&x->lock);
	choir_frame **link = &x->spare;
	while (*link != NULL && (*link)->device != d)
		link = &(*link)->next;
	choir_frame *f = *link;
	if (f != NULL)
		*link = f->next;
	chi_mutex_unlock(&x->lock);
	return f != NULL ? f : choir_frame_new(d);
}

choir_status chi_cross_release_frame(chi_cross *x, choir_frame *f, choir_status status)
{
	if (status != CHOIR_OK) {
		chi_error failure;
		chi_error_save(&failure);
		choir_frame_free(f);
		chi_error_restore(&failure);
		return status;
	}
	chi_frame_empty_waited(f);
	f->random = (chi_random_key){ 0 };
	chi_mutex_lock(&x->lock);
	f->next = x->spare;
	x->spare = f;
	chi_mutex_unlock(&x->lock);
	return CHOIR_OK;
}

choir_cross *choir_strategy_cross(choir_strategy *s)
{
	if (chi_strategy_check(s) != CHOIR_OK || chi_context_need_cross(s, "cross") != CHOIR_OK)
		return NULL;
	const chi_context *c = chi_context_current();
	if (c != NULL && c->what != NULL && c->kind == CHI_IN_CROSS)
		return c->what;
	if (s->cross == NULL)
		s->cross = chi_cross_new(s, NULL);
	return s->cross;
}

choir_strategy *choir_cross_strategy(const choir_cross *x)
{
	return x == NULL ? NULL : chi_cross_of(x)->strategy;
}

choir_status chi_cross_check(const choir_cross *cross, const char *what)
{
	if (cross == NULL)
		return choir_fail(CHOIR_INVALID, "%s: the cross-replica context is NULL", what);
	const chi_cross *x = chi_cross_of(cross);
	const chi_context *c = chi_context_current();
	CHOIR_TRY(chi_strategy_check(x->strategy));
	CHOIR_TRY(chi_context_need_cross(x->strategy, what));
	if (x->run != NULL && (c == NULL || c->what != cross))
		return choir_fail(CHOIR_STATE,
				"%s: the context belongs to a merge call that this thread is not in", what);
	return CHOIR_OK;
}

choir_status chi_cross_check_variable(
		const choir_strategy *s, choir_frame *f, const choir_variable *v, const char *what)
{
	if (v == NULL || chi_strategy_has(s, v))
		return CHOIR_OK;
	return chi_frame_fail(f, CHOIR_STATE, "%s: mixing strategies: variable \"%s\" belongs to %s",
			what, v->name, v->strategy->label);
}

static choir_value *found(
		choir_cross *cross, choir_values *set, const char *name, const char *what)
{
	if (chi_cross_check(cross, what) != CHOIR_OK)
		return NULL;
	choir_value *v = choir_values_find(set, name == NULL ? "" : name);
	if (v == NULL) {
		chi_error_prefix("%s", what);
		chi_frame_record_error(cross->frame);
	}
	return v;
}

choir_value *choir_cross_arg(choir_cross *x, const char *name)
{
	return x == NULL ? NULL : found(x, chi_cross_of(x)->args, name, "arg");
}

choir_value *choir_cross_result(choir_cross *x, const char *name)
{
	return x == NULL ? NULL : found(x, chi_cross_of(x)->call_results, name, "result");
}

// A replica may write its ON_READ variable before others read v.
static bool is_part(const choir_value *v)
{
	bool part = false;
	for (int i = 0; v->kind != CHOIR_VALUE_PER_REPLICA && v->component != NULL && i < v->count;
			i++) {
		const choir_tensor *t = v->component[i];
		const choir_variable *read = t == NULL || t->source == NULL ? NULL : t->source->owner;
		part = part || (read != NULL && read->synchronization == CHOIR_SYNCHRONIZATION_ON_READ);
	}
	return part;
}

static choir_value *keep(choir_cross *cross, const choir_value *v)
{
	const bool part = is_part(v);
	choir_value *kept = chi_value_new(cross->frame, v->kind, v->count);
	for (int i = 0; kept != NULL && i < v->count; i++) {
		choir_frame *f = chi_cross_frame_on(chi_cross_of(cross), v->device[i]);
		kept->device[i] = v->device[i];
		if (f != NULL)
			kept->component[i] = part ? chi_tensor_retain(f, v->component[i])
									  : chi_tensor_alias(f, v->component[i]);
		if (kept->component[i] == NULL || (part && chi_stream_wait(f->stream) != CHOIR_OK))
			return chi_frame_record_null(cross->frame);
	}
	return kept;
}

// call_results end with the next call.
static choir_value *keep_result(choir_cross *cross, choir_value *v)
{
	if (chi_value_materialize(v) != CHOIR_OK)
		return NULL;
	if (v->frame != chi_cross_of(cross)->call_results->frame)
		return is_part(v) ? keep(cross, v) : v;
	return v->kind == CHOIR_VALUE_VARIABLE ? chi_value_of_variable(cross->frame, v->variable)
										   : keep(cross, v);
}

static choir_status put(choir_cross *cross, bool returned, const char *name, choir_value *v)
{
	const char *what = returned ? "return" : "set_arg";
	CHOIR_TRY(chi_cross_check(cross, what));
	choir_values *set = returned ? chi_cross_of(cross)->returned : chi_cross_of(cross)->call_args;
	if (name == NULL || name[0] == '\0')
		return chi_frame_fail(cross->frame, CHOIR_INVALID, "%s: a leaf needs a name", what);
	if (v == NULL) {
		chi_frame_null_argument(cross->frame, what);
		return chi_frame_status(cross->frame);
	}
	if (returned && (v = keep_result(cross, v)) == NULL)
		return chi_frame_status(cross->frame);
	const choir_status status = chi_values_put(set, name, v);
	return status == CHOIR_OK ? status : chi_frame_record_error(cross->frame);
}

choir_status choir_cross_return(choir_cross *x, const char *name, choir_value *v)
{
	return put(x, true, name, v);
}

choir_status choir_cross_set_arg(choir_cross *x, const char *name, choir_value *v)
{
	return put(x, false, name, v);
}

choir_status choir_cross_run(choir_cross *cross, choir_replica_fn *fn, void *user)
{
	CHOIR_TRY(chi_cross_check(cross, "run"));
	chi_cross *x = chi_cross_of(cross);
	if (cross->frame->failed)
		return chi_frame_status(cross->frame);
	for (size_t i = 0; i < x->call_args->n; i++) {
		choir_value **v = &x->call_args->leaf[i].value;
		CHOIR_TRY(chi_value_materialize(*v));
		if (is_part(*v) && (*v = keep(cross, *v)) == NULL)
			return chi_frame_status(cross->frame);
	}
	CHOIR_TRY(chi_stream_wait(cross->frame->stream)); // the queue may still make arguments
	CHOIR_TRY(chi_cross_publish(x));
	const choir_status status =
			choir_strategy_run(x->strategy, fn, user, x->call_args, &x->next_results);
	chi_cross_end_call(x);
	return status == CHOIR_OK ? status : chi_frame_record_error(cross->frame);
}

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
	if (result != NULL && result->frame != f)
		return chi_fail_null(CHOIR_INVALID,
				"fetch of \"%s\": the function's result "
				"belongs to another frame than its argument",
				v->name);
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
		t = t->is_number ? choir_number(to, t->number) : choir_copy(t, to);
	if (t == NULL || to == NULL)
		return chi_frame_record_null(cross->frame);
	return t;
}
