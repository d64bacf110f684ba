// All devices' threads claim chunks of a copy in host memory. In a thread's update context,
// variables and arguments of the copy's size are vectors of the chunk's elements.
#include "strategy/update/update.h"

#include "choir/op.h"
#include "collective/tree.h"
#include "op/op.h"
#include "strategy/cross/lazy_reduce.h"
#include "value/shard_rows.h"

#include <string.h>

enum { CHUNK = CHI_CHUNK };

struct chi_chunk_context {
	chi_mutex lock;
	chi_update *whole;
	chi_update each;
	choir_tensor **arg;
	const choir_value **lazy;
	choir_update_fn *fn;
	void *user;
	int64_t chunks;
	chi_atomic64 next;
	chi_atomic32 failed;
	int64_t failed_chunk;
	chi_error error;
};

bool chi_update_is_chunked(const chi_update *u)
{
	const choir_variable *v = u->variable;
	// Without locks, others read during the update, so writes must be atomic.
	return u->elementwise && v != NULL && v->copy[u->copy].device->host_memory &&
			v->elements > CHUNK && v->concurrency != CHI_LOCK_FREE;
}

void chi_update_chunk_note_written(chi_update *u, choir_variable *v)
{
	struct chi_chunk_context *s = u->chunk;
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
	chi_frame_fail(u->base.frame, CHOIR_INVALID,
			"update of \"%s\": \"%s\" has %lld elements, not %lld; "
			"an elementwise function uses variables of the same size",
			u->variable->name, v->name, (long long) v->elements,
			(long long) u->variable->elements);
	return false;
}

void *chi_update_chunk_of(const chi_update *u, const choir_variable *v)
{
	return has_its_size(u, v) ? (char *) v->copy[chi_update_copy_of(u, v)].buffer->memory +
					(size_t) u->first * chi_dtype_size(v->dtype)
							  : NULL;
}

static choir_status copy_elements(
		const chi_update *u, choir_variable *v, int64_t first, int64_t count, char *to)
{
	choir_frame *f = u->base.frame;
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

// A copy, which writes do not change; this shard's range if v is as large as all shards.
choir_tensor *chi_update_chunk_read(const chi_update *u, choir_variable *v)
{
	choir_frame *f = u->base.frame;
	const bool all = v->elements != u->variable->elements && u->parent != NULL &&
			v->elements == u->parent->elements;
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

// The function may write the argument's variable.
static choir_tensor *copy_chunk(const chi_update *u, const choir_tensor *t, const void *from)
{
	choir_tensor *chunk = chi_tensor_new(u->base.frame, t->dtype, &CHOIR_SHAPE(u->count));
	if (chunk != NULL)
		memcpy(chunk->data, from, chi_tensor_bytes(chunk));
	return chunk;
}

choir_tensor *chi_update_chunk_arg(const chi_update *u, size_t leaf)
{
	choir_frame *f = u->base.frame;
	choir_tensor *t = u->chunk->arg[leaf];
	if (t->is_number)
		return choir_number(f, t->number);
	if (u->chunk->lazy[leaf] != NULL)
		return chi_lazy_reduce_chunk(u->chunk->lazy[leaf], f,
				u->first + (u->parent != NULL ? chi_shard_first(u->variable) : 0), u->count);
	if (t->shape.rank == 0)
		return chi_tensor_on(f, t->buffer, t->data, t->dtype, &t->shape);
	char *from = (char *) t->data + (size_t) u->first * chi_dtype_size(t->dtype);
	return t->source != NULL ? copy_chunk(u, t, from)
							 : chi_tensor_on(f, t->buffer, from, t->dtype, &CHOIR_SHAPE(u->count));
}

choir_status chi_update_chunk_write(
		chi_update *u, choir_variable *v, chi_assign_op op, choir_tensor *t)
{
	choir_frame *f = u->base.frame;
	char have[CHI_SHAPE_TEXT];
	void *to = chi_update_chunk_of(u, v);
	const int copy = to == NULL ? 0 : chi_update_copy_of(u, v);
	if (to == NULL ||
			(t->is_number &&
					(t = choir_fill(f, v->dtype, CHOIR_SHAPE(u->count), t->number)) == NULL))
		return chi_frame_status(f);
	CHOIR_TRY(chi_tensor_check(t));
	if (t->dtype != v->dtype || !chi_shape_equal(&t->shape, &CHOIR_SHAPE(u->count)))
		return chi_frame_fail(f, CHOIR_INVALID,
				"variable \"%s\": the value is %s %s; an "
				"elementwise function writes %lld elements of %s",
				v->name, choir_dtype_name(t->dtype), chi_shape_print(&t->shape, have),
				(long long) u->count, choir_dtype_name(v->dtype));
	chi_update_chunk_note_written(u, v);
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

static void note_failure(struct chi_chunk_context *s, int64_t chunk)
{
	chi_mutex_lock(&s->lock);
	if (chi_atomic32_load(&s->failed) == 0 || chunk < s->failed_chunk) {
		s->failed_chunk = chunk;
		chi_error_save(&s->error);
		chi_atomic32_store(&s->failed, 1);
	}
	chi_mutex_unlock(&s->lock);
}

static void take_chunks(void *arg)
{
	struct chi_chunk_context *s = arg;
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
		if (i >= s->chunks)
			break;
		const int64_t left = own.variable->elements - i * CHUNK;
		own.first = i * CHUNK;
		own.count = left < CHUNK ? left : CHUNK;
		status = chi_update_call(&own, f, s->fn, s->user);
		if (status != CHOIR_OK)
			note_failure(s, i);
		choir_frame_clear(f);
	}
	(void) chi_cross_release_frame(own.cross, f, status);
}

static choir_status set_lazy(struct chi_chunk_context *s, size_t leaf, choir_value *v)
{
	const chi_update *u = s->whole;
	const choir_variable *target = u->parent != NULL ? u->parent : u->variable;
	if (v->materialize == NULL)
		return CHOIR_OK;
	if (u->variable->copies > 1 || !chi_shape_equal(&v->component[0]->shape, &target->shape))
		return chi_value_materialize(v);
	s->lazy[leaf] = v;
	return CHOIR_OK;
}

static choir_status set_args(struct chi_chunk_context *s, choir_frame *f)
{
	const chi_update *u = s->whole;
	const choir_values *given = u->cross->call_args;
	char text[CHI_SHAPE_TEXT];
	s->arg = chi_arena_alloc(&f->arena, given->n * sizeof *s->arg);
	s->lazy = chi_arena_alloc(&f->arena, given->n * sizeof *s->lazy);
	if (given->n > 0 && (s->arg == NULL || s->lazy == NULL))
		return choir_error_status();
	for (size_t i = 0; i < given->n; i++) {
		choir_value *v = given->leaf[i].value;
		CHOIR_TRY(set_lazy(s, i, v));
		choir_tensor *t = v->variable != NULL ? choir_variable_component(v->variable, f)
											  : chi_value_for_replica(v, 0, f->device);
		t = t == NULL || t->is_number ? t : chi_update_rows(u, chi_value_view(f, t));
		if (t == NULL && choir_error_status() == CHOIR_OK)
			choir_fail(CHOIR_INVALID, "a destination has no value");
		if (t == NULL)
			return chi_error_prefix(
					"update of \"%s\": \"%s\"", u->variable->name, given->leaf[i].name);
		if (!t->is_number && t->shape.rank != 0 &&
				!chi_shape_equal(&t->shape, &u->variable->shape))
			return choir_fail(CHOIR_INVALID,
					"update of \"%s\": \"%s\" is %s; an elementwise function "
					"takes scalars and tensors of the variable's shape",
					u->variable->name, given->leaf[i].name, chi_shape_print(&t->shape, text));
		s->arg[i] = t;
	}
	return chi_stream_wait(f->stream);
}

choir_status chi_update_chunks(chi_update *u, choir_update_fn *fn, void *user)
{
	choir_strategy *strategy = u->cross->strategy;
	const choir_variable *v = u->variable;
	struct chi_chunk_context s = { .whole = u, .each = *u, .fn = fn, .user = user };
	s.each.chunk = &s;
	s.each.written = NULL;
	s.chunks = (v->elements + CHUNK - 1) / CHUNK;
	choir_frame *f = chi_cross_acquire_frame(u->cross, v->copy[u->copy].device);
	CHOIR_TRY(chi_made(f));
	f->context = u;
	f->context_kind = CHI_IN_UPDATE;
	chi_error_clear();
	choir_status status = set_args(&s, f);
	if (status == CHOIR_OK) {
		chi_mutex_init(&s.lock, CHI_RANK_RUN, "slices");
		status = chi_thread_pool_call_all(strategy, take_chunks, &s);
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
