// The memory of updates: instances and their items are kept by their optimizer, so that a steady
// step allocates nothing.
#include "strategy/gradients/pending.h"

#include "base/alloc.h"
#include "base/status.h"

chi_apply *chi_apply_new(choir_strategy *s, const chi_apply_table *table, void *user)
{
	chi_apply *a = chi_alloc(sizeof *a);
	if (a == NULL)
		return NULL;
	a->strategy = s;
	chi_mutex_init(&a->lock, CHI_RANK_APPLY, "updates");
	a->table = table;
	a->user = user;
	return a;
}

void chi_apply_free(chi_apply *a)
{
	if (a == NULL)
		return;
	while (a->instances != NULL) {
		chi_instance *next = a->instances->next;
		chi_instance_free(a->instances);
		a->instances = next;
	}
	chi_mutex_destroy(&a->lock);
	chi_free(a);
}

static chi_instance *new_instance(chi_apply *a, choir_strategy *s)
{
	chi_instance *in = chi_alloc(sizeof *in);
	if (in == NULL)
		return NULL;
	in->apply = a;
	in->strategy = s;
	in->lane = chi_alloc_array((size_t) s->lanes, sizeof *in->lane);
	in->state = chi_alloc(a->table->state_size + 1);
	if (in->lane == NULL || in->state == NULL) {
		chi_free(in->state);
		chi_free(in->lane);
		chi_free(in);
		return NULL;
	}
	in->next = a->instances;
	a->instances = in;
	return in;
}

// With the lock held: the one that there is, or one that is free, or a new one.
static chi_instance *find(chi_apply *a, chi_run *run, int ordinal)
{
	chi_instance *spare = NULL;
	for (chi_instance *in = a->instances; in != NULL; in = in->next) {
		if (in->run == run && in->ordinal == ordinal)
			return in;
		if (in->run == NULL && in->strategy == run->strategy)
			spare = in;
	}
	if (spare == NULL && (spare = new_instance(a, run->strategy)) == NULL)
		return NULL;
	spare->run = run;
	spare->ordinal = ordinal;
	spare->stage = CHI_OPEN;
	spare->status = CHOIR_OK;
	spare->n = 0;
	chi_atomic32 *all[] = { &spare->prepared.word, &spare->all, &spare->done, &spare->touched,
		&spare->next_piece, &spare->lanes_through, &spare->lanes_met, &spare->met };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		chi_atomic32_store(all[i], 0);
	return spare;
}

chi_instance *chi_instance_get(chi_apply *a, chi_run *run, int ordinal)
{
	chi_mutex_lock(&a->lock);
	chi_instance *in = find(a, run, ordinal);
	chi_mutex_unlock(&a->lock);
	return in;
}

// What was committed to an update that is not done may be queued still, or may have failed on the
// lanes' streams, where the next update would be told of it.
static void settle_lanes(const chi_instance *in)
{
	choir_strategy *s = in->strategy;
	if (s->all_host || in->run == NULL || chi_atomic32_load(&in->done) != 0)
		return;
	chi_error before;
	chi_error_save(&before);
	(void) chi_strategy_wait(s, 0, s->lanes, CHOIR_OK);
	chi_error_restore(&before);
}

void chi_instance_forget(chi_instance *in)
{
	settle_lanes(in);
	for (int i = 0; i < in->strategy->lanes; i++) {
		chi_lane_items *l = &in->lane[i];
		for (size_t k = 0; k < l->n; k++) {
			chi_partial_sums_clear(&l->item[k]->fold);
			chi_sparse_gradients_clear(&l->item[k]->rows);
		}
		l->n = l->cursor = 0;
		l->through = false;
		l->queued = NULL;
	}
	chi_early_forget(in);
	const bool half = chi_atomic32_load(&in->touched) != 0 && chi_atomic32_load(&in->done) == 0;
	for (size_t i = 0; i < in->n; i++) {
		if (half)
			chi_variable_undefine(in->shared[i].variable);
		for (int k = 0; k < in->shared[i].landings; k++) {
			chi_buffer_release(in->shared[i].landing[k].sum);
			chi_buffer_release(in->shared[i].landing[k].away);
			in->shared[i].landing[k].sum = in->shared[i].landing[k].away = NULL;
		}
	}
	chi_bundle_forget(in);
	in->n = 0;
	in->open = false;
	chi_mutex_lock(&in->apply->lock);
	in->run = NULL;
	chi_mutex_unlock(&in->apply->lock);
}

void chi_instance_free(chi_instance *in)
{
	chi_instance_forget(in);
	for (int i = 0; i < in->strategy->lanes; i++) {
		for (size_t k = 0; k < in->lane[i].capacity && in->lane[i].item[k] != NULL; k++) {
			chi_free(in->lane[i].item[k]->rows.given);
			chi_free(in->lane[i].item[k]);
		}
		chi_free(in->lane[i].item);
		chi_free(in->lane[i].squares.memory);
	}
	for (size_t i = 0; i < in->shared_capacity; i++) {
		chi_free(in->shared[i].landing);
		chi_free(in->shared[i].squares);
		chi_free(in->shared[i].rows.scratch.memory);
		chi_free(in->shared[i].rows.each);
		chi_free(in->shared[i].rows.bytes);
	}
	if (in->apply->table->close != NULL)
		in->apply->table->close(in->state);
	chi_early_free(in);
	chi_free(in->state);
	chi_free(in->shared);
	chi_free(in->variable);
	chi_free(in->kinds);
	chi_free(in->bundle);
	chi_free(in->lane);
	chi_free(in);
}

static chi_item *add_item(chi_instance *in, int lane, choir_variable *v)
{
	chi_lane_items *l = &in->lane[lane];
	if (l->n == l->capacity) {
		const size_t before = l->capacity;
		void *array = l->item;
		if (!chi_grow(&array, &l->capacity, l->n + 1, sizeof *l->item))
			return NULL;
		l->item = array;
		for (size_t i = before; i < l->capacity; i++)
			l->item[i] = NULL;
	}
	if (l->item[l->n] == NULL && (l->item[l->n] = chi_alloc(sizeof **l->item)) == NULL)
		return NULL;
	chi_item *item = l->item[l->n];
	item->instance = in;
	item->lane = lane;
	item->index = l->n++;
	item->last_giver = CHOIR_NONE;
	item->variable = v;
	item->collective = (choir_collective){ .kind = CHOIR_ALL_REDUCE };
	chi_partial_sums_begin(&item->fold, in->strategy->in_sync, v->dtype, &v->shape);
	return item;
}

chi_item *chi_instance_item(chi_instance *in, int lane, choir_variable *v)
{
	chi_lane_items *l = &in->lane[lane];
	for (size_t k = 0; k < l->n; k++) {
		const size_t i = (l->cursor + k) % l->n;
		if (l->item[i]->variable == v) {
			l->cursor = i + 1;
			return l->item[i];
		}
	}
	l->cursor = l->n + 1;
	return add_item(in, lane, v);
}
