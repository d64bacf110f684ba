// Devices that share memory share a mirrored variable's copy, so CPU replicas read the same one.
#include "value/variable.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/memory_copy.h"
#include "base/text.h"
#include "op/op.h"
#include "value/initializer.h"
#include "value/narrow_copy.h"
#include "value/shard_rows.h"

#include <string.h>

choir_status chi_variable_check_plan(const chi_variable_plan *p)
{
	size_t bytes;
	if (p->name == NULL || p->name[0] == '\0')
		return choir_fail(CHOIR_INVALID, "variable: has no name; one is needed");
	if (chi_dtype_size(p->options.dtype) == 0)
		return choir_fail(CHOIR_INVALID, "variable \"%s\": dtype %d is unknown", p->name,
				(int) p->options.dtype);
	if (!chi_shape_bytes(&p->shape, p->options.dtype, &bytes)) {
		char text[CHI_SHAPE_TEXT];
		return choir_fail(CHOIR_INVALID, "variable \"%s\": shape %s is invalid", p->name,
				chi_shape_print(&p->shape, text));
	}
	if (p->options.synchronization == CHOIR_SYNCHRONIZATION_NONE ||
			(unsigned) p->options.synchronization > CHOIR_SYNCHRONIZATION_NONE)
		return choir_fail(CHOIR_INVALID,
				"variable \"%s\": synchronization %d is "
				"unknown; known: AUTO, ON_WRITE and ON_READ",
				p->name, (int) p->options.synchronization);
	if ((unsigned) p->options.aggregation > CHOIR_AGGREGATION_ONLY_FIRST_REPLICA)
		return choir_fail(CHOIR_INVALID,
				"variable \"%s\": aggregation %d is unknown; "
				"known: NONE, SUM, MEAN and ONLY_FIRST_REPLICA",
				p->name, (int) p->options.aggregation);
	if (p->options.aggregation == CHOIR_AGGREGATION_MEAN && !chi_dtype_is_float(p->options.dtype))
		return choir_fail(CHOIR_INVALID,
				"variable \"%s\": aggregation MEAN needs a floating-point dtype, not %s", p->name,
				choir_dtype_name(p->options.dtype));
	return CHOIR_OK;
}

// v->copies: none shares memory with d.
static int copy_colocated(
		const choir_variable *v, choir_device *const of_copy[], const choir_device *d)
{
	int c = 0;
	while (c < v->copies && !chi_device_shares(of_copy[c], d))
		c++;
	return c;
}

// A replica reads its component, the copy in shared memory, else the first.
static void deal_copies(choir_variable *v, const chi_variable_plan *p, choir_device *of_copy[])
{
	const chi_layout *layout = p->layout;
	const bool parts = v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ;
	const int places = parts ? 0 : p->copy_devices > 0 ? p->copy_devices : layout->replicas;
	choir_device *const *place = p->copy_devices > 0 ? p->copy_device : layout->device;
	for (int i = 0; i < places; i++)
		if (copy_colocated(v, of_copy, place[i]) == v->copies)
			of_copy[v->copies++] = place[i];
	for (int r = 0; r < layout->replicas; r++) {
		if (parts)
			of_copy[v->copies++] = layout->device[r];
		const int c = parts ? r : copy_colocated(v, of_copy, layout->device[r]);
		v->copy_of_replica[r] = c < v->copies ? c : 0;
	}
}

static choir_status open_copy(choir_variable *v, int index, choir_device *d, void *wrap)
{
	chi_copy *c = &v->copy[index];
	c->source.name = v->name;
	c->source.owner = v;
	c->source.copied = v->concurrency != CHI_EXCLUSIVE;
	c->device = d;
	chi_narrow_copy_open(c);
	if (index > 0) {
		chi_text name = { 0 };
		chi_text_add(&name, "%s/replica_%d", v->name, index);
		if (name.failed) {
			chi_text_free(&name);
			return CHOIR_NO_MEMORY;
		}
		c->name = name.data;
	}
	c->buffer = wrap != NULL && d->host_memory
			? chi_buffer_wrap(d, wrap, chi_variable_bytes(v), NULL, NULL)
			: chi_buffer_new(d, chi_variable_bytes(v));
	return c->buffer == NULL ? chi_error_prefix("variable \"%s\"", v->name) : CHOIR_OK;
}

static choir_status open_copies(choir_variable *v, const chi_variable_plan *p)
{
	const size_t n = (size_t) p->layout->replicas, places = (size_t) p->copy_devices;
	choir_device **of_copy = chi_alloc_array(n > places ? n : places, sizeof *of_copy);
	v->copy_of_replica = chi_alloc_array(n, sizeof *v->copy_of_replica);
	choir_status status =
			of_copy == NULL || v->copy_of_replica == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
	if (status == CHOIR_OK) {
		deal_copies(v, p, of_copy);
		v->copy = chi_alloc_array((size_t) v->copies, sizeof *v->copy);
		status = v->copy == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
	}
	for (int i = 0; status == CHOIR_OK && i < v->copies; i++)
		status = open_copy(v, i, of_copy[i], p->wrap);
	chi_free(of_copy);
	return status;
}

static choir_status fill_copies(choir_variable *v, const chi_variable_plan *p)
{
	if (p->wrap != NULL) {
		v->wrapped = p->wrap;
		for (int i = 0; i < v->copies; i++)
			if (v->copy[i].buffer->memory == p->wrap)
				v->wrapped = NULL;
		CHOIR_TRY(chi_variable_from_host(v, p->wrap));
		v->wrapped_version = chi_atomic64_load(&v->copy[0].source.version);
		return CHOIR_OK;
	}
	void *host = chi_alloc_aligned(chi_variable_bytes(v));
	if (host == NULL)
		return chi_error_prefix("variable \"%s\"", v->name);
	choir_status status = chi_initialize(p, host);
	if (status == CHOIR_OK)
		status = chi_variable_from_host(v, host);
	chi_free(host);
	return status;
}

static choir_status open_shards(choir_variable *v, const chi_variable_plan *p)
{
	v->source =
			(chi_source){ .name = v->name, .owner = v, .copied = v->concurrency != CHI_EXCLUSIVE };
	v->shard = chi_alloc_array((size_t) p->shards, sizeof(choir_variable *));
	return v->shard == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
}

choir_variable *chi_variable_new(const chi_variable_plan *p)
{
	if (chi_variable_check_plan(p) != CHOIR_OK)
		return NULL;
	choir_variable *v = chi_alloc(sizeof *v);
	if (v == NULL)
		return NULL;
	v->strategy = p->strategy;
	v->lock = p->lock != NULL ? p->lock : &v->own_lock;
	v->timeout = p->timeout;
	v->dtype = p->options.dtype;
	v->shape = p->shape;
	v->elements = choir_shape_elements(&p->shape);
	v->synchronization = p->options.synchronization == CHOIR_SYNCHRONIZATION_AUTO
			? CHOIR_SYNCHRONIZATION_ON_WRITE
			: p->options.synchronization;
	v->aggregation = p->options.aggregation;
	// Components are mostly used by their own replica, and lie on any device.
	v->concurrency =
			p->concurrency == CHI_LOCK_FREE && v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ
			? CHI_LOCKED
			: p->concurrency;
	v->trainable = p->options.trainable == CHOIR_DEFAULT
			? v->synchronization == CHOIR_SYNCHRONIZATION_ON_WRITE
			: p->options.trainable == CHOIR_ON;
	v->replicas = p->layout->replicas;
	v->value = (choir_value){ .kind = CHOIR_VALUE_VARIABLE, .variable = v };
	v->name = chi_strdup(p->name);
	choir_status status = v->name == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
	if (status == CHOIR_OK)
		status = p->shards > 0 ? open_shards(v, p) : open_copies(v, p);
	if (status == CHOIR_OK && p->shards == 0)
		status = fill_copies(v, p);
	if (status != CHOIR_OK) {
		chi_variable_free(v);
		return NULL;
	}
	return v;
}

void chi_variable_free(choir_variable *v)
{
	if (v == NULL)
		return;
	for (int i = 0; v->copy != NULL && i < v->copies; i++) {
		chi_narrow_copy_close(&v->copy[i]);
		chi_buffer_release(v->copy[i].buffer);
		chi_free(v->copy[i].name);
	}
	chi_free(v->copy);
	chi_free(v->copy_of_replica);
	chi_free(v->shard);
	chi_free(v->name);
	chi_free(v);
}

size_t chi_variable_bytes(const choir_variable *v)
{
	return (size_t) v->elements * chi_dtype_size(v->dtype);
}

choir_status chi_variable_unwrap(choir_variable *v)
{
	const uint64_t now = chi_atomic64_load(&v->copy[0].source.version);
	if (v->wrapped == NULL || v->wrapped_version == now ||
			chi_atomic32_load(&v->copy[0].undefined) != 0)
		return CHOIR_OK;
	CHOIR_TRY(chi_variable_to_host(v, 0, v->wrapped));
	v->wrapped_version = now;
	return CHOIR_OK;
}

void chi_variable_bump_version(choir_variable *v, int copy)
{
	chi_atomic64_add(&v->copy[copy].source.version, 1);
	if (v->parent != NULL)
		chi_atomic64_add(&v->parent->source.version, 1);
}

void chi_variable_undefine(choir_variable *v)
{
	for (int i = 0; i < v->shards; i++)
		chi_variable_undefine(v->shard[i]);
	for (int i = 0; i < v->copies; i++)
		chi_atomic32_store(&v->copy[i].undefined, 1);
}

choir_status chi_variable_check_defined(choir_variable *v, int copy, choir_frame *f)
{
	for (int i = 0; i < v->shards; i++)
		CHOIR_TRY(chi_variable_check_defined(v->shard[i], 0, f));
	if (v->shards > 0 || chi_atomic32_load(&v->copy[copy].undefined) == 0)
		return CHOIR_OK;
	return chi_frame_fail(f, CHOIR_STATE,
			"variable \"%s\": an update failed halfway, so it "
			"is undefined until it is assigned or restored",
			v->parent != NULL ? v->parent->name : v->name);
}

choir_status chi_variable_lock(choir_variable *v, bool lock(chi_recursive_lock *, double))
{
	if (v->concurrency != CHI_LOCKED || lock(v->lock, chi_clock_deadline(v->timeout)))
		return CHOIR_OK;
	return choir_fail(CHOIR_TIMEOUT, "variable \"%s\": another worker has been using it for %g s",
			v->name, v->timeout);
}

void chi_variable_leave(choir_variable *v)
{
	if (v->concurrency == CHI_LOCKED)
		chi_recursive_lock_leave(v->lock);
}

static choir_status fetch_relaxed(const choir_variable *v, const chi_copy *c, choir_tensor *t)
{
	void *host = chi_alloc_aligned(chi_variable_bytes(v));
	CHOIR_TRY(chi_made(host));
	chi_copy_atomic(host, c->buffer->memory, v->elements, chi_dtype_size(v->dtype));
	const choir_status status = chi_tensor_from_host(t, host);
	chi_free(host);
	return status;
}

static choir_tensor *fetch(choir_variable *v, const chi_copy *c, choir_frame *f)
{
	choir_tensor *t = chi_tensor_new(f, v->dtype, &v->shape);
	if (t == NULL)
		return NULL;
	choir_status status = CHOIR_OK;
	if (v->concurrency == CHI_LOCK_FREE && f->device->host_memory)
		chi_copy_atomic(t->data, c->buffer->memory, v->elements, chi_dtype_size(v->dtype));
	else if (v->concurrency == CHI_LOCK_FREE)
		status = fetch_relaxed(v, c, t);
	else
		status = chi_device_copy(f->stream, f->device, t->data, c->device, c->buffer->memory,
				chi_variable_bytes(v));
	return status == CHOIR_OK ? t : chi_frame_record_null(f);
}

choir_tensor *chi_variable_view(choir_variable *v, int copy, choir_frame *f)
{
	if (v->shards > 0)
		return chi_shards_view(v, f);
	const chi_copy *c = &v->copy[copy];
	if (chi_variable_enter_to_read(v) != CHOIR_OK)
		return chi_frame_record_null(f);
	choir_tensor *t = NULL;
	if (chi_variable_check_defined(v, copy, f) != CHOIR_OK) {
	} else if (v->concurrency != CHI_EXCLUSIVE || !chi_device_shares(c->device, f->device)) {
		t = fetch(v, c, f);
	} else {
		const uint64_t version = chi_atomic64_load(&c->source.version);
		t = chi_tensor_on(f, c->buffer, c->buffer->memory, v->dtype, &v->shape);
		if (t != NULL) {
			t->source = &c->source;
			t->version = version;
		}
	}
	chi_variable_leave(v);
	return t;
}

choir_tensor *chi_variable_alias(choir_variable *v, int copy, choir_frame *f)
{
	if (v->shards > 0)
		return chi_shards_view(v, f);
	const chi_source *source = &v->copy[copy].source;
	const uint64_t version = chi_atomic64_load(&source->version);
	choir_tensor *t = chi_variable_view(v, copy, f);
	if (t == NULL)
		return NULL;
	t->source = source; // also for a copied tensor
	t->version = version;
	return t;
}

choir_status chi_variable_check_written(const choir_variable *v, const choir_tensor *t)
{
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT];
	CHOIR_TRY(chi_tensor_check(t));
	if (t->is_number)
		return CHOIR_OK;
	if (t->dtype != v->dtype)
		return chi_frame_fail(t->frame, CHOIR_INVALID,
				"variable \"%s\": the value is %s, the variable %s", v->name,
				choir_dtype_name(t->dtype), choir_dtype_name(v->dtype));
	if (!chi_shape_equal(&t->shape, &v->shape))
		return chi_frame_fail(t->frame, CHOIR_INVALID,
				"variable \"%s\": the value has shape %s, the variable %s", v->name,
				chi_shape_print(&t->shape, have), chi_shape_print(&v->shape, need));
	return CHOIR_OK;
}

bool chi_variable_concerns(const choir_variable *v, const choir_tensor *t)
{
	if (t->is_number || t->buffer == NULL)
		return false;
	if (t->source != NULL && !t->source->copied &&
			(t->source->owner == v || t->source->owner == v->parent))
		return true;
	const uintptr_t data = (uintptr_t) t->data;
	for (int i = 0; i < v->copies; i++) {
		const uintptr_t own = (uintptr_t) v->copy[i].buffer->memory;
		if (chi_device_shares(v->copy[i].device, chi_tensor_memory_device(t)) &&
				data < own + chi_variable_bytes(v) && own < data + chi_tensor_bytes(t))
			return true;
	}
	for (int i = 0; i < v->shards; i++)
		if (chi_variable_concerns(v->shard[i], t))
			return true;
	return false;
}

choir_tensor *chi_variable_apart(const choir_variable *v, choir_tensor *t)
{
	return chi_variable_concerns(v, t) ? choir_copy(t, t->frame) : t;
}

static choir_tensor *written_value(const choir_variable *v, choir_frame *f, choir_tensor *t)
{
	if (t->is_number)
		return choir_fill(f, v->dtype, v->shape, t->number);
	return chi_value_view(f, chi_variable_apart(v, t));
}

static choir_status put(choir_variable *v, chi_copy *c, chi_assign_op op, choir_tensor *value)
{
	choir_frame *f = value->frame;
	const bool here = chi_device_shares(c->device, choir_tensor_device(value));
	const size_t bytes = chi_variable_bytes(v);
	if (op == CHI_ASSIGN && here)
		return chi_stream_copy(f->stream, c->buffer->memory, value->data, bytes);
	if (op == CHI_ASSIGN)
		return chi_device_copy(f->stream, c->device, c->buffer->memory, choir_tensor_device(value),
				value->data, bytes);
	if (!here)
		return choir_fail(CHOIR_INVALID, "variable \"%s\": the value is on %s, the copy on %s",
				v->name, choir_device_name(f->device), choir_device_name(c->device));
	const choir_buffer in[2] = { { c->buffer->memory, v->dtype, v->shape },
		{ value->data, v->dtype, v->shape } };
	choir_buffer out = in[0];
	return chi_kernel_run(f->stream, op == CHI_ASSIGN_ADD ? "add" : "subtract", 2, in, &out, NULL);
}

static choir_status run_on(
		choir_device *d, const char *kernel, const choir_buffer in[2], choir_buffer *out)
{
	chi_stream *s = chi_stream_new(d);
	CHOIR_TRY(chi_made(s));
	const choir_status status = chi_kernel_run(s, kernel, 2, in, out, NULL);
	chi_stream_free(s);
	return status;
}

// Without a lock: the result is made aside and stored element by element.
static choir_status put_relaxed(
		choir_variable *v, chi_copy *c, chi_assign_op op, choir_tensor *value)
{
	const size_t bytes = chi_variable_bytes(v);
	char *host = chi_alloc_aligned(2 * bytes);
	CHOIR_TRY(chi_made(host));
	choir_status status = chi_tensor_to_host(value, host);
	const choir_buffer in[2] = { { host + bytes, v->dtype, { 1, { v->elements } } },
		{ host, v->dtype, { 1, { v->elements } } } };
	choir_buffer out = in[1];
	if (status == CHOIR_OK && op != CHI_ASSIGN) {
		chi_copy_atomic(host + bytes, c->buffer->memory, v->elements, chi_dtype_size(v->dtype));
		status = run_on(c->device, op == CHI_ASSIGN_ADD ? "add" : "subtract", in, &out);
	}
	if (status == CHOIR_OK)
		chi_copy_atomic(c->buffer->memory, host, v->elements, chi_dtype_size(v->dtype));
	chi_free(host);
	return status;
}

static choir_status write_value(choir_variable *v, int copy, chi_assign_op op, choir_tensor *value)
{
	chi_copy *c = &v->copy[copy];
	choir_frame *f = value->frame;
	if (op != CHI_ASSIGN)
		CHOIR_TRY(chi_variable_check_defined(v, copy, f));
	choir_status status =
			v->concurrency == CHI_LOCK_FREE ? put_relaxed(v, c, op, value) : put(v, c, op, value);
	if (status == CHOIR_OK && v->concurrency == CHI_LOCKED)
		status = chi_stream_wait(f->stream);
	if (status != CHOIR_OK)
		return chi_frame_record_error(f);
	if (op == CHI_ASSIGN)
		chi_atomic32_store(&c->undefined, 0);
	chi_variable_bump_version(v, copy);
	return CHOIR_OK;
}

choir_status chi_variable_write(choir_variable *v, int copy, chi_assign_op op, choir_tensor *t)
{
	CHOIR_TRY(chi_variable_check_written(v, t));
	choir_frame *f = t->frame;
	choir_tensor *value = written_value(v, f, t);
	CHOIR_TRY(chi_frame_made(f, value));
	if (chi_variable_enter(v) != CHOIR_OK)
		return chi_frame_record_error(f);
	const choir_status status = write_value(v, copy, op, value);
	chi_variable_leave(v);
	return status;
}

static choir_status copy_host(choir_device *d, void *to, const void *from, size_t bytes)
{
	if (d->host_memory) {
		if (to != from && bytes > 0)
			memcpy(to, from, bytes);
		return CHOIR_OK;
	}
	chi_stream *s = chi_stream_new(d);
	CHOIR_TRY(chi_made(s));
	choir_status status = chi_stream_copy(s, to, from, bytes);
	if (status == CHOIR_OK)
		status = chi_stream_wait(s);
	chi_stream_free(s);
	return status;
}

static choir_status exchange(choir_variable *v, void *to, const void *from, choir_device *d)
{
	if (v->concurrency != CHI_LOCK_FREE)
		return copy_host(d, to, from, chi_variable_bytes(v));
	chi_copy_atomic(to, from, v->elements, chi_dtype_size(v->dtype));
	return CHOIR_OK;
}

static choir_status set_copies(choir_variable *v, int first, int end, const void *from)
{
	for (int i = first; i < end; i++) {
		chi_copy *c = &v->copy[i];
		const choir_status status = exchange(v, c->buffer->memory, from, c->device);
		if (status != CHOIR_OK) {
			chi_variable_undefine(v);
			return status;
		}
		chi_atomic32_store(&c->undefined, 0);
		chi_variable_bump_version(v, i);
	}
	return CHOIR_OK;
}

choir_status chi_variable_copy_from_host(choir_variable *v, int copy, const void *from)
{
	CHOIR_TRY(chi_variable_enter(v));
	const choir_status status = set_copies(v, copy, copy + 1, from);
	chi_variable_leave(v);
	return status;
}

choir_status chi_variable_from_host(choir_variable *v, const void *from)
{
	if (v->shards > 0)
		return chi_shards_from_host(v, from);
	CHOIR_TRY(chi_variable_enter(v));
	const choir_status status = set_copies(v, 0, v->copies, from);
	chi_variable_leave(v);
	return status;
}

choir_status chi_variable_to_host(choir_variable *v, int copy, void *to)
{
	if (v->shards > 0)
		return chi_shards_to_host(v, to);
	const chi_copy *c = &v->copy[copy];
	CHOIR_TRY(chi_variable_enter_to_read(v));
	const choir_status status = exchange(v, to, c->buffer->memory, c->device);
	chi_variable_leave(v);
	return status;
}

choir_status chi_variable_copy_out(choir_variable *v, void *to)
{
	if (v->shards > 0 || v->concurrency != CHI_EXCLUSIVE || !v->copy[0].device->host_memory)
		return chi_variable_to_host(v, 0, to);
	chi_copy_nontemporal(to, v->copy[0].buffer->memory, chi_variable_bytes(v));
	return CHOIR_OK;
}

const char *choir_variable_name(const choir_variable *v)
{
	return v == NULL ? "" : v->name;
}

const choir_shape *choir_variable_shape(const choir_variable *v)
{
	return v == NULL ? NULL : &v->shape;
}

choir_status choir_variable_describe(const choir_variable *v, choir_variable_options *options)
{
	if (v == NULL || options == NULL ||
			options->size < offsetof(choir_variable_options, initializer))
		return choir_fail(CHOIR_INVALID,
				"variable_describe: the variable or the "
				"options are NULL, or their size is not set");
	const choir_variable_options all = {
		.size = options->size,
		.dtype = v->dtype,
		.synchronization = v->synchronization,
		.aggregation = v->aggregation,
		.trainable = v->trainable ? CHOIR_ON : CHOIR_OFF,
	};
	memcpy(options, &all, options->size < sizeof all ? options->size : sizeof all);
	return CHOIR_OK;
}

int choir_variable_copies(const choir_variable *v)
{
	return v == NULL ? 0 : v->copies;
}

const char *choir_variable_copy_name(const choir_variable *v, int copy)
{
	if (v == NULL || copy < 0 || copy >= v->copies)
		return NULL;
	return copy == 0 ? v->name : v->copy[copy].name;
}

choir_device *choir_variable_device(const choir_variable *v, int copy)
{
	return v == NULL || copy < 0 || copy >= v->copies ? NULL : v->copy[copy].device;
}
