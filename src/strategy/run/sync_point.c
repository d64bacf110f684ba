// The ring grows if replicas drift apart at updates, where none waits.
#include "strategy/run/sync_point.h"

#include "strategy/run/small_all_reduce.h"

#include <stdio.h>
#include <string.h>

static chi_sync_point **ring_entry(chi_run *run, uint32_t number)
{
	return &run->sync_point[number % run->sync_point_capacity];
}

static choir_status grow(chi_run *run)
{
	const uint32_t capacity = run->sync_point_capacity == 0 ? 8 : 2 * run->sync_point_capacity;
	chi_sync_point **ring = chi_alloc_array(capacity, sizeof *ring);
	CHOIR_TRY(chi_made(ring));
	for (uint32_t i = run->first_sync_point; i != run->next_sync_point; i++)
		ring[i % capacity] = *ring_entry(run, i);
	chi_free(run->sync_point);
	run->sync_point = ring;
	run->sync_point_capacity = capacity;
	return CHOIR_OK;
}

static chi_sync_point *new_sync_point(chi_run *run)
{
	if (run->next_sync_point - run->first_sync_point == run->sync_point_capacity &&
			grow(run) != CHOIR_OK)
		return NULL;
	chi_sync_point *point = run->spare_sync_points;
	if (point != NULL) {
		run->spare_sync_points = point->next;
		chi_buffer **buffer = point->buffer;
		memset(point, 0, sizeof *point);
		point->buffer = buffer;
	} else if ((point = chi_alloc(sizeof *point)) == NULL) {
		return NULL;
	} else if ((point->buffer = chi_alloc_array(
						(size_t) run->strategy->devices, sizeof *point->buffer)) == NULL) {
		chi_free(point);
		return NULL;
	}
	point->number = run->next_sync_point;
	*ring_entry(run, run->next_sync_point++) = point;
	return point;
}

static void forget(chi_run *run, chi_sync_point *point)
{
	for (int i = 0; i < run->strategy->devices; i++) {
		chi_buffer_release(point->buffer[i]);
		point->buffer[i] = NULL;
	}
	point->next = run->spare_sync_points;
	run->spare_sync_points = point;
}

// "NAME of f32 [2, 3]".
static void print_call(const char *name, const chi_replica *r, chi_sync_point_kind kind,
		char text[2 * CHI_SYNC_POINT_NAME])
{
	char shape[CHI_SHAPE_TEXT];
	const choir_tensor *t = r->contribution;
	int length = snprintf(text, 2 * CHI_SYNC_POINT_NAME, "%s", name);
	if (kind == CHI_SYNC_POINT_COLLECTIVE)
		snprintf(text + length, (size_t) (2 * CHI_SYNC_POINT_NAME - length), "%s of %s %.60s%s",
				r->reduces == CHOIR_MEAN ? ", mean" : "", choir_dtype_name(t->dtype),
				chi_shape_print(&t->shape, shape), t->count == CHOIR_NONE ? "" : " with a count");
}

choir_status chi_sync_point_diverged(
		int a, const char *in_a, int b, const char *in_b, int64_t number)
{
	char where[40] = "";
	if (a > b)
		return chi_sync_point_diverged(b, in_b, a, in_a, number);
	if (number != CHOIR_NONE)
		snprintf(where, sizeof where, "sync point %lld: ", (long long) number + 1);
	return choir_fail(CHOIR_STATE,
			"%sreplica %d is in %s, replica %d in %s; all "
			"replicas must make the same calls in the same order",
			where, a, in_a, b, in_b);
}

void chi_sync_point_print(chi_run *run, uint32_t number, char text[2 * CHI_SYNC_POINT_NAME])
{
	snprintf(text, 2 * CHI_SYNC_POINT_NAME, "another call");
	chi_mutex_lock(&run->lock);
	if (chi_atomic32_load(&run->failed) == 0 &&
			number - run->first_sync_point < run->next_sync_point - run->first_sync_point) {
		const chi_sync_point *point = *ring_entry(run, number);
		print_call(point->name, &run->replica[point->first], point->kind, text);
	}
	chi_mutex_unlock(&run->lock);
}

// The first replica still waits, so its tensor is valid.
static choir_status diverged(
		const chi_replica *r, const chi_sync_point *like, const chi_sync_point *point)
{
	char own[2 * CHI_SYNC_POINT_NAME], other[2 * CHI_SYNC_POINT_NAME],
			why[2 * CHI_SYNC_POINT_NAME + 64];
	print_call(like->name, r, like->kind, own);
	print_call(point->name, &r->run->replica[point->first], point->kind, other);
	snprintf(why, sizeof why, "%s%s", own,
			strcmp(own, other) != 0 ? ""
					: like->kind == CHI_SYNC_POINT_MERGE
					? " with another function"
					: " with other names, variables or shapes");
	return chi_sync_point_diverged(chi_replica_number(r), why,
			chi_strategy_id(r->run->strategy, point->first), other, point->number);
}

choir_status chi_sync_point_other_order(const chi_replica *r, int other, const char *name)
{
	return choir_fail(CHOIR_STATE,
			"replica %d passed the same tensors as replica %d in another order, "
			"as %s shows; all replicas must make the same calls in the same order",
			chi_replica_number(r), chi_strategy_id(r->run->strategy, other), name);
}

static choir_status returned_before(
		const chi_replica *who, const chi_replica *waits, const char *name)
{
	return choir_fail(CHOIR_STATE,
			"replica %d returned after %u sync point%s, replica %d was "
			"in %s; all replicas must make the same number of calls",
			chi_replica_number(who), who->sequence, who->sequence == 1 ? "" : "s",
			chi_replica_number(waits), name);
}

// A cancelled replica may return before the error is recorded. With the lock.
static bool left_for_good(const chi_replica *r)
{
	return chi_atomic32_load_seq_cst(&r->has_returned) != 0 && !r->cancelled &&
			chi_atomic32_load(&r->run->failed) == 0;
}

// Only the first checks for returned replicas; a later return sees the arrival. With the lock.
static bool is_first(chi_run *run, uint32_t number)
{
	if (number != chi_atomic32_load(&run->arrivals))
		return false;
	chi_atomic32_add(&run->arrivals, 1); // before checking for returned replicas
	return true;
}

static bool all_are_there(const chi_replica *r, const chi_sync_point *like)
{
	const chi_run *run = r->run;
	for (int i = 0; i < run->strategy->replicas; i++)
		if (left_for_good(&run->replica[i]) && run->replica[i].sequence <= r->sequence) {
			returned_before(&run->replica[i], r, like->name);
			return false;
		}
	return true;
}

static chi_sync_point *arrive(
		chi_replica *r, const chi_sync_point *like, chi_prepare_fn *prepare, void *user)
{
	chi_run *run = r->run;
	const uint32_t number = r->sequence;
	if (run->isolated && run->strategy->in_sync > 1)
		return chi_fail_null(CHOIR_UNSUPPORTED,
				"replica %d runs by itself and came to %s, which needs all %d replicas",
				chi_replica_number(r), like->name, run->strategy->in_sync);
	while (run->first_sync_point != run->next_sync_point &&
			chi_atomic32_load(&(*ring_entry(run, run->first_sync_point))->left) ==
					(uint32_t) run->strategy->replicas)
		forget(run, *ring_entry(run, run->first_sync_point++));
	if (is_first(run, number) && !all_are_there(r, like))
		return NULL;
	chi_sync_point *point = number == run->next_sync_point ? NULL : *ring_entry(run, number);
	if (point == NULL) {
		if ((point = new_sync_point(run)) == NULL)
			return NULL;
		point->kind = like->kind;
		point->what = like->what;
		point->hash = like->hash;
		point->order = r->order;
		memcpy(point->name, like->name, sizeof point->name);
		point->first = r->id;
		if (prepare != NULL && prepare(point, r, user) != CHOIR_OK) {
			run->next_sync_point--;
			forget(run, point);
			return NULL;
		}
	} else if (point->kind != like->kind || point->what != like->what ||
			point->hash != like->hash) {
		diverged(r, like, point);
		return NULL;
	} else if (chi_call_order_crosses(point->order, r->order)) {
		chi_sync_point_other_order(r, point->first, point->name);
		return NULL;
	}
	point->arrived++;
	chi_atomic32_store(&point->last, (uint32_t) chi_trace_track());
	r->sequence++;
	chi_atomic32_add(&run->progress, 1);
	return point;
}

chi_sync_point *chi_sync_point_arrive(chi_replica *r, chi_sync_point_kind kind, const void *what,
		uint64_t hash, const char *name, chi_prepare_fn *prepare, void *user, bool *last)
{
	chi_run *run = r->run;
	chi_sync_point like = { .kind = kind, .what = what, .hash = hash };
	memcpy(like.name, name, strnlen(name, sizeof like.name - 1));
	chi_mutex_lock(&run->lock);
	const bool failed = chi_atomic32_load(&run->failed) != 0;
	chi_sync_point *point = failed ? NULL : arrive(r, &like, prepare, user);
	*last = point != NULL && point->arrived == run->strategy->replicas;
	chi_mutex_unlock(&run->lock);
	if (point != NULL)
		chi_small_all_reduce_arrived(r);
	if (point == NULL) {
		if (failed)
			chi_run_cancelled(run);
		else
			chi_run_fail(run, run->strategy->replicas);
		r->cancelled = true;
	}
	return point;
}

void chi_sync_point_ready(chi_run *run, chi_sync_point *point)
{
	chi_atomic32_store(&point->ready, 1);
	chi_run_wake_up(run);
}

void chi_sync_point_leave(chi_sync_point *point)
{
	chi_atomic32_add(&point->left, 1);
}

// An arriving replica counts its arrival, then checks for returned ones; a returning one does the
// opposite. Sequentially consistent: at least one sees the other.
void chi_sync_point_returned(chi_replica *r)
{
	chi_run *run = r->run;
	chi_run_device *dev = &run->device[r->device];
	chi_atomic32_store_seq_cst(&r->has_returned, 1);
	const bool behind = chi_atomic32_load_seq_cst(&run->arrivals) != r->sequence;
	if (!dev->shared && !behind) { // the lock would move between cores
		dev->left--;
		if (!r->cancelled)
			chi_small_all_reduce_returned(r);
		return;
	}
	chi_mutex_lock(&run->lock);
	r->state = CHI_RETURNED;
	dev->left--;
	chi_atomic32_add(&run->progress, 1);
	const bool short_of = r->sequence != run->next_sync_point && left_for_good(r);
	if (short_of) {
		const chi_sync_point *point = *ring_entry(run, r->sequence);
		returned_before(r, &run->replica[point->first], point->name);
	}
	chi_mutex_unlock(&run->lock);
	if (!r->cancelled)
		chi_small_all_reduce_returned(r);
	if (short_of)
		chi_run_fail(run, run->strategy->replicas);
}

int chi_sync_point_missing(const chi_replica *r, const chi_sync_point *point)
{
	const chi_run *run = r->run;
	// Replica 0 makes variables: that wait depends on no other.
	const int n =
			point != NULL && point->kind == CHI_SYNC_POINT_CREATE ? 1 : run->strategy->replicas;
	for (int i = 0; i < n; i++)
		if (run->replica[i].sequence < r->sequence)
			return i;
	return CHOIR_NONE;
}

void chi_sync_point_clear(chi_run *run)
{
	while (run->first_sync_point != run->next_sync_point)
		forget(run, *ring_entry(run, run->first_sync_point++));
	run->first_sync_point = run->next_sync_point = 0;
	if (chi_atomic32_load(&run->arrivals) != 0)
		chi_atomic32_store(&run->arrivals, 0);
}

void chi_sync_point_free(chi_run *run)
{
	chi_sync_point_clear(run);
	while (run->spare_sync_points != NULL) {
		chi_sync_point *point = run->spare_sync_points;
		run->spare_sync_points = point->next;
		chi_free(point->buffer);
		chi_free(point);
	}
	chi_free(run->sync_point);
}
