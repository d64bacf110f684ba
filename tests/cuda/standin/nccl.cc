// NCCL between the devices of one process. What is given to a group is one task on each device's
// stream. It runs when all devices that it talks to have come to theirs.
#include "state.h"

#include <nccl.h>

using namespace standin;

struct standin_clique {
	struct waiting {
		std::shared_ptr<meeting> at;
		std::shared_ptr<standin_stream> stream;
		uint64_t number;
		char *memory;
		size_t bytes;
	};
	// By who sends and who receives: what has no counterpart yet.
	std::map<std::pair<int, int>, std::deque<waiting>> sends, receives;
	std::map<meeting *, std::shared_ptr<meeting>> merged;
};

standin_clique *standin_clique_new(void)
{
	return new standin_clique;
}

// a and b are one from now on.
static std::shared_ptr<meeting> merge(
		standin_clique *c, std::shared_ptr<meeting> a, std::shared_ptr<meeting> b)
{
	if (a == b)
		return a;
	for (auto &k : b->members) {
		a->members.push_back(k);
		for (task &t : k.first->queue)
			if (t.number == k.second)
				t.meets = a;
	}
	a->copies.insert(a->copies.end(), b->copies.begin(), b->copies.end());
	a->open += b->open;
	for (auto *all : { &c->sends, &c->receives })
		for (auto &queue : *all)
			for (auto &w : queue.second)
				if (w.at == b)
					w.at = a;
	return a;
}

// Gives a message of a meeting its counterpart, or lets it wait for one. Returns the meeting of
// both.
static std::shared_ptr<meeting> match(standin_clique *c, std::shared_ptr<meeting> m, int rank,
		const standin_message &message, const standin_clique::waiting &own, const clock_of &before)
{
	const std::pair<int, int> way = message.sends ? std::make_pair(rank, message.peer)
												  : std::make_pair(message.peer, rank);
	auto &others = message.sends ? c->receives[way] : c->sends[way];
	if (others.empty()) {
		m->open++;
		(message.sends ? c->sends : c->receives)[way].push_back(own);
		return m;
	}
	const standin_clique::waiting w = others.front();
	others.pop_front();
	if (w.bytes != message.bytes)
		report_locked(format("NCCL: %zu bytes from rank %d to rank %d, which expects %zu",
				message.sends ? message.bytes : w.bytes, way.first, way.second,
				message.sends ? w.bytes : message.bytes));
	w.at->open--;
	m = merge(c, w.at, m);
	char *to = message.sends ? w.memory : own.memory;
	const char *from = message.sends ? own.memory : w.memory;
	m->copies.push_back(std::make_tuple(to, from, std::min(w.bytes, message.bytes)));
	// What the sender had queued before is before what the receiver queues next.
	if (message.sends) {
		join_clock(&w.stream->known, before);
	} else {
		clock_of theirs = w.stream->known;
		theirs[w.stream] = w.number - 1;
		join_clock(&own.stream->known, theirs);
	}
	return m;
}

cudaError_t standin_meet(cudaStream_t stream, standin_clique *clique, int rank,
		const std::vector<standin_message> &messages)
{
	lock_type lock(R().lock);
	cudaError_t error = enter("ncclGroupEnd");
	if (error != cudaSuccess)
		return leave(error);
	std::shared_ptr<standin_stream> s = find_stream(stream, "NCCL");
	if (s == NULL)
		return leave(cudaErrorInvalidResourceHandle);
	using_stream in(lock, s, "NCCL");
	task t;
	t.name = "NCCL";
	std::vector<end_of_copy> ends(messages.size());
	for (size_t i = 0; i < messages.size(); i++)
		if (!find_end(messages[i].memory, messages[i].bytes, !messages[i].sends, "NCCL", &ends[i],
					&t.uses) ||
				ends[i].of == NULL || ends[i].of->device != s->device) {
			report_locked("NCCL: a buffer that is not memory of the rank's device");
			return leave(cudaErrorInvalidValue);
		}
	std::shared_ptr<meeting> m = std::make_shared<meeting>();
	m->members.push_back({ s, s->submitted + 1 });
	t.meets = m;
	R().counts.library_calls++;
	clock_of own = s->known;
	own[s] = s->submitted;
	submit(s, std::move(t));
	const uint64_t number = s->submitted;
	for (size_t i = 0; i < messages.size(); i++)
		m = match(clique, m, rank, messages[i], { m, s, number, ends[i].at, messages[i].bytes },
				own);
	R().work.notify_all();
	return cudaSuccess;
}

struct standin_rank {
	std::shared_ptr<standin_clique> clique;
	int rank, ranks, device;
	bool aborted;
};

namespace
{
struct message {
	ncclComm_t comm;
	cudaStream_t stream;
	standin_message m;
};
thread_local int depth;
thread_local std::vector<message> group;
} // namespace

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices)
{
	if (standin_is_to_fail("ncclCommInitAll"))
		return ncclSystemError;
	std::shared_ptr<standin_clique> clique(standin_clique_new()); // until the last rank goes
	for (int i = 0; i < n; i++)
		comms[i] = new standin_rank{ clique, i, n, devices[i], false };
	return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	delete comm;
	return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	comm->aborted = true;
	return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
	depth++;
	return ncclSuccess;
}

// One kernel for each rank and stream.
ncclResult_t ncclGroupEnd(void)
{
	if (depth == 0)
		return ncclInvalidUsage;
	if (--depth > 0)
		return ncclSuccess;
	std::vector<message> all;
	all.swap(group);
	int before = 0;
	cudaGetDevice(&before);
	cudaError_t error = cudaSuccess;
	while (!all.empty() && error == cudaSuccess) {
		const ncclComm_t comm = all[0].comm;
		const cudaStream_t stream = all[0].stream;
		std::vector<standin_message> messages;
		for (size_t i = 0; i < all.size();)
			if (all[i].comm == comm && all[i].stream == stream) {
				messages.push_back(all[i].m);
				all.erase(all.begin() + (long) i);
			} else {
				i++;
			}
		cudaSetDevice(comm->device);
		error = standin_meet(stream, comm->clique.get(), comm->rank, messages);
	}
	cudaSetDevice(before);
	return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

static ncclResult_t add_message(bool sends, void *memory, size_t count, ncclDataType_t type,
		int peer, ncclComm_t comm, cudaStream_t stream)
{
	static const size_t sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8 };
	if (peer < 0 || peer >= comm->ranks)
		return ncclInvalidArgument;
	if (comm->aborted)
		return ncclInvalidUsage;
	if (count == 0)
		return ncclSuccess;
	const bool alone = depth == 0;
	if (alone)
		ncclGroupStart();
	group.push_back({ comm, stream, { sends, peer, memory, count * sizes[type] } });
	return alone ? ncclGroupEnd() : ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
		ncclComm_t comm, cudaStream_t stream)
{
	return add_message(true, (void *) (uintptr_t) from, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		cudaStream_t stream)
{
	return add_message(false, to, count, type, peer, comm, stream);
}

const char *ncclGetErrorString(ncclResult_t result)
{
	return result == ncclSuccess ? "no error" : "an error of NCCL";
}

ncclResult_t ncclGetVersion(int *version)
{
	*version = 22800;
	return ncclSuccess;
}
