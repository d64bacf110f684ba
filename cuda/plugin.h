// What the files of libchoir-cuda share: failures, devices and streams. nvcc compiles these files
// for GPUs; a C++ compiler compiles them, unchanged, for the stand-in of CUDA in tests/cuda.
#pragma once

#include <choir/extend/cuda.h>
#include <choir/extend/cross_device_ops_table.h>
#include <choir/extend/kernel_table.h>

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace choir_cuda
{

// The functions of libchoir.
extern choir_cuda_argument with;

// A status for an error of CUDA or of a library, with a text that begins with what was called.
choir_status check(cudaError_t error, const char *what);
choir_status check(cublasStatus_t status, const char *what);
#define TRY(call) CHOIR_TRY(choir_cuda::check((call), #call))

// CHOIR_STATE in the child of a fork, in which CUDA does not work.
choir_status check_process();

// Makes a GPU the thread's current one. The host program may use CUDA itself, so the destructor
// restores the former GPU.
class on_gpu
{
  public:
	explicit on_gpu(int gpu);
	~on_gpu();

  private:
	int before, wanted;
};

// Pinned memory of the host.
struct staging {
	char *memory;
	size_t bytes;
};

// Whatever the choice of an algorithm depends on.
typedef std::array<int64_t, 13> product_key;
typedef std::array<int64_t, 13> dnn_key;

// An algorithm of cuDNN, and the bytes of its workspace.
struct dnn_choice {
	bool found;
	int algorithm;
	size_t workspace;
};

struct device {
	int gpu; // CUDA's index
	int index; // of gpu:INDEX
	int processors;
	std::mutex lock; // of the rest, but for cuDNN's part
	std::vector<staging> idle;
	cublasLtHandle_t lt = NULL; // made by the first product
	std::map<product_key, cublasLtMatmulHeuristicResult_t> algorithms;
	std::mutex dnn_lock; // of the next two
	void *dnn = NULL; // cuDNN's handle, made by the first convolution
	std::map<dnn_key, dnn_choice> convolutions;
	cudaError_t lost = cudaSuccess; // an error after which the GPU does nothing more
	std::string lost_in; // the call that returned it
};

// The first failure of a function that the stream called on the host. Streams that wait for this
// stream share it.
struct host_failure {
	std::mutex lock;
	uint64_t count = 0; // failures so far
	choir_status status = CHOIR_OK;
	std::string text;
};

struct followed_stream {
	std::shared_ptr<host_failure> failure;
	uint64_t told; // failures that a wait has returned
};

struct stream {
	device *d;
	cudaStream_t s;
	bool dirty = false; // something was queued since the last mark
	std::shared_ptr<host_failure> failure;
	std::mutex lock; // of the rest: any thread waits
	uint64_t marked = 0, reached = 0;
	std::deque<std::pair<uint64_t, cudaEvent_t>> pending; // an event for each mark
	std::vector<cudaEvent_t> spare;
	std::vector<std::pair<uint64_t, staging>> stagings; // in use until that mark
	std::deque<std::pair<uint64_t, const char *>> operations; // done at that mark
	std::vector<followed_stream> follows; // the own one first
};

inline stream *stream_of(void *state)
{
	return *(stream **) state;
}

inline device *device_of(const void *self)
{
	return *(device *const *) self;
}

double now(); // seconds

// device.cu
extern const choir_device_table device_table;
bool is_device_memory(const void *p);
bool is_pinned_memory(const void *p); // of the table's host_allocate
int count_gpus();
choir_status check_on(device *d, cudaError_t error, const char *what);
// A library hides that a GPU is lost, but the stream says it.
choir_status check_lost(stream *s, const char *what);
choir_status check_on(stream *s, cublasStatus_t status, const char *what);
// Calls a function of CUDA for a device, as a status.
#define CALL(d, function, ...) check_on((d), function(__VA_ARGS__), #function)

// stream.cu. A stream gives a staging buffer that it keeps back after its next mark.
choir_status open_stream(void *self, void *state);
void close_stream(void *state);
choir_status fill(void *state, void *to, int byte, size_t bytes);
choir_status record_event(void *state, uint64_t *mark);
choir_status wait_event(void *state, void *other_state, uint64_t mark);
choir_status wait(void *state, uint64_t mark, double seconds);
void follow(stream *s, stream *other); // s fails where other's host functions fail
choir_status take_staging(device *d, size_t bytes, staging *out);
void give_staging(device *d, staging s);
void keep_staging(stream *s, staging g);
void set_host_failure(host_failure *f, choir_status status, const char *text);
void note_operation(stream *s, const char *operation);

// copy.cu
choir_status copy(void *state, void *to, const void *from, size_t bytes);

// host_kernel.cu
choir_status queue_host_kernel(
		const choir_kernel_call *call, const choir_cuda_host_kernel *kernel);

// collective.cu, nccl.cu
extern const choir_cross_device_ops_table cross_table, nccl_table;

// A kernel for one operation and several dtypes (1 << CHOIR_F32 and so on).
struct kernel {
	const char *operation;
	unsigned dtypes;
	choir_status (*run)(const choir_kernel_call *call);
	size_t (*scratch)(const choir_kernel_call *call) = NULL;
	int (*score)(const choir_kernel_call *call) = NULL;
	choir_status (*run_all)(const choir_kernel_call *calls, size_t count) = NULL;
	bool tf32 = false; // products round operands of f32 to TF32
};

// Of a call of a kernel of these lists.
inline bool is_in_tf32(const choir_kernel_call *c)
{
	return ((const kernel *) c->user)->tf32;
}

struct kernel_list {
	const kernel *first;
	size_t count;
};

template <size_t N> constexpr kernel_list list_of(const kernel (&kernels)[N])
{
	return { kernels, N };
}

enum {
	F32 = 1 << CHOIR_F32,
	F64 = 1 << CHOIR_F64,
	REAL = F32 | F64,
	FLOATS = REAL | 1 << CHOIR_F16 | 1 << CHOIR_BF16,
	NUMBERS = REAL | 1 << CHOIR_I32 | 1 << CHOIR_I64 | 1 << CHOIR_U8,
	ARITHMETIC = FLOATS | NUMBERS,
	BOOL = 1 << CHOIR_BOOL,
	ALL = ARITHMETIC | BOOL
};

// The lists of the files with kernels. plugin.cu registers them.
extern const kernel_list elementwise_kernels, comparison_kernels, cast_kernels, move_kernels,
		index_kernels, reduce_kernels, softmax_kernels, update_kernels, random_kernels,
		product_kernels, norm_kernels, pool_kernels, convolution_kernels, attention_kernels;

} // namespace choir_cuda
