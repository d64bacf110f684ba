// Elementwise updates: where the function looks at each element by itself, a copy in host memory
// is cut into slices, which the threads of all devices take until there are none left. Every
// thread has a frame and an update context of its own, in which variables and arguments of the
// copy's size are vectors of the slice's elements. Which thread takes which slice decides no bit.
#include "strategy/update/update.h"

#include "choir/op.h"
#include "collective/way.h"
#include "op/op.h"
#include "strategy/cross/lazy_reduce.h"

#include <string.h>

enum { CHUNK = CHI_CHUNK }; // elements, as much as what waits has room for (lazy_reduce.c)

// What the threads share.
struct chi_slicing {
	chi_mutex lock; // what was written, and the failure
	chi_update *whole; // its list of what was written
	chi_update each; // what the context of a slice begins as
	choir_tensor **arg; // of each leaf that was given, on the copy's device
	const choir_value **late; // the leaves that are made slice by slice; NULL for the others
	choir_update_fn *fn;
	void *user;
	int64_t slices;
	chi_atomic64 next;
	chi_atomic32 failed;
	int64_t failed_slice; // the lowest of those that failed
	chi_error error;
};

bool chi_update_is_sliced(const chi_update *u)
{
	const choir_variable *v = u->variable;
	// Without locks others read meanwhile, by atomic operations, and so must who writes.
	return u->elementwise && v != NULL && v->copy[u->copy].device->host_memory &&
			v->elements > CHUNK && v->concurrency != CHI_LOCK_FREE;
}

void chi_slice_note_written(chi_update *u, choir_variable *v)
{
	struct chi_slicing *s = u->slicing;
	chi_mutex_lock(&s->lock);
	if (!v->written) {
		v->written = true;
		v->next_written = s->whole->written;
		s->whole->written = v;
	}
	chi_mutex_unlock(&s->lock);
}

static bool has_its_size(const chi_update *u, const choir_variable *v)
{
	if (v->elements == u->variable->elements)
		return true;
	chi_frame_fail(u->shown.frame, CHOIR_INVALID,
			"update of \"%s\": \"%s\" has %lld elements, "
			"not %lld: an elementwise function gets slices of what is as large",
			u->variable->name, v->name, (long long) v->elements,
			(long long) u->variable->elements);
	return false;
}

void *chi_slice_of(const chi_update *u, const choir_variable *v)
{
	return has_its_size(u, v) ? (char *) v->copy[chi_update_copy_of(u, v)].buffer->memory +
					(size_t) u->first * chi_dtype_size(v->dtype)
							  : NULL;
}

// Elements of v as they are read outside of slices, wherever it lies, from the shards that have
// them.
static choir_status copy_elements(
		const chi_update *u, choir_variable *v, int64_t first, int64_t count, char *to)
{
	choir_frame *f = u->shown.frame;
	const size_t size = chi_dtype_size(v->dtype);
	for (int i = 0; i < v->shards; i++) {
		choir_variable *part = v->shard[i];
		const int64_t from = chi_shard_first(part), end = from + part->elements;
		const int64_t lo = first > from ? first : from;
		const int64_t hi = first + count < end ? first + count : end;
		if (lo < hi)
			CHOIR_TRY(
					copy_elements(u, part, lo - from, hi - lo, to + (size_t) (lo - first) * size));
	}
	if (v->shards > 0)
		return CHOIR_OK;
	const int copy = chi_update_copy_of(u, v);
	if (copy == CHI_NO_COPY)
		return chi_frame_status(f);
	CHOIR_TRY(chi_variable_check_defined(v, copy, f));
	const chi_copy *c = &v->copy[copy];
	const char *data = (const char *) c->buffer->memory + (size_t) first * size;
	const choir_status status =
			chi_device_copy(f->stream, f->device, to, c->device, data, (size_t) count * size);
	return status == CHOIR_OK ? status : chi_frame_record_error(f);
}

// Of what is as large as all shards, the elements of the slice's shard. A copy: a slice that is
// written must not change what was read of it.
choir_tensor *chi_slice_read(const chi_update *u, choir_variable *v)
{
	choir_frame *f = u->shown.frame;
	const bool all = v->elements != u->variable->elements && u->whole != NULL &&
			v->elements == u->whole->elements;
	if (!all && !has_its_size(u, v))
		return NULL;
	choir_tensor *t = chi_tensor_new(f, v->dtype, &CHOIR_SHAPE(u->count));
	if (t == NULL)
		return NULL;
	const int64_t first = u->first + (all ? chi_shard_first(u->variable) : 0);
	choir_status status = copy_elements(u, v, first, u->count, t->data);
	if (status == CHOIR_OK && (status = chi_stream_wait(f->stream)) != CHOIR_OK)
		chi_frame_record_error(f);
	return status == CHOIR_OK ? t : NULL;
}

// A copy of a slice of a variable that was given: what the function writes must not change it.
static choir_tensor *copy_slice(const chi_update *u, const choir_tensor *t, const void *from)
{
	choir_tensor *slice = chi_tensor_new(u->shown.frame, t->dtype, &CHOIR_SHAPE(u->count));
	if (slice != NULL)
		memcpy(slice->data, from, chi_tensor_bytes(slice));
	return slice;
}

choir_tensor *chi_slice_arg(const chi_update *u, size_t leaf)
{
	choir_frame *f = u->shown.frame;
	choir_tensor *t = u->slicing->arg[leaf];
	if (t->is_number)
		return choir_number(f, t->number);
	if (u->slicing->late[leaf] != NULL)
		return chi_late_slice(u->slicing->late[leaf], f,
				u->first + (u->whole != NULL ? chi_shard_first(u->variable) : 0), u->count);
	if (t->shape.rank == 0)
		return chi_tensor_on(f, t->buffer, t->data, t->dtype, &t->shape);
	char *from = (char *) t->data + (size_t) u->first * chi_dtype_size(t->dtype);
	return t->source != NULL ? copy_slice(u, t, from)
							 : chi_tensor_on(f, t->buffer, from, t->dtype, &CHOIR_SHAPE(u->count));
}

choir_status chi_slice_write(chi_update *u, choir_variable *v, chi_assign_op op, choir_tensor *t)
{
	choir_frame *f = u->shown.frame;
	char have[CHI_SHAPE_TEXT];
	void *to = chi_slice_of(u, v);
	const int copy = to == NULL ? 0 : chi_update_copy_of(u, v);
	if (to == NULL ||
			(t->is_number &&
					(t = choir_fill(f, v->dtype, CHOIR_SHAPE(u->count), t->number)) == NULL))
		return chi_frame_status(f);
	CHOIR_TRY(chi_tensor_check(t));
	if (t->dtype != v->dtype || !chi_shape_equal(&t->shape, &CHOIR_SHAPE(u->count)))
		return chi_frame_fail(f, CHOIR_INVALID,
				"variable \"%s\": a value of %s %s for a slice of "
				"%lld elements of %s",
				v->name, choir_dtype_name(t->dtype), chi_shape_print(&t->shape, have),
				(long long) u->count, choir_dtype_name(v->dtype));
	chi_slice_note_written(u, v);
	if (op == CHI_ASSIGN) {
		memmove(to, t->data, chi_tensor_bytes(t));
		return CHOIR_OK;
	}
	CHOIR_TRY(chi_variable_check_defined(v, copy, f));
	const choir_buffer in[2] = { { to, v->dtype, t->shape }, { t->data, v->dtype, t->shape } };
	choir_buffer out = in[0];
	const choir_status status = chi_kernel_run(
			f->stream, op == CHI_ASSIGN_ADD ? "add" : "subtract", 2, in, &out, NULL);
	return status == CHOIR_OK ? status : chi_frame_record_error(f);
}

static void note_failure(struct chi_slicing *s, int64_t slice)
{
	chi_mutex_lock(&s->lock);
	if (chi_atomic32_load(&s->failed) == 0 || slice < s->failed_slice) {
		s->failed_slice = slice;
		chi_error_save(&s->error);
		chi_atomic32_store(&s->failed, 1);
	}
	chi_mutex_unlock(&s->lock);
}

static void take_slices(void *arg)
{
	struct chi_slicing *s = arg;
	chi_update own = s->each;
	choir_status status = CHOIR_OK;
	choir_frame *f = chi_cross_acquire_frame(own.cross, own.variable->copy[own.copy].device);
	if (f == NULL) {
		note_failure(s, 0);
		return;
	}
	f->random.place = CHI_NO_DRAWS;
	while (chi_atomic32_load(&s->failed) == 0) {
		const int64_t i = (int64_t) chi_atomic64_add(&s->next, 1);
		if (i >= s->slices)
			break;
		const int64_t left = own.variable->elements - i * CHUNK;
		own.first = i * CHUNK;
		own.count = left < CHUNK ? left : CHUNK;
		status = chi_update_call(&own, f, s->fn, s->user);
		if (status != CHOIR_OK)
			note_failure(s, i);
		choir_frame_empty(f);
	}
	(void) chi_cross_release_frame(own.cross, f, status);
}

// Whether v waits and is made slice by slice. What several copies would need is made before, once.
static choir_status see_late(struct chi_slicing *s, size_t leaf, choir_value *v)
{
	const chi_update *u = s->whole;
	const choir_variable *target = u->whole != NULL ? u->whole : u->variable;
	if (v->make == NULL)
		return CHOIR_OK;
	if (u->variable->copies > 1 || !chi_shape_equal(&v->component[0]->shape, &target->shape))
		return chi_value_settle(v);
	s->late[leaf] = v;
	return CHOIR_OK;
}

// Arguments are as large as the variable or scalars, which is checked before anything is written.
static choir_status see_args(struct chi_slicing *s, choir_frame *f)
{
	const chi_update *u = s->whole;
	const choir_values *given = u->cross->given;
	char text[CHI_SHAPE_TEXT];
	s->arg = chi_arena_alloc(&f->arena, given->n * sizeof *s->arg);
	s->late = chi_arena_alloc(&f->arena, given->n * sizeof *s->late);
	if (given->n > 0 && (s->arg == NULL || s->late == NULL))
		return choir_error_status();
	for (size_t i = 0; i < given->n; i++) {
		choir_value *v = given->leaf[i].value;
		CHOIR_TRY(see_late(s, i, v));
		choir_tensor *t = v->variable != NULL ? choir_variable_component(v->variable, f)
											  : chi_value_for_replica(v, 0, f->device);
		t = t == NULL || t->is_number ? t : chi_update_rows(u, chi_value_view(f, t));
		if (t == NULL && choir_error_status() == CHOIR_OK)
			choir_fail(CHOIR_INVALID, "a place has no value");
		if (t == NULL)
			return chi_error_prefix(
					"update of \"%s\": \"%s\"", u->variable->name, given->leaf[i].name);
		if (!t->is_number && t->shape.rank != 0 &&
				!chi_shape_equal(&t->shape, &u->variable->shape))
			return choir_fail(CHOIR_INVALID,
					"update of \"%s\": \"%s\" is %s: an elementwise "
					"function takes what is as large as the variable, and scalars",
					u->variable->name, given->leaf[i].name, chi_shape_print(&t->shape, text));
		s->arg[i] = t;
	}
	return chi_stream_wait(f->stream);
}

choir_status chi_update_slices(chi_update *u, choir_update_fn *fn, void *user)
{
	choir_strategy *strategy = u->cross->strategy;
	const choir_variable *v = u->variable;
	struct chi_slicing s = { .whole = u, .each = *u, .fn = fn, .user = user };
	s.each.slicing = &s;
	s.each.written = NULL;
	s.slices = (v->elements + CHUNK - 1) / CHUNK;
	choir_frame *f = chi_cross_acquire_frame(u->cross, v->copy[u->copy].device);
	if (f == NULL)
		return choir_error_status();
	f->context = u; // reads of variables are of this copy
	f->context_kind = CHI_IN_UPDATE;
	chi_error_clear();
	choir_status status = see_args(&s, f);
	if (status == CHOIR_OK) {
		chi_mutex_init(&s.lock, CHI_RANK_RUN, "slices");
		status = chi_crew_all(strategy, take_slices, &s);
		chi_mutex_destroy(&s.lock);
		for (choir_variable *w = u->written; w != NULL; w = w->next_written)
			chi_variable_bump_version(w, chi_update_copy_of(u, w));
		if (chi_atomic32_load(&s.failed) != 0) {
			chi_error_restore(&s.error);
			status = choir_error_status();
		}
	}
	return chi_cross_release_frame(u->cross, f, status);
}
