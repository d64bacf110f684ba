// Cross-device operations by NCCL, for GPUs that cannot show each other their memory. NCCL only
// moves bytes: the sums are made here, in the order of the canonical tree.
#include "collective.h"

namespace choir_cuda
{

enum { ALIGNMENT = 64 };

static choir_status check_nccl(ncclResult_t result, const char *what)
{
	if (result == ncclSuccess)
		return CHOIR_OK;
	return with.fail(CHOIR_IO, "%s: %s", what, nccl()->ncclGetErrorString(result));
}

#define CALL_NCCL(function, ...) check_nccl(nccl()->function(__VA_ARGS__), #function)

static choir_status send_bytes(
		cross *x, int from, const void *data, int to, void *memory, size_t bytes)
{
	CHOIR_TRY(CALL_NCCL(ncclSend, data, bytes, ncclInt8, to, x->comm[from], x->own[from]->s));
	return CALL_NCCL(ncclRecv, memory, bytes, ncclInt8, from, x->comm[to], x->own[to]->s);
}

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// Where others' parts begin in an owner's scratch memory.
static size_t received_at(const sum_plan *p, const choir_collective *c)
{
	return p->nobody ? aligned((size_t) c->elements * p->size) : 0;
}

// Each owner gets the others' parts of its share. The messages themselves order the streams.
static choir_status send_parts(cross *x, slot *s, const sum_plan *p)
{
	for (size_t k = 0; k < p->owners.size(); k++) {
		const int owner = p->owners[k];
		int64_t first;
		const size_t bytes = (size_t) share_of(p, s->c[0], k, &first) * p->size;
		size_t at = received_at(p, s->c[0]);
		for (size_t i = 0; i < p->parts.size() && bytes > 0; i++) {
			if (p->member[i] == owner)
				continue;
			const char *from = (const char *) p->parts[i].data + (size_t) first * p->size;
			CHOIR_TRY(send_bytes(
					x, p->member[i], from, owner, (char *) x->scratch[owner] + at, bytes));
			at += aligned(bytes);
		}
	}
	return CHOIR_OK;
}

// Each owner sends its share of the sum to the others.
static choir_status send_shares(cross *x, slot *s, const sum_plan *p)
{
	for (size_t k = 0; k < p->owners.size(); k++) {
		const int owner = p->owners[k];
		int64_t first;
		const size_t bytes = (size_t) share_of(p, s->c[0], k, &first) * p->size;
		const size_t at = (size_t) first * p->size;
		for (int other : p->owners)
			if (other != owner && bytes > 0)
				CHOIR_TRY(send_bytes(x, owner, (const char *) s->c[owner]->result + at, other,
						(char *) s->c[other]->result + at, bytes));
	}
	return CHOIR_OK;
}

static choir_status send_root(cross *x, slot *s, const sum_plan *)
{
	const choir_collective *c = s->c[0], *root = s->c[c->root];
	const size_t bytes = (size_t) c->elements * size_of(c->dtype);
	for (int i = 0; i < x->group->members; i++)
		if (s->c[i]->result != NULL && i != c->root)
			CHOIR_TRY(
					send_bytes(x, c->root, root->partial_sums[0].data, i, s->c[i]->result, bytes));
	return CHOIR_OK;
}

// All messages of a group are one operation of NCCL, so their order does not matter.
static choir_status send_group(cross *x, slot *s, const sum_plan *p,
		choir_status (*send)(cross *x, slot *s, const sum_plan *p))
{
	CHOIR_TRY(check_nccl(nccl()->ncclGroupStart(), "ncclGroupStart"));
	const choir_status status = send(x, s, p);
	const choir_status ended = check_nccl(nccl()->ncclGroupEnd(), "ncclGroupEnd");
	return status == CHOIR_OK ? ended : status;
}

static choir_status sum_received(cross *x, slot *s, const sum_plan *p, size_t k)
{
	const choir_collective *c = s->c[0];
	const int owner = p->owners[k];
	int64_t first;
	const int64_t count = share_of(p, c, k, &first);
	if (count == 0)
		return CHOIR_OK;
	size_t at = received_at(p, c);
	tree t = tree_at(p, first);
	for (size_t i = 0; i < p->parts.size(); i++) {
		if (p->member[i] == owner)
			continue;
		t.part[i] = (const char *) x->scratch[owner] + at;
		at += aligned((size_t) count * p->size);
	}
	char *out = (char *) (p->nobody ? x->scratch[owner] : s->c[owner]->result);
	return queue_tree(
			x->own[owner], c->dtype, t, out + (size_t) first * p->size, count, c->divisor);
}

static choir_status await_all(cross *x, slot *s)
{
	for (int i = 0; i < x->group->members; i++)
		CHOIR_TRY(await_member(x, s, i, i));
	return CHOIR_OK;
}

static choir_status all_done(cross *x, slot *s)
{
	for (int i = 0; i < x->group->members; i++)
		CHOIR_TRY(record_done(x, s, i));
	return CHOIR_OK;
}

static choir_status queue_sum(cross *x, slot *s)
{
	sum_plan p;
	CHOIR_TRY(make_plan(x, s, &p));
	const size_t room = aligned((size_t) p.share * p.size) * p.parts.size();
	for (int owner : p.owners)
		CHOIR_TRY(keep_scratch(x, owner, received_at(&p, s->c[0]) + room));
	CHOIR_TRY(await_all(x, s));
	CHOIR_TRY(send_group(x, s, &p, send_parts));
	for (size_t k = 0; k < p.owners.size(); k++)
		CHOIR_TRY(sum_received(x, s, &p, k));
	CHOIR_TRY(send_group(x, s, &p, send_shares));
	return all_done(x, s);
}

static choir_status queue_broadcast(cross *x, slot *s)
{
	const choir_collective *c = s->c[0], *root = s->c[c->root];
	CHOIR_TRY(await_all(x, s));
	CHOIR_TRY(send_group(x, s, NULL, send_root));
	if (root->result != NULL)
		CHOIR_TRY(copy_by(x, c->root, root->result, root->partial_sums[0].data,
				(size_t) c->elements * size_of(c->dtype)));
	return all_done(x, s);
}

static void warn_once()
{
	static std::once_flag once;
	std::call_once(once, [] {
		with.log(CHOIR_LOG_WARNING,
				"gpu: NCCL is missing (libnccl.so.2), and GPUs have no access to each other's "
				"memory; sums go through the host");
	});
}

// NCCL has one rank for each GPU.
static int score(const choir_group *group, choir_collective_kind kind, int64_t bytes)
{
	device *d[MAX_MEMBERS];
	if (!find_members(group, d))
		return 0;
	for (int i = 0; i < group->members; i++)
		for (int k = 0; k < i; k++)
			if (d[i]->gpu == d[k]->gpu)
				return 0;
	if (nccl() == NULL && cross_table.score(group, kind, bytes) == 0)
		warn_once();
	return nccl() != NULL ? 50 : 0;
}

static choir_status open(void *self, const choir_group *group)
{
	CHOIR_TRY(open_cross(self, group, queue_sum, queue_broadcast));
	cross *x = cross_of(self);
	int gpus[MAX_MEMBERS];
	for (int i = 0; i < group->members; i++)
		gpus[i] = x->d[i]->gpu;
	return CALL_NCCL(ncclCommInitAll, x->comm, group->members, gpus);
}

static choir_cross_device_ops_table make_table()
{
	choir_cross_device_ops_table t = cross_slots();
	t.name = "nccl";
	t.score = score;
	t.open = open;
	return t;
}

const choir_cross_device_ops_table nccl_table = make_table();

} // namespace choir_cuda
