// Rows between workers. Whether the gradient of a variable is rows or a tensor may differ from
// replica to replica and from step to step, so workers tell each other before they do anything
// with it: one message for all variables of an update. Rows stay rows only if all replicas gave
// rows, and few enough of them: then everybody gets all of them and adds them up itself
// (collective/sparse_gather.h).
#include "strategy/gradients/pending.h"

#include "base/alloc.h"
#include "base/size.h"
#include "collective/sparse_gather.h"

static unsigned char kinds_here(const chi_pending_update *u, size_t i)
{
	unsigned kinds = 0;
	for (int d = 0; d < u->strategy->devices; d++) {
		const chi_device_gradient *g = u->device[d].gradient[i];
		kinds |= g->sparse.n > 0 ? CHI_GRADIENT_SPARSE : 0;
		kinds |= g->partial_sums.n > 0 ? CHI_GRADIENT_DENSE : 0;
	}
	return (unsigned char) kinds;
}

choir_status chi_sparse_gradients_exchange_kinds(chi_pending_update *u)
{
	chi_process_group *p = u->strategy->process_group;
	const bool among = p != NULL && p->host && (!u->two_pass || u->overlap.with_workers);
	const size_t n = u->n, workers = among ? (size_t) p->workers : 0;
	void *array = u->kinds;
	const bool grown = chi_grow(&array, &u->kinds_capacity, (workers + 1) * n + 1, 1);
	u->kinds = array;
	if (!grown)
		return choir_error_status();
	unsigned char *own = u->kinds, *all = own + n;
	for (size_t i = 0; i < n; i++)
		own[i] = kinds_here(u, i);
	if (among)
		CHOIR_TRY(chi_process_group_all_gather(p, own, n, all,
				"%s of %zu gradients (%d exchanged early)", u->gradients->table->name, n,
				chi_overlap_with_workers(u)));
	for (size_t w = 0; w < workers; w++)
		for (size_t i = 0; i < n; i++)
			own[i] = (unsigned char) (own[i] | all[w * n + i]);
	for (size_t i = 0; i < n; i++)
		u->pending[i].kinds = own[i];
	return CHOIR_OK;
}

const chi_sparse_gradient *chi_sparse_gradient_of(
		const chi_pending_update *u, size_t i, int replica)
{
	const int d = chi_strategy_device_index(u->strategy, replica);
	const chi_sparse_gradients *rows = &u->device[d].gradient[i]->sparse;
	for (size_t k = 0; k < rows->n; k++)
		if (rows->gradient[k].replica == replica)
			return &rows->gradient[k];
	return NULL;
}

choir_status chi_sparse_gradients_count(chi_pending_update *u, size_t i, size_t *all)
{
	const choir_strategy *s = u->strategy;
	chi_pending_variable *pv = &u->pending[i];
	chi_merged_rows *m = &pv->rows;
	int64_t sum = 0;
	if (m->each == NULL)
		m->each = chi_alloc_array((size_t) s->in_sync, sizeof *m->each);
	if (m->each == NULL)
		return choir_error_status();
	const chi_sparse_gather g = { .group = s->process_group,
		.what = "the gradient of",
		.name = pv->variable->name,
		.each = m->each };
	for (int r = 0; r < s->replicas; r++) {
		const chi_sparse_gradient *sparse = chi_sparse_gradient_of(u, i, r);
		m->each[chi_strategy_id(s, r)] = sparse == NULL ? 0 : sparse->n;
	}
	if (s->process_group != NULL)
		CHOIR_TRY(chi_sparse_gather_counts(&g));
	for (int r = 0; r < s->in_sync; r++)
		if (!chi_int64_add(sum, m->each[r], &sum))
			return choir_fail(
					CHOIR_NO_MEMORY, "variable \"%s\": too many rows", pv->variable->name);
	*all = (size_t) sum;
	return CHOIR_OK;
}
