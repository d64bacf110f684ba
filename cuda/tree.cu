// The canonical tree on GPUs: each element is added in the tree's order, whoever adds it, so sums
// have the same bits for any number of GPUs and workers.
#include "collective.h"
#include "device_math.h"

namespace choir_cuda
{

enum { MAX_DEPTH = 16 };

template <class T> __global__ void tree_kernel(tree t, span<T> out, double divisor)
{
	EACH (i, out.count) {
		T stack[MAX_DEPTH];
		int top = 1;
		stack[0] = ((const T *) t.part[t.step[0]])[i]; // the first step takes a part
		for (int k = 1; k < t.steps; k++) {
			if (t.step[k] >= 0) {
				stack[top++] = ((const T *) t.part[t.step[k]])[i];
			} else {
				top--;
				stack[top - 1] =
						(T) op_add::of<real<T>>((real<T>) stack[top - 1], (real<T>) stack[top]);
			}
		}
		out.data[i] = divisor == 1 ? stack[0] : (T) ((real<T>) stack[0] / (real<T>) divisor);
	}
}

struct tree_sum {
	template <class T>
	static choir_status run(stream *s, const tree *t, void *out, int64_t count, double divisor)
	{
		return launch(s, grid_for(count), THREADS, tree_kernel<T>, *t, span<T>{ (T *) out, count },
				divisor);
	}
};

choir_status queue_tree(
		stream *s, choir_dtype dtype, const tree &t, void *out, int64_t count, double divisor)
{
	return size_of(dtype) == 2 ? for_float<tree_sum>(dtype, s, &t, out, count, divisor)
							   : for_number<tree_sum>(dtype, s, &t, out, count, divisor);
}

// Appends the steps that make the node over replicas [lo, hi) from the next parts. False: parts
// are missing.
static bool add_node(sum_plan *p, size_t *next, int lo, int hi)
{
	const std::vector<choir_partial_sum> &parts = p->parts;
	if (*next < parts.size() && parts[*next].lo == lo && parts[*next].hi == hi) {
		p->t.part[*next] = parts[*next].data;
		p->t.step[p->t.steps++] = (signed char) *next;
		(*next)++;
		return true;
	}
	if (hi - lo < 2 || *next >= parts.size() || parts[*next].lo != lo)
		return false;
	int half = 1;
	while (half * 2 < hi - lo)
		half *= 2;
	if (!add_node(p, next, lo, lo + half) || !add_node(p, next, lo + half, hi))
		return false;
	p->t.step[p->t.steps++] = -1;
	return true;
}

static int64_t share_for(int64_t elements, size_t owners)
{
	const int64_t each = (elements + (int64_t) owners - 1) / (int64_t) owners;
	return (each + SHARE - 1) / SHARE * SHARE;
}

choir_status make_plan(const cross *x, const slot *s, sum_plan *p)
{
	const choir_collective *c = s->c[0];
	size_t next = 0;
	p->size = size_of(c->dtype);
	p->t = {};
	for (int i = 0; i < x->group->members; i++) {
		const choir_collective *own = s->c[i];
		p->parts.insert(p->parts.end(), own->partial_sums, own->partial_sums + own->n);
		p->member.insert(p->member.end(), own->n, i);
		if (own->result != NULL)
			p->owners.push_back(i);
	}
	if (p->parts.size() > MAX_PARTS || !add_node(p, &next, 0, x->group->replicas) ||
			next != p->parts.size())
		return with.fail(CHOIR_INTERNAL, "%s: %zu partial sums do not make the sum of %d replicas",
				c->name, p->parts.size(), x->group->replicas);
	p->nobody = p->owners.empty();
	if (p->nobody)
		p->owners.push_back(0);
	p->share = share_for(c->elements, p->owners.size());
	return CHOIR_OK;
}

int64_t share_of(const sum_plan *p, const choir_collective *c, size_t k, int64_t *first)
{
	*first = (int64_t) k * p->share;
	const int64_t left = c->elements - *first;
	return left < 0 ? 0 : left < p->share ? left : p->share;
}

tree tree_at(const sum_plan *p, int64_t first)
{
	tree t = p->t;
	for (size_t i = 0; i < p->parts.size(); i++)
		t.part[i] = (const char *) t.part[i] + (size_t) first * p->size;
	return t;
}

} // namespace choir_cuda
