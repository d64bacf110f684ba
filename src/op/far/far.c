// Kernels of the far device: those of the host, queued. A call is copied, since what it points to
// may be gone when the device's thread gets to it, and its memory is seen from inside the device.
// It is cut into the same pieces. So far and cpu give the same bits.
#include "op/far/far.h"

#include "base/fpenv.h"
#include "device/far.h"
#include "op/parallel.h"
#include "op/op.h"

#include <string.h>

enum { MAX_ATTRIBUTES = 128 }; // bytes

typedef struct {
	const chi_kernel_spec *spec;
	choir_kernel_call call;
	choir_buffer in[CHI_MAX_INPUTS], out;
	_Alignas(16) unsigned char attributes[MAX_ATTRIBUTES];
} task;

// On the device's thread, with a floating-point environment that it may have from the host.
static choir_status run_task(void *arg)
{
	task *t = arg;
	for (size_t i = 0; i < t->call.n; i++)
		t->in[i].data = chi_far_inside(t->in[i].data);
	t->out.data = chi_far_inside(t->out.data);
	t->call.in = t->in;
	t->call.out = &t->out;
	t->call.attributes = t->spec->attribute_bytes > 0 ? t->attributes : NULL;
	t->call.scratch = chi_far_inside(t->call.scratch);
	chi_fpenv saved;
	chi_fpenv_enter(&saved);
	const chi_kernel_spec *spec = t->spec;
	chi_parallel_plan plan;
	chi_parallel_plan_make(spec->operation, &t->call, &plan);
	const choir_status status = plan.chunks > 1
			? chi_parallel_run(&plan, spec->operation, spec->run, &t->call, 0)
			: spec->run(&t->call);
	chi_fpenv_leave(&saved);
	return status;
}

// The call as the host's kernel expects it.
static choir_kernel_call inner(const choir_kernel_call *call)
{
	const chi_kernel_spec *spec = call->user;
	choir_kernel_call c = *call;
	c.user = spec->user;
	c.stream = NULL;
	return c;
}

static choir_status run(const choir_kernel_call *call)
{
	const chi_kernel_spec *spec = call->user;
	if (call->n > CHI_MAX_INPUTS || spec->attribute_bytes > MAX_ATTRIBUTES)
		return choir_fail(CHOIR_INTERNAL,
				"%s: %zu inputs and %zu bytes of attributes: a far call "
				"takes %d and %d",
				spec->operation, call->n, spec->attribute_bytes, CHI_MAX_INPUTS, MAX_ATTRIBUTES);
	task t = { .spec = spec, .call = inner(call), .out = *call->out };
	if (call->n > 0)
		memcpy(t.in, call->in, call->n * sizeof *call->in);
	if (spec->attribute_bytes > 0)
		memcpy(t.attributes, call->attributes, spec->attribute_bytes);
	return chi_far_submit(call->stream, run_task, &t, sizeof t);
}

static int score(const choir_kernel_call *call)
{
	const chi_kernel_spec *spec = call->user;
	const choir_kernel_call c = inner(call);
	chi_parallel_plan plan;
	if (spec->score == NULL)
		return 1;
	// As a host's call, of which the first piece is asked.
	chi_parallel_plan_make(spec->operation, &c, &plan);
	return spec->score(plan.chunks > 1 ? &plan.first : &c);
}

static size_t scratch(const choir_kernel_call *call)
{
	const chi_kernel_spec *spec = call->user;
	const choir_kernel_call c = inner(call);
	chi_parallel_plan plan;
	chi_parallel_plan_make(spec->operation, &c, &plan);
	return plan.sums + (spec->scratch ? spec->scratch(plan.chunks > 1 ? &plan.first : &c) : 0);
}

void chi_far_register(chi_kernel_lists *lists, const char *name)
{
	static const chi_kernel_spec wrapper = { .run = run, .scratch = scratch, .score = score };
	chi_kernel_register(lists, "far", name, &wrapper);
}

void chi_register_far_kernels(void)
{
	chi_far_register(chi_plain_list, "plain");
}
