// Measures the minimum time of an all-reduce between two threads of this machine, without a
// library: memory allocated before, no checks, one flag per thread. First it prints the latency of
// such a flag, which depends on the distance of the two cores.
//
// Up to 16 KiB, each thread sums all elements: it copies its own part while it waits, and then
// adds the other's. Above, each thread sums one half into a shared result and waits for the other.
// Sizes, timing and arguments are those of mpi_all_reduce.c. One argument: the largest size.
// Several: the number of elements of each tensor; the tensors are contiguous, are all written
// first, and are then summed without synchronization in between.
//
// tools/bench-mpi compiles it; it is not part of the build.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	MIN_BYTES = 4 << 10,
	MAX_BYTES = 64 << 20,
	MIN_ROUNDS = 15,
	MAX_ROUNDS = 2001,
	TRAFFIC = 8,
	ALONE_BYTES = 16 << 10,
	HAND_OVERS = 20000
};

// What one thread writes and the other reads. Two inputs alternate, so no thread waits until the
// other has read.
static struct {
	_Alignas(128) atomic_long started;
	_Alignas(128) atomic_long come, done;
	_Alignas(128) float *from[2], *to;
	double seconds[MAX_ROUNDS];
} side[2];
static float *shared;
static size_t max = MAX_BYTES;
static size_t tensors; // 0: buffers of all sizes
static size_t elements; // of all tensors

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void await(atomic_long *other, long round)
{
	while (atomic_load_explicit(other, memory_order_acquire) < round)
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		continue;
#endif
}

static void meet(atomic_long *mine, atomic_long *other, long round)
{
	atomic_store_explicit(mine, round, memory_order_release);
	await(other, round);
}

static void add(float *restrict to, const float *a, const float *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = a[i] + b[i];
}

static void add_onto(float *restrict to, const float *a, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += a[i];
}

static void sum_alone(int k, size_t n, long round)
{
	atomic_store_explicit(&side[k].come, round, memory_order_release);
	memcpy(side[k].to, side[k].from[round % 2], n * sizeof(float));
	await(&side[1 - k].come, round);
	add_onto(side[k].to, side[1 - k].from[round % 2], n);
}

static void sum_half(int k, size_t n, long round)
{
	const size_t half = n / 2 * (size_t) k;
	meet(&side[k].come, &side[1 - k].come, round);
	const float *a = side[0].from[round % 2], *b = side[1].from[round % 2];
	add(shared + half, a + half, b + half, n / 2);
	meet(&side[k].done, &side[1 - k].done, round);
}

// Round numbers increase over all sizes, so flags never decrease.
static void sum_once(int k, size_t n, long round, double *seconds)
{
	float *from = side[k].from[round % 2];
	for (size_t i = 0; i < n; i++)
		from[i] = (float) (round % 1000 + k);
	meet(&side[k].started, &side[1 - k].started, round);
	const double start = now();
	if (n * sizeof(float) <= ALONE_BYTES)
		sum_alone(k, n, round);
	else
		sum_half(k, n, round);
	*seconds = now() - start;
}

static long rounds_of(size_t bytes)
{
	const long rounds = (long) TRAFFIC * MAX_BYTES / (long) bytes;
	return rounds < MIN_ROUNDS ? MIN_ROUNDS : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *) a, y = *(const double *) b;
	return (x > y) - (x < y);
}

// The median of the slower thread's times.
static double median_of(long rounds)
{
	double *seconds = side[0].seconds;
	for (long i = 0; i < rounds; i++)
		if (side[1].seconds[i] > seconds[i])
			seconds[i] = side[1].seconds[i];
	qsort(seconds, (size_t) rounds, sizeof seconds[0], compare);
	return seconds[rounds / 2];
}

static void say(size_t bytes, long rounds)
{
	const double seconds = median_of(rounds);
	printf("{\"peer\": \"bare\", \"bytes\": %zu, \"us_median\": %.6g, \"gb_per_s\": %.6g}\n",
			bytes, 1e6 * seconds, (double) bytes / seconds / 1e9);
}

static void say_tensors(void)
{
	printf("{\"peer\": \"bare\", \"way\": \"two threads\", \"tensors\": %zu, \"ms_median\": "
		   "%.6g}\n",
			tensors, 1e3 * median_of(MIN_ROUNDS));
}

// A round trip, in which each thread waits for the other's flag, is two hand-overs.
static long hand_over(int k, long round)
{
	meet(&side[k].started, &side[1 - k].started, round);
	const double start = now();
	for (long last = round + 2 * HAND_OVERS; round < last; round += 2) {
		if (k == 1)
			await(&side[0].come, round);
		atomic_store_explicit(&side[k].come, round + k, memory_order_release);
		if (k == 0)
			await(&side[1].come, round + 1);
	}
	if (k == 0)
		printf("{\"peer\": \"bare\", \"hand_over_ns\": %.3g}\n",
				1e9 * (now() - start) / (2 * HAND_OVERS));
	return round;
}

// Sums the halves of all tensors as one buffer: the division does not change the bytes to move.
static void sum_tensors(int k, long round)
{
	for (int i = 0; i < MIN_ROUNDS; i++, round += 2) {
		float *from = side[k].from[0];
		for (size_t e = 0; e < elements; e++)
			from[e] = (float) (i + k);
		meet(&side[k].started, &side[1 - k].started, round);
		const double start = now();
		const size_t half = elements / 2, first = k == 0 ? 0 : half;
		add(shared + first, side[0].from[0] + first, side[1].from[0] + first,
				k == 0 ? half : elements - half);
		meet(&side[k].done, &side[1 - k].done, round);
		side[k].seconds[i] = now() - start;
		meet(&side[k].started, &side[1 - k].started, round + 1);
	}
	if (k == 0)
		say_tensors();
}

static void *run(void *user)
{
	const int k = *(const int *) user;
	long round = hand_over(k, 1);
	if (tensors > 0) {
		sum_tensors(k, round);
		return NULL;
	}
	for (size_t bytes = MIN_BYTES; bytes <= max && bytes <= MAX_BYTES; bytes *= 4) {
		const long rounds = rounds_of(bytes);
		for (long i = 0; i < rounds; i++)
			sum_once(k, bytes / sizeof(float), round++, &side[k].seconds[i]);
		meet(&side[k].started, &side[1 - k].started, round++);
		if (k == 0)
			say(bytes, rounds);
		meet(&side[k].started, &side[1 - k].started, round++);
	}
	return NULL;
}

// Pins a thread to a processor, as choir bench does.
static void pin(pthread_t thread, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void) pthread_setaffinity_np(thread, sizeof set, &set);
}

static float *zeros(size_t bytes)
{
	float *memory = aligned_alloc(4096, bytes);
	if (memory == NULL)
		exit(1);
	return memset(memory, 0, bytes);
}

int main(int argc, char **argv)
{
	static const int sides[2] = { 0, 1 };
	pthread_t other;
	if (argc == 2)
		max = strtoull(argv[1], NULL, 10);
	for (int i = 1; i < argc && argc > 2; i++, tensors++)
		elements += strtoull(argv[i], NULL, 10);
	const size_t bytes = tensors > 0 ? elements * sizeof(float) : MAX_BYTES;
	shared = zeros(bytes);
	for (int k = 0; k < 2; k++) {
		side[k].from[0] = zeros(bytes);
		side[k].from[1] = tensors > 0 ? NULL : zeros(bytes);
		side[k].to = zeros(ALONE_BYTES);
	}
	pin(pthread_self(), 0);
	if (pthread_create(&other, NULL, run, (void *) (size_t) &sides[1]) != 0)
		return 1;
	pin(other, 1);
	run((void *) (size_t) &sides[0]);
	return pthread_join(other, NULL);
}
