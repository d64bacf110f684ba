// Compares checksums at some steps and before each save, since different values cause no error.
#include "strategy/value_consistency.h"

#include "base/crc32c.h"
#include "base/hash.h"
#include "strategy/worker_sync.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EVERY = 1000 };

bool chi_compare_is_due(const choir_strategy *s)
{
	const int64_t every = s->options.compare_steps == 0 ? EVERY : s->options.compare_steps;
	const uint64_t n = s->compared;
	if (every < 0)
		return false;
	return n % (uint64_t) every == 0 || n == 1 || n == 10 || n == 100;
}

static bool is_alike(const choir_variable *v)
{
	return v->synchronization != CHOIR_SYNCHRONIZATION_ON_READ && !v->slot && v->shards == 0 &&
			v->copies > 0 && chi_atomic32_load(&v->copy[0].undefined) == 0;
}

static choir_status checksum(choir_variable *v, chi_scratch *scratch, uint64_t *sum)
{
	const size_t bytes = chi_variable_bytes(v);
	const void *data = v->copy[0].buffer->memory;
	*sum = 0;
	if (!is_alike(v))
		return CHOIR_OK;
	if (!v->copy[0].device->host_memory) {
		if (!chi_scratch_reserve(scratch, bytes + 1))
			return choir_error_status();
		CHOIR_TRY(chi_variable_to_host(v, 0, scratch->memory));
		data = scratch->memory;
	}
	*sum = (uint64_t) chi_crc32c(0, data, bytes) | (uint64_t) 1 << 32;
	return CHOIR_OK;
}

static bool has_sum(const chi_stateful *o)
{
	return o->table != NULL && o->table->alike != NULL;
}

// Optimizers first: they can be the cause of different variables. sum NULL: only counts.
static choir_status list_sums(choir_strategy *s, uint64_t *sum, size_t *n)
{
	chi_scratch scratch = { 0 };
	choir_status status = CHOIR_OK;
	*n = 1;
	if (sum != NULL)
		sum[0] = s->notes.data == NULL ? 0 : chi_hash_bytes(s->notes.data, s->notes.length);
	for (const chi_stateful *o = s->stateful; o != NULL; o = o->next)
		if (has_sum(o)) {
			if (sum != NULL)
				sum[*n] = o->table->alike(o->self);
			++*n;
		}
	for (choir_variable *v = s->variables; status == CHOIR_OK && v != NULL; v = v->next, ++*n)
		if (sum != NULL)
			status = checksum(v, &scratch, &sum[*n]);
	chi_free(scratch.memory);
	return status;
}

static void name_differing(const choir_strategy *s, size_t k, char text[200])
{
	for (const chi_stateful *o = s->stateful; o != NULL; o = o->next)
		if (has_sum(o) && k-- == 0) {
			snprintf(text, 200, "optimizer %.100s has another learning rate or loss scale",
					o->table->name(o->self));
			return;
		}
	const choir_variable *v = s->variables;
	for (; k > 0; v = v->next)
		k--;
	snprintf(text, 200, "variable \"%.150s\" has another value", v->name);
}

static choir_status compare_notes(choir_strategy *s)
{
	const char *line = s->notes.data == NULL ? "" : s->notes.data;
	for (;;) {
		const int length = (int) strcspn(line, "\n");
		CHOIR_TRY(chi_strategy_same(s, "%.*s", length, length == 0 ? "nothing more" : line));
		if (length == 0)
			return CHOIR_OK;
		line += length + 1;
	}
}

static choir_status find_first(choir_strategy *s, const uint64_t *all, size_t n)
{
	const chi_process_group *p = s->process_group;
	char what[200] = "", own[CHI_WORKER_NAME + 32], other[CHI_WORKER_NAME + 32];
	for (size_t k = 0; k < n; k++)
		for (int w = 1; w < p->workers; w++) {
			if (all[(size_t) w * n + k] == all[k])
				continue;
			if (k == 0)
				return compare_notes(s);
			name_differing(s, k - 1, what);
			return choir_fail(CHOIR_STATE,
					"workers differ after update %" PRIu64
					": %s on %s than on %s; all workers must give the same values",
					s->compared, what, chi_cluster_name(p->cluster, w, own),
					chi_cluster_name(p->cluster, 0, other));
		}
	return choir_fail(CHOIR_INTERNAL, "the workers' values differ, but no difference was found");
}

static choir_status compare_all(choir_strategy *s, uint64_t *all, size_t n)
{
	chi_process_group *p = s->process_group;
	uint64_t *own = all + (size_t) p->workers * n, hash = n;
	CHOIR_TRY(list_sums(s, own, &n));
	for (size_t k = 0; k < n; k++)
		hash = chi_hash_mix(hash ^ own[k]);
	CHOIR_TRY(chi_process_group_all_gather(p, &hash, sizeof hash, all, "comparing %zu values", n));
	bool equal = true;
	for (int w = 1; w < p->workers; w++)
		equal = equal && all[w] == all[0];
	if (equal) {
		chi_text_free(&s->notes);
		return CHOIR_OK;
	}
	CHOIR_TRY(chi_process_group_all_gather(
			p, own, n * sizeof *own, all, "which of %zu values differ", n));
	return find_first(s, all, n);
}

choir_status chi_compare_workers(choir_strategy *s)
{
	size_t n;
	if (s->process_group == NULL || s->options.compare_steps < 0)
		return CHOIR_OK;
	(void) list_sums(s, NULL, &n);
	uint64_t *all = chi_alloc_array((size_t) (s->process_group->workers + 1) * n, sizeof *all);
	const choir_status status = all == NULL ? choir_error_status() : compare_all(s, all, n);
	chi_free(all);
	return chi_strategy_abort(s, status);
}
