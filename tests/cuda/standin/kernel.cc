// Kernels: each thread of a block is a fiber, which barriers and the warp's calls switch. Blocks
// run one at a time, in an order of chance.
#include "fiber.h"
#include "state.h"

#include <cxxabi.h>
#include <dlfcn.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace standin
{

enum thread_stage { NEW, RUNS, AT_BARRIER, AT_WARP, OVER };

struct gpu_thread {
	standin_fiber fiber;
	thread_stage stage;
	uint3 index;
	const void *site;
	unsigned mask;
	unsigned turn; // of its warp's exchanges
};

struct warp_words {
	uint64_t word[2][WARP];
	bool vote[2][WARP];
};

struct {
	standin_fiber main;
	gpu_thread *thread;
	bool stack[MOST_THREADS]; // there is one
	warp_words warp[MOST_THREADS / WARP];
	int threads, current;
	bool inside; // a thread's stack is in use
	standin_closure *kernel;
	char *shared;
	size_t shared_bytes;
	std::string wrong;
} G;

STANDIN_UNCOUNTED void enter_thread()
{
	standin_fiber_arrive(&G.main);
	G.kernel->call();
	G.thread[G.current].stage = OVER;
	standin_fiber_end(&G.thread[G.current].fiber, &G.main);
	abort();
}

void resume(int i)
{
	gpu_thread *t = &G.thread[i];
	G.current = i;
	threadIdx = t->index;
	t->stage = RUNS;
	G.inside = true;
	standin_fiber_switch(&G.main, &t->fiber);
	G.inside = false;
}

void leave_kernel()
{
	if (G.inside)
		standin_fiber_jumped(&G.main);
	G.inside = false;
}

void park(thread_stage stage)
{
	gpu_thread *t = &G.thread[G.current];
	t->stage = stage;
	standin_fiber_switch(&t->fiber, &G.main);
	threadIdx = t->index;
}

// Lets those of a warp go on that all whom they wait for have joined.
void release_warp(int first, std::vector<int> *next)
{
	const int last = std::min(first + (int) WARP, G.threads);
	for (int i = first; i < last; i++) {
		const gpu_thread *t = &G.thread[i];
		if (t->stage != AT_WARP)
			continue;
		bool all = true;
		for (int k = first; k < last && all; k++)
			if ((t->mask >> (k - first) & 1) != 0)
				all = G.thread[k].stage == AT_WARP && G.thread[k].mask == t->mask &&
						G.thread[k].turn == t->turn;
		if (!all)
			continue;
		const unsigned mask = t->mask;
		for (int k = first; k < last; k++)
			if ((mask >> (k - first) & 1) != 0) {
				G.thread[k].stage = RUNS;
				next->push_back(k);
			}
	}
}

bool release_block(std::vector<int> *next)
{
	const void *site = NULL;
	for (int i = 0; i < G.threads; i++) {
		if (G.thread[i].stage == OVER)
			continue;
		if (G.thread[i].stage != AT_BARRIER)
			return false;
		if (site != NULL && site != G.thread[i].site)
			G.wrong = "threads of a block wait at different __syncthreads";
		site = G.thread[i].site;
	}
	for (int i = 0; i < G.threads; i++)
		if (G.thread[i].stage == AT_BARRIER)
			next->push_back(i);
	return !next->empty();
}

void shuffle_order(std::vector<int> *order)
{
	for (size_t i = order->size(); i > 1; i--)
		std::swap((*order)[i - 1], (*order)[draw_alone(i)]);
}

void step_all(std::vector<int> *order, std::vector<int> *next)
{
	shuffle_order(order);
	for (int i : *order)
		resume(i);
	for (int first = 0; first < G.threads; first += WARP)
		release_warp(first, next);
}

void run_warps(const std::vector<int> &order)
{
	std::vector<int> warps, mine, next;
	for (int w = 0; w * WARP < G.threads; w++)
		warps.push_back(w);
	shuffle_order(&warps);
	for (int w : warps) {
		mine.clear();
		for (int i : order)
			if (i / WARP == w)
				mine.push_back(i);
		while (!mine.empty() && G.wrong.empty()) {
			shuffle_order(&mine);
			for (int i : mine)
				resume(i);
			next.clear();
			release_warp(w * WARP, &next);
			mine.swap(next);
		}
	}
}

void run_block()
{
	std::vector<int> order, next;
	for (int i = 0; i < G.threads; i++) {
		gpu_thread *t = &G.thread[i];
		if (!G.stack[i]) {
			standin_fiber_make(&t->fiber, enter_thread);
			G.stack[i] = true;
		} else {
			standin_fiber_again(&t->fiber, enter_thread);
		}
		t->stage = NEW;
		t->turn = 0;
		t->index = { (unsigned) i % blockDim.x, (unsigned) i / blockDim.x % blockDim.y,
			(unsigned) i / (blockDim.x * blockDim.y) };
		order.push_back(i);
	}
	if (G.shared_bytes > 0)
		memset(G.shared, 0xff, G.shared_bytes);
	// Sometimes all threads take one step after another, sometimes a warp runs as far as it can
	// before the next one moves: each finds other barriers that are missing.
	while (!order.empty() && G.wrong.empty()) {
		next.clear();
		if (draw_alone(2) == 0)
			step_all(&order, &next);
		else
			run_warps(order);
		if (next.empty() && !release_block(&next)) {
			int left = 0;
			for (int i = 0; i < G.threads; i++)
				left += G.thread[i].stage != OVER;
			if (left > 0)
				G.wrong = "threads wait for each other at different places of a block or warp";
		}
		order.swap(next);
	}
}

std::string run_grid(dim3 grid, dim3 block, size_t shared, standin_closure *kernel)
{
	if (G.thread == NULL)
		G.thread = (gpu_thread *) calloc(MOST_THREADS, sizeof *G.thread);
	if (G.shared == NULL)
		G.shared = (char *) aligned_alloc(128, SHARED_MOST + 128);
	gridDim = grid;
	blockDim = block;
	G.threads = (int) (block.x * block.y * block.z);
	G.kernel = kernel;
	G.shared_bytes = shared;
	G.wrong.clear();
	const uint64_t blocks = (uint64_t) grid.x * grid.y * grid.z;
	// In an order of chance: from somewhere, by a step that has no factor in common.
	uint64_t step = blocks > 2 ? draw_alone(blocks - 1) + 1 : 1, at = draw_alone(blocks);
	while (std::__gcd(step, blocks) != 1)
		step++;
	for (uint64_t i = 0; i < blocks && G.wrong.empty(); i++, at = (at + step) % blocks) {
		blockIdx = { (unsigned) (at % grid.x), (unsigned) (at / grid.x % grid.y),
			(unsigned) (at / ((uint64_t) grid.x * grid.y)) };
		run_block();
	}
	return G.wrong;
}

std::string kernel_name(const void *address)
{
	Dl_info info;
	if (dladdr(address, &info) == 0 || info.dli_sname == NULL)
		return format("the kernel at %p", address);
	int status = 0;
	char *plain = abi::__cxa_demangle(info.dli_sname, NULL, NULL, &status);
	std::string name = plain != NULL ? plain : info.dli_sname;
	free(plain);
	const size_t end = name.find('(');
	name = end == std::string::npos ? name : name.substr(0, end);
	return name.rfind("void ", 0) == 0 ? name.substr(5) : name;
}

} // namespace standin

using namespace standin;

void standin_syncthreads(const void *site)
{
	G.thread[G.current].site = site;
	park(AT_BARRIER);
}

int standin_lane(void)
{
	return G.current % WARP;
}

static void meet_warp(unsigned mask)
{
	gpu_thread *t = &G.thread[G.current];
	if ((mask >> (G.current % WARP) & 1) == 0)
		G.wrong = "a thread calls for a warp whose mask it is not in";
	t->mask = mask &
			(G.threads - G.current / WARP * WARP >= WARP
							? 0xffffffffu
							: (1u << (G.threads - G.current / WARP * WARP)) - 1);
	t->turn++;
	park(AT_WARP);
}

uint64_t standin_exchange(unsigned mask, uint64_t own, int from, const void *site)
{
	(void) site;
	const unsigned turn = (G.thread[G.current].turn + 1) % 2;
	warp_words *w = &G.warp[G.current / WARP];
	w->word[turn][G.current % WARP] = own;
	meet_warp(mask);
	return (mask >> (from & 31) & 1) != 0 ? w->word[turn][from & 31] : ~(uint64_t) 0;
}

unsigned standin_ballot(unsigned mask, bool own, const void *site)
{
	(void) site;
	const unsigned turn = (G.thread[G.current].turn + 1) % 2;
	warp_words *w = &G.warp[G.current / WARP];
	w->vote[turn][G.current % WARP] = own;
	meet_warp(mask);
	unsigned all = 0;
	for (int i = 0; i < WARP; i++)
		if ((G.thread[G.current].mask >> i & 1) != 0 && w->vote[turn][i])
			all |= 1u << i;
	return all;
}

void *standin_dynamic_shared(void)
{
	return G.shared;
}

cudaError_t standin_launch(const cudaLaunchConfig_t *c, const void *address,
		const std::vector<standin_reach> &reach, standin_closure *kernel, uint64_t hash)
{
	std::shared_ptr<standin_closure> owned(kernel);
	const dim3 grid = c->gridDim, block = c->blockDim;
	const size_t shared = c->dynamicSmemBytes;
	const std::string name = kernel_name(address);
	lock_type lock(R().lock);
	cudaError_t error = enter("cudaLaunchKernel");
	const uint64_t threads = (uint64_t) block.x * block.y * block.z;
	if (error == cudaSuccess &&
			(threads == 0 || threads > MOST_THREADS || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
					grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 ||
					shared > 48 << 10)) {
		report_locked(
				format("%s: a grid of %u x %u x %u blocks of %u x %u x %u threads and %zu bytes",
						name.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z, shared));
		error = cudaErrorInvalidConfiguration;
	}
	if (error == cudaSuccess) {
		R().counts.kernels++;
		R().launches[0].push_back(hash ^ (uintptr_t) address ^ (uint64_t) grid.x << 40);
		R().counts.blocks += (uint64_t) grid.x * grid.y * grid.z;
		error = queue_work(lock, c->stream, name.c_str(), reach,
				[=] { return run_grid(grid, block, shared, owned.get()); });
	}
	return leave(error);
}
