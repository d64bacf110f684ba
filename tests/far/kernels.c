// Kernels of the far device: those that the CPU would use, queued. A call is copied, since what it
// points to may be gone when the device's thread gets to it, and its memory is seen from inside
// the device. It is divided into the CPU's chunks. So far and cpu give the same bits.
#include "base/fpenv.h"
#include "far/far.h"
#include "op/kernel/narrow_kernel.h"
#include "op/kernel/parallel.h"
#include "op/plain/plain.h"

#include <string.h>

enum { MAX_ATTRIBUTES = 128 }; // bytes

typedef struct {
	const char *operation;
	const choir_kernel_table *kernel; // of the CPU
	bool divided;
	choir_kernel_call call;
	choir_buffer in[CHI_MAX_INPUTS], out;
	_Alignas(16) unsigned char attributes[MAX_ATTRIBUTES];
} task;

static choir_device *cpu;

// The kernel that would serve the call on the CPU, and how the call is divided there.
static const choir_kernel_table *find(const choir_kernel_call *call, chi_parallel_plan *plan)
{
	const char *operation = call->user;
	const choir_dtype dtype = call->n > 0 ? call->in[0].dtype : call->out->dtype;
	chi_parallel_plan_make(operation, call, plan);
	if (plan->chunks > 1) {
		const choir_kernel_table *kernel = chi_kernel_find(cpu, &plan->first, operation, dtype);
		if (kernel == NULL || chi_kernel_is_builtin(kernel))
			return kernel;
		*plan = (chi_parallel_plan){ .chunks = 1 };
	}
	return chi_kernel_find(cpu, call, operation, dtype);
}

// On the device's thread, with a floating-point environment that it may have from the host.
static choir_status run_task(void *arg)
{
	task *t = arg;
	for (size_t i = 0; i < t->call.n; i++)
		t->in[i].data = far_inside(t->in[i].data);
	t->out.data = far_inside(t->out.data);
	t->call.in = t->in;
	t->call.out = &t->out;
	if (t->call.attributes != NULL)
		t->call.attributes = t->attributes;
	if (choir_kernel_attribute_bytes(t->operation) == sizeof(choir_update_attributes)) {
		choir_update_attributes *a = (choir_update_attributes *) (void *) t->attributes;
		a->gate = far_inside(a->gate);
	}
	t->call.scratch = far_inside(t->call.scratch);
	t->call.user = t->kernel->user;
	chi_fpenv saved;
	chi_fpenv_enter(&saved);
	chi_parallel_plan plan = { .chunks = 1 };
	if (t->divided)
		chi_parallel_plan_make(t->operation, &t->call, &plan);
	const choir_status status = plan.chunks > 1
			? chi_parallel_run(&plan, t->operation, t->kernel->run, &t->call, 0)
			: t->kernel->run(&t->call);
	chi_fpenv_leave(&saved);
	return status;
}

// The call as the CPU has it.
static choir_kernel_call without_stream(const choir_kernel_call *call)
{
	choir_kernel_call c = *call;
	c.stream = NULL;
	return c;
}

static choir_status run(const choir_kernel_call *call)
{
	const char *operation = call->user;
	const size_t bytes = choir_kernel_attribute_bytes(operation);
	if (call->n > CHI_MAX_INPUTS || bytes > MAX_ATTRIBUTES)
		return choir_fail(CHOIR_INTERNAL,
				"%s: %zu inputs and %zu bytes of attributes: a far call takes %d and %d",
				operation, call->n, bytes, CHI_MAX_INPUTS, MAX_ATTRIBUTES);
	task t = { .operation = operation, .call = without_stream(call), .out = *call->out };
	chi_parallel_plan plan;
	t.kernel = find(&t.call, &plan);
	if (t.kernel == NULL)
		return choir_error_status();
	t.divided = plan.chunks > 1;
	if (call->n > 0)
		memcpy(t.in, call->in, call->n * sizeof *call->in);
	t.call.attributes = bytes > 0 ? call->attributes : NULL;
	if (bytes > 0)
		memcpy(t.attributes, call->attributes, bytes);
	return far_submit(call->stream, run_task, &t, sizeof t);
}

static size_t scratch(const choir_kernel_call *call)
{
	choir_kernel_call c = without_stream(call);
	chi_parallel_plan plan;
	const choir_kernel_table *kernel = find(&c, &plan);
	if (kernel == NULL)
		return 0;
	c.user = kernel->user;
	return plan.sums + chi_parallel_scratch(&plan, kernel, &c);
}

static choir_status register_kernel(const chi_kernel_spec *spec)
{
	choir_kernel_table table = { .size = sizeof table,
		.version = CHOIR_TABLE_VERSION,
		.operation = spec->operation,
		.kind = "far",
		.name = "far",
		.user = spec->operation,
		.scratch = scratch,
		.run = run };
	for (int dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++) {
		table.dtype = (choir_dtype) dtype;
		const bool half = chi_dtype_is_half(table.dtype) && chi_kernel_is_narrowed(spec);
		if (half || (spec->dtypes >> dtype & 1) != 0)
			CHOIR_TRY(choir_register_kernel(&table));
	}
	return CHOIR_OK;
}

// There is a plain kernel for every operation.
choir_status far_register_kernels(void)
{
	chi_kernel_list list;
	cpu = choir_device_find("cpu:0");
	if (cpu == NULL)
		return choir_error_status();
	for (size_t index = 0; (list = chi_plain_list(index)).count > 0; index++)
		for (size_t i = 0; i < list.count; i++)
			CHOIR_TRY(register_kernel(&list.specs[i]));
	return CHOIR_OK;
}
