// Products of matrices by cuBLASLt, or by a slow kernel of our own if cuBLASLt is missing.
// cuBLASLt sees a row-major matrix as its transpose, so it gets the operands exchanged.
#include "library.h"
#include "device_math.h"
#include "matmul.h"

namespace choir_cuda
{

enum { WORKSPACE = 4 << 20, ALIGNED = 256 };

product packed_product(choir_dtype dtype, int64_t m, int64_t n, int64_t k)
{
	product p = {};
	p.dtype = p.out_dtype = dtype;
	p.m = m;
	p.n = p.b_row = p.out_row = n;
	p.k = p.a_row = k;
	p.batch = 1;
	p.alpha = 1;
	return p;
}

// Descriptors of a product, which free themselves.
struct descriptors {
	const cublas_functions *lt = cublas();
	cublasLtMatmulDesc_t product = NULL;
	cublasLtMatrixLayout_t a = NULL, b = NULL, out = NULL;
	cublasLtMatmulPreference_t preference = NULL;
	~descriptors()
	{
		if (preference != NULL)
			lt->cublasLtMatmulPreferenceDestroy(preference);
		for (cublasLtMatrixLayout_t layout : { out, b, a })
			if (layout != NULL)
				lt->cublasLtMatrixLayoutDestroy(layout);
		if (product != NULL)
			lt->cublasLtMatmulDescDestroy(product);
	}
};

#define CALL_LT(d, function, ...) check((d)->lt->function(__VA_ARGS__), #function)

template <class V>
static choir_status set(descriptors *d, cublasLtMatmulDescAttributes_t attribute, const V &value)
{
	return CALL_LT(d, cublasLtMatmulDescSetAttribute, d->product, attribute, &value, sizeof value);
}

template <class V>
static choir_status set(descriptors *d, cublasLtMatrixLayout_t layout,
		cublasLtMatrixLayoutAttribute_t attribute, const V &value)
{
	return CALL_LT(d, cublasLtMatrixLayoutSetAttribute, layout, attribute, &value, sizeof value);
}

template <class V>
static choir_status set(
		descriptors *d, cublasLtMatmulPreferenceAttributes_t attribute, const V &value)
{
	return CALL_LT(d, cublasLtMatmulPreferenceSetAttribute, d->preference, attribute, &value,
			sizeof value);
}

static cudaDataType_t type_of(choir_dtype dtype)
{
	return dtype == CHOIR_F64	  ? CUDA_R_64F
			: dtype == CHOIR_F16  ? CUDA_R_16F
			: dtype == CHOIR_BF16 ? CUDA_R_16BF
								  : CUDA_R_32F;
}

static choir_status lay_out(descriptors *d, cublasLtMatrixLayout_t *layout, choir_dtype dtype,
		int64_t rows, int64_t columns, int64_t row, int64_t batch, int64_t apart)
{
	CHOIR_TRY(CALL_LT(d, cublasLtMatrixLayoutCreate, layout, type_of(dtype), (uint64_t) columns,
			(uint64_t) rows, row));
	if (batch == 1)
		return CHOIR_OK;
	CHOIR_TRY(set(d, *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, (int32_t) batch));
	return set(d, *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, apart);
}

// Sums are in f32 or f64.
static choir_status describe(const product *p, descriptors *d)
{
	const bool wide = p->dtype == CHOIR_F64, at = p->a_transposed, bt = p->b_transposed;
	const int32_t a = at ? CUBLAS_OP_T : CUBLAS_OP_N, b = bt ? CUBLAS_OP_T : CUBLAS_OP_N;
	const cublasComputeType_t compute = wide ? CUBLAS_COMPUTE_64F
			: p->tf32						 ? CUBLAS_COMPUTE_32F_FAST_TF32
											 : CUBLAS_COMPUTE_32F;
	const cublasLtEpilogue_t epilogue =
			p->bias != NULL ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
	CHOIR_TRY(CALL_LT(
			d, cublasLtMatmulDescCreate, &d->product, compute, wide ? CUDA_R_64F : CUDA_R_32F));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_DESC_TRANSA, b));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_DESC_TRANSB, a));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
	if (p->bias != NULL)
		CHOIR_TRY(set(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p->bias));
	CHOIR_TRY(lay_out(d, &d->a, p->dtype, at ? p->k : p->m, at ? p->m : p->k, p->a_row, p->batch,
			p->a_apart));
	CHOIR_TRY(lay_out(d, &d->b, p->dtype, bt ? p->n : p->k, bt ? p->k : p->n, p->b_row, p->batch,
			p->b_apart));
	return lay_out(d, &d->out, p->out_dtype, p->m, p->n, p->out_row, p->batch, p->out_apart);
}

// The largest power of two that divides an address, up to ALIGNED. An algorithm may need it.
static uint32_t alignment_of(const void *memory)
{
	const uintptr_t address = (uintptr_t) memory | ALIGNED;
	return (uint32_t) (address & (~address + 1));
}

static choir_status ask(
		device *dev, const product *p, descriptors *d, cublasLtMatmulHeuristicResult_t *chosen)
{
	int found = 0;
	CHOIR_TRY(CALL_LT(d, cublasLtMatmulPreferenceCreate, &d->preference));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (uint64_t) WORKSPACE));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p->b)));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p->a)));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p->out)));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p->out)));
	// A sum that is cut into parts goes by way of the workspace: in place its order would vary.
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
			(uint32_t) (CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
	CHOIR_TRY(CALL_LT(d, cublasLtMatmulAlgoGetHeuristic, dev->lt, d->product, d->b, d->a, d->out,
			d->out, d->preference, 1, chosen, &found));
	return found > 0 ? CHOIR_OK
					 : with.fail(CHOIR_UNSUPPORTED, "cuBLAS has no algorithm for this product");
}

// The shape and the alignment alone choose the algorithm, never a timing, so equal calls give
// equal bits.
static choir_status choose(
		device *dev, const product *p, descriptors *d, cublasLtMatmulHeuristicResult_t *chosen)
{
	const product_key key = { { p->dtype * 8 + p->out_dtype, p->m, p->n, p->k, p->batch, p->a_row,
			p->b_row, p->out_row, p->a_apart, p->b_apart, p->out_apart,
			p->tf32 * 8 + (p->bias != NULL) * 4 + p->a_transposed * 2 + p->b_transposed,
			(int64_t) alignment_of(p->a) << 32 | alignment_of(p->b) << 16 |
					alignment_of(p->out) } };
	std::lock_guard<std::mutex> hold(dev->lock);
	auto known = dev->algorithms.find(key);
	if (known != dev->algorithms.end()) {
		*chosen = known->second;
		return CHOIR_OK;
	}
	if (dev->lt == NULL)
		CHOIR_TRY(CALL_LT(d, cublasLtCreate, &dev->lt));
	CHOIR_TRY(ask(dev, p, d, chosen));
	dev->algorithms[key] = *chosen;
	return CHOIR_OK;
}

static choir_status multiply_by_cublas(stream *s, const product *p, void *workspace)
{
	on_gpu on(s->d->gpu);
	descriptors d;
	cublasLtMatmulHeuristicResult_t chosen;
	CHOIR_TRY(describe(p, &d));
	CHOIR_TRY(choose(s->d, p, &d, &chosen));
	const double alpha = p->alpha, zero = 0;
	const float alpha_f32 = (float) alpha, zero_f32 = 0;
	const bool wide = p->dtype == CHOIR_F64;
	s->dirty = true;
	return check_on(s,
			d.lt->cublasLtMatmul(s->d->lt, d.product, wide ? (const void *) &alpha : &alpha_f32,
					p->b, d.b, p->a, d.a, wide ? (const void *) &zero : &zero_f32, p->out, d.out,
					p->out, d.out, &chosen.algo, workspace, WORKSPACE, s->s),
			"cublasLtMatmul");
}

struct slow_product {
	template <class T> static choir_status run(const choir_kernel_call *c, const product *p)
	{
		const bool wide = p->out_dtype != p->dtype, at = p->a_transposed, bt = p->b_transposed;
		const matrix<T> a = { (const T *) p->a, at ? 1 : p->a_row, at ? p->a_row : 1, p->a_apart };
		const matrix<T> b = { (const T *) p->b, bt ? 1 : p->b_row, bt ? p->b_row : 1, p->b_apart };
		const result<T> out = { { wide ? NULL : (T *) p->out, wide ? (float *) p->out : NULL },
			p->out_row, p->out_apart, p->alpha };
		return launch_tiles<real<T>>(c, a, b, out, p->m, p->n, p->k, p->batch);
	}
};

choir_status multiply(const choir_kernel_call *c, product *p, void *workspace)
{
	p->tf32 = is_in_tf32(c);
	return cublas() != NULL ? multiply_by_cublas(stream_of(c->stream), p, workspace)
							: for_float<slow_product>(p->dtype, c, p);
}

size_t product_workspace()
{
	return cublas() != NULL ? (size_t) WORKSPACE : 0;
}

static size_t product_scratch(const choir_kernel_call *)
{
	return product_workspace();
}

static choir_status run_matmul(const choir_kernel_call *c)
{
	const choir_transposed which = attributes<choir_matmul_attributes>(c)->transposed;
	const choir_shape *a = &c->in[0].shape, *out = &c->out->shape, *b = &c->in[1].shape;
	const bool at = which == CHOIR_TRANSPOSED_A, bt = which == CHOIR_TRANSPOSED_B;
	const int64_t m = out->dim[out->rank - 2], n = out->dim[out->rank - 1];
	const int64_t k = at ? a->dim[a->rank - 2] : a->dim[a->rank - 1];
	product p = packed_product(c->in[0].dtype, m, n, k);
	p.out_dtype = c->out->dtype;
	p.a_transposed = at;
	p.b_transposed = bt;
	p.a_row = at ? m : k;
	p.b_row = bt ? k : n;
	p.batch = elements(*c->out) / (m * n);
	if (b->rank == 2 && !at) { // one second matrix: one product of all rows
		p.m *= p.batch;
		p.batch = 1;
	}
	p.a_apart = p.m * k;
	p.b_apart = b->rank == 2 ? 0 : k * n;
	p.out_apart = p.m * n;
	p.a = c->in[0].data;
	p.b = c->in[1].data;
	p.out = c->out->data;
	return multiply(c, &p, c->scratch);
}

// Adds the bias and applies the activation, where cuBLAS does not.
template <class T>
__global__ void finish_kernel(
		T *out, input<T> bias, bool biased, int64_t n, int64_t width, int activation)
{
	EACH (i, n) {
		real<T> x = (real<T>) out[i];
		if (biased)
			x += bias[i % width];
		if (activation == CHOIR_RELU)
			x = x > 0 ? x : x != x ? x : (real<T>) 0;
		else if (activation == CHOIR_TANH)
			x = hyperbolic_tangent(x);
		else if (activation == CHOIR_SIGMOID)
			x = sigmoid(x);
		out[i] = (T) x;
	}
}

struct finishing {
	template <class T>
	static choir_status run(
			const choir_kernel_call *c, const choir_buffer *bias, int64_t width, int activation)
	{
		const int64_t n = elements(*c->out);
		const input<T> none = { NULL, NULL };
		return launch_each(c, n, finish_kernel<T>, made<T>(c),
				bias != NULL ? input_of<T>(*bias) : none, bias != NULL, n, width, activation);
	}
};

choir_status finish(const choir_kernel_call *c, const choir_buffer *bias, int64_t width,
		choir_activation activation)
{
	if (bias == NULL && activation == CHOIR_LINEAR)
		return CHOIR_OK;
	return for_float<finishing>(c->out->dtype, c, bias, width, (int) activation);
}

static choir_status run_dense(const choir_kernel_call *c)
{
	const choir_activation activation = attributes<choir_dense_attributes>(c)->activation;
	const choir_shape *x = &c->in[0].shape;
	const choir_buffer *bias = c->n > 2 ? &c->in[2] : NULL;
	const int64_t n = c->in[1].shape.dim[1];
	product p = packed_product(c->in[0].dtype, elements(*c->out) / n, n, x->dim[x->rank - 1]);
	p.out_dtype = c->out->dtype;
	p.a = c->in[0].data;
	p.b = c->in[1].data;
	p.out = c->out->data;
	// cuBLAS adds a bias of out's dtype. Its ReLU gives 0 for a NAN, so the activation is ours.
	if (cublas() != NULL && bias != NULL && bias->dtype == p.out_dtype && p.dtype != CHOIR_F64) {
		p.bias = bias->data;
		bias = NULL;
	}
	CHOIR_TRY(multiply(c, &p, c->scratch));
	return finish(c, bias, n, activation);
}

int score_product(const choir_kernel_call *c)
{
	return c->in[1].dtype == c->in[0].dtype ? 1 : 0;
}

static const kernel kernels[] = {
	{ "matmul", FLOATS, run_matmul, product_scratch, score_product },
	{ "dense", FLOATS, run_dense, product_scratch, score_product },
	{ "matmul", F32, run_matmul, product_scratch, score_product, NULL, true },
	{ "dense", F32, run_dense, product_scratch, score_product, NULL, true },
};
const kernel_list product_kernels = list_of(kernels);

} // namespace choir_cuda
