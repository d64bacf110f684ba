// Kernels by (operation, kind of device, dtype): a hash table of lists. The kernel with the
// highest score wins, the first among equals. The first lookup adds the built-in kernels. After
// that the table is constant and needs no lock.
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/instruction_set.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/text.h"
#include "op/fma/fma.h"
#include "op/onednn/onednn.h"
#include "op/plain/plain.h"
#include "op/winograd/winograd.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { NO_ENTRY = -1 };

typedef struct {
	choir_kernel_table table;
	uint32_t hash;
	int32_t next; // for the same key
} entry;

static struct {
	chi_mutex lock;
	chi_atomic32 ready;
	bool failed;
	entry *entries;
	size_t count, capacity;
	size_t builtin_from;
	int32_t *slots; // first entries; power of two, at most half full
	size_t slot_count;
} registry = { .lock = CHI_MUTEX_STATIC(CHI_RANK_OP, "kernels") };

static uint32_t hash_of(const char *operation, const char *kind, choir_dtype dtype)
{
	uint32_t hash = 2166136261u + (uint32_t) dtype;
	for (const char *c = operation; *c; c++)
		hash = (hash ^ (uint8_t) *c) * 16777619u;
	for (const char *c = kind; *c; c++)
		hash = (hash ^ (uint8_t) *c) * 16777619u;
	return hash ^ hash >> 15;
}

static bool same(const char *a, const char *b)
{
	return a == b || strcmp(a, b) == 0;
}

static int32_t *find_slot(
		const char *operation, const char *kind, choir_dtype dtype, uint32_t hash)
{
	for (size_t i = hash;; i++) {
		int32_t *slot = &registry.slots[i & (registry.slot_count - 1)];
		if (*slot == NO_ENTRY)
			return slot;
		const entry *e = &registry.entries[*slot];
		if (e->hash == hash && e->table.dtype == dtype && same(e->table.operation, operation) &&
				same(e->table.kind, kind))
			return slot;
	}
}

static void link_entry(int32_t index)
{
	entry *e = &registry.entries[index];
	int32_t *link = find_slot(e->table.operation, e->table.kind, e->table.dtype, e->hash);
	while (*link != NO_ENTRY)
		link = &registry.entries[*link].next;
	e->next = NO_ENTRY;
	*link = index;
}

static void link_all(void)
{
	for (size_t i = 0; i < registry.slot_count; i++)
		registry.slots[i] = NO_ENTRY;
	for (size_t i = 0; i < registry.count; i++)
		link_entry((int32_t) i);
}

static bool reserve(void)
{
	if (!chi_grow(&registry.entries, &registry.capacity, registry.count + 1, sizeof(entry)))
		return false;
	if (registry.slot_count / 2 > registry.count)
		return true;
	const size_t wanted = registry.slot_count ? registry.slot_count * 2 : 256;
	int32_t *slots = chi_alloc_array(wanted, sizeof(*slots));
	if (!slots)
		return false;
	chi_free(registry.slots);
	registry.slots = slots;
	registry.slot_count = wanted;
	link_all();
	return true;
}

choir_status choir_register_kernel(const choir_kernel_table *given)
{
	choir_kernel_table taken;
	const choir_kernel_table *table = &taken;
	CHOIR_TRY(chi_table_take("kernel", &taken, sizeof(taken),
			offsetof(choir_kernel_table, run) + sizeof(taken.run), given));
	if (!table->operation || !table->kind || !table->run || chi_dtype_size(table->dtype) == 0)
		return choir_fail(CHOIR_INVALID, "kernel %s: operation, kind, dtype and run are needed",
				table->name ? table->name : "without a name");
	if (chi_atomic32_load(&registry.ready))
		return choir_fail(CHOIR_STATE,
				"kernel %s for %s: is registered too late; operations have run already",
				table->name ? table->name : "without a name", table->operation);
	if (!reserve()) {
		registry.failed = true;
		return CHOIR_NO_MEMORY;
	}
	entry *e = &registry.entries[registry.count];
	e->table = *table;
	e->hash = hash_of(table->operation, table->kind, table->dtype);
	link_entry((int32_t) registry.count++);
	return CHOIR_OK;
}

size_t choir_kernel_attribute_bytes(const char *operation)
{
	chi_kernel_list list;

	for (size_t i = 0; operation && (list = chi_plain_list(i)).count > 0; i++)
		for (size_t k = 0; k < list.count; k++)
			if (same(list.specs[k].operation, operation))
				return list.specs[k].attribute_bytes;
	return 0;
}

// Needs the lock. After a failure the next lookup tries again.
static choir_status add_built_in(void)
{
	const char *which = getenv("CHOIR_KERNELS");
	const bool all = !which || !*which || same(which, "all");
	const size_t before = registry.count;

	if (!all && !same(which, "plain"))
		return choir_fail(
				CHOIR_INVALID, "CHOIR_KERNELS: '%s' is unknown; known: all, plain", which);
	CHOIR_TRY(chi_instruction_set_check());
#ifdef CHI_HAS_ONEDNN
	if (all)
		CHOIR_TRY(chi_limit_onednn());
#endif
	registry.failed = !reserve();
	registry.builtin_from = before;
	chi_kernel_register(chi_plain_list, "plain");
	if (all) {
		chi_kernel_register(chi_fma_list, "fma");
		chi_kernel_register(chi_winograd_list, "winograd");
		chi_kernel_register(chi_onednn_list, "onednn");
	}
	if (!registry.failed)
		return CHOIR_OK;
	registry.count = before;
	link_all();
	return choir_fail(CHOIR_NO_MEMORY, "out of memory: the table of kernels");
}

const char *chi_kernel_library(char text[CHI_KERNEL_LIBRARY])
{
	text[0] = '\0';
#ifdef CHI_HAS_ONEDNN
	const char *which = getenv("CHOIR_KERNELS");
	if (which == NULL || !same(which, "plain"))
		return chi_onednn_version(text);
#endif
	return "none";
}

static choir_status get_ready(void)
{
	if (chi_atomic32_load(&registry.ready))
		return CHOIR_OK;
	chi_mutex_lock(&registry.lock);
	choir_status status = CHOIR_OK;
	if (!chi_atomic32_load(&registry.ready)) {
		status = add_built_in();
		if (status == CHOIR_OK)
			chi_atomic32_store(&registry.ready, 1);
	}
	chi_mutex_unlock(&registry.lock);
	return status;
}

bool chi_kernel_is_builtin(const choir_kernel_table *kernel)
{
	return (const entry *) (const void *) kernel >= registry.entries + registry.builtin_from;
}

// Fails with the list of dtypes that have a kernel.
static void report(const choir_device *d, const char *operation, choir_dtype dtype)
{
	const char *kind = d->table->kind;
	chi_text known = { 0 };

	for (choir_dtype other = CHOIR_F32; other <= CHOIR_BF16; other++)
		if (*find_slot(operation, kind, other, hash_of(operation, kind, other)) != NO_ENTRY)
			chi_text_add(&known, "%s%s", known.data ? ", " : "", choir_dtype_name(other));
	choir_fail(CHOIR_UNSUPPORTED, "%s: no kernel for %s on %s; dtypes with a kernel: %s",
			operation, choir_dtype_name(dtype), kind,
			known.data && !known.failed ? known.data : "nothing");
	chi_text_free(&known);
}

const choir_kernel_table *chi_kernel_find(
		choir_device *d, const choir_kernel_call *call, const char *operation, choir_dtype dtype)
{
	return chi_kernel_find_named(d, call, operation, NULL, dtype);
}

const choir_kernel_table *chi_kernel_find_named(choir_device *d, const choir_kernel_call *call,
		const char *operation, const char *name, choir_dtype dtype)
{
	const char *kind = d->table->kind;
	const choir_kernel_table *best = NULL;
	int best_score = 0;

	if (get_ready() != CHOIR_OK)
		return NULL;
	int32_t i = *find_slot(operation, kind, dtype, hash_of(operation, kind, dtype));
	for (; i != NO_ENTRY; i = registry.entries[i].next) {
		const choir_kernel_table *table = &registry.entries[i].table;
		if (name && (!table->name || !same(table->name, name)))
			continue;
		choir_kernel_call asked = *call;
		asked.user = table->user;
		const int score = table->score ? table->score(&asked) : 1;
		if (score > best_score) {
			best = table;
			best_score = score;
		}
	}
	if (!best && name)
		choir_fail(CHOIR_UNSUPPORTED, "%s: no kernel \"%s\" for this call in %s on %s", operation,
				name, choir_dtype_name(dtype), kind);
	else if (!best)
		report(d, operation, dtype);
	return best;
}
