// f32 kernels with fused multiply-adds: GELU, and attention with products that are too small for a
// library. Their bits differ from the plain kernels' bits.
#include "op/fma/fma.h"

#include "op/kernel/kernel_list.h"
#include "op/op.h"

#ifdef CHI_HAS_FMA_KERNELS
#include "base/instruction_set.h"

enum { SCORE = 20 }; // above oneDNN's

const chi_fma_loops *chi_fma_best(void)
{
#ifdef CHI_HAS_NEON_KERNELS
	return &chi_fma_neon; // part of every 64-bit Arm
#else
	if (chi_instruction_set_use() >= CHI_INSTRUCTION_SET_AVX512)
		return &chi_fma_avx512;
	return chi_instruction_set_use() >= CHI_INSTRUCTION_SET_AVX2 ? &chi_fma_avx2 : NULL;
#endif
}

static int score(const choir_kernel_call *call)
{
	(void) call;
	return chi_fma_best() != NULL ? SCORE : 0;
}

static choir_status run_gelu_tanh(const choir_kernel_call *call)
{
	chi_fma_best()->gelu_tanh(
			call->out->data, call->in[0].data, choir_shape_elements(&call->out->shape));
	return CHOIR_OK;
}

static choir_status run_gelu_tanh_gradient(const choir_kernel_call *call)
{
	chi_fma_best()->gelu_tanh_gradient(call->out->data, call->in[0].data, call->in[1].data,
			choir_shape_elements(&call->out->shape));
	return CHOIR_OK;
}

static choir_status run_gelu(const choir_kernel_call *call)
{
	chi_fma_best()->gelu(
			call->out->data, call->in[0].data, choir_shape_elements(&call->out->shape));
	return CHOIR_OK;
}

static choir_status run_gelu_gradient(const choir_kernel_call *call)
{
	chi_fma_best()->gelu_gradient(call->out->data, call->in[0].data, call->in[1].data,
			choir_shape_elements(&call->out->shape));
	return CHOIR_OK;
}

static const chi_kernel_spec specs[] = {
	{ "attention", CHI_F32, sizeof(choir_attention_attributes), chi_fma_attention,
			chi_fma_attention_scratch, score, NULL },
	{ "attention_gradient", CHI_F32, sizeof(choir_attention_attributes),
			chi_fma_attention_gradient, chi_fma_attention_gradient_scratch, score, NULL },
	{ "gelu_tanh", CHI_F32, 0, run_gelu_tanh, NULL, score, NULL },
	{ "gelu_tanh_gradient", CHI_F32, 0, run_gelu_tanh_gradient, NULL, score, NULL },
	{ "gelu", CHI_F32, 0, run_gelu, NULL, score, NULL },
	{ "gelu_gradient", CHI_F32, 0, run_gelu_gradient, NULL, score, NULL },
};

chi_kernel_list chi_fma_list(size_t index)
{
	const chi_kernel_list list = { specs, sizeof specs / sizeof specs[0] };
	return index == 0 ? list : (chi_kernel_list){ NULL, 0 };
}
#else
chi_kernel_list chi_fma_list(size_t index)
{
	(void) index;
	return (chi_kernel_list){ NULL, 0 };
}
#endif
