// Operations without a kernel in libchoir-cuda run on the host by the CPU's, with copies of inputs
// and results. All is queued: the caller does not wait.
#include "op/kernel/cuda_kernels.h"

#include "base/alloc.h"
#include "base/fpenv.h"
#include "device/cuda_loader.h"
#include "op/kernel/parallel.h"
#include "op/plain/plain.h"

#include <string.h>

// Inputs that the operation writes: kernel_table.h, "Updates".
static size_t written_inputs(const char *operation, size_t n)
{
	if (strncmp(operation, "scatter_", 8) == 0)
		return 1;
	return chi_kernel_is_update(operation) ? n - 1 : 0;
}

static choir_status run_with_scratch(const choir_kernel_table *kernel, const char *operation,
		const chi_parallel_plan *plan, choir_kernel_call *call)
{
	const size_t bytes = chi_parallel_scratch(plan, kernel, call);
	if (plan->sums + bytes > 0) {
		call->scratch = chi_alloc_aligned(plan->sums + bytes);
		CHOIR_TRY(chi_made(call->scratch));
	}
	const choir_status status = plan->chunks > 1
			? chi_parallel_run(plan, operation, kernel->run, call, bytes)
			: kernel->run(call);
	chi_free(call->scratch);
	call->scratch = NULL;
	return status;
}

// On a thread of CUDA, divided as on a CPU for the same bits.
static choir_status run_on_cpu(const choir_kernel_call *given)
{
	const char *operation = given->user;
	choir_kernel_call call = *given;
	const choir_dtype dtype = call.n > 0 ? call.in[0].dtype : call.out->dtype;
	choir_device *cpu = choir_device_find("cpu:0");
	chi_parallel_plan plan;
	if (cpu == NULL)
		return choir_error_status();
	call.stream = NULL;
	call.scratch = NULL;
	chi_parallel_plan_make(operation, &call, &plan);
	const choir_kernel_table *kernel =
			chi_kernel_find(cpu, plan.chunks > 1 ? &plan.first : &call, operation, dtype);
	if (kernel != NULL && plan.chunks > 1 && !chi_kernel_is_builtin(kernel)) {
		plan = (chi_parallel_plan){ .chunks = 1 };
		kernel = chi_kernel_find(cpu, &call, operation, dtype);
	}
	if (kernel == NULL)
		return choir_error_status();
	call.user = kernel->user;
	chi_fpenv saved;
	chi_fpenv_enter(&saved);
	const choir_status status = run_with_scratch(kernel, operation, &plan, &call);
	chi_fpenv_leave(&saved);
	return status;
}

static choir_status queue_on_host(const choir_kernel_call *call)
{
	const char *operation = call->user;
	const choir_cuda_host_kernel k = { .attribute_bytes = choir_kernel_attribute_bytes(operation),
		.written = written_inputs(operation, call->n),
		.run = run_on_cpu,
		.user = operation };
	return chi_cuda_plugin()->queue_host_kernel(call, &k);
}

static choir_status add_host_kernel(const chi_kernel_spec *spec)
{
	const choir_kernel_table table = { .operation = spec->operation,
		.kind = "gpu",
		.name = "host",
		.user = spec->operation,
		.run = queue_on_host };
	// Updates read the gate in device memory.
	if (chi_kernel_is_update(spec->operation) || strcmp(spec->operation, "update_gate") == 0)
		return CHOIR_OK;
	return chi_kernel_add_dtypes(table, spec->dtypes);
}

// The library's kernels win ties.
choir_status chi_cuda_kernels_add(void)
{
	const choir_cuda_plugin *plugin = chi_cuda_plugin();
	const choir_kernel_table *cuda;
	chi_kernel_list plain;
	if (plugin == NULL)
		return CHOIR_OK;
	for (size_t i = 0; (cuda = plugin->kernel(i)) != NULL; i++)
		CHOIR_TRY(chi_kernel_add_builtin(cuda));
	for (size_t index = 0; (plain = chi_plain_list(index)).count > 0; index++)
		for (size_t i = 0; i < plain.count; i++)
			CHOIR_TRY(add_host_kernel(&plain.specs[i]));
	return CHOIR_OK;
}
