// An optimizer keeps its updates' memory, so repeated steps allocate nothing.
#include "strategy/gradients/pending_update.h"

#include "strategy/gradients/bucket.h"
#include "strategy/gradients/sparse_gradients.h"

chi_gradients *chi_gradients_new(choir_strategy *s, const chi_gradients_table *table, void *user)
{
	chi_gradients *a = chi_alloc(sizeof *a);
	if (a == NULL)
		return NULL;
	a->strategy = s;
	chi_mutex_init(&a->lock, CHI_RANK_GRADIENTS, "updates");
	a->table = table;
	a->user = user;
	return a;
}

static chi_pending_update *new_update(chi_gradients *a, choir_strategy *s)
{
	chi_pending_update *u = chi_alloc(sizeof *u);
	if (u == NULL)
		return NULL;
	u->gradients = a;
	u->strategy = s;
	u->device = chi_alloc_array((size_t) s->devices, sizeof *u->device);
	u->state = chi_alloc(a->table->state_size + 1);
	if (u->device == NULL || u->state == NULL) {
		chi_free(u->state);
		chi_free(u->device);
		chi_free(u);
		return NULL;
	}
	u->next = a->updates;
	a->updates = u;
	return u;
}

static chi_pending_update *find(chi_gradients *a, chi_run *run, int ordinal)
{
	chi_pending_update *spare = NULL;
	for (chi_pending_update *u = a->updates; u != NULL; u = u->next) {
		if (u->run == run && u->ordinal == ordinal)
			return u;
		if (u->run == NULL && u->strategy == run->strategy)
			spare = u;
	}
	if (spare == NULL && (spare = new_update(a, run->strategy)) == NULL)
		return NULL;
	spare->run = run;
	spare->ordinal = ordinal;
	spare->stage = CHI_OPEN;
	spare->status = CHOIR_OK;
	spare->n = 0;
	chi_atomic32 *all[] = { &spare->prepared.word, &spare->all_applied, &spare->done,
		&spare->written, &spare->spared, &spare->landed, &spare->next_chunk, &spare->devices_done,
		&spare->devices_arrived, &spare->arrived };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		chi_atomic32_store(all[i], 0);
	return spare;
}

chi_pending_update *chi_pending_update_get(chi_gradients *a, chi_run *run, int ordinal)
{
	chi_mutex_lock(&a->lock);
	chi_pending_update *u = find(a, run, ordinal);
	chi_mutex_unlock(&a->lock);
	return u;
}

// The next update would report these errors.
static void wait_for_devices(const chi_pending_update *u)
{
	choir_strategy *s = u->strategy;
	if (s->all_host || u->run == NULL || chi_atomic32_load(&u->done) != 0)
		return;
	chi_error before;
	chi_error_save(&before);
	(void) chi_strategy_wait(s, 0, s->devices, CHOIR_OK);
	chi_error_restore(&before);
}

void chi_pending_update_discard(chi_pending_update *u)
{
	wait_for_devices(u);
	for (int i = 0; i < u->strategy->devices; i++) {
		chi_device_gradients *list = &u->device[i];
		for (size_t k = 0; k < list->n; k++) {
			chi_partial_sums_clear(&list->gradient[k]->partial_sums);
			if (list->has_sparse)
				chi_sparse_gradients_clear(&list->gradient[k]->sparse);
		}
		list->n = list->cursor = 0;
		list->has_sparse = list->done = false;
		list->queued = NULL;
	}
	chi_overlap_discard(u);
	const bool half = chi_atomic32_load(&u->written) != 0 && chi_atomic32_load(&u->done) == 0 &&
			(chi_atomic32_load(&u->spared) == 0 || chi_atomic32_load(&u->landed) != 0);
	for (size_t i = 0; i < u->n; i++) {
		if (half)
			chi_variable_undefine(u->pending[i].variable);
		for (int k = 0; k < u->pending[i].sum_buffers; k++) {
			chi_buffer_release(u->pending[i].sum_buffer[k].sum);
			chi_buffer_release(u->pending[i].sum_buffer[k].wire);
			chi_buffer_release(u->pending[i].sum_buffer[k].away);
			u->pending[i].sum_buffer[k] = (chi_sum_buffer){ 0 };
		}
	}
	if (u->bucket_elements > 0)
		chi_bucket_release(u);
	u->n = 0;
	u->open = false;
	chi_mutex_lock(&u->gradients->lock);
	u->run = NULL;
	chi_mutex_unlock(&u->gradients->lock);
}

static void free_update(chi_pending_update *u)
{
	chi_pending_update_discard(u);
	for (int i = 0; i < u->strategy->devices; i++) {
		for (size_t k = 0; k < u->device[i].capacity && u->device[i].gradient[k] != NULL; k++) {
			chi_free(u->device[i].gradient[k]->sparse.gradient);
			chi_free(u->device[i].gradient[k]);
		}
		chi_free(u->device[i].gradient);
		chi_free(u->device[i].squares.memory);
		chi_buffer_release(u->device[i].gate.memory);
		chi_free(u->device[i].gate.ends.memory);
	}
	for (size_t i = 0; i < u->pending_capacity; i++) {
		chi_free(u->pending[i].sum_buffer);
		chi_free(u->pending[i].squares);
		chi_free(u->pending[i].rows.scratch.memory);
		chi_free(u->pending[i].rows.each);
	}
	if (u->gradients->table->close != NULL)
		u->gradients->table->close(u->state);
	chi_overlap_free(u);
	chi_free(u->state);
	chi_free(u->pending);
	chi_free(u->variable);
	chi_free(u->kinds);
	chi_free(u->bucket);
	chi_free(u->device);
	chi_free(u);
}

void chi_gradients_free(chi_gradients *a)
{
	if (a == NULL)
		return;
	while (a->updates != NULL) {
		chi_pending_update *next = a->updates->next;
		free_update(a->updates);
		a->updates = next;
	}
	chi_mutex_destroy(&a->lock);
	chi_free(a);
}

static chi_device_gradient *add_gradient(chi_pending_update *u, int d, choir_variable *v)
{
	chi_device_gradients *list = &u->device[d];
	if (list->n == list->capacity) {
		const size_t before = list->capacity;
		if (!chi_grow(&list->gradient, &list->capacity, list->n + 1, sizeof *list->gradient))
			return NULL;
		for (size_t i = before; i < list->capacity; i++)
			list->gradient[i] = NULL;
	}
	if (list->gradient[list->n] == NULL &&
			(list->gradient[list->n] = chi_alloc(sizeof **list->gradient)) == NULL)
		return NULL;
	chi_device_gradient *g = list->gradient[list->n];
	g->update = u;
	g->device = d;
	g->index = list->n++;
	g->last_replica = CHOIR_NONE;
	g->variable = v;
	g->collective = (choir_collective){ .kind = CHOIR_ALL_REDUCE };
	chi_partial_sums_begin(&g->partial_sums, u->strategy->in_sync,
			chi_strategy_wire(u->strategy, v->dtype), &v->shape);
	return g;
}

chi_device_gradient *chi_pending_update_gradient(chi_pending_update *u, int d, choir_variable *v)
{
	chi_device_gradients *list = &u->device[d];
	for (size_t k = 0; k < list->n; k++) {
		const size_t i = (list->cursor + k) % list->n;
		if (list->gradient[i]->variable == v) {
			list->cursor = i + 1;
			return list->gradient[i];
		}
	}
	list->cursor = list->n + 1;
	return add_gradient(u, d, v);
}
