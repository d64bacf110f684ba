// Copies and fills, as tasks of streams.
#include "state.h"

namespace standin
{

bool find_end(const void *p, size_t bytes, bool writes, const char *call, end_of_copy *e,
		std::vector<use> *uses)
{
	e->of = find_block(p);
	e->at = (char *) (uintptr_t) p;
	if (e->of == NULL && device_of(p) < 0)
		return true;
	if (e->of == NULL || bytes > e->of->bytes - (size_t) ((const char *) p - e->of->at)) {
		report_locked(format("%s of %zu bytes at %p, which are not all there", call, bytes, p));
		return false;
	}
	const size_t first = (size_t) ((const char *) p - e->of->at);
	e->at = e->of->inside + first;
	uses->push_back({ e->of, first, first + bytes, writes });
	return true;
}

static uint64_t hash_bytes(const void *p, size_t bytes)
{
	const unsigned char *c = (const unsigned char *) p;
	uint64_t hash = 1469598103934665603u;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ c[i]) * 1099511628211u;
	return hash;
}

// Whether a function of the host is queued, which may write pinned memory.
bool calls_host(const standin_stream *s)
{
	for (const task &t : s->queue)
		if (t.host)
			return true;
	return false;
}

// What the host must not read yet is made worthless, unless queued work has yet to read it.
static void spoil(const end_of_copy &to, size_t bytes)
{
	const size_t first = (size_t) (to.at - to.of->inside);
	for (const record &was : to.of->records)
		if (was.number > was.stream->finished && was.first < first + bytes && first < was.last)
			return;
	memset(to.at, 0xff, bytes);
}

} // namespace standin

using namespace standin;

// The work of a copy from pageable memory: CUDA copies it to a stage of its own, so the host's
// memory is free at once.
static std::function<std::string()> copy_stage(char *put, const char *get, size_t bytes)
{
	std::shared_ptr<std::vector<char>> stage =
			std::make_shared<std::vector<char>>(get, get + bytes);
	return [=] {
		memcpy(put, stage->data(), bytes);
		return std::string();
	};
}

static std::function<std::string()> copy_pinned(char *put, const char *get, size_t bytes)
{
	const uint64_t hash = hash_bytes(get, bytes);
	return [=] {
		memcpy(put, get, bytes);
		return hash_bytes(get, bytes) == hash
				? std::string()
				: "the host has changed pinned memory that it has yet to read";
	};
}

static std::function<std::string()> work_of_copy(const std::shared_ptr<standin_stream> &s,
		const end_of_copy &target, const end_of_copy &source, size_t bytes)
{
	char *put = target.at, *get = source.at;
	if (source.of == NULL)
		return copy_stage(put, get, bytes);
	if (source.of->device < 0 && !calls_host(s.get()))
		return copy_pinned(put, get, bytes);
	if (source.of->device >= 0 && target.of != NULL && target.of->device < 0) {
		const uint64_t number = s->submitted + 1;
		std::shared_ptr<block> of = target.of;
		return [=] {
			delivery d = { s, number, of, put, std::vector<char>(get, get + bytes) };
			lock_type lock(R().lock);
			R().deliveries.push_back(std::move(d));
			return std::string();
		};
	}
	return [=] {
		memmove(put, get, bytes);
		return std::string();
	};
}

cudaError_t cudaMemcpyAsync(
		void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
	(void) kind;
	BEGIN(cudaMemcpyAsync);
	runtime &r = R();
	std::shared_ptr<standin_stream> s = find_stream(stream, "cudaMemcpyAsync");
	if (s == NULL)
		return leave(cudaErrorInvalidResourceHandle);
	using_stream in(lock, s, "cudaMemcpyAsync");
	const cudaError_t error = check_stream(s, "cudaMemcpyAsync");
	if (error != cudaSuccess || bytes == 0)
		return leave(error);
	task t;
	t.name = "a copy";
	end_of_copy target, source;
	if (!find_end(to, bytes, true, "copy", &target, &t.uses) ||
			!find_end(from, bytes, false, "copy", &source, &t.uses))
		return leave(cudaErrorInvalidValue);
	r.counts.copies++;
	r.counts.copied += bytes;
	t.work = work_of_copy(s, target, source, bytes);
	if (target.of != NULL && target.of->device < 0)
		spoil(target, bytes);
	const bool stops = target.of == NULL; // pageable: CUDA lets the host wait
	submit(s, std::move(t));
	const uint64_t number = s->submitted;
	if (stops) {
		r.counts.pageable_stops++;
		const clock_of known = s->known;
		await(lock, s, number);
		observe(s, number, known);
	}
	return leave(stops ? r.device[s->device].lost : cudaSuccess);
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
	BEGIN(cudaMemsetAsync);
	std::shared_ptr<standin_stream> s = find_stream(stream, "cudaMemsetAsync");
	if (s == NULL)
		return leave(cudaErrorInvalidResourceHandle);
	using_stream in(lock, s, "cudaMemsetAsync");
	const cudaError_t error = check_stream(s, "cudaMemsetAsync");
	if (error != cudaSuccess || bytes == 0)
		return leave(error);
	task t;
	t.name = "a fill";
	end_of_copy target;
	if (!find_end(to, bytes, true, "fill", &target, &t.uses) || target.of == NULL)
		return leave(cudaErrorInvalidValue);
	char *put = target.at;
	t.work = [=] {
		memset(put, byte, bytes);
		return std::string();
	};
	R().counts.fills++;
	submit(s, std::move(t));
	return cudaSuccess;
}

static void check_order(const use &u)
{
	for (const record &was : u.of->records)
		if (was.number > was.stream->observed && was.first < u.last && u.first < was.last &&
				(was.writes || u.writes))
			report_locked(format("race: the host %s what %s on %s %s, of %s, and has not waited",
					u.writes ? "writes" : "reads", was.name.c_str(),
					name_of(was.stream.get()).c_str(), was.writes ? "writes" : "reads",
					describe(u.of.get()).c_str()));
}

int standin_copy(void *to, const void *from, size_t bytes)
{
	lock_type lock(R().lock);
	end_of_copy target, source;
	std::vector<use> uses;
	if (!find_end(to, bytes, true, "a copy by the host", &target, &uses) ||
			!find_end(from, bytes, false, "a copy by the host", &source, &uses))
		return 0;
	for (const use &u : uses)
		check_order(u);
	memmove(target.at, source.at, bytes);
	return uses.empty() ? 1 : 2;
}
