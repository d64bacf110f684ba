// Who does an update and when. Giving and committing never wait. At the end of a run the lanes do
// what is pending together; a replica that reads a variable it has asked to update, or a merge
// call, has it done at once, by one thread for all lanes: every replica has given its gradients by
// then, and none may use what it read before.
#include "strategy/gradients/gradients.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "op/op.h"
#include "strategy/gradients/pending.h"
#include "strategy/gradients/overlap_workers.h"
#include "strategy/run/sync_point.h"
#include "strategy/cross/sparse_reduce.h"

static choir_status check_gradient(chi_apply *a, const choir_replica *r, const choir_variable *v,
		const choir_tensor *gradient)
{
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT];
	if (v == NULL)
		return chi_frame_fail(r->frame, CHOIR_INVALID, "%s: the variable is NULL", a->table->name);
	if (!chi_strategy_has(a->strategy, v))
		return chi_frame_fail(r->frame, CHOIR_INVALID,
				"%s: variable \"%s\" was made in another "
				"strategy (%s)",
				a->table->name, v->name, v->strategy->label);
	if (v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return chi_frame_fail(r->frame, CHOIR_INVALID,
				"%s: variable \"%s\" is ON_READ and has no "
				"common value to update",
				a->table->name, v->name);
	if (gradient->frame != r->frame)
		return chi_frame_fail(r->frame, CHOIR_INVALID,
				"%s: the gradient of \"%s\" belongs to "
				"another frame",
				a->table->name, v->name);
	const choir_shape shape = chi_dense_shape(gradient);
	if (gradient->dtype != v->dtype || !chi_shape_equal(&shape, &v->shape))
		return chi_frame_fail(r->frame, CHOIR_INVALID,
				"%s: the gradient of \"%s\" is %s %s, the "
				"variable %s %s",
				a->table->name, v->name, choir_dtype_name(gradient->dtype),
				chi_shape_print(&shape, have), choir_dtype_name(v->dtype),
				chi_shape_print(&v->shape, need));
	return chi_is_slices(gradient) && chi_apply_takes_rows(a, v) ? chi_tensor_check_any(gradient)
																 : chi_tensor_check(gradient);
}

// The update that r gives to: a's, after those that r has committed in this run.
static chi_instance *current(chi_apply *a, const chi_replica *r)
{
	chi_run *run = r->run;
	chi_mutex_lock(&run->lock);
	int ordinal = 0;
	for (int i = 0; i < r->commits; i++)
		ordinal += run->pending[i]->apply == a;
	chi_instance *in = chi_instance_get(a, run, ordinal);
	if (in != NULL && !in->open) {
		in->open = true;
		if (run->open == NULL)
			chi_overlap_begin(in);
		in->next_open = run->open;
		run->open = in;
	}
	chi_mutex_unlock(&run->lock);
	return in;
}

static choir_status give(chi_apply *a, chi_replica *r, choir_variable *v, choir_tensor *gradient)
{
	choir_frame *f = r->shown.frame;
	CHOIR_TRY(check_gradient(a, &r->shown, v, gradient));
	if (r->run->alone)
		return CHOIR_OK;
	chi_instance *in = current(a, r);
	chi_item *item = in == NULL ? NULL : chi_instance_item(in, r->lane, v);
	if (item == NULL)
		return chi_frame_record_error(f);
	if (item->last_giver == r->id || chi_partial_sums_have(&item->fold, chi_replica_number(r)) ||
			chi_sparse_gradients_have(&item->rows, r->id))
		return chi_frame_fail(f, CHOIR_INVALID, "%s: the gradient of \"%s\" was given twice",
				a->table->name, v->name);
	choir_tensor *kept = chi_tensor_retain(f, gradient);
	if (kept == NULL)
		return chi_frame_status(f);
	item->last_giver = r->id;
	item->place = r->gives++;
	r->trains = true;
	r->gave = chi_hash_mix(r->gave + (uint64_t) (uintptr_t) v);
	const bool rows = chi_is_slices(kept);
	choir_status status = rows ? chi_sparse_gradients_add(&item->rows, r->id, kept)
							   : chi_partial_sums_add(&item->fold, chi_replica_number(r),
										 kept->buffer, kept->data, f->stream);
	if (kept != gradient)
		chi_tensor_drop(kept);
	if (status == CHOIR_OK && !rows)
		status = chi_early_given(item);
	return status == CHOIR_OK ? status : chi_frame_record_error(f);
}

choir_status chi_apply_give(
		chi_apply *a, choir_replica *replica, choir_variable *v, choir_tensor *gradient)
{
	CHOIR_TRY(chi_replica_check(replica, a->table->name));
	chi_replica *r = chi_replica_of(replica);
	const choir_status status =
			gradient == NULL ? chi_frame_status(replica->frame) : give(a, r, v, gradient);
	if (status != CHOIR_OK)
		chi_run_renew(r->run);
	return status;
}

static size_t append(char text[64], size_t at, const char *more)
{
	while (*more != '\0' && at < 63)
		text[at++] = *more++;
	text[at] = '\0';
	return at;
}

// "adam of hidden/kernel, hidden/bias": what the gradients are of that r gave, in its order.
static void describe(
		char text[64], const chi_apply *a, const chi_replica *r, const chi_lane_items *l)
{
	size_t at = append(text, 0, a->table->name);
	for (int place = 0; place < r->gives && at < 63; place++)
		for (size_t i = 0; i < l->n; i++) {
			const chi_item *item = l->item[i];
			if (item->last_giver != r->id || item->place != place)
				continue;
			at = append(text, at, place == 0 ? " of " : ", ");
			at = append(text, at, item->variable->name);
		}
}

// Whether r has asked for this update.
static bool has_committed(const chi_replica *r, const chi_instance *in)
{
	for (int i = 0; i < r->commits; i++)
		if (r->run->pending[i] == in)
			return true;
	return false;
}

choir_status chi_apply_check_all(chi_replica *r)
{
	const chi_instance *found = NULL;
	if (!r->trains)
		return CHOIR_OK; // without a lock: an empty run takes half a microsecond
	chi_mutex_lock(&r->run->lock);
	for (const chi_instance *in = r->run->open; in != NULL && found == NULL; in = in->next_open)
		if (!has_committed(r, in))
			for (size_t i = 0; i < in->lane[r->lane].n; i++)
				if (in->lane[r->lane].item[i]->last_giver == r->id)
					found = in;
	chi_mutex_unlock(&r->run->lock);
	if (found == NULL)
		return CHOIR_OK;
	char text[64];
	describe(text, found->apply, r, &found->lane[r->lane]);
	return chi_frame_fail(r->shown.frame, CHOIR_STATE,
			"gradients were given for %s, and no "
			"update was asked for: choir_optimizer_apply_gradients is missing",
			text);
}

// With the run's lock held: the update takes its place in the order of the run.
static choir_status enlist(chi_meet *m, chi_replica *r, void *user)
{
	chi_run *run = r->run;
	void *array = run->pending;
	const bool grown =
			chi_grow(&array, &run->pending_capacity, run->n_pending + 1, sizeof(chi_instance *));
	run->pending = array;
	if (!grown)
		return choir_error_status();
	m->instance = user;
	run->pending[run->n_pending++] = user;
	return CHOIR_OK;
}

// What r read of the variables that it asks to update may change under it from now on.
static void retire_reads(chi_replica *r, const chi_instance *in)
{
	const chi_lane_items *l = &in->lane[r->lane];
	for (choir_tensor *t = r->shown.frame->tensors; t != NULL; t = t->next)
		for (size_t i = 0; t->source != NULL && i < l->n; i++)
			if (t->source->owner == l->item[i]->variable ||
					t->source->owner == l->item[i]->variable->parent)
				t->version = CHI_RETIRED;
}

static bool gave_rows(const chi_lane_items *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->item[i]->rows.n > 0)
			return true;
	return false;
}

// What r has queued comes before the update. Where a lane is a replica on a device of its own, the
// update's streams wait for it; elsewhere the host does. The lane's stream for updates is not
// touched here: another lane may be doing the update before this one on it.
static choir_status gradients_precede(const chi_replica *r, chi_lane_items *l)
{
	const choir_strategy *s = r->run->strategy;
	chi_stream *stream = r->shown.frame->stream;
	if (r->run == s->home->standing || s->process_group != NULL || stream->device->host_memory ||
			!s->all_here || s->first[r->lane + 1] - s->first[r->lane] != 1 || gave_rows(l))
		return chi_stream_wait(stream);
	l->queued = stream;
	return chi_stream_record_event(stream, &l->event);
}

static choir_status commit(chi_apply *a, chi_replica *r)
{
	chi_run *run = r->run;
	choir_frame *f = r->shown.frame;
	if (f->failed)
		return chi_frame_status(f);
	if (run->alone)
		return chi_stream_wait(f->stream);
	chi_instance *in = current(a, r);
	if (in == NULL)
		return chi_frame_record_error(f);
	chi_lane_items *l = &in->lane[r->lane];
	CHOIR_TRY(gradients_precede(r, l));
	const uint64_t hash = r->gave;
	r->gave = 0;
	l->cursor = 0;
	bool last;
	char text[64];
	describe(text, a, r, l);
	r->gives = 0;
	chi_meet *m = chi_meet_arrive(r, CHI_MEET_UPDATE, a, hash, text, enlist, in, &last);
	if (m == NULL)
		return chi_frame_record_error(f);
	r->commits++;
	retire_reads(r, in);
	chi_meet_leave(r, m);
	if (last) {
		chi_atomic32_store(&in->all, 1);
		if (in->early.between)
			chi_overlap_look(in->strategy);
		chi_run_event(run);
	}
	return CHOIR_OK;
}

choir_status chi_apply_commit(chi_apply *a, choir_replica *replica)
{
	CHOIR_TRY(chi_replica_check(replica, a->table->name));
	chi_replica *r = chi_replica_of(replica);
	choir_status status = commit(a, r);
	if (status == CHOIR_OK && r->run == a->strategy->standing)
		status = chi_apply_settle(r, NULL); // no end of a run will do it
	chi_run_renew(r->run);
	return status;
}

// Claims the update for lane, or for all lanes (lane CHOIR_NONE). Gives how to take part.
typedef enum { NOTHING_TO_DO, AS_FIRST, AS_OTHER } part;
static part claim(chi_run *run, chi_instance *in, int lane)
{
	chi_mutex_lock(&run->lock);
	part mine = NOTHING_TO_DO;
	if (in->stage == CHI_OPEN) {
		in->stage = lane == CHOIR_NONE ? CHI_BY_ONE : CHI_BY_LANES;
		mine = AS_FIRST;
	} else if (in->stage == CHI_BY_LANES && lane != CHOIR_NONE && !in->lane[lane].through) {
		mine = AS_OTHER;
	}
	if (mine != NOTHING_TO_DO && lane != CHOIR_NONE)
		in->lane[lane].through = true;
	chi_mutex_unlock(&run->lock);
	return mine;
}

// Who keeps the lowest replica that has not returned from it; CHOIR_NONE: all have.
static int still_running(chi_run *run)
{
	int found = CHOIR_NONE;
	chi_mutex_lock(&run->lock);
	for (int i = run->strategy->replicas - 1; i >= 0; i--)
		if (chi_atomic32_load(&run->replica[i].gone) == 0)
			found = chi_lane_holder(run, i);
	chi_mutex_unlock(&run->lock);
	return found;
}

// True: an update waited for a replica, which is named.
static bool blame(chi_run *run)
{
	const int missing = still_running(run);
	if (missing != CHOIR_NONE)
		choir_fail(CHOIR_TIMEOUT,
				"run: an update waited %g s for replica %d, which has not "
				"returned",
				run->strategy->timeout, chi_strategy_id(run->strategy, missing));
	return missing != CHOIR_NONE;
}

static choir_status execute(chi_run *run, chi_instance *in, int lane, part mine)
{
	const int lanes = run->strategy->lanes;
	const bool alone = lane == CHOIR_NONE;
	const choir_status status =
			chi_instance_execute(in, alone ? 0 : lane, alone ? lanes : lane + 1, mine == AS_FIRST);
	if (status == CHOIR_TIMEOUT)
		(void) blame(run);
	if (status != CHOIR_OK)
		chi_run_fail(run, run->strategy->replicas);
	else if (chi_atomic32_load(&in->done) != 0)
		chi_run_event(run);
	return status;
}

// Whether one does it for all lanes: who waits for that waits for no replica. It ends by itself,
// also where other workers must come, whose exchanges have a deadline of their own.
static bool is_by_one(chi_run *run, const chi_instance *in)
{
	chi_mutex_lock(&run->lock);
	const bool by_one = in->stage == CHI_BY_ONE;
	chi_mutex_unlock(&run->lock);
	return by_one;
}

// Until *flag of in is not zero; meanwhile lane, unless it is CHOIR_NONE, sums what there is to be
// summed.
static bool await(chi_instance *in, const chi_atomic32 *flag, int lane)
{
	chi_run *run = in->run;
	uint32_t moves = chi_atomic32_load(&run->moves);
	double deadline = chi_clock_deadline(run->strategy->timeout);
	for (;;) {
		const uint32_t word = chi_atomic32_load(&run->event.word);
		if (chi_atomic32_load(&run->failed) != 0)
			return false;
		if (chi_atomic32_load(flag) != 0)
			return true;
		if (lane != CHOIR_NONE && chi_early_help(in, lane) != CHOIR_OK) {
			chi_run_fail(run, run->strategy->replicas);
			return false;
		}
		chi_trace_begin(CHOIR_TRACE_WAIT, "update");
		const bool in_time = chi_gate_wait(&run->event, word, run->spin, deadline);
		chi_trace_end();
		if (in_time)
			continue;
		if (moves == chi_atomic32_load(&run->moves) && !is_by_one(run, in) && blame(run)) {
			chi_run_fail(run, run->strategy->replicas);
			return false;
		}
		moves = chi_atomic32_load(&run->moves);
		deadline = chi_clock_deadline(run->strategy->timeout);
	}
}

bool chi_apply_wait(chi_instance *in, const chi_atomic32 *flag)
{
	return await(in, flag, CHOIR_NONE);
}

// Until all replicas have asked for the update; what they give is summed meanwhile.
static bool wait_for_all(chi_instance *in, int lane)
{
	chi_atomic32_add(&in->early.waiting, 1);
	const bool all = await(in, &in->all, lane);
	chi_atomic32_add(&in->early.waiting, UINT32_MAX);
	return all;
}

// The i-th update that was asked for; the list may be moved by who asks for the next.
static chi_instance *pending(chi_run *run, int i)
{
	chi_mutex_lock(&run->lock);
	chi_instance *in = run->pending[i];
	chi_mutex_unlock(&run->lock);
	return in;
}

static void do_pending(chi_run *run, int lane, int commits)
{
	for (int i = 0; i < commits; i++) {
		chi_instance *in = pending(run, i);
		if (!wait_for_all(in, lane))
			return;
		const part mine = claim(run, in, lane);
		if (mine != NOTHING_TO_DO && execute(run, in, lane, mine) != CHOIR_OK)
			return;
		// The next one may be the same optimizer's, or write the same variables.
		if ((mine == NOTHING_TO_DO || i + 1 < commits) && !chi_apply_wait(in, &in->done))
			return;
	}
}

void chi_lane_apply(chi_run *run, int lane)
{
	const int commits = run->replica[run->strategy->first[lane]].commits;
	if (commits == 0)
		return;
	chi_lane_trace(run, lane, CHOIR_TRACE_UPDATE, "updates");
	do_pending(run, lane, commits);
	chi_trace_end();
}

static bool concerns(const chi_instance *in, int lane, const choir_variable *v)
{
	for (size_t i = 0; i < in->lane[lane].n; i++)
		if (in->lane[lane].item[i]->variable == v ||
				in->lane[lane].item[i]->variable == v->colocated_with)
			return true;
	return false;
}

static choir_status settle_one(chi_replica *r, chi_instance *in)
{
	CHOIR_TRY(chi_lane_wait(r, &in->all, NULL));
	// Alone, unless the other lanes are at it: then this lane must take part.
	part mine = claim(r->run, in, CHOIR_NONE);
	int lane = CHOIR_NONE;
	if (mine == NOTHING_TO_DO)
		mine = claim(r->run, in, lane = r->lane);
	if (mine != NOTHING_TO_DO)
		CHOIR_TRY(execute(r->run, in, lane, mine));
	return chi_lane_wait(r, &in->done, NULL);
}

// Up to the last update of v, all in the order in which they were asked for: an earlier one of
// other variables may be the same optimizer's.
choir_status chi_apply_settle(chi_replica *r, const choir_variable *v)
{
	int n = r->commits;
	while (n > 0 && v != NULL && !concerns(pending(r->run, n - 1), r->lane, v))
		n--;
	for (int i = 0; i < n; i++) {
		chi_instance *in = pending(r->run, i);
		if (chi_atomic32_load(&in->done) != 0)
			continue;
		if (settle_one(r, in) != CHOIR_OK) {
			r->cancelled = true;
			return chi_frame_record_error(r->shown.frame);
		}
	}
	return CHOIR_OK;
}

choir_status chi_apply_flush(chi_run *run)
{
	for (size_t i = 0; i < run->n_pending; i++)
		if (claim(run, run->pending[i], CHOIR_NONE) != NOTHING_TO_DO)
			CHOIR_TRY(chi_instance_execute(run->pending[i], 0, run->strategy->lanes, true));
	return CHOIR_OK;
}

void chi_apply_forget(chi_run *run)
{
	for (chi_instance *in = run->open; in != NULL; in = in->next_open)
		chi_instance_forget(in);
	run->open = NULL;
	run->n_pending = 0;
}

// What a gradient's memory is, if that is no variable's, which updates before this one's may
// change: else a copy. NULL: recorded in x's frame.
static choir_tensor *steady(choir_cross *x, choir_tensor *t)
{
	if (t == NULL || t->source == NULL || t->source->copied)
		return t;
	choir_frame *f = chi_cross_frame_on(chi_cross_of(x), chi_tensor_memory_device(t));
	choir_tensor *kept = f == NULL ? NULL : chi_tensor_retain(f, t);
	if (kept != NULL && chi_stream_wait(f->stream) == CHOIR_OK)
		return kept;
	chi_frame_record_error(x->frame);
	return NULL;
}

static choir_status give_value(
		chi_apply *a, chi_instance *in, choir_cross *x, choir_variable *v, choir_value *value)
{
	choir_strategy *s = in->strategy;
	if (v == NULL || value == NULL || (value = chi_dense_value(x, value)) == NULL)
		return chi_frame_status(x->frame);
	for (int lane = 0; lane < s->lanes; lane++) {
		chi_item *item = chi_instance_item(in, lane, v);
		if (item == NULL)
			return choir_error_status();
		if (value->kind != CHOIR_VALUE_PER_REPLICA) {
			item->collective.kind = CHOIR_BROADCAST;
			choir_tensor *t = choir_value_tensor(value);
			t = t == NULL ? NULL : steady(x, chi_value_view(x->frame, t));
			if (t == NULL)
				return choir_error_status();
			CHOIR_TRY(check_gradient(a, &(choir_replica){ x->frame }, v, t));
			if (lane == 0)
				CHOIR_TRY(chi_partial_sums_add(
						&item->fold, 0, t->buffer, t->data, x->frame->stream));
			continue;
		}
		for (int r = s->first[lane]; r < s->first[lane + 1]; r++) {
			choir_tensor *t = value->component[r];
			CHOIR_TRY(check_gradient(a, &(choir_replica){ t->frame }, v, t));
			if ((t = steady(x, t)) == NULL)
				return choir_error_status();
			CHOIR_TRY(chi_partial_sums_add(
					&item->fold, chi_strategy_id(s, r), t->buffer, t->data, s->exchange[lane]));
		}
	}
	return CHOIR_OK;
}

choir_status chi_apply_now(chi_apply *a, choir_cross *x, size_t n, choir_variable *const v[],
		choir_value *const values[])
{
	CHOIR_TRY(chi_cross_check(x, a->table->name));
	chi_cross *hidden = chi_cross_of(x);
	choir_strategy *s = hidden->strategy;
	chi_run *run = hidden->run != NULL ? hidden->run : s->run;
	if (hidden->run != NULL && run->alone)
		return CHOIR_OK;
	chi_instance *in = chi_instance_get(a, run, CHOIR_NONE);
	if (in == NULL)
		return chi_frame_record_error(x->frame);
	chi_fpenv host;
	chi_fpenv_enter(&host); // a program's own context has the program's
	choir_status status = CHOIR_OK;
	for (size_t i = 0; status == CHOIR_OK && i < n; i++)
		status = give_value(a, in, x, v[i], values[i]);
	status = chi_strategy_wait(s, 0, s->lanes, status);
	if (status == CHOIR_OK)
		status = chi_instance_execute(in, 0, s->lanes, true);
	if (status != CHOIR_OK)
		chi_strategy_start_over(s);
	chi_instance_forget(in);
	chi_fpenv_leave(&host);
	return status == CHOIR_OK ? status : chi_frame_record_error(x->frame);
}
