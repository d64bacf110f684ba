// cuBLASLt on the stand-in: one product at a time, in the order of k, as a task of the stream. It
// reports a workspace that is smaller than the algorithm asked for, memory that the layouts go
// beyond, and an algorithm of another problem.
#include "standin.h"

#include <cublasLt.h>

#include <cstring>

struct standin_lt {
	int device;
};
struct standin_product {
	cublasComputeType_t compute;
	cudaDataType_t scale;
	int32_t transpose_a, transpose_b;
	cublasLtEpilogue_t epilogue;
	const void *bias;
};
struct standin_layout {
	cudaDataType_t type;
	uint64_t rows, cols;
	int64_t ld;
	int32_t batch;
	int64_t offset;
};
struct standin_preference {
	uint64_t workspace;
	uint32_t schemes;
};

template <class T> static cublasStatus_t make(T **out, const char *call, const T &value)
{
	*out = NULL;
	if (standin_is_to_fail(call))
		return CUBLAS_STATUS_ALLOC_FAILED;
	*out = new T(value);
	return CUBLAS_STATUS_SUCCESS;
}

template <class T> static cublasStatus_t take(T *to, const void *value, size_t bytes)
{
	if (bytes != sizeof *to)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(to, value, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
	int device = 0;
	cudaGetDevice(&device);
	return make(h, "cublasLtCreate", { device });
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
	delete h;
	return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
	return 130000;
}

cublasStatus_t cublasLtMatmulDescCreate(
		cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType_t scale)
{
	return make(d, "cublasLtMatmulDescCreate",
			{ compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, NULL });
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
	delete d;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
		cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
	switch (attribute) {
	case CUBLASLT_MATMUL_DESC_TRANSA:
		return take(&d->transpose_a, value, bytes);
	case CUBLASLT_MATMUL_DESC_TRANSB:
		return take(&d->transpose_b, value, bytes);
	case CUBLASLT_MATMUL_DESC_EPILOGUE:
		return take(&d->epilogue, value, bytes);
	case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
		return take(&d->bias, value, bytes);
	}
	return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatrixLayoutCreate(
		cublasLtMatrixLayout_t *l, cudaDataType_t type, uint64_t rows, uint64_t cols, int64_t ld)
{
	return make(l, "cublasLtMatrixLayoutCreate", { type, rows, cols, ld, 1, 0 });
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
	delete l;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
		cublasLtMatrixLayoutAttribute_t attribute, const void *value, size_t bytes)
{
	return attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? take(&l->batch, value, bytes)
														   : take(&l->offset, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
	return make(p, "cublasLtMatmulPreferenceCreate", { 0, 7 });
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
	delete p;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
		cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes)
{
	return attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
			? take(&p->workspace, value, bytes)
			: take(&p->schemes, value, bytes);
}

// What an algorithm was chosen for.
static uint64_t problem_of(const standin_product *d, const standin_layout *a,
		const standin_layout *b, const standin_layout *to)
{
	uint64_t hash = 1469598103934665603u;
	const uint64_t all[] = { (uint64_t) d->compute, (uint64_t) d->transpose_a,
		(uint64_t) d->transpose_b, (uint64_t) d->epilogue, a->rows, a->cols, b->rows, b->cols,
		to->rows, to->cols, (uint64_t) to->batch, (uint64_t) to->type };
	for (uint64_t x : all)
		hash = (hash ^ x) * 1099511628211u;
	return hash;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t d,
		cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
		cublasLtMatrixLayout_t to, cublasLtMatmulPreference_t p, int most,
		cublasLtMatmulHeuristicResult_t results[], int *found)
{
	(void) h, (void) c;
	*found = 0;
	if (standin_is_to_fail("cublasLtMatmulAlgoGetHeuristic"))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (most < 1)
		return CUBLAS_STATUS_INVALID_VALUE;
	if ((p->schemes & CUBLASLT_REDUCTION_SCHEME_INPLACE) != 0)
		standin_report("cublasLt: a reduction in place is allowed, whose bits may differ");
	memset(&results[0], 0, sizeof results[0]);
	results[0].algo.data[0] = problem_of(d, a, b, to);
	// As where the sum is cut: room for two results, if that is allowed.
	const uint64_t wanted = 2 * to->rows * to->cols * 8;
	results[0].workspaceSize = wanted <= p->workspace ? wanted : 0;
	results[0].algo.data[1] = results[0].workspaceSize;
	*found = 1;
	return CUBLAS_STATUS_SUCCESS;
}

template <class T>
static std::string multiply(const standin_product &d, T alpha, const T *a,
		const standin_layout &la, const T *b, const standin_layout &lb, T beta, const T *c, T *to,
		const standin_layout &lt)
{
	const int64_t k = (int64_t) (d.transpose_a == CUBLAS_OP_N ? la.cols : la.rows);
	const int64_t pa = d.transpose_a == CUBLAS_OP_N ? la.ld : 1;
	const int64_t ia = d.transpose_a == CUBLAS_OP_N ? 1 : la.ld;
	const int64_t pb = d.transpose_b == CUBLAS_OP_N ? 1 : lb.ld;
	const int64_t jb = d.transpose_b == CUBLAS_OP_N ? lb.ld : 1;
	const T *bias = (d.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 ? (const T *) d.bias : NULL;
	for (int32_t batch = 0; batch < lt.batch; batch++)
		for (int64_t j = 0; j < (int64_t) lt.cols; j++)
			for (int64_t i = 0; i < (int64_t) lt.rows; i++) {
				const T *x = a + batch * la.offset + i * ia, *y = b + batch * lb.offset + j * jb;
				T sum = 0;
				for (int64_t p = 0; p < k; p++)
					sum += x[p * pa] * y[p * pb];
				T *put = to + batch * lt.offset + j * lt.ld + i;
				T value = alpha * sum;
				if (beta != 0)
					value += beta * c[batch * lt.offset + j * lt.ld + i];
				if (bias != NULL)
					value += bias[i];
				*put = (d.epilogue & CUBLASLT_EPILOGUE_RELU) != 0 && !(value > 0) ? 0 : value;
			}
	return std::string();
}

static size_t bytes_of(const standin_layout *l)
{
	const size_t size = l->type == CUDA_R_64F ? 8 : 4;
	return ((size_t) (l->batch - 1) * (size_t) l->offset + (l->cols - 1) * (size_t) l->ld +
				   l->rows) *
			size;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha,
		const void *a, cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb,
		const void *beta, const void *c, cublasLtMatrixLayout_t lc, void *to,
		cublasLtMatrixLayout_t lt, const cublasLtMatmulAlgo_t *algo, void *workspace,
		size_t workspace_bytes, cudaStream_t stream)
{
	(void) lc;
	if (standin_is_to_fail("cublasLtMatmul"))
		return CUBLAS_STATUS_EXECUTION_FAILED;
	int device = 0;
	cudaGetDevice(&device);
	if (h->device != device)
		standin_report("cublasLtMatmul: a handle of device %d while device %d is current",
				h->device, device);
	const uint64_t ka = d->transpose_a == CUBLAS_OP_N ? la->cols : la->rows;
	const uint64_t kb = d->transpose_b == CUBLAS_OP_N ? lb->rows : lb->cols;
	const uint64_t m = d->transpose_a == CUBLAS_OP_N ? la->rows : la->cols;
	const uint64_t n = d->transpose_b == CUBLAS_OP_N ? lb->cols : lb->rows;
	if (ka != kb || m != lt->rows || n != lt->cols || la->type != lt->type || lb->type != lt->type)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (algo == NULL || algo->data[0] != problem_of(d, la, lb, lt)) {
		standin_report("cublasLtMatmul: the algorithm was chosen for another problem");
		return CUBLAS_STATUS_INVALID_VALUE;
	}
	if (workspace_bytes < algo->data[1] || (workspace == NULL && algo->data[1] > 0)) {
		standin_report("cublasLtMatmul: %zu bytes of workspace, where the algorithm needs %zu",
				workspace_bytes, (size_t) algo->data[1]);
		return CUBLAS_STATUS_INVALID_VALUE;
	}
	std::vector<standin_reach> reach = { { a, false, true, bytes_of(la) },
		{ b, false, true, bytes_of(lb) }, { to, true, true, bytes_of(lt) } };
	if (algo->data[1] > 0)
		reach.push_back({ workspace, true, true, (size_t) algo->data[1] });
	const bool wide = lt->type == CUDA_R_64F;
	if ((d->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0)
		reach.push_back({ d->bias, false, true, lt->rows * (wide ? 8u : 4u) });
	const standin_product product = *d;
	const standin_layout x = *la, y = *lb, z = *lt;
	double wa, wb;
	float sa, sb;
	memcpy(&wa, alpha, wide ? 8 : 4), memcpy(&wb, beta, wide ? 8 : 4);
	memcpy(&sa, alpha, 4), memcpy(&sb, beta, 4);
	const size_t spoiled = algo->data[1];
	const cudaError_t error = standin_queue(stream, "cublasLtMatmul", reach, [=] {
		if (spoiled > 0)
			memset(workspace, 0xff, spoiled);
		return wide ? multiply<double>(product, wa, (const double *) a, x, (const double *) b, y,
							  wb, (const double *) c, (double *) to, z)
					: multiply<float>(product, sa, (const float *) a, x, (const float *) b, y, sb,
							  (const float *) c, (float *) to, z);
	});
	return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
