// Checks inputs, converts plain numbers, infers the shape, runs a kernel on the stream and records
// a node on the tape.
#include "op/precision/precision.h"
#include "op/tape/tape.h"
#include "trace/trace.h"

#include <string.h>

static choir_buffer buffer_of(const choir_tensor *t)
{
	return (choir_buffer){ .data = t->data, .dtype = t->dtype, .shape = t->shape };
}

static choir_status run_kernel(choir_frame *f, const char *operation, size_t n,
		choir_tensor *const in[], const void *attributes, choir_tensor *out)
{
	choir_buffer inputs[CHI_MAX_INPUTS], output = buffer_of(out);

	for (size_t i = 0; i < n; i++)
		inputs[i] = buffer_of(in[i]);
	choir_kernel_call call = { .size = sizeof(call),
		.stream = f->stream->state,
		.device = f->device->self,
		.n = n,
		.in = inputs,
		.out = &output,
		.attributes = attributes };
	chi_trace_begin(CHOIR_TRACE_COMPUTE, operation);
	const choir_status status = chi_kernel_launch(f, f->stream, operation, &call);
	chi_trace_end();
	return status;
}

choir_tensor *chi_op_failed(choir_frame *f, const char *name)
{
	chi_error_prefix("%s", name);
	return chi_frame_record_null(f);
}

// For a device without kernels of 16 bits.
static choir_tensor *kernel_in_f32(choir_frame *f, const char *operation, size_t n,
		choir_tensor *const in[], const void *attributes, choir_dtype dtype,
		const choir_shape *shape)
{
	choir_tensor *wide[CHI_MAX_INPUTS] = { NULL };

	for (size_t i = 0; i < n; i++) {
		wide[i] = in[i];
		if (chi_dtype_is_half(in[i]->dtype))
			wide[i] = chi_op_kernel(f, "cast", 1, &in[i], NULL, CHOIR_F32, &in[i]->shape);
		if (!wide[i])
			return NULL;
	}
	choir_tensor *out =
			chi_op_kernel(f, operation, n, wide, attributes, chi_dtype_wide(dtype), shape);
	for (size_t i = 0; i < n; i++)
		if (wide[i] != in[i])
			chi_tensor_drop(wide[i]);
	if (!out || out->dtype == dtype)
		return out;
	choir_tensor *narrow = chi_op_kernel(f, "cast", 1, &out, NULL, dtype, shape);
	chi_tensor_drop(out);
	return narrow;
}

choir_tensor *chi_op_kernel(choir_frame *frame, const char *operation, size_t n,
		choir_tensor *const in[], const void *attributes, choir_dtype dtype,
		const choir_shape *shape)
{
	for (size_t i = 0; i < n; i++) {
		if (!in[i])
			return chi_frame_null_argument(frame, operation);
		if (chi_tensor_check(in[i]) != CHOIR_OK)
			return NULL;
	}
	if (n > 0 && chi_dtype_is_half(in[0]->dtype) && strcmp(operation, "cast") != 0 &&
			!chi_kernel_exists(frame->device, operation, in[0]->dtype))
		return kernel_in_f32(frame, operation, n, in, attributes, dtype, shape);
	choir_tensor *out = chi_tensor_new(frame, dtype, shape);
	if (!out)
		return NULL;
	if (run_kernel(frame, operation, n, in, attributes, out) == CHOIR_OK)
		return out;
	chi_tensor_drop(out);
	return chi_op_failed(frame, operation);
}

static choir_frame *frame_of(choir_frame *frame, size_t n, choir_tensor *const in[])
{
	for (size_t i = 0; i < n && !frame; i++)
		frame = in[i] ? in[i]->frame : NULL;
	return frame;
}

bool chi_op_operands(const char *name, choir_frame *f, size_t n, choir_tensor *const in[])
{
	for (size_t i = 0; i < n; i++) {
		if (!in[i]) {
			chi_frame_null_argument(f, name);
			return false;
		}
		if (in[i]->frame != f) {
			const char *other = in[i]->frame->prefix;
			const size_t length = strlen(other);
			chi_frame_fail(f, CHOIR_INVALID,
					"%s: operand %zu belongs to another frame (%.*s); "
					"copy it with choir_copy, or pass it as an argument",
					name, i, length > 2 ? (int) length - 2 : 10,
					length > 2 ? other : "not this one");
			return false;
		}
		if (chi_tensor_check(in[i]) != CHOIR_OK)
			return false;
	}
	return true;
}

static choir_tensor *convert_number(const char *name, choir_tensor *t, choir_dtype dtype)
{
	if (t->dtype == dtype)
		return t;
	if (!chi_dtype_holds(dtype, t->number))
		return chi_frame_fail_null(t->frame, CHOIR_INVALID,
				"%s: the number %g is not a value of %s", name, t->number,
				choir_dtype_name(dtype));
	const choir_fill_attributes fill = { t->number };
	return chi_op_kernel(t->frame, "fill", 0, NULL, &fill, dtype, &CHOIR_SCALAR);
}

static bool convert_numbers(const char *name, size_t n, choir_tensor *in[])
{
	const choir_tensor *model = NULL;

	for (size_t i = n; i-- > 0;)
		model = in[i]->is_number ? model : in[i];
	for (size_t i = 0; i < n; i++) {
		if (model && in[i]->is_number)
			in[i] = convert_number(name, in[i], model->dtype);
		if (!in[i])
			return false;
	}
	return true;
}

static choir_status make(const chi_op *op, size_t n, choir_tensor *const in[],
		const void *attributes, choir_tensor *out)
{
	if (!op->forward)
		return run_kernel(out->frame, op->name, n, in, attributes, out);
	choir_tensor *inputs[CHI_MAX_INPUTS];
	for (size_t i = 0; i < n; i++)
		inputs[i] = in[i];
	const chi_node node = { .op = op, .out = out, .n = n, .in = inputs, .attributes = attributes };
	chi_trace_begin(CHOIR_TRACE_COMPUTE, op->name);
	const choir_status status = op->forward(&node);
	chi_trace_end();
	return status;
}

choir_tensor *chi_op_call(const chi_op *op, choir_frame *frame, size_t n, choir_tensor *const in[],
		const void *attributes)
{
	const char *name = op->label ? op->label : op->name;
	choir_tensor *inputs[CHI_MAX_INPUTS];
	choir_frame *f = frame_of(frame, n, in);

	if (!f)
		return chi_frame_null_argument(NULL, name);
	if (n > CHI_MAX_INPUTS)
		return chi_frame_fail_null(f, CHOIR_INVALID, "%s: %zu operands; at most %d are possible",
				name, n, CHI_MAX_INPUTS);
	if (!chi_op_operands(name, f, n, in))
		return NULL;
	for (size_t i = 0; i < n; i++)
		inputs[i] = in[i];
	if (f->narrow != CHOIR_F32 && !chi_precision_fit(op, f, n, inputs))
		return NULL;
	if (!convert_numbers(name, n, inputs))
		return NULL;
	chi_result r = { n, inputs, attributes, n ? inputs[0]->dtype : CHOIR_F32,
		n ? inputs[0]->shape : CHOIR_SCALAR };
	if (op->infer && op->infer(&r) != CHOIR_OK)
		return chi_op_failed(f, name);
	choir_tensor *out = chi_tensor_new(f, r.dtype, &r.shape);
	if (!out)
		return chi_op_failed(f, name);
	if (make(op, n, inputs, attributes, out) != CHOIR_OK) {
		chi_tensor_drop(out);
		return chi_op_failed(f, name);
	}
	return chi_op_record(op, n, inputs, attributes, out);
}
