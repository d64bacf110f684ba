// oneDNN's kernels (op/kernel/suite_test.c compares them with plain kernels): their bits do not
// depend on the thread or the run; what they leave as it was; their cache; and allocations that
// fail.
#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "op/kernel_oracles.h"
#include "op/onednn/onednn.h"
#include "op/onednn/onednn_cache.h"
#include "tensor/tensor.h"
#include "test.h"

#include <math.h>
#include <string.h>

#ifdef CHI_HAS_ONEDNN
static void run(const char *operation, kernel_case *c, const void *attributes)
{
	const choir_status status =
			kernels_run(chi_onednn_list, operation, c->n, c->in, &c->out, attributes);
	if (status != CHOIR_OK)
		fail_msg("%s: %s: %s", operation, choir_status_name(status), choir_error());
}

// With rows of a shorter than a page, as long as one, and those with long sums: there are three
// ways, of which the second needs a primitive.
TEST(products_of_a_transposed_matrix)
{
	static const struct {
		int64_t m, n, k;
		bool primitive;
	} sizes[] = { { 1023, 5, 9, false }, { 1024, 5, 9, true }, { 1025, 5, 9, true },
		{ 1027, 18, 511, true }, { 1027, 18, 512, false }, { 1024, 16, 513, false } };
	uint64_t seed = 57;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		const int64_t m = sizes[i].m, n = sizes[i].n, k = sizes[i].k;
		kernel_case c = { .n = 2, .matmul.transposed = CHOIR_TRANSPOSED_A };
		c.in[0] = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(k, m));
		c.in[1] = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(k, n));
		c.out = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(m, n));
		kernels_fill(&c.in[0], &seed, -1, 1);
		kernels_fill(&c.in[1], &seed, -1, 1);
		chi_dnn_forget();
		run("matmul", &c, &c.matmul);
		assert_int_equal(chi_dnn_cached() > 0, sizes[i].primitive);
		kernel_case_check("matmul", &c, matmul_value);
		kernel_case_free(&c);
	}
	chi_dnn_forget();
}

TEST(empty_calls_are_left_to_others)
{
	choir_buffer in[2] = { kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3, 0)),
		kernels_buffer(CHOIR_F32, CHOIR_SHAPE(0, 2)) };
	choir_buffer out = kernels_buffer(CHOIR_F32, CHOIR_SHAPE(3, 2));
	const choir_matmul_attributes a = { 0 };
	assert_int_equal(kernels_run(chi_onednn_list, "matmul", 2, in, &out, &a), CHOIR_UNSUPPORTED);
	kernels_free(2, in);
	kernels_free(1, &out);
}

// One problem of each kind, of the sizes of a small CNN.
typedef struct {
	const char *operation;
	kernel_case c;
	const void *attributes;
	choir_buffer result;
	choir_status status;
} job;

static void run_job(void *arg)
{
	job *j = arg;
	j->status =
			kernels_run(chi_onednn_list, j->operation, j->c.n, j->c.in, &j->result, j->attributes);
}

static void in_threads(job *j, int n)
{
	enum { THREADS = 3 };
	chi_thread threads[THREADS] = { 0 };
	job jobs[THREADS];
	for (int i = 0; i < n; i++) {
		jobs[i] = *j;
		jobs[i].result = kernels_buffer(CHOIR_F32, j->c.out.shape);
		assert_int_equal(chi_thread_start(&threads[i], "kernel", run_job, &jobs[i]), CHOIR_OK);
	}
	for (int i = 0; i < n; i++) {
		chi_thread_join(&threads[i]);
		assert_int_equal(jobs[i].status, CHOIR_OK);
		assert_memory_equal(jobs[i].result.data, j->c.out.data,
				(size_t) choir_shape_elements(&j->c.out.shape) * sizeof(float));
		kernels_free(1, &jobs[i].result);
	}
}

TEST(bits_do_not_depend_on_threads_or_runs)
{
	uint64_t seed = 53;
	for (int i = 0; i < 5; i++) {
		job j = { 0 };
		kernel_case f;
		switch (i) {
		case 0:
			j = (job){ .operation = "matmul", .c = matmul_case(CHOIR_F32, &seed, true) };
			j.attributes = &j.c.matmul;
			break;
		case 1:
			j = (job){ .operation = "dense", .c = dense_case(CHOIR_F32, &seed, true) };
			j.attributes = &j.c.dense;
			break;
		case 2:
			j = (job){ .operation = "conv2d", .c = conv2d_case(CHOIR_F32, &seed, true) };
			break;
		case 3:
			f = conv2d_case(CHOIR_F32, &seed, true);
			j = (job){ .operation = "conv2d_gradient_input",
				.c = conv2d_gradient_input_case(&f, &seed) };
			break;
		default:
			f = conv2d_case(CHOIR_F32, &seed, true);
			j = (job){ .operation = "conv2d_gradient_filter",
				.c = conv2d_gradient_filter_case(&f, &seed) };
		}
		if (i >= 2)
			j.attributes = &j.c.conv2d;
		run(j.operation, &j.c, j.attributes);
		in_threads(&j, 1);
		in_threads(&j, 3);
		kernel_case_free(&j.c);
	}
}

// The host's setting for OpenMP is not ours to change.
int omp_get_max_threads(void) __attribute__((weak));
void omp_set_num_threads(int n) __attribute__((weak));

TEST(the_setting_of_openmp_is_put_back)
{
	if (!omp_get_max_threads || !omp_set_num_threads)
		skip();
	const int before = omp_get_max_threads();
	uint64_t seed = 54;
	kernel_case c = matmul_case(CHOIR_F32, &seed, false);
	for (int threads = 1; threads <= 3; threads++) {
		omp_set_num_threads(threads);
		chi_dnn_forget();
		run("matmul", &c, &c.matmul);
		assert_int_equal(omp_get_max_threads(), threads);
	}
	omp_set_num_threads(before);
	kernel_case_free(&c);
}

TEST(the_cache_remembers_and_forgets)
{
	const chi_dnn_problem first = { .kind = CHI_DNN_MATMUL, .m = 3, .n = 4, .k = 5 };
	chi_dnn *a, *b;
	chi_dnn_forget();
	assert_int_equal(chi_dnn_cached(), 0);
	assert_int_equal(chi_dnn_find(&first, &a), CHOIR_OK);
	const uint64_t allocations = chi_alloc_count();
	assert_int_equal(chi_dnn_find(&first, &b), CHOIR_OK);
	assert_ptr_equal(a, b);
	assert_int_equal(chi_alloc_count(), allocations);
	for (int64_t m = 1; m <= CHI_DNN_CACHE + 20; m++) {
		chi_dnn_problem p = first;
		p.m = m;
		assert_int_equal(chi_dnn_find(&p, &b), CHOIR_OK);
		assert_int_equal(chi_dnn_find(&first, &b), CHOIR_OK); // used, so it stays
		assert_ptr_equal(a, b);
	}
	assert_int_equal(chi_dnn_cached(), CHI_DNN_CACHE);
	chi_dnn_forget();
	assert_int_equal(chi_dnn_cached(), 0);
}

TEST(what_onednn_cannot_is_remembered)
{
	// A filter that is larger than its padded image.
	const chi_dnn_problem bad = { .kind = CHI_DNN_CONVOLUTION,
		.images = 1,
		.h = 2,
		.w = 2,
		.c = 1,
		.kh = 5,
		.kw = 5,
		.out = 1,
		.oh = 7,
		.ow = 7,
		.dilation = 1,
		.groups = 1,
		.stride = 1 };
	chi_dnn *d;
	chi_dnn_forget();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chi_dnn_find(&bad, &d), CHOIR_UNSUPPORTED);
		assert_null(d);
		assert_int_equal(chi_dnn_cached(), 1);
	}
	chi_dnn_forget();
}

static void in_a_fresh_thread(void *arg)
{
	const chi_dnn_problem p = { .kind = CHI_DNN_MATMUL, .m = 3, .n = 4, .k = 5 };
	chi_dnn *d;
	chi_error_clear();
	*(choir_status *) arg = chi_dnn_find(&p, &d);
	if (*(choir_status *) arg == CHOIR_OK)
		*(choir_status *) arg = CHOIR_END;
	else if (choir_error_status() != *(choir_status *) arg || !*choir_error())
		*(choir_status *) arg = CHOIR_INTERNAL;
}

TEST(every_allocation_may_fail)
{
	bool failed = true;
	for (uint64_t n = 1; failed; n++) {
		choir_status status = CHOIR_OK;
		chi_thread thread = { 0 };
		chi_alloc_fail(0, false);
		assert_int_equal(
				chi_thread_start(&thread, "kernel", in_a_fresh_thread, &status), CHOIR_OK);
		chi_thread_join(&thread);
		assert_int_equal(status, CHOIR_END); // what is made once is there now
		chi_alloc_fail(n, false);
		assert_int_equal(
				chi_thread_start(&thread, "kernel", in_a_fresh_thread, &status), CHOIR_OK);
		chi_thread_join(&thread);
		failed = chi_alloc_failed();
		chi_alloc_fail(0, false);
		assert_int_equal(status, failed ? CHOIR_NO_MEMORY : CHOIR_END);
	}
}

#else
int main(void)
{
	return 77; // skipped
}
#endif
