// Products of matrices by cuBLASLt, or by a slow kernel of our own if cuBLASLt is missing.
// cuBLASLt sees a row-major matrix as its transpose, so it gets the operands exchanged.
#include "library.h"
#include "numbers.h"

namespace choir_cuda
{

enum { WORKSPACE = 4 << 20, TILE = 16, MAX_GRID = 65535 };

// out [m, n] = a [m, k] times b [k, n], for each matrix of a batch.
struct product {
	choir_dtype dtype;
	int64_t m, n, k, batch;
	int64_t a_apart, b_apart; // elements from one matrix to the next
	bool a_transposed, b_transposed;
	const void *a, *b, *bias;
	void *out;
	cublasLtEpilogue_t epilogue;
};

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

template <class V>
static choir_status set(descriptors *d, cublasLtMatmulDescAttributes_t attribute, const V &value)
{
	return check(
			d->lt->cublasLtMatmulDescSetAttribute(d->product, attribute, &value, sizeof value),
			"cublasLtMatmulDescSetAttribute");
}

template <class V>
static choir_status set(descriptors *d, cublasLtMatrixLayout_t layout,
		cublasLtMatrixLayoutAttribute_t attribute, const V &value)
{
	return check(d->lt->cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value),
			"cublasLtMatrixLayoutSetAttribute");
}

template <class V>
static choir_status set(
		descriptors *d, cublasLtMatmulPreferenceAttributes_t attribute, const V &value)
{
	return check(d->lt->cublasLtMatmulPreferenceSetAttribute(
						 d->preference, attribute, &value, sizeof value),
			"cublasLtMatmulPreferenceSetAttribute");
}

static choir_status lay_out(descriptors *d, cublasLtMatrixLayout_t *layout, const product *p,
		int64_t rows, int64_t columns, int64_t apart)
{
	const cudaDataType_t type = p->dtype == CHOIR_F64 ? CUDA_R_64F : CUDA_R_32F;
	CHOIR_TRY(check(d->lt->cublasLtMatrixLayoutCreate(
							layout, type, (uint64_t) columns, (uint64_t) rows, columns),
			"cublasLtMatrixLayoutCreate"));
	if (p->batch == 1)
		return CHOIR_OK;
	CHOIR_TRY(set(d, *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, (int32_t) p->batch));
	return set(d, *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, apart);
}

// f32 is computed in f32: TF32 is never allowed here.
static choir_status describe(const product *p, descriptors *d)
{
	const bool wide = p->dtype == CHOIR_F64;
	const int32_t a = p->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	const int32_t b = p->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	CHOIR_TRY(check(d->lt->cublasLtMatmulDescCreate(&d->product,
							wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
							wide ? CUDA_R_64F : CUDA_R_32F),
			"cublasLtMatmulDescCreate"));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_DESC_TRANSA, b));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_DESC_TRANSB, a));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_DESC_EPILOGUE, p->epilogue));
	if (p->bias != NULL)
		CHOIR_TRY(set(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p->bias));
	CHOIR_TRY(lay_out(d, &d->a, p, p->a_transposed ? p->k : p->m, p->a_transposed ? p->m : p->k,
			p->a_apart));
	CHOIR_TRY(lay_out(d, &d->b, p, p->b_transposed ? p->n : p->k, p->b_transposed ? p->k : p->n,
			p->b_apart));
	return lay_out(d, &d->out, p, p->m, p->n, p->m * p->n);
}

static choir_status ask(device *dev, descriptors *d, cublasLtMatmulHeuristicResult_t *chosen)
{
	int found = 0;
	CHOIR_TRY(check(d->lt->cublasLtMatmulPreferenceCreate(&d->preference),
			"cublasLtMatmulPreferenceCreate"));
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (uint64_t) WORKSPACE));
	// A sum that is cut into parts goes by way of the workspace: in place its order would vary.
	CHOIR_TRY(set(d, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
			(uint32_t) (CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
	CHOIR_TRY(check(d->lt->cublasLtMatmulAlgoGetHeuristic(dev->lt, d->product, d->b, d->a, d->out,
							d->out, d->preference, 1, chosen, &found),
			"cublasLtMatmulAlgoGetHeuristic"));
	return found > 0 ? CHOIR_OK
					 : with.fail(CHOIR_UNSUPPORTED, "cuBLAS has no algorithm for this product");
}

// The shape alone chooses the algorithm, never a timing, so equal calls give equal bits.
static choir_status choose(
		device *dev, const product *p, descriptors *d, cublasLtMatmulHeuristicResult_t *chosen)
{
	const product_key key((int) p->dtype, p->m, p->n, p->k, p->batch, p->b_apart,
			(int) p->epilogue * 4 + p->a_transposed * 2 + p->b_transposed);
	std::lock_guard<std::mutex> hold(dev->lock);
	auto known = dev->algorithms.find(key);
	if (known != dev->algorithms.end()) {
		*chosen = known->second;
		return CHOIR_OK;
	}
	if (dev->lt == NULL)
		CHOIR_TRY(check(d->lt->cublasLtCreate(&dev->lt), "cublasLtCreate"));
	CHOIR_TRY(ask(dev, d, chosen));
	dev->algorithms[key] = *chosen;
	return CHOIR_OK;
}

static choir_status multiply_by_cublas(const choir_kernel_call *c, const product *p)
{
	stream *s = stream_of(c->stream);
	on_gpu on(s->d->gpu);
	descriptors d;
	cublasLtMatmulHeuristicResult_t chosen;
	CHOIR_TRY(describe(p, &d));
	CHOIR_TRY(choose(s->d, p, &d, &chosen));
	const double one = 1, zero = 0;
	const float one_f32 = 1, zero_f32 = 0;
	const bool wide = p->dtype == CHOIR_F64;
	s->dirty = true;
	return check_on(s,
			d.lt->cublasLtMatmul(s->d->lt, d.product, wide ? (const void *) &one : &one_f32, p->b,
					d.b, p->a, d.a, wide ? (const void *) &zero : &zero_f32, p->out, d.out, p->out,
					d.out, &chosen.algo, c->scratch, WORKSPACE, s->s),
			"cublasLtMatmul");
}

// A block makes a tile of out from tiles of a and b, in the order of k.
template <class T>
__global__ void product_kernel(const T *a, const T *b, T *out, int64_t m, int64_t n, int64_t k,
		int64_t a_apart, int64_t b_apart, bool a_transposed, bool b_transposed)
{
	__shared__ T of_a[TILE][TILE], of_b[TILE][TILE];
	const int x = (int) threadIdx.x % TILE, y = (int) threadIdx.x / TILE;
	const int64_t row = (int64_t) blockIdx.y * TILE + y, column = (int64_t) blockIdx.x * TILE + x;
	const int64_t batch = (int64_t) blockIdx.z;
	a += batch * a_apart;
	b += batch * b_apart;
	T sum = 0;
	for (int64_t first = 0; first < k; first += TILE) {
		const int64_t ka = first + x, kb = first + y;
		of_a[y][x] = row >= m || ka >= k ? (T) 0
				: a_transposed			 ? a[ka * m + row]
										 : a[row * k + ka];
		of_b[y][x] = column >= n || kb >= k ? (T) 0
				: b_transposed				? b[column * k + kb]
											: b[kb * n + column];
		__syncthreads();
		for (int i = 0; i < TILE; i++)
			sum += of_a[y][i] * of_b[i][x];
		__syncthreads();
	}
	if (row < m && column < n)
		out[(batch * m + row) * n + column] = sum;
}

template <class T> static choir_status multiply_slowly(stream *s, const product *p)
{
	on_gpu on(s->d->gpu);
	const int64_t rows = (p->m + TILE - 1) / TILE, columns = (p->n + TILE - 1) / TILE;
	if (rows > MAX_GRID || p->batch > MAX_GRID)
		return with.fail(CHOIR_UNSUPPORTED,
				"%lld rows and %lld matrices are too many for a product without cuBLAS",
				(long long) p->m, (long long) p->batch);
	cudaLaunchConfig_t c = {};
	c.gridDim = dim3((unsigned) columns, (unsigned) rows, (unsigned) p->batch);
	c.blockDim = dim3(TILE * TILE);
	c.stream = s->s;
	s->dirty = true;
	return check_on(s->d,
			cudaLaunchKernelEx(&c, product_kernel<T>, (const T *) p->a, (const T *) p->b,
					(T *) p->out, p->m, p->n, p->k, p->a_apart, p->b_apart, p->a_transposed,
					p->b_transposed),
			"cudaLaunchKernelEx");
}

static choir_status multiply(const choir_kernel_call *c, const product *p)
{
	if (cublas() != NULL)
		return multiply_by_cublas(c, p);
	return p->dtype == CHOIR_F64 ? multiply_slowly<double>(stream_of(c->stream), p)
								 : multiply_slowly<float>(stream_of(c->stream), p);
}

static size_t product_scratch(const choir_kernel_call *)
{
	return cublas() != NULL ? (size_t) WORKSPACE : 0;
}

static choir_status run_matmul(const choir_kernel_call *c)
{
	const choir_transposed which = ((const choir_matmul_attributes *) c->attributes)->transposed;
	const choir_shape *a = &c->in[0].shape, *out = &c->out->shape, *b = &c->in[1].shape;
	product p = {};
	p.dtype = c->in[0].dtype;
	p.a_transposed = which == CHOIR_TRANSPOSED_A;
	p.b_transposed = which == CHOIR_TRANSPOSED_B;
	p.m = out->dim[out->rank - 2];
	p.n = out->dim[out->rank - 1];
	p.k = p.a_transposed ? a->dim[a->rank - 2] : a->dim[a->rank - 1];
	p.batch = elements(*c->out) / (p.m * p.n);
	if (b->rank == 2 && !p.a_transposed) { // one second matrix: one product of all rows
		p.m *= p.batch;
		p.batch = 1;
	}
	p.a_apart = p.m * p.k;
	p.b_apart = b->rank == 2 ? 0 : p.k * p.n;
	p.a = c->in[0].data;
	p.b = c->in[1].data;
	p.out = c->out->data;
	p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	return multiply(c, &p);
}

// Adds the bias and applies the activation, where cuBLAS does not.
template <class T>
__global__ void dense_tail_kernel(T *out, const T *bias, int64_t n, int64_t width, int activation)
{
	EACH (i, n) {
		T x = out[i];
		if (bias != nullptr)
			x += bias[i % width];
		if (activation == CHOIR_RELU)
			x = x > 0 ? x : x != x ? x : (T) 0;
		else if (activation == CHOIR_TANH)
			x = hyperbolic_tangent(x);
		else if (activation == CHOIR_SIGMOID)
			x = sigmoid(x);
		out[i] = x;
	}
}

template <class T>
static choir_status finish_dense(
		const choir_kernel_call *c, const product *p, const void *bias, choir_activation a)
{
	const int64_t n = elements(*c->out);
	return launch_each(
			c, n, dense_tail_kernel<T>, (T *) p->out, (const T *) bias, n, p->n, (int) a);
}

static choir_status run_dense(const choir_kernel_call *c)
{
	const choir_activation activation =
			((const choir_dense_attributes *) c->attributes)->activation;
	const choir_shape *x = &c->in[0].shape;
	const void *bias = c->n > 2 ? c->in[2].data : NULL;
	product p = {};
	p.dtype = c->in[0].dtype;
	p.n = c->in[1].shape.dim[1];
	p.k = x->dim[x->rank - 1];
	p.m = elements(*c->out) / p.n;
	p.batch = 1;
	p.a = c->in[0].data;
	p.b = c->in[1].data;
	p.out = c->out->data;
	// cuBLAS adds the bias in f32. Its ReLU gives 0 for a NAN, so the activation is ours.
	const bool fused = cublas() != NULL && p.dtype == CHOIR_F32 && bias != NULL;
	p.bias = fused ? bias : NULL;
	p.epilogue = fused ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
	CHOIR_TRY(multiply(c, &p));
	const void *rest = fused ? NULL : bias;
	if (rest == NULL && activation == CHOIR_LINEAR)
		return CHOIR_OK;
	return p.dtype == CHOIR_F32 ? finish_dense<float>(c, &p, rest, activation)
								: finish_dense<double>(c, &p, rest, activation);
}

static const kernel kernels[] = {
	{ "matmul", REAL, run_matmul, product_scratch, NULL },
	{ "dense", REAL, run_dense, product_scratch, NULL },
};
const kernel_list product_kernels = list_of(kernels);

} // namespace choir_cuda
