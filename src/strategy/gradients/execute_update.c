// Fused: a chunk is updated when it is summed. Two-pass: sums are kept first; then any device
// takes the next chunk of a copy in host memory, elsewhere the one with the sum. Writes begin
// after all have joined.
#include "strategy/gradients/execute_update.h"

#include "base/clock.h"
#include "base/team.h"
#include "op/op.h"
#include "strategy/gradients/bucket.h"
#include "strategy/gradients/sparse_gradients.h"
#include "strategy/gradients/global_norm_gate.h"
#include "strategy/gradients/wire_precision.h"
#include "strategy/gradients/update_batch.h"
#include "strategy/remote_variables.h"
#include "value/narrow_copy.h"

#include <string.h>

static int device_sharing_with(const choir_strategy *s, const choir_device *device)
{
	for (int i = 0; i < s->devices; i++)
		if (chi_device_shares(s->device[i], device))
			return i;
	return 0;
}

static choir_status grow_pending(chi_pending_update *u, size_t n)
{
	if (n <= u->pending_capacity)
		return CHOIR_OK;
	const size_t before = u->pending_capacity;
	if (!chi_grow(&u->pending, &u->pending_capacity, n, sizeof *u->pending))
		return choir_error_status();
	for (size_t i = before; i < u->pending_capacity; i++)
		u->pending[i] = (chi_pending_variable){ 0 };
	return CHOIR_OK;
}

static choir_status prepare_sum_buffers(chi_pending_update *u, chi_pending_variable *pv)
{
	const choir_strategy *s = u->strategy;
	const choir_variable *v = pv->variable;
	if (pv->sum_buffers < v->copies) {
		chi_sum_buffer *sum_buffer = chi_alloc_array((size_t) v->copies, sizeof *sum_buffer);
		CHOIR_TRY(chi_made(sum_buffer));
		chi_free(pv->sum_buffer);
		pv->sum_buffer = sum_buffer;
		pv->sum_buffers = v->copies;
	}
	for (int k = 0; u->two_pass && !pv->is_sparse && k < v->copies; k++) {
		chi_sum_buffer *sb = &pv->sum_buffer[k];
		sb->device = device_sharing_with(s, v->copy[k].device);
		if (u->single_device) {
			const chi_partial_sums *whole = &u->device[0].gradient[pv - u->pending]->partial_sums;
			chi_buffer_retain(sb->sum = whole->buffer[0]);
			sb->data = whole->node[0].data;
			continue;
		}
		if (u->bucket_elements > 0) {
			CHOIR_TRY(chi_bucket_give_memory(u, pv, sb));
			continue;
		}
		for (int j = 0; j < k && sb->sum == NULL; j++)
			if (pv->sum_buffer[j].device == sb->device)
				chi_buffer_retain(sb->sum = pv->sum_buffer[j].sum);
		if (sb->sum == NULL)
			sb->sum = chi_buffer_new(s->device[sb->device], chi_variable_bytes(v));
		CHOIR_TRY(chi_made(sb->sum));
		sb->data = sb->sum->memory;
		CHOIR_TRY(chi_wire_prepare(u, pv, k));
	}
	return CHOIR_OK;
}

// Several workers' updates may write one variable at once.
static bool is_only_worker(const chi_pending_update *u)
{
	return u->strategy->workers == 1;
}

static choir_status prepare_variable(chi_pending_update *u, chi_pending_variable *pv)
{
	const choir_variable *v = pv->variable;
	CHOIR_TRY(prepare_sum_buffers(u, pv));
	pv->chunks = (v->elements + CHI_UPDATE_CHUNK - 1) / CHI_UPDATE_CHUNK;
	if (pv->chunks > pv->chunks_capacity) {
		chi_free(pv->squares);
		pv->chunks_capacity = 0;
		pv->squares = chi_alloc_array((size_t) pv->chunks, sizeof *pv->squares);
		CHOIR_TRY(chi_made(pv->squares));
		pv->chunks_capacity = pv->chunks;
	}
	for (int k = 0; k < v->copies && is_only_worker(u); k++)
		chi_narrow_copy_begin(&v->copy[k]);
	pv->first_chunk = u->chunks;
	u->touches_all_rows = u->touches_all_rows || pv->touches_all_rows;
	if (u->two_pass || pv->touches_all_rows || (u->single_device && !pv->is_sparse))
		u->chunks += (uint32_t) pv->chunks;
	return CHOIR_OK;
}

static choir_status check_sums(const chi_pending_update *u)
{
	for (size_t i = 0; i < u->n; i++) {
		const chi_device_gradient *g = u->device[0].gradient[i];
		const chi_partial_sums *f = &g->partial_sums;
		if (!u->pending[i].is_sparse &&
				(f->n == 0 ||
						(g->collective.kind != CHOIR_BROADCAST &&
								f->node[0].hi - f->node[0].lo != u->strategy->replicas)))
			return choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover the %d replicas",
					g->variable->name, u->strategy->replicas);
	}
	return CHOIR_OK;
}

static choir_status prepare(chi_pending_update *u, int by)
{
	const chi_gradients *a = u->gradients;
	const choir_strategy *s = u->strategy;
	const chi_device_gradients *first = &u->device[0];
	CHOIR_TRY(grow_pending(u, first->n));
	if (!chi_grow(&u->variable, &u->variable_capacity, first->n, sizeof *u->variable))
		return choir_error_status();
	for (size_t i = 0; i < first->n; i++) {
		chi_pending_variable *pv = &u->pending[i];
		u->variable[i] = pv->variable = first->gradient[i]->variable;
		pv->kinds = CHI_GRADIENT_DENSE;
		pv->is_sparse = pv->touches_all_rows = false;
	}
	u->sparse = s->process_group != NULL;
	for (int d = 0; d < s->devices; d++)
		u->sparse = u->sparse || u->device[d].has_sparse;
	const bool pushes = chi_remote_pushes(s);
	u->gated = !pushes && a->table->gated(a->user);
	u->allows_sparse = !u->gated && s->all_host && s->all_here;
	u->two_pass = pushes || !u->allows_sparse || s->concurrency != CHI_EXCLUSIVE;
	u->single_device = s->devices == 1 && s->process_group == NULL &&
			chi_strategy_wire(s, CHOIR_F32) == CHOIR_F32 &&
			(!u->two_pass || (pushes ? s->all_host : !s->all_host && s->all_here && !u->sparse));
	u->touches_all_rows = false;
	u->n = first->n;
	u->chunks = 0;
	if (!pushes)
		CHOIR_TRY(a->table->begin(a->user, u->state, first->n, u->variable));
	if (u->sparse)
		CHOIR_TRY(chi_sparse_gradients_prepare(u, by));
	if (u->single_device && u->two_pass)
		CHOIR_TRY(check_sums(u));
	if (u->two_pass && !u->single_device)
		CHOIR_TRY(chi_bucket_prepare(u));
	for (size_t i = 0; i < first->n; i++)
		CHOIR_TRY(prepare_variable(u, &u->pending[i]));
	chi_update_gate_prepare(u);
	return chi_overlap_prepare(u);
}

static const void *data_of(const chi_pending_update *u, size_t i, int64_t first)
{
	const chi_pending_variable *pv = &u->pending[i];
	const void *sum = u->single_device ? u->device[0].gradient[i]->partial_sums.node[0].data
									   : pv->sum_buffer[0].data;
	return (const char *) sum + (size_t) first * chi_dtype_size(pv->variable->dtype);
}

static choir_status chunk_done(void *user, int64_t first, int64_t count, const void *data)
{
	const chi_device_gradient *g = user;
	const chi_pending_update *u = g->update;
	const choir_strategy *s = u->strategy;
	if (!u->two_pass)
		return chi_device_gradient_write(g, chi_strategy_copy(s, g->variable, s->first[g->device]),
				&(chi_gradient_chunk){ first, count, data, 1, NULL });
	const choir_device *device = s->device[g->device];
	return u->gated && device->host_memory &&
					chi_device_shares(u->pending[g->index].sum_buffer[0].sum->device, device)
			? chi_update_gate_square(g, first, count, data)
			: CHOIR_OK;
}

static choir_status rounded_chunk_done(void *user, int64_t first, int64_t count, const void *data)
{
	const chi_device_gradient *g = user;
	const chi_pending_update *u = g->update;
	const chi_pending_variable *pv = &u->pending[g->index];
	choir_device *device = u->strategy->device[g->device];
	float chunk[CHI_UPDATE_CHUNK], *sum = NULL;
	for (int k = 0; u->two_pass && k < pv->variable->copies; k++)
		if (chi_device_shares(pv->sum_buffer[k].sum->device, device))
			sum = pv->sum_buffer[k].data;
	for (int64_t at = 0; at < count; at += CHI_UPDATE_CHUNK) {
		const int64_t n = count - at < CHI_UPDATE_CHUNK ? count - at : CHI_UPDATE_CHUNK;
		float *to = sum == NULL ? chunk : sum + first + at;
		const void *from = (const uint16_t *) data + at;
		CHOIR_TRY(chi_wire_widen(g, u->strategy->exchange[g->device], n, from, to));
		CHOIR_TRY(chunk_done(user, first + at, n, to));
	}
	return CHOIR_OK;
}

static void *wanted_by(const chi_pending_update *u, int d, size_t i)
{
	const choir_device *device = u->strategy->device[d];
	const chi_pending_variable *pv = &u->pending[i];
	for (int k = 0; u->two_pass && k < pv->variable->copies; k++)
		if (chi_device_shares(pv->sum_buffer[k].sum->device, device))
			return pv->sum_buffer[k].wire != NULL ? pv->sum_buffer[k].wire->memory
												  : pv->sum_buffer[k].data;
	return NULL;
}

static choir_status join(chi_pending_update *u, int d, size_t i)
{
	choir_strategy *s = u->strategy;
	chi_device_gradient *g = u->device[d].gradient[i];
	choir_variable *v = g->variable;
	choir_collective *c = &g->collective;
	const choir_collective_kind kind = c->kind;
	void *result = wanted_by(u, d, i);
	size_t n;
	bool whole;
	const choir_partial_sum *parts = chi_overlap_parts(g, &n, &whole);
	*c = (choir_collective){
		.size = sizeof *c,
		.sequence = i,
		.name = v->name,
		.kind = whole ? CHOIR_BROADCAST : kind,
		.dtype = g->partial_sums.dtype,
		.elements = v->elements,
		.divisor = 1,
		.n = n,
		.partial_sums = parts,
		.stream = s->exchange[d]->state,
		.result = result,
		.done = u->two_pass && (result == NULL || !s->device[d]->host_memory) ? NULL
				: chi_wire_rounds(g)										  ? rounded_chunk_done
																			  : chunk_done,
		.user = g,
	};
	return chi_communicator_join(&s->communicator, d, c, &g->request);
}

static choir_status wait_for_devices(chi_pending_update *u, int from, int to)
{
	const uint32_t devices = (uint32_t) (to - from), all = (uint32_t) u->strategy->devices;
	if (devices == all)
		return CHOIR_OK;
	if (chi_atomic32_add(&u->devices_arrived, devices) + devices == all) {
		chi_atomic32_store(&u->arrived, 1);
		chi_run_wake_up(u->run);
	}
	return chi_gradients_wait(u, &u->arrived) ? CHOIR_OK : chi_run_cancelled(u->run);
}

static bool joins(const chi_pending_update *u)
{
	for (size_t i = 0; i < u->n; i++)
		if (!u->pending[i].is_sparse)
			return true;
	return false;
}

static choir_status reduce_bucket(chi_pending_update *u, int from, int to)
{
	choir_strategy *s = u->strategy;
	for (int d = from; d < to; d++)
		CHOIR_TRY(chi_bucket_join(u, d));
	for (int d = from; d < to; d++)
		CHOIR_TRY(chi_communicator_wait(
				&s->communicator, d, u->device[d].gradient[0]->request, s->timeout));
	for (int d = from; d < to; d++)
		CHOIR_TRY(chi_bucket_widen(u, d));
	return CHOIR_OK;
}

// In windows of variables: devices may run slightly ahead of each other.
static choir_status reduce(chi_pending_update *u, int from, int to)
{
	choir_strategy *s = u->strategy;
	if (u->single_device)
		return check_sums(u);
	if (u->bucket_elements > 0)
		return reduce_bucket(u, from, to);
	if (!joins(u)) // rows are merged, but other replicas may fail
		return wait_for_devices(u, from, to);
	for (size_t first = 0; first < u->n; first += CHI_COMMUNICATOR_WINDOW) {
		const size_t last =
				u->n - first < CHI_COMMUNICATOR_WINDOW ? u->n : first + CHI_COMMUNICATOR_WINDOW;
		for (size_t i = first; i < last; i++)
			for (int d = from; d < to; d++)
				if (!u->pending[i].is_sparse)
					CHOIR_TRY(join(u, d, i));
		// The last to join does a small sum at once.
		for (size_t i = first; i < last; i++)
			for (int d = to; d-- > from;)
				if (!u->pending[i].is_sparse)
					CHOIR_TRY(chi_communicator_wait(
							&s->communicator, d, u->device[d].gradient[i]->request, s->timeout));
	}
	return chi_wire_widen_sums(u, from, to);
}

static choir_status take_chunks(chi_pending_update *u, int d, double factor)
{
	for (size_t i = 0;;) {
		const uint32_t chunk = chi_atomic32_add(&u->next_chunk, 1);
		if (chunk >= u->chunks)
			return CHOIR_OK;
		while (i + 1 < u->n && u->pending[i + 1].first_chunk <= chunk)
			i++;
		const chi_pending_variable *pv = &u->pending[i];
		const int64_t first = (int64_t) (chunk - pv->first_chunk) * CHI_UPDATE_CHUNK;
		const int64_t left = pv->variable->elements - first;
		const int64_t count = left < CHI_UPDATE_CHUNK ? left : CHI_UPDATE_CHUNK;
		const void *data = pv->touches_all_rows ? chi_sparse_gradients_chunk(u, d, i, first, count)
												: data_of(u, i, first);
		CHOIR_TRY(chi_device_gradient_write(u->device[d].gradient[i], 0,
				&(chi_gradient_chunk){ first, count, data, factor, NULL }));
	}
}

typedef struct {
	chi_pending_update *update;
	int device;
	double factor;
	chi_atomic32 failed;
	chi_error error;
} chunk_sharing;

static void take_chunks_as_member(void *arg, int member, int64_t chunk)
{
	chunk_sharing *s = arg;
	(void) member, (void) chunk;
	if (take_chunks(s->update, s->device, s->factor) != CHOIR_OK &&
			chi_atomic32_change(&s->failed, 0, 1))
		chi_error_save(&s->error);
}

static choir_status update_chunks(chi_pending_update *u, int d, double factor)
{
	const int threads = u->touches_all_rows ? 1 : chi_team_own_members();
	if (threads == 1)
		return take_chunks(u, d, factor);
	chunk_sharing s = { .update = u, .device = d, .factor = factor };
	CHOIR_TRY(chi_team_share(threads, take_chunks_as_member, &s));
	if (chi_atomic32_load(&s.failed) == 0)
		return CHOIR_OK;
	return chi_error_restore(&s.error);
}

static choir_status send(
		chi_stream *source, chi_stream *stream, void *to, const void *sum, size_t bytes)
{
	choir_device *from = source->device, *device = stream->device;
	uint64_t event;
	if (device->host_memory)
		return chi_stream_fetch(source, to, sum, bytes);
	if (from->table != device->table) {
		CHOIR_TRY(chi_stream_wait(source));
		return from->host_memory ? chi_stream_post(stream, to, sum, bytes)
								 : chi_device_copy(stream, device, to, from, sum, bytes);
	}
	CHOIR_TRY(chi_stream_record_event(source, &event));
	CHOIR_TRY(chi_stream_wait_event(stream, source, event));
	return chi_stream_copy(stream, to, sum, bytes);
}

// The host waits only if the bytes pass through it.
static choir_status bring_sum(
		const chi_device_gradient *g, chi_sum_buffer *sb, chi_stream *stream, const void **data)
{
	chi_pending_update *u = g->update;
	const size_t bytes = chi_variable_bytes(g->variable);
	if (u->bucket_elements > 0 && stream->device->host_memory)
		return chi_bucket_fetch(u, g, stream->device, data);
	if ((sb->away = chi_buffer_new(stream->device, bytes)) == NULL)
		return choir_error_status();
	*data = sb->away->memory;
	return send(u->strategy->exchange[g->device], stream, sb->away->memory, sb->data, bytes);
}

static choir_status update_copy(const chi_device_gradient *g, int copy, chi_sum_buffer *sb,
		double factor, chi_write_list *list)
{
	choir_variable *v = g->variable;
	choir_device *device = v->copy[copy].device;
	chi_stream *stream = chi_strategy_stream(g->update->strategy, g->device, device);
	const void *data = sb->data;
	if (!chi_device_shares(sb->sum->device, device))
		CHOIR_TRY(bring_sum(g, sb, stream, &data));
	const chi_pending_update *u = g->update;
	const double *gate = u->devices_decide ? u->device[g->device].gate.verdict : NULL;
	const chi_gradient_chunk chunk = { 0, v->elements, data, factor, gate };
	if (v->concurrency == CHI_EXCLUSIVE && !device->host_memory &&
			u->gradients->table->chunks != NULL)
		return chi_write_list_add(list, stream, &(chi_gradient_write){ g->index, v, copy, chunk });
	CHOIR_TRY(chi_device_gradient_write(g, copy, &chunk));
	return v->concurrency == CHI_EXCLUSIVE ? CHOIR_OK : chi_stream_wait(stream);
}

static choir_status update_copies(chi_pending_update *u, int d, double factor)
{
	chi_write_list list = { .update = u, .n = 0 };
	for (size_t i = 0; i < u->n; i++) {
		const chi_pending_variable *pv = &u->pending[i];
		for (int k = 0; k < pv->variable->copies; k++) {
			if (pv->is_sparse || pv->sum_buffer[k].device != d)
				continue;
			CHOIR_TRY(chi_variable_enter(pv->variable));
			const choir_status status =
					update_copy(u->device[d].gradient[i], k, &pv->sum_buffer[k], factor, &list);
			chi_variable_leave(pv->variable);
			CHOIR_TRY(status);
		}
	}
	return chi_write_list_run(&list);
}

static choir_status update_summed(chi_pending_update *u, int from, int to, bool *applied)
{
	const choir_strategy *s = u->strategy;
	const bool by_chunks = s->all_host && s->all_here && s->concurrency == CHI_EXCLUSIVE &&
			!u->gradients->table->whole;
	double factor = 1;
	bool skip = false;
	const bool host_decides = u->gated && !u->devices_decide;
	for (int d = from; u->gated && d < to; d++)
		CHOIR_TRY(
				host_decides ? chi_update_gate_fetch_squares(u, d) : chi_update_gate_queue(u, d));
	// A device without sums may come before all squares are known.
	if (host_decides && !by_chunks)
		CHOIR_TRY(wait_for_devices(u, from, to));
	if (host_decides)
		CHOIR_TRY(chi_update_gate_decide(u, &factor, &skip));
	*applied = !skip;
	if (skip)
		return CHOIR_OK;
	if (by_chunks)
		return update_chunks(u, from, factor);
	for (int d = from; d < to; d++)
		CHOIR_TRY(update_copies(u, d, factor));
	return CHOIR_OK;
}

static choir_status push(const chi_pending_update *u)
{
	const chi_remote *r = u->strategy->owner->remote;
	chi_remote_gradient *gradient = chi_alloc_array(u->n + 1, sizeof *gradient);
	CHOIR_TRY(chi_made(gradient));
	for (size_t i = 0; i < u->n; i++) {
		const chi_merged_rows *m = &u->pending[i].rows;
		gradient[i] = u->pending[i].is_sparse
				? (chi_remote_gradient){ .n = m->n, .row = m->row, .values = m->values }
				: (chi_remote_gradient){ .dense = data_of(u, i, 0) };
	}
	const choir_status status = r->push(r->user, u->gradients->user, u->n, u->variable, gradient);
	chi_free(gradient);
	return status;
}

static void finish(chi_pending_update *u, bool applied)
{
	if (chi_remote_pushes(u->strategy)) {
		u->run->applied = true;
		chi_atomic32_store(&u->done, 1);
		return;
	}
	for (size_t i = 0; applied && i < u->n; i++)
		for (int k = 0; k < u->pending[i].variable->copies; k++) {
			if (is_only_worker(u))
				chi_narrow_copy_end(&u->pending[i].variable->copy[k]);
			chi_variable_bump_version(u->pending[i].variable, k);
		}
	u->gradients->table->end(u->gradients->user, u->state, applied);
	if (u->run != NULL && applied)
		u->run->applied = true;
	chi_atomic32_store(&u->done, 1);
}

static choir_status prepared(chi_pending_update *u, bool mine, int by)
{
	if (mine) {
		u->status = prepare(u, by);
		if (u->status != CHOIR_OK)
			chi_error_save(&u->error);
		chi_gate_open(&u->prepared, 1);
	}
	// With workers, the cluster's timeout limits the preparation, which always opens the gate.
	const choir_strategy *s = u->strategy;
	const double deadline = chi_clock_deadline(s->process_group == NULL ? s->timeout : -1);
	while (chi_atomic32_load(&u->prepared.word) == 0)
		if (!chi_gate_wait(&u->prepared, 0, chi_pending_update_spins(u), deadline))
			return choir_fail(CHOIR_TIMEOUT, "%s: preparing an update took too long",
					u->gradients->table->name);
	if (u->status != CHOIR_OK)
		chi_error_restore(&u->error);
	return u->status;
}

static choir_status follow_gradients(chi_pending_update *u, int from, int to)
{
	for (int d = from; d < to; d++) {
		chi_device_gradients *list = &u->device[d];
		if (list->queued != NULL)
			CHOIR_TRY(chi_stream_wait_event(u->strategy->exchange[d], list->queued, list->event));
		list->queued = NULL;
	}
	return CHOIR_OK;
}

choir_status chi_pending_update_execute(chi_pending_update *u, int from, int to, bool prepare_it)
{
	choir_strategy *s = u->strategy;
	bool applied = true;
	choir_status status = prepared(u, prepare_it, from);
	if (status == CHOIR_OK)
		status = follow_gradients(u, from, to);
	if (status == CHOIR_OK)
		status = chi_overlap_finish(u, from, to);
	if (status == CHOIR_OK)
		status = reduce(u, from, to);
	const bool pushes = chi_remote_pushes(s);
	if (status == CHOIR_OK && prepare_it && u->sparse && !pushes)
		status = chi_sparse_gradients_update(u, from);
	if (status == CHOIR_OK && !pushes)
		status = u->two_pass ? update_summed(u, from, to, &applied) : update_chunks(u, from, 1);
	status = chi_strategy_wait(s, from, to, status);
	if (from == 0 && !s->all_here)
		status = chi_strategy_wait_away(s, status);
	if (status == CHOIR_OK || status == CHOIR_TIMEOUT)
		chi_atomic32_store(&u->landed, 1);
	for (int d = from; d < to; d++)
		status = chi_update_gate_read(u, d, status, &applied);
	if (status != CHOIR_OK)
		return status; // chi_pending_update_discard undefines what was written
	const uint32_t devices = (uint32_t) (to - from);
	if (chi_atomic32_add(&u->devices_done, devices) + devices == (uint32_t) s->devices) {
		if (pushes)
			CHOIR_TRY(push(u));
		finish(u, applied);
	}
	return CHOIR_OK;
}
