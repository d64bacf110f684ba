// The only file that includes oneDNN's headers, version 2 or 3. Primitives use one thread, and the
// caller's scratchpad: threads would share the library's.
#include "op/onednn/onednn_primitive.h"

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/instruction_set.h"
#include "base/lock.h"
#include "op/onednn/onednn.h"
#include "trace/trace.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdio.h>

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t layout; // owned
typedef struct {
	const_dnnl_memory_desc_t desc;
} layout_ref; // borrowed
#else
#define dnnl_memory_desc_create_with_strides dnnl_memory_desc_init_by_strides
#define dnnl_memory_desc_create_with_tag dnnl_memory_desc_init_by_tag
typedef dnnl_memory_desc_t layout;
typedef struct {
	const dnnl_memory_desc_t *desc;
} layout_ref; // borrowed
#endif

struct chi_dnn {
	dnnl_stream_t stream;
	dnnl_primitive_t primitive;
	dnnl_primitive_t before, after; // of the weights; NULL: none
	dnnl_memory_t a, b, bias, out;
	dnnl_memory_t weights; // in oneDNN's layout, in scratch; NULL: use b or out
	dnnl_memory_t pad, reorder_pad;
	size_t weights_bytes, pad_bytes;
	int a_role, b_role, out_role;
	bool b_packed;
};

// "told" is the layout given to oneDNN.
typedef struct {
	layout a, b, bias, out;
	layout b_told, out_told;
	const layout *x, *filter, *y;
	layout hint_x, hint_filter; // of the forward pass, in the operands' dtype
	dnnl_dims_t stride, before, after; // zeros around x
	dnnl_dims_t apart; // dilation - 1
	dnnl_data_type_t operand, result; // of a and b, and of out
	dnnl_primitive_attr_t attr;
	dnnl_primitive_desc_t hint; // forward pass, for gradients
	dnnl_primitive_desc_t description;
} plan;

// Never freed: oneDNN's code cache needs it.
static dnnl_engine_t engine;
static chi_atomic32 have_engine;
static chi_mutex engine_lock = CHI_MUTEX_STATIC(CHI_RANK_OP, "onednn engine");

static dnnl_status_t make_engine(void)
{
	dnnl_status_t status = dnnl_success;
	if (chi_atomic32_load(&have_engine))
		return status;
	chi_mutex_lock(&engine_lock);
	if (!chi_atomic32_load(&have_engine)) {
		status = dnnl_engine_create(&engine, dnnl_cpu, 0);
		chi_atomic32_store(&have_engine, status == dnnl_success);
	}
	chi_mutex_unlock(&engine_lock);
	return status;
}

choir_status chi_limit_onednn(void)
{
	static const dnnl_cpu_isa_t limits[CHI_INSTRUCTION_SETS] = { dnnl_cpu_isa_sse41,
		dnnl_cpu_isa_avx2, dnnl_cpu_isa_avx512_core };
	const chi_instruction_set set = chi_instruction_set_use();
	if (!chi_instruction_set_has_more(set) || dnnl_set_max_cpu_isa(limits[set]) == dnnl_success)
		return CHOIR_OK;
	return choir_fail(CHOIR_STATE,
			"instruction set: \"%s\" is needed, but this process has "
			"already used oneDNN with all that the processor has",
			chi_instruction_set_name(set));
}

bool chi_onednn_has_bf16(void)
{
#if defined(__x86_64__)
	return chi_instruction_set_use() >= CHI_INSTRUCTION_SET_AVX512 &&
			__builtin_cpu_supports("avx512bf16");
#else
	return false;
#endif
}

bool chi_onednn_has_amx(void)
{
	const unsigned amx = dnnl_cpu_isa_avx512_core_amx;
	return chi_onednn_has_bf16() && ((unsigned) dnnl_get_effective_cpu_isa() & amx) == amx;
}

const char *chi_onednn_version(char text[CHI_KERNEL_LIBRARY])
{
	const dnnl_version_t *v = dnnl_version();
	snprintf(text, CHI_KERNEL_LIBRARY, "oneDNN %d.%d.%d (%.12s)", v->major, v->minor, v->patch,
			v->hash != NULL ? v->hash : "");
	return text;
}

// Present if oneDNN uses OpenMP.
int omp_get_max_threads(void) __attribute__((weak));
void omp_set_num_threads(int n) __attribute__((weak));

static int enter_one_thread(void)
{
	if (!omp_get_max_threads || !omp_set_num_threads)
		return 1;
	const int threads = omp_get_max_threads();
	if (threads != 1)
		omp_set_num_threads(1);
	return threads;
}

static void leave_one_thread(int threads)
{
	if (threads != 1)
		omp_set_num_threads(threads);
}

static choir_status status_of(dnnl_status_t status)
{
	switch (status) {
	case dnnl_success:
		return CHOIR_OK;
	case dnnl_unimplemented:
	case dnnl_invalid_arguments:
		return CHOIR_UNSUPPORTED;
	case dnnl_out_of_memory:
		return choir_fail(CHOIR_NO_MEMORY, "onednn: out of memory");
	default:
		return choir_fail(
				CHOIR_INTERNAL, "onednn: making a primitive gave status %d", (int) status);
	}
}

#define DNN_TRY(expr) \
	do { \
		dnnl_status_t try_status_ = (expr); \
		if (try_status_ != dnnl_success) \
			return try_status_; \
	} while (0)

#if DNNL_VERSION_MAJOR >= 3
static layout_ref ref(const layout *l)
{
	return (layout_ref){ l ? *l : NULL };
}

static void destroy(layout *l)
{
	if (*l)
		dnnl_memory_desc_destroy(*l);
}

static dnnl_status_t describe_matmul(plan *p, bool bias)
{
	return dnnl_matmul_primitive_desc_create(
			&p->description, engine, p->a, p->b_told, bias ? p->bias : NULL, p->out, p->attr);
}

static dnnl_status_t describe_forward(plan *p, dnnl_primitive_desc_t *out, const layout *x,
		const layout *filter, const layout *bias, dnnl_primitive_attr_t attr)
{
	return dnnl_convolution_forward_primitive_desc_create(out, engine, dnnl_forward_training,
			dnnl_convolution_direct, *x, *filter, ref(bias).desc, *p->y, p->stride, p->apart,
			p->before, p->after, attr);
}

static dnnl_status_t describe_input(plan *p)
{
	return dnnl_convolution_backward_data_primitive_desc_create(&p->description, engine,
			dnnl_convolution_direct, *p->x, *p->filter, *p->y, p->stride, p->apart, p->before,
			p->after, p->hint, p->attr);
}

static dnnl_status_t describe_filter(plan *p)
{
	return dnnl_convolution_backward_weights_primitive_desc_create(&p->description, engine,
			dnnl_convolution_direct, *p->x, *p->filter, NULL, *p->y, p->stride, p->apart,
			p->before, p->after, p->hint, p->attr);
}
#else
static layout_ref ref(const layout *l)
{
	return (layout_ref){ l };
}

static void destroy(layout *l)
{
	(void) l;
}

static dnnl_status_t describe_matmul(plan *p, bool bias)
{
	dnnl_matmul_desc_t d;
	DNN_TRY(dnnl_matmul_desc_init(&d, &p->a, &p->b_told, bias ? &p->bias : NULL, &p->out));
	return dnnl_primitive_desc_create(&p->description, &d, p->attr, engine, NULL);
}

static dnnl_status_t describe_forward(plan *p, dnnl_primitive_desc_t *out, const layout *x,
		const layout *filter, const layout *bias, dnnl_primitive_attr_t attr)
{
	dnnl_convolution_desc_t d;
	DNN_TRY(dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training,
			dnnl_convolution_direct, x, filter, bias, p->y, p->stride, p->apart, p->before,
			p->after));
	return dnnl_primitive_desc_create(out, &d, attr, engine, NULL);
}

static dnnl_status_t describe_input(plan *p)
{
	dnnl_convolution_desc_t d;
	DNN_TRY(dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, p->x,
			p->filter, p->y, p->stride, p->apart, p->before, p->after));
	return dnnl_primitive_desc_create(&p->description, &d, p->attr, engine, p->hint);
}

static dnnl_status_t describe_filter(plan *p)
{
	dnnl_convolution_desc_t d;
	DNN_TRY(dnnl_dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, p->x,
			p->filter, NULL, p->y, p->stride, p->apart, p->before, p->after));
	return dnnl_primitive_desc_create(&p->description, &d, p->attr, engine, p->hint);
}
#endif

static dnnl_status_t strided(layout *l, dnnl_data_type_t type, int rank, const dnnl_dims_t dim,
		const dnnl_dims_t stride)
{
	return dnnl_memory_desc_create_with_strides(l, rank, dim, type, stride);
}

static dnnl_status_t tagged(
		layout *l, dnnl_data_type_t type, int rank, const dnnl_dims_t dim, dnnl_format_tag_t tag)
{
	return dnnl_memory_desc_create_with_tag(l, rank, dim, type, tag);
}

static dnnl_status_t make_attr(dnnl_primitive_attr_t *attr)
{
	DNN_TRY(dnnl_primitive_attr_create(attr));
	return dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
}

// dim: batch, rows and columns, or those of the memory's transpose. batch 0: rank 2.
static dnnl_status_t matrix(
		layout *l, dnnl_data_type_t type, const int64_t dim[3], bool transposed)
{
	const int64_t batch = dim[0], rows = dim[1], columns = dim[2];
	const int64_t row = transposed ? 1 : columns, column = transposed ? rows : 1;
	if (batch > 0)
		return strided(l, type, 3, (dnnl_dims_t){ batch, rows, columns },
				(dnnl_dims_t){ rows * columns, row, column });
	return strided(l, type, 2, (dnnl_dims_t){ rows, columns }, (dnnl_dims_t){ row, column });
}

static dnnl_status_t plan_matmul(plan *p, const chi_dnn_problem *q)
{
	const int64_t a[] = { q->batch, q->m, q->k }, b[] = { q->b_batch, q->k, q->n };
	const int64_t out[] = { q->batch, q->m, q->n }, bias[] = { q->batch > 0, 1, q->n };
	if (q->a_row > 0)
		DNN_TRY(strided(
				&p->a, p->operand, 2, (dnnl_dims_t){ q->m, q->k }, (dnnl_dims_t){ 1, q->a_row }));
	else
		DNN_TRY(matrix(&p->a, p->operand, a, q->a_transposed));
	DNN_TRY(matrix(&p->b, p->operand, b, q->b_transposed));
	DNN_TRY(matrix(&p->out, p->result, out, false));
	if (q->bias)
		DNN_TRY(matrix(&p->bias, dnnl_f32, bias, false));
	if (q->b_packed)
		DNN_TRY(tagged(
				&p->b_told, p->operand, 2, (dnnl_dims_t){ q->k, q->n }, dnnl_format_tag_any));
	else
		DNN_TRY(matrix(&p->b_told, p->operand, b, q->b_transposed));
	return describe_matmul(p, q->bias);
}

// [kh, kw, c / groups, out] in memory; groups are goihw.
static dnnl_status_t plan_filter(
		const chi_dnn_problem *q, dnnl_data_type_t type, layout *given, layout *told)
{
	const int64_t c = q->c / q->groups, out = q->out / q->groups;
	const dnnl_dims_t plain = { q->out, q->c, q->kh, q->kw };
	const dnnl_dims_t grouped = { q->groups, out, c, q->kh, q->kw };
	const dnnl_dims_t stride = { out, 1, q->out, q->kw * c * q->out, c * q->out };

	if (q->groups == 1) {
		DNN_TRY(tagged(given, type, 4, plain, dnnl_hwio));
		return tagged(told, type, 4, plain, dnnl_format_tag_any);
	}
	DNN_TRY(strided(given, type, 5, grouped, stride));
	return tagged(told, type, 5, grouped, dnnl_format_tag_any);
}

static dnnl_status_t plan_hint(plan *p, const chi_dnn_problem *q)
{
	const dnnl_dims_t x = { q->images, q->c, q->h, q->w };
	layout unused = { 0 };
	DNN_TRY(tagged(&p->hint_x, p->operand, 4, x, dnnl_nhwc));
	const dnnl_status_t status = plan_filter(q, p->operand, &unused, &p->hint_filter);
	destroy(&unused);
	return status == dnnl_success
			? describe_forward(p, &p->hint, &p->hint_x, &p->hint_filter, NULL, NULL)
			: status;
}

// Memory is nhwc and hwio; oneDNN's dimensions are nchw and oihw. A filter in oneDNN's layout
// doubles the speed despite reorders; a matrix does not (measured).
static dnnl_status_t plan_convolution(plan *p, const chi_dnn_problem *q)
{
	const dnnl_dims_t x = { q->images, q->c, q->h, q->w }, y = { q->images, q->out, q->oh, q->ow };
	const dnnl_dims_t bias = { q->out };
	const bool of_input = q->kind == CHI_DNN_CONVOLUTION_INPUT;
	const bool of_filter = q->kind == CHI_DNN_CONVOLUTION_FILTER;
	p->stride[0] = p->stride[1] = q->stride;
	p->apart[0] = p->apart[1] = q->dilation - 1;
	p->before[0] = q->top;
	p->before[1] = q->left;
	p->after[0] = q->bottom;
	p->after[1] = q->right;
	p->x = of_input ? &p->out : &p->a;
	p->y = of_input ? &p->a : of_filter ? &p->b : &p->out;
	p->filter = of_filter ? &p->out_told : &p->b_told;
	const dnnl_data_type_t x_type = of_input ? p->result : p->operand;
	const dnnl_data_type_t y_type = of_input || of_filter ? p->operand : p->result;
	const dnnl_data_type_t filter_type = of_filter ? p->result : p->operand;
	DNN_TRY(tagged(of_input ? &p->out : &p->a, x_type, 4, x, dnnl_nhwc));
	DNN_TRY(tagged(of_input ? &p->a : of_filter ? &p->b : &p->out, y_type, 4, y, dnnl_nhwc));
	DNN_TRY(plan_filter(
			q, filter_type, of_filter ? &p->out : &p->b, of_filter ? &p->out_told : &p->b_told));
	if (q->bias)
		DNN_TRY(tagged(&p->bias, dnnl_f32, 1, bias, dnnl_x));
	if (q->kind == CHI_DNN_CONVOLUTION)
		return describe_forward(
				p, &p->description, p->x, p->filter, q->bias ? &p->bias : NULL, p->attr);
	DNN_TRY(plan_hint(p, q));
	return of_input ? describe_input(p) : describe_filter(p);
}

static void plan_free(plan *p)
{
	destroy(&p->a);
	destroy(&p->b);
	destroy(&p->bias);
	destroy(&p->out);
	destroy(&p->b_told);
	destroy(&p->out_told);
	destroy(&p->hint_x);
	destroy(&p->hint_filter);
	if (p->attr)
		dnnl_primitive_attr_destroy(p->attr);
	if (p->hint)
		dnnl_primitive_desc_destroy(p->hint);
	if (p->description)
		dnnl_primitive_desc_destroy(p->description);
}

static layout_ref asked(dnnl_primitive_desc_t description, dnnl_query_t what)
{
	return (layout_ref){ dnnl_primitive_desc_query_md(description, what, 0) };
}

static dnnl_status_t object(dnnl_memory_t *memory, layout_ref l)
{
	return dnnl_memory_create(memory, l.desc, engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t reorder(chi_dnn *d, dnnl_primitive_t *out, layout_ref from, layout_ref to,
		dnnl_primitive_attr_t attr)
{
	dnnl_primitive_desc_t description;
	DNN_TRY(dnnl_reorder_primitive_desc_create(
			&description, from.desc, engine, to.desc, engine, attr));
	dnnl_status_t status = dnnl_primitive_create(out, description);
	const layout_ref pad = asked(description, dnnl_query_scratchpad_md);
	const size_t bytes = dnnl_memory_desc_get_size(pad.desc);
	if (bytes > d->pad_bytes)
		d->pad_bytes = bytes;
	if (status == dnnl_success)
		status = object(&d->reorder_pad, pad);
	dnnl_primitive_desc_destroy(description);
	return status;
}

static dnnl_status_t make_weights(
		chi_dnn *d, const plan *p, const chi_dnn_problem *q, dnnl_primitive_attr_t attr)
{
	const bool after = q->kind == CHI_DNN_CONVOLUTION_FILTER;
	const layout_ref given = after ? ref(&p->out) : ref(&p->b);
	const layout_ref chosen =
			asked(p->description, after ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
	if (dnnl_memory_desc_equal(given.desc, chosen.desc))
		return dnnl_success;
	d->weights_bytes = dnnl_memory_desc_get_size(chosen.desc);
	DNN_TRY(object(&d->weights, chosen));
	return after ? reorder(d, &d->after, chosen, given, attr)
				 : reorder(d, &d->before, given, chosen, attr);
}

static void set_roles(chi_dnn *d, int32_t kind)
{
	d->a_role = kind == CHI_DNN_CONVOLUTION_INPUT ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC;
	d->b_role = kind == CHI_DNN_CONVOLUTION_FILTER ? DNNL_ARG_DIFF_DST : DNNL_ARG_WEIGHTS;
	d->out_role = kind == CHI_DNN_CONVOLUTION_INPUT ? DNNL_ARG_DIFF_SRC
			: kind == CHI_DNN_CONVOLUTION_FILTER	? DNNL_ARG_DIFF_WEIGHTS
													: DNNL_ARG_DST;
}

static dnnl_status_t fill(
		chi_dnn *d, const plan *p, const chi_dnn_problem *q, dnnl_primitive_attr_t reorder_attr)
{
	set_roles(d, q->kind);
	d->b_packed = q->b_packed;
	DNN_TRY(dnnl_stream_create(&d->stream, engine, dnnl_stream_default_flags));
	DNN_TRY(dnnl_primitive_create(&d->primitive, p->description));
	DNN_TRY(object(&d->a, ref(&p->a)));
	DNN_TRY(object(&d->b, ref(&p->b)));
	DNN_TRY(object(&d->out, ref(&p->out)));
	if (q->bias)
		DNN_TRY(object(&d->bias, ref(&p->bias)));
	const layout_ref pad = asked(p->description, dnnl_query_scratchpad_md);
	d->pad_bytes = dnnl_memory_desc_get_size(pad.desc);
	DNN_TRY(object(&d->pad, pad));
	return make_weights(d, p, q, reorder_attr);
}

// oneDNN plans for OpenMP's thread count, which must be one.
static dnnl_status_t make(chi_dnn *d, const chi_dnn_problem *q)
{
	plan p = { .operand = q->dtypes == CHI_DNN_F32 ? dnnl_f32 : dnnl_bf16,
		.result = q->dtypes == CHI_DNN_BF16 ? dnnl_bf16 : dnnl_f32 };
	dnnl_primitive_attr_t reorder_attr = NULL;
	dnnl_status_t status = make_attr(&p.attr);
	if (status == dnnl_success)
		status = q->kind == CHI_DNN_MATMUL ? plan_matmul(&p, q) : plan_convolution(&p, q);
	if (status == dnnl_success)
		status = make_attr(&reorder_attr);
	if (status == dnnl_success)
		status = fill(d, &p, q, reorder_attr);
	if (reorder_attr)
		dnnl_primitive_attr_destroy(reorder_attr);
	plan_free(&p);
	return status;
}

choir_status chi_dnn_new(const chi_dnn_problem *problem, chi_dnn **out)
{
	*out = NULL;
	dnnl_status_t status = make_engine();
	if (status != dnnl_success)
		return status_of(status);
	chi_dnn *d = chi_alloc(sizeof *d);
	CHOIR_TRY(chi_made(d));
	const int threads = enter_one_thread();
	// threads share oneDNN's code cache
	chi_mutex_lock(&engine_lock);
	status = make(d, problem);
	chi_mutex_unlock(&engine_lock);
	leave_one_thread(threads);
	if (status != dnnl_success) {
		chi_dnn_free(d);
		return status_of(status);
	}
	*out = d;
	return CHOIR_OK;
}

void chi_dnn_free(chi_dnn *d)
{
	if (!d)
		return;
	const dnnl_primitive_t primitives[] = { d->primitive, d->before, d->after };
	for (size_t i = 0; i < sizeof primitives / sizeof primitives[0]; i++)
		if (primitives[i])
			dnnl_primitive_destroy(primitives[i]);
	const dnnl_memory_t memories[] = { d->a, d->b, d->bias, d->out, d->weights, d->pad,
		d->reorder_pad };
	for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++)
		if (memories[i])
			dnnl_memory_destroy(memories[i]);
	if (d->stream)
		dnnl_stream_destroy(d->stream);
	chi_free(d);
}

// The reordered weights come before the scratchpad.
static size_t weights_scratch(const chi_dnn *d)
{
	return (d->weights_bytes + 63) & ~(size_t) 63;
}

size_t chi_dnn_scratch(const chi_dnn *d)
{
	return weights_scratch(d) + d->pad_bytes;
}

static dnnl_status_t point(dnnl_memory_t memory, const void *at)
{
	union {
		const void *read;
		void *handle;
	} pointer = { at };
	return memory ? dnnl_memory_set_data_handle(memory, pointer.handle) : dnnl_success;
}

static dnnl_status_t run_reorder(
		chi_dnn *d, dnnl_primitive_t primitive, dnnl_memory_t from, dnnl_memory_t to)
{
	const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to },
		{ DNNL_ARG_SCRATCHPAD, d->reorder_pad } };
	if (!primitive)
		return dnnl_success;
	chi_trace_begin(CHOIR_TRACE_COMPUTE, "reorder");
	const dnnl_status_t status = dnnl_primitive_execute(primitive, d->stream, 3, args);
	chi_trace_end();
	return status;
}

static dnnl_status_t run(chi_dnn *d, const chi_dnn_operands *o)
{
	char *pad = o->scratch ? (char *) o->scratch + weights_scratch(d) : NULL;
	DNN_TRY(point(d->a, o->a));
	DNN_TRY(point(d->b, o->b));
	DNN_TRY(point(d->bias, o->bias));
	DNN_TRY(point(d->out, o->out));
	DNN_TRY(point(d->weights, o->scratch));
	DNN_TRY(point(d->pad, pad));
	DNN_TRY(point(d->reorder_pad, pad));
	const dnnl_memory_t b = d->before ? d->weights : d->b, out = d->after ? d->weights : d->out;
	const dnnl_exec_arg_t args[] = { { d->a_role, d->a }, { d->b_role, b }, { d->out_role, out },
		{ DNNL_ARG_SCRATCHPAD, d->pad }, { DNNL_ARG_BIAS, d->bias } };
	if (!d->b_packed)
		DNN_TRY(run_reorder(d, d->before, d->b, d->weights));
	DNN_TRY(dnnl_primitive_execute(d->primitive, d->stream, d->bias ? 5 : 4, args));
	DNN_TRY(run_reorder(d, d->after, d->weights, d->out));
	return dnnl_stream_wait(d->stream);
}

static dnnl_status_t pack(chi_dnn *d, const chi_dnn_operands *o)
{
	DNN_TRY(point(d->b, o->b));
	DNN_TRY(point(d->weights, o->scratch));
	DNN_TRY(point(d->reorder_pad, o->scratch ? (char *) o->scratch + weights_scratch(d) : NULL));
	DNN_TRY(run_reorder(d, d->before, d->b, d->weights));
	return dnnl_stream_wait(d->stream);
}

static choir_status run_alone(dnnl_status_t step(chi_dnn *, const chi_dnn_operands *), chi_dnn *d,
		const chi_dnn_operands *operands)
{
	const int threads = enter_one_thread();
	const dnnl_status_t status = step(d, operands);
	leave_one_thread(threads);
	if (status == dnnl_success)
		return CHOIR_OK;
	return choir_fail(CHOIR_INTERNAL, "onednn: running a primitive gave status %d", (int) status);
}

choir_status chi_dnn_pack(chi_dnn *d, const chi_dnn_operands *operands)
{
	return run_alone(pack, d, operands);
}

choir_status chi_dnn_run(chi_dnn *d, const chi_dnn_operands *operands)
{
	return run_alone(run, d, operands);
}

choir_status chi_dnn_multiply(const chi_dnn_gemm *p)
{
	const int threads = enter_one_thread();
	const dnnl_status_t status = dnnl_sgemm(p->a.transposed ? 'T' : 'N',
			p->b.transposed ? 'T' : 'N', p->m, p->n, p->k, 1, p->a.data, p->a.row, p->b.data,
			p->b.row, p->accumulate ? 1 : 0, p->c, p->c_row);
	leave_one_thread(threads);
	if (status == dnnl_success)
		return CHOIR_OK;
	return choir_fail(CHOIR_INTERNAL, "onednn: sgemm gave status %d", (int) status);
}
