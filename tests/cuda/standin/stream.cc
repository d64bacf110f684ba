// Streams, events and functions of the host.
#include "state.h"

using namespace standin;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	BEGIN(cudaStreamCreateWithFlags);
	if (flags != cudaStreamNonBlocking)
		report_locked("a stream that waits for the legacy default stream");
	std::shared_ptr<standin_stream> s = std::make_shared<standin_stream>();
	s->id = R().next_stream++;
	s->device = current_device;
	R().streams[s.get()] = s;
	R().ever.push_back(s);
	R().counts.streams++;
	*stream = s.get();
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	BEGIN(cudaStreamDestroy);
	std::shared_ptr<standin_stream> s = find_stream(stream, "cudaStreamDestroy");
	if (s == NULL)
		return leave(cudaErrorInvalidResourceHandle);
	using_stream in(lock, s, "cudaStreamDestroy");
	R().streams.erase(stream); // what is queued is done nevertheless
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	BEGIN(cudaStreamSynchronize);
	std::shared_ptr<standin_stream> s = find_stream(stream, "cudaStreamSynchronize");
	if (s == NULL)
		return leave(cudaErrorInvalidResourceHandle);
	const uint64_t number = s->submitted;
	const clock_of known = s->known;
	R().counts.host_waits++;
	await(lock, s, number);
	observe(s, number, known);
	return leave(R().device[s->device].lost);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	BEGIN(cudaStreamQuery);
	std::shared_ptr<standin_stream> s = find_stream(stream, "cudaStreamQuery");
	if (s == NULL)
		return leave(cudaErrorInvalidResourceHandle);
	want(s.get(), s->submitted);
	if (s->finished < s->submitted) {
		R().counts.queries++;
		R().work.notify_all();
		return cudaErrorNotReady;
	}
	R().counts.host_waits++;
	observe(s, s->submitted, s->known);
	return leave(R().device[s->device].lost);
}

static bool is_event(cudaEvent_t event, const char *call)
{
	if (R().events.count(event) > 0)
		return true;
	report_locked(format("%s: the event does not exist, or does not any more", call));
	return false;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	(void) flags;
	BEGIN(cudaStreamWaitEvent);
	std::shared_ptr<standin_stream> s = find_stream(stream, "cudaStreamWaitEvent");
	if (s == NULL || !is_event(event, "cudaStreamWaitEvent"))
		return leave(cudaErrorInvalidResourceHandle);
	using_stream in(lock, s, "cudaStreamWaitEvent");
	if (event->stream == NULL || event->stream == s)
		return cudaSuccess;
	join_clock(&s->known, event->known);
	clock_of own;
	own[event->stream] = event->number;
	join_clock(&s->known, own);
	task t;
	t.name = "a wait";
	t.other = event->stream;
	t.until = event->number;
	R().counts.stream_waits++;
	submit(s, std::move(t));
	if (s->wanted >= s->submitted)
		want(event->stream.get(), event->number);
	return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	BEGIN(cudaEventCreateWithFlags);
	if (flags != cudaEventDisableTiming)
		report_locked("an event with timing, which is slow");
	*event = new standin_event;
	(*event)->device = current_device;
	R().events.insert(*event);
	R().counts.events++;
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	BEGIN(cudaEventDestroy);
	if (!is_event(event, "cudaEventDestroy"))
		return leave(cudaErrorInvalidResourceHandle);
	R().events.erase(event);
	delete event;
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	BEGIN(cudaEventRecord);
	std::shared_ptr<standin_stream> s = find_stream(stream, "cudaEventRecord");
	if (s == NULL || !is_event(event, "cudaEventRecord"))
		return leave(cudaErrorInvalidResourceHandle);
	using_stream in(lock, s, "cudaEventRecord");
	const cudaError_t error = check_stream(s, "cudaEventRecord");
	if (error != cudaSuccess)
		return leave(error);
	if (event->device != s->device) {
		report_locked("cudaEventRecord: the event is another device's");
		return leave(cudaErrorInvalidResourceHandle);
	}
	event->stream = s;
	event->number = s->submitted;
	event->known = s->known;
	R().counts.records++;
	return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	BEGIN(cudaEventQuery);
	if (!is_event(event, "cudaEventQuery"))
		return leave(cudaErrorInvalidResourceHandle);
	if (event->stream == NULL)
		return cudaSuccess;
	want(event->stream.get(), event->number);
	if (event->stream->finished < event->number) {
		R().counts.queries++;
		R().work.notify_all();
		return cudaErrorNotReady;
	}
	R().counts.host_waits++;
	observe(event->stream, event->number, event->known);
	return leave(R().device[event->stream->device].lost);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	BEGIN(cudaEventSynchronize);
	if (!is_event(event, "cudaEventSynchronize"))
		return leave(cudaErrorInvalidResourceHandle);
	std::shared_ptr<standin_stream> s = event->stream;
	if (s == NULL)
		return cudaSuccess;
	const uint64_t number = event->number;
	const clock_of known = event->known;
	R().counts.host_waits++;
	await(lock, s, number);
	observe(s, number, known);
	return leave(R().device[s->device].lost);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *user)
{
	BEGIN(cudaLaunchHostFunc);
	std::shared_ptr<standin_stream> s = find_stream(stream, "cudaLaunchHostFunc");
	if (s == NULL)
		return leave(cudaErrorInvalidResourceHandle);
	using_stream in(lock, s, "cudaLaunchHostFunc");
	const cudaError_t error = check_stream(s, "cudaLaunchHostFunc");
	if (error != cudaSuccess)
		return leave(error);
	task t;
	t.name = "a host function";
	t.host = [=] { fn(user); };
	t.known = s->known;
	R().counts.host_functions++;
	submit(s, std::move(t));
	return cudaSuccess;
}
