// Doing an update. Each lane joins one collective for each variable with its partial sums. Fused:
// the slice that was summed is updated while it is in the cache. One lane alone has its sums, and
// the threads of its device share the slices. Otherwise sums are kept, and copies are updated when
// all are there: on the host by whichever lane takes the next slice, elsewhere by the lane that
// has the copy's memory, and on a device that carries no replica after the sum was sent there.
// With a gate (a norm, a check of NaNs) there is a square for each fixed slice, and the gate
// decides before. Nothing is written before every lane has joined.
#include "strategy/gradients/pending.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/team.h"
#include "op/op.h"
#include "trace/trace.h"

#include <math.h>
#include <string.h>

static int copy_of_lane(const choir_strategy *s, const choir_variable *v, int lane)
{
	return chi_strategy_copy(s, v, s->first[lane]);
}

// The lowest lane whose device shares memory with d, or else the first lane.
static int lane_beside(const choir_strategy *s, const choir_device *d)
{
	for (int i = 0; i < s->lanes; i++)
		if (chi_device_shares(s->device[i], d))
			return i;
	return 0;
}

static choir_status grow_shared(chi_instance *in, size_t n)
{
	if (n <= in->shared_capacity)
		return CHOIR_OK;
	const size_t before = in->shared_capacity;
	void *array = in->shared;
	if (!chi_grow(&array, &in->shared_capacity, n, sizeof *in->shared))
		return choir_error_status();
	in->shared = array;
	for (size_t i = before; i < in->shared_capacity; i++)
		in->shared[i] = (chi_shared_item){ 0 };
	return CHOIR_OK;
}

static choir_status prepare_landings(chi_instance *in, chi_shared_item *item)
{
	const choir_strategy *s = in->strategy;
	const choir_variable *v = item->variable;
	if (item->landings < v->copies) {
		chi_landing *landing = chi_alloc_array((size_t) v->copies, sizeof *landing);
		if (landing == NULL)
			return choir_error_status();
		chi_free(item->landing);
		item->landing = landing;
		item->landings = v->copies;
	}
	for (int k = 0; in->keeps && !item->by_rows && k < v->copies; k++) {
		chi_landing *l = &item->landing[k];
		l->lane = lane_beside(s, v->copy[k].device);
		if (in->bundled > 0) {
			CHOIR_TRY(chi_bundle_land(in, item, l));
			continue;
		}
		for (int j = 0; j < k && l->sum == NULL; j++)
			if (item->landing[j].lane == l->lane)
				chi_buffer_retain(l->sum = item->landing[j].sum);
		if (l->sum == NULL)
			l->sum = chi_buffer_new(s->device[l->lane], chi_variable_bytes(v));
		if (l->sum == NULL)
			return choir_error_status();
		l->data = l->sum->memory;
	}
	return CHOIR_OK;
}

static choir_status prepare_item(chi_instance *in, chi_shared_item *s)
{
	const choir_variable *v = s->variable;
	CHOIR_TRY(prepare_landings(in, s));
	s->slices = (v->elements + CHI_UPDATE_SLICE - 1) / CHI_UPDATE_SLICE;
	if (s->slices > s->slices_capacity) {
		chi_free(s->squares);
		s->slices_capacity = 0;
		s->squares = chi_alloc_array((size_t) s->slices, sizeof *s->squares);
		if (s->squares == NULL)
			return choir_error_status();
		s->slices_capacity = s->slices;
	}
	s->first_piece = in->pieces;
	in->spread = in->spread || s->spread;
	if (in->keeps || s->spread || (in->alone && !s->by_rows))
		in->pieces += (uint32_t) s->slices;
	return CHOIR_OK;
}

static choir_status prepare(chi_instance *in, int by)
{
	const chi_apply *a = in->apply;
	const choir_strategy *s = in->strategy;
	const chi_lane_items *first = &in->lane[0];
	CHOIR_TRY(grow_shared(in, first->n));
	void *array = in->variable;
	const bool grown = chi_grow(&array, &in->variable_capacity, first->n, sizeof *in->variable);
	in->variable = array;
	if (!grown)
		return choir_error_status();
	for (size_t i = 0; i < first->n; i++)
		in->variable[i] = in->shared[i].variable = first->item[i]->variable;
	in->gated = a->table->gated(a->user);
	in->rows = !in->gated && s->all_host && s->all_here;
	in->keeps = !in->rows || s->concurrency != CHI_EXCLUSIVE;
	in->alone = !in->keeps && s->lanes == 1 && s->process_group == NULL;
	in->spread = false;
	in->n = first->n;
	in->pieces = 0;
	CHOIR_TRY(a->table->begin(a->user, in->state, first->n, in->variable));
	CHOIR_TRY(chi_sparse_gradients_exchange_kinds(in));
	for (size_t i = 0; i < first->n; i++)
		CHOIR_TRY(chi_sparse_gradients_prepare(in, i, by));
	CHOIR_TRY(chi_bundle_prepare(in));
	for (size_t i = 0; i < first->n; i++)
		CHOIR_TRY(prepare_item(in, &in->shared[i]));
	return chi_early_prepare(in);
}

choir_status chi_item_write(const chi_item *item, int copy, int64_t first, int64_t count,
		const void *data, double factor)
{
	chi_instance *in = item->instance;
	const chi_apply *a = in->apply;
	choir_variable *v = item->variable;
	chi_stream *stream = chi_strategy_stream(in->strategy, item->lane, v->copy[copy].device);
	chi_atomic32_store(&in->touched, 1);
	chi_trace_begin(CHOIR_TRACE_UPDATE, v->name);
	const choir_status status = a->table->slice(
			a->user, in->state, item->index, v, copy, first, count, data, factor, stream);
	chi_trace_end();
	return status;
}

static choir_status run_squares(
		chi_stream *stream, const choir_variable *v, int64_t count, const void *data, void *to)
{
	const int64_t n = (count + CHI_UPDATE_SLICE - 1) / CHI_UPDATE_SLICE;
	const choir_chunk_squares_attributes attributes = { CHI_UPDATE_SLICE };
	const choir_buffer x = { (void *) (uintptr_t) data, v->dtype, { 1, { count } } };
	choir_buffer out = { to, CHOIR_F64, { 1, { n } } };
	return chi_kernel_run(stream, "chunk_squares", 1, &x, &out, &attributes);
}

// Squares of slices that are final, in host memory.
static choir_status square_slices(
		const chi_item *item, int64_t first, int64_t count, const void *data)
{
	chi_instance *in = item->instance;
	return run_squares(in->strategy->exchange[item->lane], item->variable, count, data,
			in->shared[item->index].squares + first / CHI_UPDATE_SLICE);
}

static bool squares_here(const chi_instance *in, size_t i, int lane)
{
	return in->shared[i].landing[0].lane == lane && in->shared[i].variable->elements > 0;
}

// Queues the squares of the sums that a lane keeps, one variable's behind another's.
static choir_status queue_squares(const chi_instance *in, int lane, double *there)
{
	choir_status status = CHOIR_OK;
	for (size_t i = 0; i < in->n && status == CHOIR_OK; i++) {
		const chi_shared_item *s = &in->shared[i];
		if (!squares_here(in, i, lane))
			continue;
		status = run_squares(in->strategy->exchange[lane], s->variable, s->variable->elements,
				s->landing[0].data, there);
		there += s->slices;
	}
	return status;
}

// Squares in memory that the host cannot see: made by the lane itself, whose stream it is, and
// fetched together.
static choir_status square_lane(chi_instance *in, int lane)
{
	chi_stream *stream = in->strategy->exchange[lane];
	size_t n = 0;
	for (size_t i = 0; i < in->n; i++)
		n += squares_here(in, i, lane) ? (size_t) in->shared[i].slices : 0;
	if (n == 0 || stream->device->host_memory)
		return CHOIR_OK;
	const size_t bytes = n * sizeof(double);
	chi_scratch *host = &in->lane[lane].squares;
	if (!chi_scratch_reserve(host, bytes))
		return choir_error_status();
	chi_buffer *there = chi_buffer_new(stream->device, bytes);
	if (there == NULL)
		return choir_error_status();
	choir_status status = queue_squares(in, lane, there->memory);
	status = status == CHOIR_OK
			? chi_stream_fetch(stream, host->memory, there->memory, bytes)
			: chi_strategy_wait(in->strategy, lane, lane + 1, status); // some may be queued
	chi_buffer_release(there);
	const double *from = (const double *) (const void *) host->memory;
	for (size_t i = 0; status == CHOIR_OK && i < in->n; i++)
		if (squares_here(in, i, lane)) {
			memcpy(in->shared[i].squares, from, (size_t) in->shared[i].slices * sizeof *from);
			from += in->shared[i].slices;
		}
	return status;
}

// Where the sum of item i for copy 0 is, from element first.
static const void *data_of(const chi_instance *in, size_t i, int64_t first)
{
	const chi_shared_item *s = &in->shared[i];
	const void *sum = in->alone ? in->lane[0].item[i]->fold.node[0].data : s->landing[0].data;
	return (const char *) sum + (size_t) first * chi_dtype_size(s->variable->dtype);
}

static choir_status slice_done(void *user, int64_t first, int64_t count, const void *data)
{
	const chi_item *item = user;
	const chi_instance *in = item->instance;
	if (!in->keeps)
		return chi_item_write(item, copy_of_lane(in->strategy, item->variable, item->lane), first,
				count, data, 1);
	const choir_device *d = in->strategy->device[item->lane];
	// Of lanes that share the sum only one is told of a slice.
	return in->gated && d->host_memory &&
					chi_device_shares(in->shared[item->index].landing[0].sum->device, d)
			? square_slices(item, first, count, data)
			: CHOIR_OK;
}

// The memory in which lane wants the sum of item i, which lanes of one memory share; NULL.
static void *wanted_by(const chi_instance *in, int lane, size_t i)
{
	const choir_device *d = in->strategy->device[lane];
	const chi_shared_item *item = &in->shared[i];
	for (int k = 0; in->keeps && k < item->variable->copies; k++)
		if (chi_device_shares(item->landing[k].sum->device, d))
			return item->landing[k].data;
	return NULL;
}

static choir_status join(chi_instance *in, int lane, size_t i)
{
	choir_strategy *s = in->strategy;
	chi_item *item = in->lane[lane].item[i];
	choir_variable *v = item->variable;
	choir_collective *c = &item->collective;
	const choir_collective_kind kind = c->kind; // chi_apply_now's choice
	void *result = wanted_by(in, lane, i);
	size_t n;
	const choir_part *parts = chi_early_parts(item, &n);
	*c = (choir_collective){
		.size = sizeof *c,
		.sequence = i,
		.name = v->name,
		.kind = chi_early_is_whole(item) ? CHOIR_BROADCAST : kind,
		.dtype = v->dtype,
		.elements = v->elements,
		.divisor = 1,
		.n = n,
		.parts = parts,
		.stream = s->exchange[lane]->state,
		.result = result,
		.done = !in->keeps || (result != NULL && s->device[lane]->host_memory) ? slice_done : NULL,
		.user = item,
	};
	return chi_communicator_join(&s->group, lane, c, &item->ticket);
}

// A lane that is alone has one part of each sum, which is all of it.
static choir_status check_sums(const chi_instance *in)
{
	for (size_t i = 0; i < in->n; i++) {
		const chi_item *item = in->lane[0].item[i];
		const chi_partial_sums *f = &item->fold;
		if (!in->shared[i].by_rows &&
				(f->n == 0 ||
						(item->collective.kind != CHOIR_BROADCAST &&
								f->node[0].hi - f->node[0].lo != in->strategy->replicas)))
			return choir_fail(CHOIR_INTERNAL, "%s: the parts do not cover the %d replicas",
					item->variable->name, in->strategy->replicas);
	}
	return CHOIR_OK;
}

// Waits until all lanes have come here, once in an update: who does it for all need not.
static choir_status meet(chi_instance *in, int from, int to)
{
	const uint32_t lanes = (uint32_t) (to - from), all = (uint32_t) in->strategy->lanes;
	if (lanes == all)
		return CHOIR_OK;
	if (chi_atomic32_add(&in->lanes_met, lanes) + lanes == all) {
		chi_atomic32_store(&in->met, 1);
		chi_run_event(in->run);
	}
	return chi_apply_wait(in, &in->met) ? CHOIR_OK : chi_run_cancelled(in->run);
}

// Whether anything is summed for which all lanes come.
static bool joins(const chi_instance *in)
{
	for (size_t i = 0; i < in->n; i++)
		if (!in->shared[i].by_rows)
			return true;
	return false;
}

static choir_status reduce_bundle(chi_instance *in, int from, int to)
{
	choir_strategy *s = in->strategy;
	for (int lane = from; lane < to; lane++)
		CHOIR_TRY(chi_bundle_join(in, lane));
	for (int lane = from; lane < to; lane++)
		CHOIR_TRY(chi_communicator_wait(
				&s->group, lane, in->lane[lane].item[0]->ticket, s->timeout));
	return CHOIR_OK;
}

// Sums, a window of variables at a time, so that lanes can run ahead of each other a little.
static choir_status reduce(chi_instance *in, int from, int to)
{
	choir_strategy *s = in->strategy;
	if (in->alone)
		return check_sums(in);
	if (in->bundled > 0)
		return reduce_bundle(in, from, to);
	if (!joins(in)) // rows are there at once, but replicas elsewhere may run and fail yet
		return meet(in, from, to);
	for (size_t first = 0; first < in->n; first += CHI_COMMUNICATOR_WINDOW) {
		const size_t last =
				in->n - first < CHI_COMMUNICATOR_WINDOW ? in->n : first + CHI_COMMUNICATOR_WINDOW;
		for (size_t i = first; i < last; i++)
			for (int lane = from; lane < to; lane++)
				if (!in->shared[i].by_rows)
					CHOIR_TRY(join(in, lane, i));
		for (size_t i = first; i < last; i++)
			for (int lane = from; lane < to; lane++)
				if (!in->shared[i].by_rows)
					CHOIR_TRY(chi_communicator_wait(
							&s->group, lane, in->lane[lane].item[i]->ticket, s->timeout));
	}
	return CHOIR_OK;
}

static choir_status decide(const chi_instance *in, double *factor, bool *skip)
{
	double all = 0;
	const choir_variable *bad = NULL;
	for (size_t i = 0; i < in->n; i++) {
		double own = 0;
		for (int64_t k = 0; k < in->shared[i].slices; k++)
			own += in->shared[i].squares[k];
		if (!isfinite(own) && bad == NULL)
			bad = in->shared[i].variable;
		all += own;
	}
	return in->apply->table->gate(in->apply->user, all, bad, factor, skip);
}

// Slices of one copy on the host, whoever takes them: of sums that are there, or of rows.
static choir_status take_pieces(chi_instance *in, int lane, double factor)
{
	for (size_t i = 0;;) {
		const uint32_t piece = chi_atomic32_add(&in->next_piece, 1);
		if (piece >= in->pieces)
			return CHOIR_OK;
		while (i + 1 < in->n && in->shared[i + 1].first_piece <= piece)
			i++;
		const chi_shared_item *s = &in->shared[i];
		const int64_t first = (int64_t) (piece - s->first_piece) * CHI_UPDATE_SLICE;
		const int64_t left = s->variable->elements - first;
		const int64_t count = left < CHI_UPDATE_SLICE ? left : CHI_UPDATE_SLICE;
		const void *data = s->spread ? chi_sparse_gradients_chunk(in, lane, i, first, count)
									 : data_of(in, i, first);
		CHOIR_TRY(chi_item_write(in->lane[lane].item[i], 0, first, count, data, factor));
	}
}

typedef struct {
	chi_instance *instance;
	int lane;
	double factor;
	chi_atomic32 failed;
	chi_error error; // of the first that failed
} sharing;

static void take_share(void *arg, int member, int64_t piece)
{
	sharing *s = arg;
	(void) member, (void) piece;
	if (take_pieces(s->instance, s->lane, s->factor) != CHOIR_OK &&
			chi_atomic32_change(&s->failed, 0, 1))
		chi_error_save(&s->error);
}

// The same by all threads of the lane. What rows are laid out in is the lane's, for one thread.
static choir_status update_pieces(chi_instance *in, int lane, double factor)
{
	const int threads = in->spread ? 1 : chi_team_own_members();
	if (threads == 1)
		return take_pieces(in, lane, factor);
	sharing s = { .instance = in, .lane = lane, .factor = factor };
	CHOIR_TRY(chi_team_share(threads, take_share, &s));
	if (chi_atomic32_load(&s.failed) == 0)
		return CHOIR_OK;
	chi_error_restore(&s.error);
	return choir_error_status();
}

// Sends what lane has made to another device's memory, where stream works on it next.
static choir_status send(
		chi_stream *lane, chi_stream *stream, void *to, const void *sum, size_t bytes)
{
	choir_device *from = lane->device, *d = stream->device;
	uint64_t mark;
	if (d->host_memory)
		return chi_stream_fetch(lane, to, sum, bytes);
	if (from->table != d->table) {
		CHOIR_TRY(chi_stream_wait(lane));
		return from->host_memory ? chi_stream_post(stream, to, sum, bytes)
								 : chi_device_copy(stream, d, to, from, sum, bytes);
	}
	CHOIR_TRY(chi_stream_record_event(lane, &mark));
	CHOIR_TRY(chi_stream_wait_event(stream, lane, mark));
	return chi_stream_copy(stream, to, sum, bytes);
}

// Brings the sum for a copy to a device that carries no replica; *data: where it is there. The
// host waits only where the bytes go through it. The memory is kept until the update is done.
static choir_status bring_sum(
		const chi_item *item, chi_landing *l, chi_stream *stream, const void **data)
{
	chi_instance *in = item->instance;
	const size_t bytes = chi_variable_bytes(item->variable);
	if (in->bundled > 0 && stream->device->host_memory)
		return chi_bundle_fetch(in, item, stream->device, data);
	if ((l->away = chi_buffer_new(stream->device, bytes)) == NULL)
		return choir_error_status();
	*data = l->away->memory;
	return send(in->strategy->exchange[item->lane], stream, l->away->memory, l->data, bytes);
}

static choir_status update_copy(const chi_item *item, int copy, chi_landing *l, double factor)
{
	const choir_variable *v = item->variable;
	choir_device *d = v->copy[copy].device;
	chi_stream *stream = chi_strategy_stream(item->instance->strategy, item->lane, d);
	const void *data = l->data;
	if (!chi_device_shares(l->sum->device, d))
		CHOIR_TRY(bring_sum(item, l, stream, &data));
	CHOIR_TRY(chi_item_write(item, copy, 0, v->elements, data, factor));
	return v->concurrency == CHI_EXCLUSIVE ? CHOIR_OK : chi_stream_wait(stream);
}

static choir_status update_copies(chi_instance *in, int lane, double factor)
{
	for (size_t i = 0; i < in->n; i++) {
		const chi_shared_item *s = &in->shared[i];
		for (int k = 0; k < s->variable->copies; k++) {
			if (s->by_rows || s->landing[k].lane != lane)
				continue;
			CHOIR_TRY(chi_variable_enter(s->variable));
			const choir_status status =
					update_copy(in->lane[lane].item[i], k, &s->landing[k], factor);
			chi_variable_leave(s->variable);
			CHOIR_TRY(status);
		}
	}
	return CHOIR_OK;
}

// When all sums are there. *applied: false if the gate skips the update.
static choir_status update_kept(chi_instance *in, int from, int to, bool *applied)
{
	const choir_strategy *s = in->strategy;
	const bool by_pieces = s->all_host && s->all_here && s->concurrency == CHI_EXCLUSIVE;
	double factor = 1;
	bool skip = false;
	for (int lane = from; in->gated && lane < to; lane++)
		CHOIR_TRY(square_lane(in, lane));
	// So that every square is known: a lane that wants no sum may be early. Where all memory is
	// the host's, all lanes want all sums.
	if (in->gated && !by_pieces)
		CHOIR_TRY(meet(in, from, to));
	if (in->gated)
		CHOIR_TRY(decide(in, &factor, &skip));
	*applied = !skip;
	if (skip)
		return CHOIR_OK;
	if (by_pieces)
		return update_pieces(in, from, factor);
	for (int lane = from; lane < to; lane++)
		CHOIR_TRY(update_copies(in, lane, factor));
	return CHOIR_OK;
}

static void finish(chi_instance *in, bool applied)
{
	for (size_t i = 0; applied && i < in->n; i++)
		for (int k = 0; k < in->shared[i].variable->copies; k++)
			chi_variable_bump_version(in->shared[i].variable, k);
	in->apply->table->end(in->apply->user, in->state, applied);
	if (in->run != NULL && applied)
		in->run->applied = true;
	chi_atomic32_store(&in->done, 1);
}

static choir_status prepared(chi_instance *in, bool mine, int by)
{
	if (mine) {
		in->status = prepare(in, by);
		if (in->status != CHOIR_OK)
			chi_error_save(&in->error);
		chi_gate_open(&in->prepared, 1);
	}
	// Who prepares may wait for other workers, as long as their cluster's time-out says, and
	// always comes here.
	const choir_strategy *s = in->strategy;
	const double deadline = chi_clock_deadline(s->process_group == NULL ? s->timeout : -1);
	while (chi_atomic32_load(&in->prepared.word) == 0)
		if (!chi_gate_wait(&in->prepared, 0, chi_instance_spins(in), deadline))
			return choir_fail(CHOIR_TIMEOUT, "%s: preparing an update took too long",
					in->apply->table->name);
	if (in->status != CHOIR_OK)
		chi_error_restore(&in->error);
	return in->status;
}

// The lanes' streams wait for the gradients that replicas have queued.
static choir_status follow_gradients(chi_instance *in, int from, int to)
{
	for (int lane = from; lane < to; lane++) {
		chi_lane_items *l = &in->lane[lane];
		if (l->queued != NULL)
			CHOIR_TRY(chi_stream_wait_event(in->strategy->exchange[lane], l->queued, l->event));
		l->queued = NULL;
	}
	return CHOIR_OK;
}

choir_status chi_instance_execute(chi_instance *in, int from, int to, bool prepare_it)
{
	choir_strategy *s = in->strategy;
	bool applied = true;
	choir_status status = prepared(in, prepare_it, from);
	if (status == CHOIR_OK)
		status = follow_gradients(in, from, to);
	if (status == CHOIR_OK)
		status = chi_early_finish(in, from, to);
	if (status == CHOIR_OK)
		status = reduce(in, from, to);
	if (status == CHOIR_OK && prepare_it)
		status = chi_sparse_gradients_update(in, from);
	if (status == CHOIR_OK)
		status = in->keeps ? update_kept(in, from, to, &applied) : update_pieces(in, from, 1);
	status = chi_strategy_wait(s, from, to, status);
	if (from == 0 && !s->all_here) // whose lane updates all that lies away
		status = chi_strategy_wait_away(s, status);
	if (status != CHOIR_OK)
		return status; // what was touched is undefined: chi_instance_forget
	const uint32_t lanes = (uint32_t) (to - from);
	if (chi_atomic32_add(&in->lanes_through, lanes) + lanes == (uint32_t) s->lanes)
		finish(in, applied);
	return CHOIR_OK;
}
