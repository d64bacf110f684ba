// cuBLASLt on the stand-in: one product at a time, in the order of k, as a task of the stream. It
// reports a workspace that is smaller than the algorithm asked for, memory that the layouts go
// beyond, and an algorithm of another problem.
#include "standin.h"

#include "../../../cuda/half.h"

#include <cublasLt.h>

#include <cmath>
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
	uint32_t schemes, aligned[4]; // of a, b, c and the result
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
	return make(p, "cublasLtMatmulPreferenceCreate", { 0, 7, { 256, 256, 256, 256 } });
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
	delete p;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
		cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes)
{
	switch (attribute) {
	case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
		return take(&p->workspace, value, bytes);
	case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
		return take(&p->schemes, value, bytes);
	default:
		return take(
				&p->aligned[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
	}
}

// What an algorithm was chosen for.
static uint64_t problem_of(const standin_product *d, const standin_layout *a,
		const standin_layout *b, const standin_layout *to)
{
	uint64_t hash = 1469598103934665603u;
	const uint64_t all[] = { (uint64_t) d->compute, (uint64_t) d->transpose_a,
		(uint64_t) d->transpose_b, (uint64_t) d->epilogue, a->rows, a->cols, b->rows, b->cols,
		to->rows, to->cols, (uint64_t) to->batch, (uint64_t) to->type, (uint64_t) a->type,
		(uint64_t) a->ld, (uint64_t) b->ld, (uint64_t) to->ld, (uint64_t) a->offset,
		(uint64_t) b->offset };
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
	for (int i = 0; i < 4; i++)
		results[0].algo.data[2 + i] = p->aligned[i];
	*found = 1;
	return CUBLAS_STATUS_SUCCESS;
}

float standin_tf32(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	if (std::isfinite(x))
		bits = (bits + 0xfff + (bits >> 13 & 1)) & ~(uint32_t) 0x1fff;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static double load(cudaDataType_t type, const void *p, int64_t i)
{
	switch (type) {
	case CUDA_R_64F:
		return ((const double *) p)[i];
	case CUDA_R_16F:
		return (double) ((const choir_cuda::f16 *) p)[i];
	case CUDA_R_16BF:
		return (double) ((const choir_cuda::bf16 *) p)[i];
	default:
		return (double) ((const float *) p)[i];
	}
}

static void store(cudaDataType_t type, void *p, int64_t i, double x)
{
	switch (type) {
	case CUDA_R_64F:
		((double *) p)[i] = x;
		break;
	case CUDA_R_16F:
		((choir_cuda::f16 *) p)[i] = (choir_cuda::f16) x;
		break;
	case CUDA_R_16BF:
		((choir_cuda::bf16 *) p)[i] = (choir_cuda::bf16) x;
		break;
	default:
		((float *) p)[i] = (float) x;
	}
}

// S: the type of sums.
template <class S>
static std::string multiply(const standin_product &d, S alpha, const void *a,
		const standin_layout &la, const void *b, const standin_layout &lb, S beta, const void *c,
		void *to, const standin_layout &lt)
{
	const int64_t k = (int64_t) (d.transpose_a == CUBLAS_OP_N ? la.cols : la.rows);
	const int64_t pa = d.transpose_a == CUBLAS_OP_N ? la.ld : 1;
	const int64_t ia = d.transpose_a == CUBLAS_OP_N ? 1 : la.ld;
	const int64_t pb = d.transpose_b == CUBLAS_OP_N ? 1 : lb.ld;
	const int64_t jb = d.transpose_b == CUBLAS_OP_N ? lb.ld : 1;
	const void *bias = (d.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 ? d.bias : NULL;
	const bool tf32 = d.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && la.type == CUDA_R_32F;
	const auto operand = [tf32](cudaDataType_t type, const void *from, int64_t at) {
		const double value = load(type, from, at);
		return (S) (tf32 ? (double) standin_tf32((float) value) : value);
	};
	for (int32_t batch = 0; batch < lt.batch; batch++)
		for (int64_t j = 0; j < (int64_t) lt.cols; j++)
			for (int64_t i = 0; i < (int64_t) lt.rows; i++) {
				const int64_t x = batch * la.offset + i * ia, y = batch * lb.offset + j * jb;
				const int64_t put = batch * lt.offset + j * lt.ld + i;
				S sum = 0;
				for (int64_t p = 0; p < k; p++)
					sum += operand(la.type, a, x + p * pa) * operand(lb.type, b, y + p * pb);
				S value = alpha * sum;
				if (beta != 0)
					value += beta * (S) load(lt.type, c, put);
				if (bias != NULL)
					value += (S) load(lt.type, bias, i);
				const bool cut = (d.epilogue & CUBLASLT_EPILOGUE_RELU) != 0 && !(value > 0);
				store(lt.type, to, put, cut ? 0 : (double) value);
			}
	return std::string();
}

static size_t size_of(cudaDataType_t type)
{
	return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

static size_t bytes_of(const standin_layout *l)
{
	return ((size_t) (l->batch - 1) * (size_t) l->offset + (l->cols - 1) * (size_t) l->ld +
				   l->rows) *
			size_of(l->type);
}

// An operand of 16 bits may give a result of 32.
static bool types_fit(const standin_layout *a, const standin_layout *b, const standin_layout *to)
{
	return a->type == b->type &&
			(to->type == a->type || (to->type == CUDA_R_32F && size_of(a->type) == 2));
}

static void check_alignment(const cublasLtMatmulAlgo_t *algo, const void *const operands[4])
{
	for (int i = 0; i < 4; i++)
		if ((uintptr_t) operands[i] % algo->data[2 + i] != 0)
			standin_report("cublasLtMatmul: operand %d is not aligned to %d bytes, for which the "
						   "algorithm was chosen",
					i, (int) algo->data[2 + i]);
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
	if (ka != kb || m != lt->rows || n != lt->cols || !types_fit(la, lb, lt))
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
	const void *const operands[] = { a, b, c, to };
	check_alignment(algo, operands);
	std::vector<standin_reach> reach = { { a, false, true, bytes_of(la) },
		{ b, false, true, bytes_of(lb) }, { to, true, true, bytes_of(lt) } };
	if (algo->data[1] > 0)
		reach.push_back({ workspace, true, true, (size_t) algo->data[1] });
	const bool wide = lt->type == CUDA_R_64F;
	if ((d->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0)
		reach.push_back({ d->bias, false, true, lt->rows * size_of(lt->type) });
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
		return wide ? multiply<double>(product, wa, a, x, b, y, wb, c, to, z)
					: multiply<float>(product, sa, a, x, b, y, sb, c, to, z);
	});
	return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
