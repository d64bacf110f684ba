// What calls of CUDA have in common: failures on demand, streams, and queueing tasks.
#include "state.h"

namespace standin
{

cudaError_t leave(cudaError_t error)
{
	if (error != cudaSuccess && error != cudaErrorNotReady)
		last_error = error;
	return error;
}

bool injected(const char *call)
{
	runtime &r = R();
	if (r.fail_nth == 0 || (!r.fail_call.empty() && r.fail_call != call) || --r.fail_nth > 0)
		return false;
	r.failed = true;
	return true;
}

cudaError_t enter(const char *call, bool may_fail)
{
	runtime &r = R();
	start_locked();
	if (in_host_function)
		report_locked(format("%s in a host function, where CUDA must not be called", call));
	if (may_fail && injected(call))
		return r.fail_error;
	return r.devices > 0 ? r.device[current_device].lost : cudaErrorNoDevice;
}

// A stream that is alive; NULL was told of.
std::shared_ptr<standin_stream> find_stream(cudaStream_t stream, const char *call)
{
	runtime &r = R();
	auto it = r.streams.find(stream);
	if (it != r.streams.end())
		return it->second;
	report_locked(format("%s: the stream %s", call,
			stream == NULL ? "is the legacy default stream, which waits for all others"
						   : "does not exist, or does not any more"));
	return nullptr;
}

using_stream::using_stream(
		lock_type &lock, const std::shared_ptr<standin_stream> &s, const char *call)
	: stream(s), mine(false)
{
	const pthread_t self = pthread_self(), other = s->inside.load();
	if (other != 0 && other != self) {
		report_locked(format("two threads use %s at once: %s while another is in %s",
				name_of(s.get()).c_str(), call, s->inside_call));
		return;
	}
	if (other == self)
		return;
	mine = true;
	s->inside.store(self);
	s->inside_call = call;
	if (R().delay > 0 && draw(4) == 0) { // so that others may come
		const auto nap = std::chrono::microseconds(draw(R().delay));
		lock.unlock();
		std::this_thread::sleep_for(nap);
		lock.lock();
	}
}

using_stream::~using_stream()
{
	if (mine)
		stream->inside.store(0);
}

cudaError_t check_stream(const std::shared_ptr<standin_stream> &s, const char *call)
{
	if (s->device == current_device)
		return R().device[s->device].lost;
	report_locked(format(
			"%s: %s while device %d is current", call, name_of(s.get()).c_str(), current_device));
	return cudaErrorInvalidResourceHandle;
}

void submit(const std::shared_ptr<standin_stream> &s, task t)
{
	runtime &r = R();
	t.number = ++s->submitted;
	t.queued = clock_type::now();
	t.not_before = t.queued + std::chrono::microseconds(t.other != NULL ? 0 : draw(r.delay + 1));
	for (const use &u : t.uses)
		note_use(s, t, u);
	if (s->queue.empty())
		r.all.push_back(s);
	s->queue.push_back(std::move(t));
	r.work.notify_all();
}

// What a pointer that is given to queued work leads to.
cudaError_t reach_one(
		const standin_stream *s, const char *name, const standin_reach &p, std::vector<use> *uses)
{
	runtime &r = R();
	const int d = device_of(p.pointer);
	std::shared_ptr<block> b = find_block(p.pointer);
	if (b == NULL) {
		if (d < 0 && !p.certain)
			return cudaSuccess; // no pointer at all
		report_locked(format("%s on %s: %p is %s", name, name_of(s).c_str(), p.pointer,
				d < 0 ? "memory of the host" : "no memory that was allocated, or it was freed"));
		return cudaErrorIllegalAddress;
	}
	if (b->device >= 0 && b->device != s->device && !r.device[s->device].peer[b->device]) {
		report_locked(format("%s on %s: %s, to which this device has no access", name,
				name_of(s).c_str(), describe(b.get()).c_str()));
		return cudaErrorIllegalAddress;
	}
	const size_t first = (size_t) ((const char *) p.pointer - b->at);
	if (p.bytes != SIZE_MAX && p.bytes > b->bytes - first) {
		report_locked(format("%s on %s: %zu bytes from %zu of %s", name, name_of(s).c_str(),
				p.bytes, first, describe(b.get()).c_str()));
		return cudaErrorIllegalAddress;
	}
	uses->push_back({ b, first, p.bytes == SIZE_MAX ? b->bytes : first + p.bytes, p.writes });
	return cudaSuccess;
}

cudaError_t queue_work(lock_type &lock, cudaStream_t stream, const char *name,
		const std::vector<standin_reach> &reach, std::function<std::string()> work)
{
	std::shared_ptr<standin_stream> s = find_stream(stream, name);
	if (s == NULL)
		return cudaErrorInvalidResourceHandle;
	using_stream in(lock, s, name);
	const cudaError_t error = check_stream(s, name);
	if (error != cudaSuccess)
		return error;
	task t;
	t.name = name;
	for (const standin_reach &p : reach) {
		const cudaError_t bad = reach_one(s.get(), name, p, &t.uses);
		if (bad != cudaSuccess) {
			R().device[s->device].lost = bad; // as when the kernel runs
			return cudaSuccess;
		}
	}
	t.work = std::move(work);
	submit(s, std::move(t));
	return cudaSuccess;
}

void await(lock_type &lock, const std::shared_ptr<standin_stream> &s, uint64_t number)
{
	runtime &r = R();
	want(s.get(), number);
	r.work.notify_all();
	while (s->finished < number)
		r.progress.wait(lock);
}

} // namespace standin
