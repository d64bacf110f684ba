// Streams of CUDA, and the pinned staging buffers for copies from and to the host. A mark is an
// event; a mark with nothing queued since the last one is the last one. CUDA has no wait with a
// time limit, so a wait looks at the event again and again.
#include "plugin.h"

#include <chrono>
#include <new>
#include <thread>

namespace choir_cuda
{

choir_status take_staging(device *d, size_t bytes, staging *out)
{
	out->bytes = 4096;
	while (out->bytes < bytes)
		out->bytes *= 2;
	{
		std::lock_guard<std::mutex> hold(d->lock);
		for (size_t i = 0; i < d->idle.size(); i++)
			if (d->idle[i].bytes == out->bytes) {
				*out = d->idle[i];
				d->idle[i] = d->idle.back();
				d->idle.pop_back();
				return CHOIR_OK;
			}
	}
	return CALL(d, cudaHostAlloc, (void **) &out->memory, out->bytes, cudaHostAllocPortable);
}

void give_staging(device *d, staging s)
{
	std::lock_guard<std::mutex> hold(d->lock);
	d->idle.push_back(s);
}

void keep_staging(stream *s, staging g)
{
	std::lock_guard<std::mutex> hold(s->lock);
	s->stagings.push_back({ s->marked + 1, g });
}

void set_host_failure(host_failure *f, choir_status status, const char *text)
{
	std::lock_guard<std::mutex> hold(f->lock);
	f->count++;
	f->status = status;
	f->text = text;
}

void note_operation(stream *s, const char *operation)
{
	std::lock_guard<std::mutex> hold(s->lock);
	if (s->operations.empty() || s->operations.back().second != operation ||
			s->operations.back().first != s->marked + 1)
		s->operations.push_back({ s->marked + 1, operation });
}

choir_status open_stream(void *self, void *state)
{
	CHOIR_TRY(check_process());
	device *d = device_of(self);
	on_gpu on(d->gpu);
	stream *s = new (std::nothrow) stream;
	if (s == NULL)
		return CHOIR_NO_MEMORY;
	s->d = d;
	s->failure = std::make_shared<host_failure>();
	s->follows.push_back({ s->failure, 0 });
	const choir_status status = CALL(d, cudaStreamCreateWithFlags, &s->s, cudaStreamNonBlocking);
	if (status == CHOIR_OK)
		*(stream **) state = s;
	else
		delete s;
	return status;
}

// Needs the stream's lock. Finds out which events are reached.
static cudaError_t look(stream *s)
{
	while (!s->pending.empty()) {
		const cudaError_t error = cudaEventQuery(s->pending.front().second);
		if (error != cudaSuccess)
			return error;
		s->reached = s->pending.front().first;
		s->spare.push_back(s->pending.front().second);
		s->pending.pop_front();
	}
	return cudaSuccess;
}

// Needs the stream's lock.
static void forget_done(stream *s)
{
	for (size_t i = 0; i < s->stagings.size();)
		if (s->stagings[i].first <= s->reached) {
			give_staging(s->d, s->stagings[i].second);
			s->stagings.erase(s->stagings.begin() + (long) i);
		} else {
			i++;
		}
	while (!s->operations.empty() && s->operations.front().first <= s->reached)
		s->operations.pop_front();
}

void close_stream(void *state)
{
	stream *s = stream_of(state);
	if (check_process() != CHOIR_OK)
		return; // CUDA's part is the parent's
	on_gpu on(s->d->gpu);
	(void) cudaStreamSynchronize(s->s);
	for (auto &p : s->pending)
		(void) cudaEventDestroy(p.second);
	for (cudaEvent_t e : s->spare)
		(void) cudaEventDestroy(e);
	for (auto &p : s->stagings)
		give_staging(s->d, p.second);
	(void) cudaStreamDestroy(s->s);
	(void) cudaGetLastError();
	delete s;
}

choir_status fill(void *state, void *to, int byte, size_t bytes)
{
	CHOIR_TRY(check_process());
	stream *s = stream_of(state);
	on_gpu on(s->d->gpu);
	s->dirty = true;
	return CALL(s->d, cudaMemsetAsync, to, byte, bytes, s->s);
}

// Needs the stream's lock.
static choir_status new_event(stream *s, cudaEvent_t *event)
{
	if (s->spare.empty())
		return CALL(s->d, cudaEventCreateWithFlags, event, cudaEventDisableTiming);
	*event = s->spare.back();
	s->spare.pop_back();
	return CHOIR_OK;
}

choir_status record_event(void *state, uint64_t *mark)
{
	CHOIR_TRY(check_process());
	stream *s = stream_of(state);
	on_gpu on(s->d->gpu);
	std::lock_guard<std::mutex> hold(s->lock);
	(void) look(s);
	forget_done(s);
	if (s->dirty) {
		cudaEvent_t event;
		CHOIR_TRY(new_event(s, &event));
		const choir_status status = CALL(s->d, cudaEventRecord, event, s->s);
		if (status != CHOIR_OK) {
			s->spare.push_back(event);
			return status;
		}
		s->pending.push_back({ ++s->marked, event });
		s->dirty = false;
	}
	*mark = s->marked;
	return CHOIR_OK;
}

static choir_status fail_mark(const char *slot, uint64_t mark, const stream *s)
{
	return with.fail(CHOIR_INVALID, "%s: mark %llu does not exist; the last one is %llu", slot,
			(unsigned long long) mark, (unsigned long long) s->marked);
}

void follow(stream *s, stream *other)
{
	std::lock_guard<std::mutex> hold_own(s->lock);
	for (const followed_stream &f : s->follows)
		if (f.failure == other->failure)
			return;
	std::lock_guard<std::mutex> hold(other->failure->lock);
	s->follows.push_back({ other->failure, other->failure->count });
}

choir_status wait_event(void *state, void *other_state, uint64_t mark)
{
	CHOIR_TRY(check_process());
	stream *s = stream_of(state), *other = stream_of(other_state);
	on_gpu on(s->d->gpu);
	if (s == other)
		return CHOIR_OK;
	follow(s, other);
	std::lock_guard<std::mutex> hold(other->lock);
	if (mark > other->marked)
		return fail_mark("wait_event", mark, other);
	for (auto &p : other->pending)
		if (p.first >= mark) {
			s->dirty = true;
			return CALL(s->d, cudaStreamWaitEvent, s->s, p.second, 0);
		}
	return CHOIR_OK;
}

// Needs the stream's lock. Returns a failure of the host's functions once.
static choir_status tell_failure(stream *s)
{
	for (followed_stream &f : s->follows) {
		std::lock_guard<std::mutex> hold(f.failure->lock);
		if (f.failure->count > f.told) {
			f.told = f.failure->count;
			return with.fail(f.failure->status, "%s", f.failure->text.c_str());
		}
	}
	return CHOIR_OK;
}

// Needs the stream's lock. True: the wait has ended, with *status.
static bool is_over(stream *s, uint64_t mark, choir_status *status)
{
	*status = CHOIR_OK;
	if (mark > s->marked) {
		*status = fail_mark("wait", mark, s);
		return true;
	}
	const cudaError_t error = mark <= s->reached ? cudaSuccess : look(s);
	forget_done(s);
	if (error != cudaSuccess && error != cudaErrorNotReady)
		*status = check_on(s->d, error, "wait");
	else if (mark <= s->reached)
		*status = tell_failure(s);
	else
		return false;
	return true;
}

// Needs the stream's lock.
static choir_status fail_late(const stream *s, uint64_t mark, double seconds)
{
	const bool known = !s->operations.empty() && s->operations.front().first <= mark;
	return with.fail(CHOIR_TIMEOUT, "wait: %s %s not done after %g s",
			known ? s->operations.front().second : "what was queued", known ? "is" : "was",
			seconds);
}

choir_status wait(void *state, uint64_t mark, double seconds)
{
	CHOIR_TRY(check_process());
	stream *s = stream_of(state);
	on_gpu on(s->d->gpu);
	const double begun = now();
	for (unsigned round = 0;; round++) {
		{
			std::lock_guard<std::mutex> hold(s->lock);
			choir_status status;
			if (is_over(s, mark, &status))
				return status;
			if (seconds >= 0 && now() - begun >= seconds)
				return fail_late(s, mark, seconds);
		}
		if (round > 100) // a product of some size takes tens of microseconds
			std::this_thread::sleep_for(std::chrono::microseconds(round > 400 ? 50 : 5));
	}
}

} // namespace choir_cuda
