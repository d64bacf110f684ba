// One thread joins for every device and then waits for every device, a window of packs at a time.
// Large sums are waited for by the threads of all devices, since who waits does the work.
#include "strategy/cross/sum.h"

#include "base/atomic.h"
#include "base/lock.h"
#include "trace/trace.h"

// What one window of packs is joined with.
typedef struct {
	choir_collective *collective; // of each pack and device
	uint64_t *request;
	choir_part *part; // of all of them
} window;

static choir_status open_window(
		const choir_strategy *s, choir_frame *f, const chi_sum *sum, window *w)
{
	const size_t devices = (size_t) s->devices;
	const size_t packs =
			sum->packs < CHI_COMMUNICATOR_WINDOW ? sum->packs : CHI_COMMUNICATOR_WINDOW;
	size_t parts = 0;
	for (size_t i = 0; i < devices; i++)
		parts += sum->device[i].n;
	w->collective = chi_arena_alloc(&f->arena, packs * devices * sizeof *w->collective);
	w->request = chi_arena_alloc(&f->arena, packs * devices * sizeof *w->request);
	w->part = chi_arena_alloc(&f->arena, packs * parts * sizeof *w->part);
	return w->collective == NULL || w->request == NULL || w->part == NULL ? choir_error_status()
																		  : CHOIR_OK;
}

static void *element(void *data, choir_dtype dtype, int64_t first)
{
	return data == NULL ? NULL : (char *) data + (size_t) first * chi_dtype_size(dtype);
}

static choir_status join(choir_strategy *s, chi_communicator *communicator, const chi_sum *sum,
		size_t pack, int d, choir_collective *c, choir_part **part, uint64_t *request)
{
	const chi_sum_device *own = &sum->device[d];
	const int64_t first = pack == 0 ? 0 : sum->ends[pack - 1];
	for (size_t i = 0; i < own->n; i++) {
		(*part)[i] = own->part[i];
		(*part)[i].data = element((*part)[i].data, sum->dtype, first);
	}
	*c = (choir_collective){
		.size = sizeof *c,
		.sequence = pack,
		.name = sum->name,
		.kind = CHOIR_ALL_REDUCE,
		.dtype = sum->dtype,
		.elements = sum->ends[pack] - first,
		.divisor = sum->divisor,
		.n = own->n,
		.parts = *part,
		.stream = s->exchange[d]->state,
		.result = element(own->result, sum->dtype, first),
	};
	*part += own->n;
	return chi_communicator_join(communicator, d, c, request);
}

enum { WORTH_HELP = 256 << 10 }; // bytes of a window from which on other threads are called

// Waits of all devices, taken by whoever comes.
typedef struct {
	const choir_strategy *strategy;
	const chi_communication *communication;
	const uint64_t *request;
	size_t packs;
	chi_atomic32 next; // device
	chi_mutex lock; // of the failure
	chi_error failure;
} waits;

// What ended the others' waits is not the cause.
static void note_failure(waits *w)
{
	chi_error e;
	chi_error_save(&e);
	chi_mutex_lock(&w->lock);
	if (w->failure.status == CHOIR_OK || w->failure.status == CHOIR_CANCELLED)
		w->failure = e;
	chi_mutex_unlock(&w->lock);
}

static void wait_for_devices(void *arg)
{
	waits *w = arg;
	const uint32_t devices = (uint32_t) w->strategy->devices;
	for (uint32_t d; (d = chi_atomic32_add(&w->next, 1)) < devices;) {
		choir_status status = CHOIR_OK;
		for (size_t i = 0; status == CHOIR_OK && i < w->packs; i++)
			status = chi_communicator_wait(w->communication->communicator, (int) d,
					w->request[i * devices + d], w->communication->timeout);
		if (status != CHOIR_OK)
			note_failure(w);
	}
}

static choir_status wait_for_all(choir_strategy *s, const chi_communication *communication,
		const uint64_t *request, size_t packs, size_t bytes)
{
	waits w = {
		.strategy = s, .communication = communication, .request = request, .packs = packs
	};
	chi_mutex_init(&w.lock, CHI_RANK_CROSS, "waits");
	if (bytes < WORTH_HELP)
		wait_for_devices(&w);
	else
		(void) chi_thread_pool_call_all(s, wait_for_devices, &w); // no function of the program's
	chi_mutex_destroy(&w.lock);
	if (w.failure.status != CHOIR_OK)
		chi_error_restore(&w.failure);
	return w.failure.status;
}

static choir_status sum_window(choir_strategy *s, const chi_communication *communication,
		const chi_sum *sum, const window *w, size_t first, size_t last)
{
	choir_part *part = w->part;
	size_t k = 0;
	for (size_t i = first; i < last; i++)
		for (int d = 0; d < s->devices; d++, k++)
			CHOIR_TRY(join(s, communication->communicator, sum, i, d, &w->collective[k], &part,
					&w->request[k]));
	const int64_t before = first == 0 ? 0 : sum->ends[first - 1];
	return wait_for_all(s, communication, w->request, last - first,
			(size_t) (sum->ends[last - 1] - before) * chi_dtype_size(sum->dtype));
}

choir_status chi_sum_devices(choir_strategy *s, choir_frame *f,
		const chi_communication *communication, const chi_sum *sum)
{
	window w;
	chi_trace_begin(CHOIR_TRACE_REDUCE, sum->name);
	choir_status status = open_window(s, f, sum, &w);
	for (size_t first = 0; status == CHOIR_OK && first < sum->packs;
			first += CHI_COMMUNICATOR_WINDOW) {
		const size_t left = sum->packs - first;
		status = sum_window(s, communication, sum, &w, first,
				first + (left < CHI_COMMUNICATOR_WINDOW ? left : CHI_COMMUNICATOR_WINDOW));
	}
	status = chi_strategy_wait(s, 0, s->devices, status);
	chi_trace_end();
	if (status != CHOIR_OK)
		chi_strategy_reset_collectives(s);
	return status;
}
