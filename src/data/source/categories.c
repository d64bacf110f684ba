// A hash table with open addressing from texts to numbers, at most half full.
#include "data/source/categories.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

enum { FIRST_SLOTS = 16 };

struct chi_categories {
	size_t n, room;
	struct entry {
		char *text;
		size_t bytes;
	} * entry;
	size_t slots; // a power of two
	uint32_t *slot; // number + 1; 0: free
};

chi_categories *chi_categories_new(void)
{
	return chi_alloc(sizeof(chi_categories));
}

void chi_categories_free(chi_categories *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		chi_free(c->entry[i].text);
	chi_free(c->entry);
	chi_free(c->slot);
	chi_free(c);
}

// FNV-1a, eight bytes at a time where there are so many; products wrap around on purpose.
static size_t hash(const char *text, size_t bytes)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		uint64_t word = 0;
		memcpy(&word, text + i, bytes - i < sizeof word ? bytes - i : sizeof word);
		(void) __builtin_mul_overflow(h ^ word, (uint64_t) 0x9e3779b97f4a7c15u, &h);
		h ^= h >> 32;
	}
	return (size_t) h;
}

// The slot that holds the text, or the free one where it belongs.
static uint32_t *find_slot(const chi_categories *c, const char *text, size_t bytes)
{
	size_t i = hash(text, bytes) & (c->slots - 1);
	for (;; i = (i + 1) & (c->slots - 1)) {
		if (!c->slot[i])
			return &c->slot[i];
		const struct entry *e = &c->entry[c->slot[i] - 1];
		if (e->bytes == bytes && memcmp(e->text, text, bytes) == 0)
			return &c->slot[i];
	}
}

static void fill_slots(chi_categories *c)
{
	memset(c->slot, 0, c->slots * sizeof *c->slot);
	for (size_t i = 0; i < c->n; i++)
		*find_slot(c, c->entry[i].text, c->entry[i].bytes) = (uint32_t) i + 1;
}

static choir_status make_slots(chi_categories *c)
{
	if (c->slots / 2 > c->n)
		return CHOIR_OK;
	size_t slots = c->slots ? 2 * c->slots : FIRST_SLOTS;
	uint32_t *slot = chi_alloc_array(slots, sizeof *slot);
	if (!slot)
		return CHOIR_NO_MEMORY;
	chi_free(c->slot);
	c->slot = slot;
	c->slots = slots;
	fill_slots(c);
	return CHOIR_OK;
}

choir_status chi_categories_add(chi_categories *c, const char *text, size_t bytes)
{
	if (chi_categories_find(c, text, bytes) >= 0)
		return CHOIR_OK;
	if (c->n == CHI_MOST_CATEGORIES)
		return choir_fail(CHOIR_INVALID, "more than %d different texts, which are no categories",
				CHI_MOST_CATEGORIES);
	CHOIR_TRY(make_slots(c));
	void *entries = c->entry;
	if (!chi_grow(&entries, &c->room, c->n + 1, sizeof *c->entry))
		return CHOIR_NO_MEMORY;
	c->entry = entries;
	size_t size;
	char *copy = chi_size_add(bytes, 1, &size) ? chi_alloc(size) : NULL;
	if (!copy)
		return CHOIR_NO_MEMORY;
	memcpy(copy, text, bytes);
	c->entry[c->n] = (struct entry){ copy, bytes };
	*find_slot(c, text, bytes) = (uint32_t) ++c->n;
	return CHOIR_OK;
}

chi_categories *chi_categories_copy(const chi_categories *c)
{
	chi_categories *copy = chi_categories_new();
	for (size_t i = 0; copy && i < c->n; i++)
		if (chi_categories_add(copy, c->entry[i].text, c->entry[i].bytes) != CHOIR_OK) {
			chi_categories_free(copy);
			return NULL;
		}
	return copy;
}

static int in_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	const int order = memcmp(x->text, y->text, x->bytes < y->bytes ? x->bytes : y->bytes);
	return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

void chi_categories_sort(chi_categories *c)
{
	if (c->n == 0)
		return;
	qsort(c->entry, c->n, sizeof *c->entry, in_order);
	fill_slots(c);
}

int32_t chi_categories_find(const chi_categories *c, const char *text, size_t bytes)
{
	return c->slots ? (int32_t) *find_slot(c, text, bytes) - 1 : -1;
}

size_t chi_categories_count(const chi_categories *c)
{
	return c->n;
}

const char *chi_categories_text(const chi_categories *c, size_t i)
{
	return i < c->n ? c->entry[i].text : NULL;
}

bool chi_categories_equal(const chi_categories *a, const chi_categories *b)
{
	if (!a || !b || a->n != b->n)
		return a == b;
	for (size_t i = 0; i < a->n; i++)
		if (in_order(&a->entry[i], &b->entry[i]) != 0)
			return false;
	return true;
}
