// Kernels with fused multiply-adds, whose bits differ from the plain kernels': GELU, and attention
// with products too small for a library.
#include "op/fma/fma.h"

#include "op/kernel/kernel_list.h"
#include "op/onednn/onednn.h"
#include "op/op.h"

#ifdef CHI_HAS_FMA_KERNELS
#include "base/instruction_set.h"

// Above oneDNN's, and above kernels through f32.
enum { SCORE = 20, NARROW_SCORE = 30 };

const chi_fma_loops *chi_fma_best(void)
{
#ifdef CHI_HAS_NEON_KERNELS
	return &chi_fma_neon;
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

static bool is_bf16(const choir_kernel_call *call)
{
	bool all = call->out->dtype == CHOIR_BF16;
	for (size_t i = 0; i < call->n; i++)
		all = all && call->in[i].dtype == CHOIR_BF16;
	return all;
}

static int score_bf16(const choir_kernel_call *call)
{
	return chi_fma_best() != NULL && is_bf16(call) ? NARROW_SCORE : 0;
}

// Only with oneDNN's bf16 kernels: workers compare whether they have those.
static int score_native(const choir_kernel_call *call)
{
	return chi_onednn_has_bf16() && chi_fma_best()->bf16_attention != NULL ? score_bf16(call) : 0;
}

static choir_status run_gelu(const choir_kernel_call *call)
{
	const bool *exact = call->user;
	chi_fma_best()->gelu(call->out->data, call->in[0].data, call->n > 1 ? call->in[1].data : NULL,
			choir_shape_elements(&call->out->shape), *exact, call->out->dtype == CHOIR_BF16);
	return CHOIR_OK;
}

static const bool is_exact = true, by_tanh = false;

enum { ATTRIBUTES = sizeof(choir_attention_attributes) };

static const chi_kernel_spec specs[] = {
	{ "attention", CHI_F32, ATTRIBUTES, chi_fma_attention, chi_fma_attention_scratch, score,
			NULL },
	{ "attention_gradient", CHI_F32, ATTRIBUTES, chi_fma_attention_gradient,
			chi_fma_attention_gradient_scratch, score, NULL },
	{ "gelu_tanh", CHI_F32, 0, run_gelu, NULL, score, &by_tanh },
	{ "gelu_tanh_gradient", CHI_F32, 0, run_gelu, NULL, score, &by_tanh },
	{ "gelu", CHI_F32, 0, run_gelu, NULL, score, &is_exact },
	{ "gelu_gradient", CHI_F32, 0, run_gelu, NULL, score, &is_exact },
	{ "attention", CHI_BF16, ATTRIBUTES, chi_fma_attention, chi_fma_attention_scratch,
			score_native, NULL },
	{ "attention_gradient", CHI_BF16, ATTRIBUTES, chi_fma_attention_gradient,
			chi_fma_attention_gradient_scratch, score_native, NULL },
	{ "gelu_tanh", CHI_BF16, 0, run_gelu, NULL, score_bf16, &by_tanh },
	{ "gelu_tanh_gradient", CHI_BF16, 0, run_gelu, NULL, score_bf16, &by_tanh },
	{ "gelu", CHI_BF16, 0, run_gelu, NULL, score_bf16, &is_exact },
	{ "gelu_gradient", CHI_BF16, 0, run_gelu, NULL, score_bf16, &is_exact },
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
