// Kernels that move elements without looking at them: broadcast, slices, concatenation, flip and
// transposition. All are one kernel with strides.
#include "launch.h"

namespace choir_cuda
{

// Operand 0 is the source and operand 1 the target; both begin at an element.
template <class U>
__global__ void move_kernel(
		const U *from, U *to, int64_t n, nest shape, int64_t from_first, int64_t to_first)
{
	EACH (i, n) {
		int64_t at[MAX_OPERANDS];
		shape.find(i, at);
		to[to_first + at[1]] = from[from_first + at[0]];
	}
}

struct movement {
	const choir_buffer *from, *to;
	nest shape;
	int64_t from_first, to_first;
};

struct move_as {
	template <class U> static choir_status run(const choir_kernel_call *c, const movement *m)
	{
		int64_t n = 1;
		for (int d = 0; d < m->shape.rank; d++)
			n *= m->shape.dim[d];
		if (n == 0)
			return CHOIR_OK;
		return launch_each(c, n, move_kernel<U>, (const U *) m->from->data, (U *) m->to->data, n,
				m->shape, m->from_first, m->to_first);
	}
};

static choir_status move(const choir_kernel_call *c, const movement *m)
{
	return for_size<move_as>(m->from->dtype, c, m);
}

static choir_status run_broadcast(const choir_kernel_call *c)
{
	movement m = { &c->in[0], c->out, nest_over(&c->out->shape), 0, 0 };
	set_broadcast(&m.shape, 0, &c->in[0].shape);
	set_packed(&m.shape, 1, &c->out->shape);
	return move(c, &m);
}

static choir_status run_slice(const choir_kernel_call *c)
{
	const auto *a = attributes<choir_slice_attributes>(c);
	movement m = { &c->in[0], c->out, nest_over(&c->out->shape), 0, 0 };
	m.from_first = a->first * inner_of(&c->in[0].shape, a->axis);
	set_packed(&m.shape, 0, &c->in[0].shape);
	set_packed(&m.shape, 1, &c->out->shape);
	return move(c, &m);
}

static choir_status run_slice_gradient(const choir_kernel_call *c)
{
	const auto *a = attributes<choir_slice_attributes>(c);
	const size_t bytes = (size_t) elements(*c->out) * size_of(c->out->dtype);
	movement m = { &c->in[0], c->out, nest_over(&c->in[0].shape), 0, 0 };
	m.to_first = a->first * inner_of(&c->out->shape, a->axis);
	CHOIR_TRY(fill(c->stream, c->out->data, 0, bytes));
	set_packed(&m.shape, 0, &c->in[0].shape);
	set_packed(&m.shape, 1, &c->out->shape);
	return move(c, &m);
}

static choir_status run_concat(const choir_kernel_call *c)
{
	const auto *a = attributes<choir_slice_attributes>(c);
	int64_t first = 0;
	for (size_t i = 0; i < c->n; i++) {
		movement m = { &c->in[i], c->out, nest_over(&c->in[i].shape), 0, 0 };
		m.to_first = first * inner_of(&c->out->shape, a->axis);
		set_packed(&m.shape, 0, &c->in[i].shape);
		set_packed(&m.shape, 1, &c->out->shape);
		CHOIR_TRY(move(c, &m));
		first += c->in[i].shape.dim[a->axis];
	}
	return CHOIR_OK;
}

// The source is read backwards from its last index of the axis.
static choir_status run_flip(const choir_kernel_call *c)
{
	const int axis = attributes<choir_flip_attributes>(c)->axis;
	movement m = { &c->in[0], c->out, nest_over(&c->out->shape), 0, 0 };
	set_packed(&m.shape, 0, &c->in[0].shape);
	set_packed(&m.shape, 1, &c->out->shape);
	m.from_first = (m.shape.dim[axis] - 1) * m.shape.stride[0][axis];
	m.shape.stride[0][axis] = -m.shape.stride[0][axis];
	return move(c, &m);
}

static choir_status run_transpose(const choir_kernel_call *c)
{
	const auto *a = attributes<choir_transpose_attributes>(c);
	movement m = { &c->in[0], c->out, nest_over(&c->out->shape), 0, 0 };
	nest own = {};
	set_packed(&own, 0, &c->in[0].shape);
	set_packed(&m.shape, 1, &c->out->shape);
	for (int d = 0; d < m.shape.rank; d++)
		m.shape.stride[0][d] = own.stride[0][a->axes[d]];
	return move(c, &m);
}

static const kernel kernels[] = {
	{ "broadcast", ALL, run_broadcast },
	{ "slice", ALL, run_slice },
	{ "slice_gradient", FLOATS, run_slice_gradient },
	{ "concat", ALL, run_concat },
	{ "flip", ALL, run_flip },
	{ "transpose", ALL, run_transpose },
};
const kernel_list move_kernels = list_of(kernels);

} // namespace choir_cuda
