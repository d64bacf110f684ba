// Steering and asking the stand-in: how late queued work is done, which call fails, what was
// found. From the environment, when the first call of CUDA is made:
//   STANDIN_DEVICES=4     how many devices there are (4)
//   STANDIN_DRIVER=13000  version of the driver; 0: none
//   STANDIN_MEMORY=4096   of a device, MiB
//   STANDIN_SEED=1        of all choices
//   STANDIN_DELAY=20      the longest wait before a task, microseconds
//   STANDIN_LAZY=1        work is done only when somebody waits for it, or after 5 ms
//   STANDIN_PEER=1        0: devices cannot see each other's memory
//   STANDIN_ABORT=0       1: a report ends the program
//   STANDIN_QUIET=0       1: reports are counted and not printed
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void standin_set(uint64_t seed, unsigned delay, int lazy);
// From now on: the nth failing call (1: the next one) fails with error; 0: none. Only calls of
// that name count unless it is NULL. Whether it did.
void standin_fail(const char *call, unsigned nth, int error);
int standin_failed(void);
// Rules that were broken so far, the text of the last, and forgetting them.
unsigned standin_reports(void);
const char *standin_last_report(void);
void standin_forget_reports(void);
// A device is lost: what is queued on it is not done, and every call returns the error.
void standin_lose(int device, int error);
// The sticky error of a device goes; a GPU has no such call.
void standin_revive(int device);
// Another process takes or, if negative, gives back bytes of a device's memory.
void standin_take_memory(int device, long long bytes);
// A copy at once, as MPI makes it: each end is memory of a device or of the host. 0: an end is not
// all there; 2: an end is a device's. A copy that queued work is to come before is reported.
int standin_copy(void *to, const void *from, size_t bytes);
// While paused, no queued work is done.
void standin_pause(int paused);

typedef struct {
	uint64_t kernels, blocks, copies, copied, fills, host_functions, records, stream_waits;
	uint64_t library_calls; // cuBLAS and so on
	uint64_t host_waits; // Synchronize, and queries that were answered with ready
	uint64_t queries; // those that were not
	uint64_t allocations, frees, streams, events;
	uint64_t pinned; // allocations of pinned memory
	uint64_t pageable_stops; // copies to pageable memory, for which CUDA stops the host
} standin_counts;
void standin_count(standin_counts *counts);
// Launches since the last call of this function, and those of them that are equal to the launch at
// the same place before that call: the same kernel, grid and arguments.
void standin_compare_launches(uint64_t *launches, uint64_t *equal);

#ifdef __cplusplus
}

#include <cuda_runtime.h>

#include <functional>
#include <string>

// For the libraries that stand beside the runtime: queues work on a stream. reach: as of a launch,
// but with bytes. work runs with that memory open, and returns a text that says what is wrong.
cudaError_t standin_queue(cudaStream_t stream, const char *name,
		const std::vector<standin_reach> &reach, std::function<std::string()> work);
// For NCCL: what one rank sends and receives in one kernel. It meets the others' of the same
// clique.
struct standin_message {
	bool sends;
	int peer;
	void *memory;
	size_t bytes;
};
struct standin_clique; // opaque: which messages wait for which
standin_clique *standin_clique_new(void);
cudaError_t standin_meet(cudaStream_t stream, standin_clique *clique, int rank,
		const std::vector<standin_message> &messages);
// To 11 significant bits, to nearest, ties to even.
float standin_tf32(float x);
void standin_report(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// Whether the call is to fail: for the libraries' own calls.
bool standin_is_to_fail(const char *call);
#endif
