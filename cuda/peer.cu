// Cross-device operations over memory that GPUs show each other: an owner's kernel reads all
// partial sums where they are, and copies its share of the sum to the other members.
#include "collective.h"

namespace choir_cuda
{

choir_status await_member(cross *x, slot *s, int waiting, int joined)
{
	on_gpu on(x->d[waiting]->gpu);
	return CALL(x->d[waiting], cudaStreamWaitEvent, x->own[waiting]->s, s->joined[joined], 0);
}

choir_status record_done(cross *x, slot *s, int owner)
{
	on_gpu on(x->d[owner]->gpu);
	CHOIR_TRY(CALL(x->d[owner], cudaEventRecord, s->done[owner], x->own[owner]->s));
	s->works[owner] = true;
	return CHOIR_OK;
}

choir_status copy_by(cross *x, int member, void *to, const void *from, size_t bytes)
{
	on_gpu on(x->d[member]->gpu);
	if (bytes == 0)
		return CHOIR_OK;
	return CALL(
			x->d[member], cudaMemcpyAsync, to, from, bytes, cudaMemcpyDefault, x->own[member]->s);
}

// A full GPU gets back what libchoir's pool does not use.
static choir_status allocate(const cross *x, int member, size_t bytes, void **out)
{
	device *d = x->d[member];
	cudaError_t error = cudaMalloc(out, bytes);
	if (error == cudaErrorMemoryAllocation && with.release_unused(x->group->devices[member]))
		error = cudaMalloc(out, bytes);
	if (error != cudaErrorMemoryAllocation)
		return check_on(d, error, "cudaMalloc");
	(void) cudaGetLastError();
	return with.fail(CHOIR_NO_MEMORY, "gpu:%d: no memory for %zu bytes of a sum", d->index, bytes);
}

choir_status keep_scratch(cross *x, int member, size_t bytes)
{
	device *d = x->d[member];
	if (x->scratch_bytes[member] >= bytes)
		return CHOIR_OK;
	on_gpu on(d->gpu);
	CHOIR_TRY(CALL(d, cudaStreamSynchronize, x->own[member]->s));
	if (x->scratch[member] != NULL)
		CHOIR_TRY(CALL(d, cudaFree, x->scratch[member]));
	x->scratch[member] = NULL;
	x->scratch_bytes[member] = 0;
	CHOIR_TRY(allocate(x, member, bytes, &x->scratch[member]));
	x->scratch_bytes[member] = bytes;
	return CHOIR_OK;
}

static choir_status await_members(cross *x, slot *s, int owner)
{
	for (int i = 0; i < x->group->members; i++)
		CHOIR_TRY(await_member(x, s, owner, i));
	return CHOIR_OK;
}

static choir_status queue_share(cross *x, slot *s, const sum_plan *p, size_t k)
{
	const choir_collective *c = s->c[0];
	const int owner = p->owners[k];
	int64_t first;
	const int64_t count = share_of(p, c, k, &first);
	const size_t at = (size_t) first * p->size, bytes = (size_t) count * p->size;
	char *out = (char *) (p->nobody ? x->scratch[0] : s->c[owner]->result) + at;
	CHOIR_TRY(await_members(x, s, owner));
	if (count > 0)
		CHOIR_TRY(queue_tree(x->own[owner], c->dtype, tree_at(p, first), out, count, c->divisor));
	for (int other : p->owners)
		if (other != owner)
			CHOIR_TRY(copy_by(x, owner, (char *) s->c[other]->result + at, out, bytes));
	return record_done(x, s, owner);
}

static choir_status queue_sum(cross *x, slot *s)
{
	sum_plan p;
	CHOIR_TRY(make_plan(x, s, &p));
	if (p.nobody)
		CHOIR_TRY(keep_scratch(x, 0, (size_t) s->c[0]->elements * p.size));
	for (size_t k = 0; k < p.owners.size(); k++)
		CHOIR_TRY(queue_share(x, s, &p, k));
	return CHOIR_OK;
}

static choir_status queue_broadcast(cross *x, slot *s)
{
	const choir_collective *c = s->c[0], *root = s->c[c->root];
	const size_t bytes = (size_t) c->elements * size_of(c->dtype);
	CHOIR_TRY(await_members(x, s, c->root));
	for (int i = 0; i < x->group->members; i++)
		if (s->c[i]->result != NULL)
			CHOIR_TRY(copy_by(x, c->root, s->c[i]->result, root->partial_sums[0].data, bytes));
	return record_done(x, s, c->root);
}

static int score(const choir_group *group, choir_collective_kind, int64_t)
{
	device *d[MAX_MEMBERS];
	if (!find_members(group, d))
		return 0;
	for (int i = 0; i < group->members; i++)
		for (int k = 0; k < group->members; k++) {
			on_gpu on(d[i]->gpu); // the thread's own may be lost
			int can = d[i]->gpu == d[k]->gpu;
			if (!can && cudaDeviceCanAccessPeer(&can, d[i]->gpu, d[k]->gpu) != cudaSuccess)
				(void) cudaGetLastError();
			if (!can)
				return 0;
		}
	return 100;
}

static choir_status show_memory(int to, int from)
{
	on_gpu on(to);
	const cudaError_t error = cudaDeviceEnablePeerAccess(from, 0);
	if (error != cudaErrorPeerAccessAlreadyEnabled)
		return check(error, "cudaDeviceEnablePeerAccess");
	(void) cudaGetLastError();
	return CHOIR_OK;
}

static choir_status open(void *self, const choir_group *group)
{
	CHOIR_TRY(open_cross(self, group, queue_sum, queue_broadcast));
	cross *x = cross_of(self);
	for (int i = 0; i < group->members; i++)
		for (int k = 0; k < group->members; k++)
			if (x->d[i]->gpu != x->d[k]->gpu)
				CHOIR_TRY(show_memory(x->d[i]->gpu, x->d[k]->gpu));
	return CHOIR_OK;
}

static choir_cross_device_ops_table make_table()
{
	choir_cross_device_ops_table t = cross_slots();
	t.name = "peer";
	t.score = score;
	t.open = open;
	return t;
}

const choir_cross_device_ops_table cross_table = make_table();

} // namespace choir_cuda
