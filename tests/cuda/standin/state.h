// The state of the stand-in: devices, blocks of memory, streams and their tasks. One mutex guards
// all of it. Functions that take no lock_type are called with the mutex held, unless they say
// otherwise.
#pragma once

#include "standin.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include <pthread.h>
#include <sys/mman.h>

namespace standin
{

enum { MOST_DEVICES = 16, PAGE = 4096, WARP = 32, MOST_THREADS = 1024 };
const size_t RESERVED = (size_t) 1 << 34; // addresses of a device, not memory
const size_t SHARED_MOST = 227 << 10; // bytes of dynamic shared memory

using clock_type = std::chrono::steady_clock;
using lock_type = std::unique_lock<std::mutex>;

struct block;
struct meeting;

// A part of memory that queued work uses.
struct use {
	std::shared_ptr<block> of;
	size_t first, last; // bytes, last is behind it
	bool writes;
};

struct task {
	uint64_t number = 0;
	std::string name;
	std::function<std::string()> work; // by the engine; a text: what went wrong
	std::function<void()> host; // or by a thread of its own
	std::shared_ptr<standin_stream> other; // or a wait for that stream's until
	uint64_t until = 0;
	std::shared_ptr<meeting> meets; // or a part of one, which all of its tasks do at once
	std::vector<use> uses;
	std::map<std::shared_ptr<standin_stream>, uint64_t>
			known; // of a host function: what is before it
	clock_type::time_point queued, not_before;
};

} // namespace standin

using clock_of = std::map<std::shared_ptr<standin_stream>, uint64_t>; // of each stream

struct standin_stream {
	int id = 0, device = 0;
	std::deque<standin::task> queue;
	uint64_t submitted = 0, finished = 0, observed = 0, wanted = 0;
	bool busy = false;
	clock_of known; // what was queued on others before what is queued here next
	std::atomic<pthread_t> inside{ 0 };
	const char *inside_call = "";
};

struct standin_event {
	int device = 0;
	std::shared_ptr<standin_stream> stream; // NULL: not recorded
	uint64_t number = 0;
	clock_of known;
};

namespace standin
{

// Tasks of several streams that run together, when each has come to the head of its queue.
struct meeting {
	std::vector<std::pair<std::shared_ptr<standin_stream>, uint64_t>> members;
	std::vector<std::tuple<char *, const char *, size_t>> copies;
	int open = 0; // messages without a counterpart
};

struct record {
	std::shared_ptr<standin_stream> stream;
	uint64_t number;
	size_t first, last;
	bool writes;
	std::string name;
};

// What has come from a device for the host's pinned memory. It is put there only when somebody has
// waited for it, or when queued work goes on from it: so who does not wait never finds it by luck.
struct delivery {
	std::shared_ptr<standin_stream> stream;
	uint64_t number;
	std::shared_ptr<block> of;
	char *to;
	std::vector<char> data;
};

struct block {
	int device = 0; // -1: pinned memory of the host
	char *at = nullptr, *inside = nullptr; // where programs, and where copies, see it
	size_t bytes = 0;
	bool freed = false;
	int open = 0;
	std::vector<record> records;
	char *first_page() const
	{
		return (char *) ((uintptr_t) at & ~(uintptr_t) (PAGE - 1));
	}
	size_t page_bytes() const
	{
		return ((uintptr_t) at + std::max<size_t>(bytes, 1) - (uintptr_t) first_page() + PAGE -
					   1) &
				~(size_t) (PAGE - 1);
	}
};

struct device_state {
	char *outside = nullptr, *inside = nullptr;
	size_t cursor = PAGE, used = 0;
	cudaError_t lost = cudaSuccess;
	bool peer[MOST_DEVICES] = {};
};

struct runtime {
	std::mutex lock;
	std::condition_variable work, progress;
	int devices = 4, driver = CUDART_VERSION;
	uint64_t seed = 1, random = 1;
	unsigned delay = 20;
	bool lazy = false, peers = true, abort_on_report = false, quiet = false;
	size_t memory = (size_t) 4 << 30;
	device_state device[MOST_DEVICES];
	std::map<uintptr_t, std::shared_ptr<block>> blocks; // by where programs see them
	std::map<standin_stream *, std::shared_ptr<standin_stream>> streams;
	std::set<standin_event *> events;
	std::vector<std::shared_ptr<standin_stream>> all; // those whose queues are not empty
	std::vector<std::shared_ptr<standin_stream>> ever; // clocks name them for ever
	int next_stream = 1;
	std::deque<delivery> deliveries;
	bool started = false, paused = false;
	unsigned reports = 0;
	std::string last_report;
	standin_counts counts = {};
	std::vector<uint64_t> launches[2]; // those of now and of before
	// Injection
	std::string fail_call;
	unsigned fail_nth = 0;
	cudaError_t fail_error = cudaSuccess;
	bool failed = false;
};

runtime &R();
extern thread_local int current_device;
extern thread_local cudaError_t last_error;
extern thread_local bool in_host_function;

// state.cc
uint64_t draw(uint64_t below);
uint64_t draw_alone(uint64_t below); // for the engine alone, without the mutex
void report_locked(const std::string &text);
std::string format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
std::string name_of(const standin_stream *s);
void start_locked();

// memory.cc
std::string describe(const block *b);
bool map_device(device_state *d);
int device_of(const void *p); // the device whose memory holds an address; -1: none
std::shared_ptr<block> find_block(const void *p);

// order.cc
void note_use(const std::shared_ptr<standin_stream> &s, const task &t, const use &u);
void deliver(const standin_stream *only, const block *of);
void observe(const std::shared_ptr<standin_stream> &s, uint64_t number, const clock_of &known);
void join_clock(clock_of *to, const clock_of &from);

// engine.cc
void take_faults();
void want(standin_stream *s, uint64_t number);
void serve(); // the engine's thread

// kernel.cc
void leave_kernel(); // after a jump out of it

// call.cc
cudaError_t leave(cudaError_t error);
bool injected(const char *call);
cudaError_t enter(const char *call, bool may_fail = true);
std::shared_ptr<standin_stream> find_stream(cudaStream_t stream, const char *call);
cudaError_t check_stream(const std::shared_ptr<standin_stream> &s, const char *call);
void submit(const std::shared_ptr<standin_stream> &s, task t);
cudaError_t queue_work(lock_type &lock, cudaStream_t stream, const char *name,
		const std::vector<standin_reach> &reach, std::function<std::string()> work);
void await(lock_type &lock, const std::shared_ptr<standin_stream> &s, uint64_t number);

// While this lives the calling thread uses the stream. CUDA would put two threads in some order,
// but Choir's tables forbid two threads.
struct using_stream {
	std::shared_ptr<standin_stream> stream;
	bool mine;
	using_stream(lock_type &lock, const std::shared_ptr<standin_stream> &s, const char *call);
	~using_stream();
};

// One end of a copy.
struct end_of_copy {
	std::shared_ptr<block> of; // NULL: pageable memory of the host
	char *at; // as copies see it
};

bool find_end(const void *p, size_t bytes, bool writes, const char *call, end_of_copy *e,
		std::vector<use> *uses);

// The beginning of a call of CUDA, which may be told to fail.
#define BEGIN(call) \
	lock_type lock(R().lock); \
	do { \
		const cudaError_t entered_ = enter(#call); \
		if (entered_ != cudaSuccess) \
			return leave(entered_); \
	} while (0)

} // namespace standin
