// The global norm of gradients, which clips or prevents an update. Host and devices add the
// squares of chunks in one order, so they get the same factor.
#include "strategy/gradients/global_norm_gate.h"

#include "op/op.h"
#include "op/kernel/kernel.h"

#include <math.h>
#include <string.h>

enum { VERDICT = 4, LISTED = 64 };

static choir_status run_squares(
		chi_stream *stream, const choir_variable *v, int64_t count, const void *data, void *to)
{
	const int64_t n = (count + CHI_UPDATE_CHUNK - 1) / CHI_UPDATE_CHUNK;
	const choir_chunk_squares_attributes attributes = { CHI_UPDATE_CHUNK };
	const choir_buffer x = { (void *) (uintptr_t) data, v->dtype, { 1, { count } } };
	choir_buffer out = { to, CHOIR_F64, { 1, { n } } };
	return chi_kernel_run(stream, "chunk_squares", 1, &x, &out, &attributes);
}

choir_status chi_update_gate_square(
		const chi_device_gradient *g, int64_t first, int64_t count, const void *data)
{
	chi_pending_update *u = g->update;
	if (count == 0)
		return CHOIR_OK;
	return run_squares(u->strategy->exchange[g->device], g->variable, count, data,
			u->pending[g->index].squares + first / CHI_UPDATE_CHUNK);
}

// Of variables of one dtype.
typedef struct {
	chi_stream *stream;
	size_t n;
	choir_kernel_call call[LISTED];
	choir_buffer x[LISTED], out[LISTED];
} squares_list;

static choir_status run_list(squares_list *l)
{
	const size_t n = l->n;
	l->n = 0;
	return n == 0 ? CHOIR_OK : chi_kernel_run_all(l->stream, "chunk_squares", n, l->call);
}

static choir_status add_squares(
		squares_list *l, const choir_variable *v, const void *data, double *to)
{
	static const choir_chunk_squares_attributes attributes = { CHI_UPDATE_CHUNK };
	if (l->n == LISTED || (l->n > 0 && l->x[0].dtype != v->dtype))
		CHOIR_TRY(run_list(l));
	const int64_t chunks = (v->elements + CHI_UPDATE_CHUNK - 1) / CHI_UPDATE_CHUNK;
	const size_t i = l->n++;
	l->x[i] = (choir_buffer){ (void *) (uintptr_t) data, v->dtype, { 1, { v->elements } } };
	l->out[i] = (choir_buffer){ to, CHOIR_F64, { 1, { chunks } } };
	l->call[i] = (choir_kernel_call){
		.n = 1, .in = &l->x[i], .out = &l->out[i], .attributes = &attributes
	};
	return CHOIR_OK;
}

static bool squares_here(const chi_pending_update *u, size_t i, int d)
{
	return u->pending[i].sum_buffer[0].device == d && u->pending[i].variable->elements > 0;
}

static choir_status queue_squares(const chi_pending_update *u, int d, double *there)
{
	squares_list l = { .stream = u->strategy->exchange[d] };
	for (size_t i = 0; i < u->n; i++) {
		const chi_pending_variable *pv = &u->pending[i];
		if (!squares_here(u, i, d))
			continue;
		CHOIR_TRY(add_squares(&l, pv->variable, pv->sum_buffer[0].data, there));
		there += pv->chunks;
	}
	return run_list(&l);
}

choir_status chi_update_gate_fetch_squares(chi_pending_update *u, int d)
{
	chi_stream *stream = u->strategy->exchange[d];
	size_t n = 0;
	for (size_t i = 0; i < u->n; i++)
		n += squares_here(u, i, d) ? (size_t) u->pending[i].chunks : 0;
	if (n == 0 || stream->device->host_memory)
		return CHOIR_OK;
	const size_t bytes = n * sizeof(double);
	chi_scratch *host = &u->device[d].squares;
	if (!chi_scratch_reserve(host, bytes))
		return choir_error_status();
	chi_buffer *there = chi_buffer_new(stream->device, bytes);
	CHOIR_TRY(chi_made(there));
	choir_status status = queue_squares(u, d, there->memory);
	status = status == CHOIR_OK ? chi_stream_fetch(stream, host->memory, there->memory, bytes)
								: chi_strategy_wait(u->strategy, d, d + 1, status);
	chi_buffer_release(there);
	const double *from = (const double *) (const void *) host->memory;
	for (size_t i = 0; status == CHOIR_OK && i < u->n; i++)
		if (squares_here(u, i, d)) {
			memcpy(u->pending[i].squares, from, (size_t) u->pending[i].chunks * sizeof *from);
			from += u->pending[i].chunks;
		}
	return status;
}

choir_status chi_update_gate_decide(const chi_pending_update *u, double *factor, bool *skip)
{
	double all = 0;
	const choir_variable *bad = NULL;
	for (size_t i = 0; i < u->n; i++) {
		double own = 0;
		for (int64_t k = 0; k < u->pending[i].chunks; k++)
			own += u->pending[i].squares[k];
		if (!isfinite(own) && bad == NULL)
			bad = u->pending[i].variable;
		all += own;
	}
	return u->gradients->table->gate(u->gradients->user, all, bad, factor, skip);
}

static const void *sum_on(const chi_pending_variable *pv, int d)
{
	for (int k = 0; k < pv->variable->copies; k++)
		if (pv->sum_buffer[k].device == d)
			return pv->sum_buffer[k].data;
	return NULL;
}

static bool has_kernel(choir_device *d)
{
	const choir_update_gate_attributes attributes = { .scale = 1 };
	const choir_buffer in[2] = { { NULL, CHOIR_F64, { 1, { 1 } } },
		{ NULL, CHOIR_I64, { 1, { 1 } } } };
	choir_buffer out = { NULL, CHOIR_F64, { 1, { VERDICT } } };
	const choir_kernel_call call = { .size = sizeof call,
		.n = 2,
		.in = in,
		.out = &out,
		.attributes = &attributes,
		.device = d->self };
	chi_error before;
	chi_error_save(&before);
	const bool found = chi_kernel_find(d, &call, "update_gate", CHOIR_F64) != NULL;
	chi_error_restore(&before);
	return found;
}

void chi_update_gate_prepare(chi_pending_update *u)
{
	const choir_strategy *s = u->strategy;
	u->devices_decide = u->gated && u->two_pass && u->chunks > 0 && !u->touches_all_rows &&
			s->all_here && s->process_group == NULL && s->concurrency == CHI_EXCLUSIVE &&
			u->gradients->table->gate_attributes != NULL;
	for (int d = 0; u->devices_decide && d < s->devices; d++) {
		u->devices_decide = !s->device[d]->host_memory && has_kernel(s->device[d]);
		for (size_t i = 0; u->devices_decide && i < u->n; i++)
			u->devices_decide = !u->pending[i].is_sparse && sum_on(&u->pending[i], d) != NULL;
	}
}

static choir_status prepare_memory(chi_pending_update *u, int d)
{
	chi_device_gate *gate = &u->device[d].gate;
	const size_t ends = u->n * sizeof(int64_t), verdict = VERDICT * sizeof(double);
	const size_t bytes = verdict + ends + u->chunks * sizeof(double);
	if (gate->memory == NULL || gate->memory->bytes < bytes) {
		chi_buffer_release(gate->memory);
		gate->n = 0;
		gate->memory = chi_buffer_new(u->strategy->device[d], bytes);
		CHOIR_TRY(chi_made(gate->memory));
	}
	gate->verdict = gate->memory->memory;
	if (!chi_scratch_reserve(&gate->ends, ends))
		return choir_error_status();
	int64_t *end = (int64_t *) (void *) gate->ends.memory;
	bool same = gate->n == u->n;
	int64_t at = 0;
	for (size_t i = 0; i < u->n; i++) {
		at += u->pending[i].chunks;
		same = same && end[i] == at;
		end[i] = at;
	}
	if (same)
		return CHOIR_OK;
	CHOIR_TRY(chi_stream_post(
			u->strategy->exchange[d], (char *) gate->memory->memory + verdict, end, ends));
	gate->n = u->n;
	return CHOIR_OK;
}

choir_status chi_update_gate_queue(chi_pending_update *u, int d)
{
	chi_stream *stream = u->strategy->exchange[d];
	chi_device_gate *gate = &u->device[d].gate;
	CHOIR_TRY(prepare_memory(u, d));
	double *verdict = gate->memory->memory;
	void *ends = verdict + VERDICT;
	double *squares = verdict + VERDICT + u->n, *to = squares;
	squares_list l = { .stream = stream };
	for (size_t i = 0; i < u->n; i++) {
		const chi_pending_variable *pv = &u->pending[i];
		if (pv->chunks > 0)
			CHOIR_TRY(add_squares(&l, pv->variable, sum_on(pv, d), to));
		to += pv->chunks;
	}
	CHOIR_TRY(run_list(&l));
	const choir_update_gate_attributes attributes =
			u->gradients->table->gate_attributes(u->gradients->user);
	const choir_buffer in[2] = { { squares, CHOIR_F64, { 1, { to - squares } } },
		{ ends, CHOIR_I64, { 1, { (int64_t) u->n } } } };
	choir_buffer out = { verdict, CHOIR_F64, { 1, { VERDICT } } };
	CHOIR_TRY(chi_kernel_run(stream, "update_gate", 2, in, &out, &attributes));
	gate->fetched = chi_stream_fetch_later(stream, verdict, VERDICT * sizeof *verdict);
	return chi_made(gate->fetched);
}

choir_status chi_update_gate_read(chi_pending_update *u, int d, choir_status status, bool *applied)
{
	chi_device_gate *gate = &u->device[d].gate;
	double verdict[VERDICT], factor;
	if (gate->fetched == NULL)
		return status;
	chi_stream_take_fetched(u->strategy->exchange[d], gate->fetched,
			status == CHOIR_OK ? verdict : NULL, sizeof verdict);
	gate->fetched = NULL;
	if (status != CHOIR_OK) {
		gate->n = 0; // the ends may be missing
		return status;
	}
	const choir_variable *bad = verdict[3] < 0 ? NULL : u->pending[(size_t) verdict[3]].variable;
	bool skip = false;
	status = u->gradients->table->gate(u->gradients->user, verdict[2], bad, &factor, &skip);
	*applied = !skip;
	if (status != CHOIR_OK)
		chi_atomic32_store(&u->written, 0); // the kernels wrote nothing
	return status;
}
