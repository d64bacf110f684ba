// A hash table, at most half full; texts are consecutive. A secret seed prevents files in which
// all texts collide.
#include "data/source/csv/categories.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "choir/source.h"
#include "data/dataset.h"

enum { FIRST_SLOTS = 16 };

typedef struct {
	size_t at;
	uint32_t bytes, hash;
} entry;

struct chi_categories {
	size_t n, capacity;
	entry *entry;
	char *texts;
	size_t length, texts_capacity;
	uint64_t seed;
	size_t slots;
	uint32_t *slot; // number + 1; 0: free
};

chi_categories *chi_categories_new(void)
{
	chi_categories *c = chi_alloc(sizeof *c);
	if (c)
		c->seed = (uint64_t) (uintptr_t) c << 20 ^ (uint64_t) (uintptr_t) &c;
	return c;
}

void chi_categories_free(chi_categories *c)
{
	if (!c)
		return;
	chi_free(c->entry);
	chi_free(c->texts);
	chi_free(c->slot);
	chi_free(c);
}

__extension__ typedef unsigned __int128 wide;

static uint64_t fold(uint64_t a, uint64_t b)
{
	const wide product = (wide) a * b;
	return (uint64_t) product ^ (uint64_t) (product >> 64);
}

static uint32_t hash_of(const chi_categories *c, const char *text, size_t bytes)
{
	uint64_t h = fold(c->seed ^ 0xa0761d6478bd642fu, bytes ^ 0xe7037ed1a0b428dbu);
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		uint64_t word = 0;
		memcpy(&word, text + i, bytes - i < sizeof word ? bytes - i : sizeof word);
		h = fold(h ^ word, c->seed ^ 0x8ebc6af09c88c6e3u);
	}
	return (uint32_t) (h ^ h >> 32);
}

static uint32_t *find_slot(const chi_categories *c, const char *text, size_t bytes, uint32_t hash)
{
	size_t i = hash & (c->slots - 1);
	for (;; i = (i + 1) & (c->slots - 1)) {
		if (!c->slot[i])
			return &c->slot[i];
		const entry *e = &c->entry[c->slot[i] - 1];
		if (e->hash == hash && e->bytes == bytes && memcmp(c->texts + e->at, text, bytes) == 0)
			return &c->slot[i];
	}
}

static void fill_slots(chi_categories *c)
{
	memset(c->slot, 0, c->slots * sizeof *c->slot);
	for (size_t k = 0; k < c->n; k++) {
		size_t i = c->entry[k].hash & (c->slots - 1);
		while (c->slot[i])
			i = (i + 1) & (c->slots - 1);
		c->slot[i] = (uint32_t) k + 1;
	}
}

static choir_status make_slots(chi_categories *c)
{
	if (c->slots / 2 > c->n)
		return CHOIR_OK;
	size_t slots = c->slots ? 2 * c->slots : FIRST_SLOTS;
	chi_free(c->slot);
	c->slots = 0;
	c->slot = chi_alloc_array(slots, sizeof *c->slot);
	CHOIR_TRY(chi_made(c->slot));
	c->slots = slots;
	fill_slots(c);
	return CHOIR_OK;
}

static bool reserve(chi_categories *c, size_t bytes)
{
	size_t need;
	if (!chi_size_add(c->length, bytes, &need) || !chi_size_add(need, 1, &need))
		need = SIZE_MAX;
	return chi_grow(&c->entry, &c->capacity, c->n + 1, sizeof *c->entry) &&
			chi_grow(&c->texts, &c->texts_capacity, need, 1);
}

choir_status chi_categories_add(chi_categories *c, const char *text, size_t bytes)
{
	if (chi_categories_find(c, text, bytes) >= 0)
		return CHOIR_OK;
	if (c->n == CHI_MAX_CATEGORIES || bytes > UINT32_MAX)
		return choir_fail(CHOIR_INVALID, "more than %d different texts, too many for categories",
				CHI_MAX_CATEGORIES);
	CHOIR_TRY(make_slots(c));
	if (!reserve(c, bytes))
		return CHOIR_NO_MEMORY;
	const uint32_t hash = hash_of(c, text, bytes);
	memcpy(c->texts + c->length, text, bytes);
	c->texts[c->length + bytes] = '\0';
	uint32_t *slot = find_slot(c, text, bytes, hash);
	c->entry[c->n] = (entry){ c->length, (uint32_t) bytes, hash };
	c->length += bytes + 1;
	*slot = (uint32_t) ++c->n;
	return CHOIR_OK;
}

chi_categories *chi_categories_copy(const chi_categories *c)
{
	chi_categories *copy = chi_categories_new();
	for (size_t i = 0; copy && i < c->n; i++)
		if (chi_categories_add(copy, c->texts + c->entry[i].at, c->entry[i].bytes) != CHOIR_OK) {
			chi_categories_free(copy);
			return NULL;
		}
	return copy;
}

static int compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	const int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
	return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int in_order(const void *a, const void *b, void *texts)
{
	const entry *x = a, *y = b;
	const char *t = texts;
	return compare(t + x->at, x->bytes, t + y->at, y->bytes);
}

void chi_categories_sort(chi_categories *c)
{
	if (c->n == 0)
		return;
	qsort_r(c->entry, c->n, sizeof *c->entry, in_order, c->texts);
	fill_slots(c);
}

int32_t chi_categories_find(const chi_categories *c, const char *text, size_t bytes)
{
	if (!c->slots)
		return -1;
	return (int32_t) *find_slot(c, text, bytes, hash_of(c, text, bytes)) - 1;
}

size_t chi_categories_count(const chi_categories *c)
{
	return c->n;
}

const char *chi_categories_text(const chi_categories *c, size_t i)
{
	return i < c->n ? c->texts + c->entry[i].at : NULL;
}

bool chi_categories_equal(const chi_categories *a, const chi_categories *b)
{
	if (!a || !b || a->n != b->n)
		return a == b;
	for (size_t i = 0; i < a->n; i++)
		if (compare(a->texts + a->entry[i].at, a->entry[i].bytes, b->texts + b->entry[i].at,
					b->entry[i].bytes) != 0)
			return false;
	return true;
}

static const chi_categories *categories_of(const choir_dataset *d, const char *column)
{
	const size_t i = d && column ? chi_column_find(d, column) : 0;
	return d && column && i < d->spec.n ? d->spec.categories[i] : NULL;
}

size_t choir_dataset_categories(const choir_dataset *d, const char *column)
{
	const chi_categories *c = categories_of(d, column);
	return c ? chi_categories_count(c) : 0;
}

const char *choir_dataset_category(const choir_dataset *d, const char *column, int64_t i)
{
	const chi_categories *c = categories_of(d, column);
	return c && i >= 0 ? chi_categories_text(c, (size_t) i) : NULL;
}
