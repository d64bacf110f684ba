// A program's operations are foreign code: a failure without a message gets one, and a message
// left by a success is cleared.
#include "op/op.h"

#include "base/lock.h"

#include <string.h>

typedef struct {
	choir_custom_op op;
	void *user;
} custom;

typedef struct {
	choir_buffer view;
	chi_buffer *copy; // NULL: t's memory
} staged;

static choir_buffer describe(const choir_tensor *t)
{
	return (choir_buffer){ .data = NULL, .dtype = t->dtype, .shape = t->shape };
}

static choir_status open_staged(staged *s, const choir_tensor *t)
{
	*s = (staged){ .view = describe(t) };
	if (chi_tensor_memory_device(t)->host_memory) {
		s->view.data = t->data;
		return CHOIR_OK;
	}
	choir_device *host = choir_device_find("cpu:0");
	s->copy = host ? chi_buffer_new(host, chi_tensor_bytes(t)) : NULL;
	CHOIR_TRY(chi_made(s->copy));
	s->view.data = s->copy->memory;
	return CHOIR_OK;
}

// Checks t, since its variable may have changed.
static choir_status stage_input(staged *s, const choir_tensor *t)
{
	CHOIR_TRY(chi_tensor_check(t));
	CHOIR_TRY(open_staged(s, t));
	if (s->copy)
		return chi_tensor_to_host(t, s->copy->memory);
	return t->frame->queued ? chi_stream_wait(t->frame->stream) : CHOIR_OK;
}

static choir_status put_back(const staged *s, choir_tensor *t)
{
	return s->copy ? chi_tensor_from_host(t, s->copy->memory) : CHOIR_OK;
}

static void close_staged(size_t n, staged s[])
{
	for (size_t i = 0; i < n; i++)
		chi_buffer_release(s[i].copy);
}

static void set_aside(chi_error *before)
{
	chi_error_save(before);
	chi_error_clear();
	chi_mutex_check_none_held();
}

static choir_status run_checked(const chi_error *before, const char *what, choir_status status)
{
	if (status != CHOIR_OK)
		return chi_error_reason(status, "%s", what);
	chi_error_restore(before);
	return CHOIR_OK;
}

static choir_status infer_custom(chi_result *r)
{
	const custom *c = r->attributes;
	choir_buffer inputs[CHI_MAX_INPUTS], out = describe(r->in[0]);
	char text[CHI_SHAPE_TEXT];
	chi_error before;
	size_t bytes;

	for (size_t i = 0; i < r->n; i++)
		inputs[i] = describe(r->in[i]);
	if (c->op.shape) {
		set_aside(&before);
		CHOIR_TRY(run_checked(&before, "shape", c->op.shape(r->n, inputs, &out, c->user)));
	}
	if (chi_dtype_size(out.dtype) == 0 || !chi_shape_bytes(&out.shape, out.dtype, &bytes))
		return choir_fail(CHOIR_INVALID, "the shape function gave %s %s, which is invalid",
				choir_dtype_name(out.dtype), chi_shape_print(&out.shape, text));
	r->dtype = out.dtype;
	r->shape = out.shape;
	return CHOIR_OK;
}

static choir_status call_forward(const chi_node *node, staged in[], staged *out)
{
	const custom *c = node->attributes;
	choir_buffer inputs[CHI_MAX_INPUTS];
	chi_error before;

	for (size_t i = 0; i < node->n; i++) {
		CHOIR_TRY(stage_input(&in[i], node->in[i]));
		inputs[i] = in[i].view;
	}
	CHOIR_TRY(open_staged(out, node->out));
	choir_buffer result = out->view;
	set_aside(&before);
	CHOIR_TRY(run_checked(&before, "forward", c->op.forward(node->n, inputs, &result, c->user)));
	return put_back(out, node->out);
}

static choir_status custom_forward(const chi_node *node)
{
	staged all[CHI_MAX_INPUTS + 1] = { 0 };
	const choir_status status = call_forward(node, all, &all[node->n]);
	close_staged(node->n + 1, all);
	return status;
}

enum { OUT = CHI_MAX_INPUTS, OUT_GRADIENT, GRADIENT, STAGED = GRADIENT + CHI_MAX_INPUTS };

// Zeros, since the backward function may add to them.
static choir_status open_gradients(const chi_node *node, const chi_backward *g, staged s[])
{
	for (size_t i = 0; i < node->n; i++) {
		choir_tensor *in = node->in[i];
		if (!g->want[i]) {
			s[i].view = describe(in);
			continue;
		}
		g->gradient[i] = chi_tensor_new(in->frame, in->dtype, &in->shape);
		if (!g->gradient[i])
			return choir_error_status();
		CHOIR_TRY(open_staged(&s[i], g->gradient[i]));
		if (chi_tensor_bytes(in) > 0)
			memset(s[i].view.data, 0, chi_tensor_bytes(in));
	}
	return CHOIR_OK;
}

static choir_status call_backward(const chi_node *node, const chi_backward *g, staged s[])
{
	const custom *c = node->attributes;
	choir_buffer in[CHI_MAX_INPUTS], out[CHI_MAX_INPUTS];
	chi_error before;

	for (size_t i = 0; i < node->n; i++) {
		CHOIR_TRY(stage_input(&s[i], node->in[i]));
		in[i] = s[i].view;
	}
	CHOIR_TRY(stage_input(&s[OUT], node->out));
	CHOIR_TRY(stage_input(&s[OUT_GRADIENT], g->dy));
	// After these waits no queued work uses the memory.
	CHOIR_TRY(open_gradients(node, g, &s[GRADIENT]));
	for (size_t i = 0; i < node->n; i++)
		out[i] = s[GRADIENT + i].view;
	set_aside(&before);
	CHOIR_TRY(run_checked(&before, "backward",
			c->op.backward(node->n, in, &s[OUT].view, &s[OUT_GRADIENT].view, out, c->user)));
	for (size_t i = 0; i < node->n; i++)
		if (g->want[i])
			CHOIR_TRY(put_back(&s[GRADIENT + i], g->gradient[i]));
	return CHOIR_OK;
}

static choir_status custom_backward(const chi_node *node, const chi_backward *g)
{
	staged all[STAGED] = { 0 };
	const choir_status status = call_backward(node, g, all);
	close_staged(STAGED, all);
	if (status != CHOIR_OK)
		chi_error_prefix("%s", node->op->name);
	return status;
}

static choir_tensor *call(choir_frame *f, const choir_custom_op *given, void *user, size_t n,
		choir_tensor *const inputs[])
{
	chi_op *op = chi_arena_alloc(&f->arena, sizeof(*op));
	custom c = { .user = user };

	memcpy(&c.op, given, given->size < sizeof(c.op) ? given->size : sizeof(c.op));
	const char *name = chi_arena_strdup(&f->arena, c.op.name ? c.op.name : "custom");
	if (!op || !name)
		return chi_frame_record_null(f);
	if (!c.op.forward)
		return chi_frame_fail_null(
				f, CHOIR_INVALID, "%s: the operation has no forward function", name);
	*op = (chi_op){ .name = name,
		.attribute_bytes = sizeof(c),
		.foreign = true,
		.infer = infer_custom,
		.backward = c.op.backward ? custom_backward : NULL,
		.forward = custom_forward };
	return chi_op_call(op, f, n, inputs, &c);
}

choir_tensor *choir_custom_op_apply(
		const choir_custom_op *op, void *user, size_t n, choir_tensor *const inputs[])
{
	choir_frame *f = NULL;

	for (size_t i = 0; i < n && !f; i++)
		f = choir_tensor_frame(inputs[i]);
	if (!f && n > 0)
		return chi_frame_null_argument(NULL, "custom_op_apply");
	if (n < 1 || n > CHI_MAX_INPUTS)
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"custom_op_apply: %zu inputs; 1 to %d are needed", n, CHI_MAX_INPUTS);
	if (!op || op->size == 0)
		return chi_frame_fail_null(f, CHOIR_INVALID,
				"custom_op_apply: the operation is NULL, or its size is not set");
	return call(f, op, user, n, inputs);
}
