// The least recently used primitive is dropped.
#include "op/onednn/onednn_cache.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread_local.h"

#include <string.h>

enum { BUCKETS = 64 };

typedef struct entry {
	chi_dnn_problem problem;
	chi_dnn *dnn; // NULL: unsupported
	uint64_t used; // in lookups
	struct entry *next;
} entry;

typedef struct {
	entry *bucket[BUCKETS];
	size_t count;
	uint64_t lookups;
} cache;

static void empty(cache *c)
{
	for (size_t i = 0; i < BUCKETS; i++)
		while (c->bucket[i]) {
			entry *e = c->bucket[i];
			c->bucket[i] = e->next;
			chi_dnn_free(e->dnn);
			chi_free(e);
		}
	c->count = 0;
}

static void free_cache(void *arg)
{
	empty(arg);
	chi_free(arg);
}

static chi_thread_local caches = CHI_THREAD_LOCAL_STATIC(CHI_RANK_OP, "onednn", free_cache);

static cache *thread_cache(void)
{
	cache *c = chi_thread_local_get(&caches);
	if (c)
		return c;
	c = chi_alloc(sizeof *c);
	if (c && !chi_thread_local_set(&caches, c)) {
		chi_free(c);
		return NULL;
	}
	return c;
}

static size_t bucket_of(const chi_dnn_problem *problem)
{
	uint64_t words[sizeof *problem / sizeof(uint64_t)];
	memcpy(words, problem, sizeof words);
	uint64_t hash = 0;
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
	return (size_t) (hash >> 58) % BUCKETS;
}

static void evict(cache *c)
{
	entry **oldest = NULL;
	for (size_t i = 0; i < BUCKETS; i++)
		for (entry **e = &c->bucket[i]; *e; e = &(*e)->next)
			if (!oldest || (*e)->used < (*oldest)->used)
				oldest = e;
	if (!oldest)
		return;
	entry *gone = *oldest;
	*oldest = gone->next;
	chi_dnn_free(gone->dnn);
	chi_free(gone);
	c->count--;
}

static choir_status add(cache *c, const chi_dnn_problem *problem, entry **out)
{
	entry *e = chi_alloc(sizeof *e);
	CHOIR_TRY(chi_made(e));
	e->problem = *problem;
	const choir_status status = chi_dnn_new(problem, &e->dnn);
	if (status != CHOIR_OK && status != CHOIR_UNSUPPORTED) {
		chi_free(e);
		return status;
	}
	if (c->count == CHI_DNN_CACHE)
		evict(c);
	entry **bucket = &c->bucket[bucket_of(problem)];
	e->next = *bucket;
	*bucket = e;
	c->count++;
	*out = e;
	return CHOIR_OK;
}

choir_status chi_dnn_find(const chi_dnn_problem *problem, chi_dnn **out)
{
	cache *c = thread_cache();
	if (!c)
		return CHOIR_NO_MEMORY;
	entry *e = c->bucket[bucket_of(problem)];
	while (e && memcmp(&e->problem, problem, sizeof *problem) != 0)
		e = e->next;
	if (!e)
		CHOIR_TRY(add(c, problem, &e));
	e->used = ++c->lookups;
	*out = e->dnn;
	return e->dnn ? CHOIR_OK : CHOIR_UNSUPPORTED;
}

size_t chi_dnn_cached(void)
{
	const cache *c = thread_cache();
	return c ? c->count : 0;
}

void chi_dnn_forget(void)
{
	cache *c = thread_cache();
	if (c)
		empty(c);
}
