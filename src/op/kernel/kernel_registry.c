// By kind of device, a hash table of lists by (operation, dtype). The highest score wins, the
// first among equals. A kind's first lookup adds Choir's kernels and closes the table, which then
// needs no lock.
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/instruction_set.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/text.h"
#include "op/fma/fma.h"
#include "op/kernel/cuda_kernels.h"
#include "op/kernel/narrow_kernel.h"
#include "op/kernel/remote_kernels.h"
#include "op/onednn/onednn.h"
#include "op/plain/plain.h"
#include "op/winograd/winograd.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { NO_ENTRY = -1, MAX_KINDS = 32 };

typedef struct {
	choir_kernel_table table;
	uint32_t hash;
	int32_t next;
	bool builtin;
} entry;

typedef struct {
	const char *name;
	chi_atomic32 closed;
	entry *entries;
	size_t count, capacity;
	int32_t *slots; // power of two, at most half full
	size_t slot_count;
} kernel_kind;

static struct {
	chi_mutex lock;
	chi_atomic32 count;
	kernel_kind kind[MAX_KINDS];
} registry = {
	.lock = CHI_MUTEX_STATIC(CHI_RANK_OP, "kernels"),
	.count = { 3 },
	.kind = { { .name = "cpu" }, { .name = "gpu" }, { .name = "remote" } },
};

static uint32_t hash_of(const char *operation, choir_dtype dtype)
{
	uint32_t hash = 2166136261u + (uint32_t) dtype;
	for (const char *c = operation; *c; c++)
		hash = (hash ^ (uint8_t) *c) * 16777619u;
	return hash ^ hash >> 15;
}

static bool same(const char *a, const char *b)
{
	return a == b || strcmp(a, b) == 0;
}

static kernel_kind *find_kind(const char *name)
{
	const uint32_t count = chi_atomic32_load(&registry.count);
	for (uint32_t i = 0; i < count; i++)
		if (same(registry.kind[i].name, name))
			return &registry.kind[i];
	return NULL;
}

static int32_t *find_slot(
		const kernel_kind *k, const char *operation, choir_dtype dtype, uint32_t hash)
{
	for (size_t i = hash;; i++) {
		int32_t *slot = &k->slots[i & (k->slot_count - 1)];
		if (*slot == NO_ENTRY)
			return slot;
		const entry *e = &k->entries[*slot];
		if (e->hash == hash && e->table.dtype == dtype && same(e->table.operation, operation))
			return slot;
	}
}

static void link_entry(kernel_kind *k, int32_t index)
{
	entry *e = &k->entries[index];
	int32_t *link = find_slot(k, e->table.operation, e->table.dtype, e->hash);
	while (*link != NO_ENTRY)
		link = &k->entries[*link].next;
	e->next = NO_ENTRY;
	*link = index;
}

static void link_all(kernel_kind *k)
{
	for (size_t i = 0; i < k->slot_count; i++)
		k->slots[i] = NO_ENTRY;
	for (size_t i = 0; i < k->count; i++)
		link_entry(k, (int32_t) i);
}

static choir_status reserve(kernel_kind *k)
{
	if (!chi_grow(&k->entries, &k->capacity, k->count + 1, sizeof(entry)))
		return CHOIR_NO_MEMORY;
	if (k->slot_count / 2 > k->count)
		return CHOIR_OK;
	const size_t wanted = k->slot_count ? k->slot_count * 2 : 256;
	int32_t *slots = chi_alloc_array(wanted, sizeof(*slots));
	CHOIR_TRY(chi_made(slots));
	chi_free(k->slots);
	k->slots = slots;
	k->slot_count = wanted;
	link_all(k);
	return CHOIR_OK;
}

static choir_status add(kernel_kind *k, const choir_kernel_table *table, bool builtin)
{
	CHOIR_TRY(reserve(k));
	entry *e = &k->entries[k->count];
	e->table = *table;
	e->hash = hash_of(table->operation, table->dtype);
	e->builtin = builtin;
	link_entry(k, (int32_t) k->count++);
	return CHOIR_OK;
}

choir_status chi_kernel_add_builtin(const choir_kernel_table *table)
{
	return add(find_kind(table->kind), table, true);
}

choir_status chi_kernel_add_dtypes(choir_kernel_table table, uint32_t dtypes)
{
	table.size = sizeof table;
	table.version = CHOIR_TABLE_VERSION;
	for (int dtype = CHOIR_F32; dtype <= CHOIR_BF16; dtype++) {
		table.dtype = (choir_dtype) dtype;
		if (dtypes >> dtype & 1)
			CHOIR_TRY(chi_kernel_add_builtin(&table));
	}
	return CHOIR_OK;
}

static choir_status register_spec(const chi_kernel_spec *spec, const char *name)
{
	const choir_kernel_table table = { .operation = spec->operation,
		.kind = "cpu",
		.name = name,
		.user = spec->user,
		.score = spec->score,
		.scratch = spec->scratch,
		.run = spec->run };
	return chi_kernel_add_dtypes(table, spec->dtypes);
}

choir_status chi_kernel_register(chi_kernel_lists *lists, const char *name)
{
	for (size_t index = 0; lists(index).count; index++)
		for (size_t i = 0; i < lists(index).count; i++)
			CHOIR_TRY(register_spec(&lists(index).specs[i], name));
	return CHOIR_OK;
}

// With the lock.
static choir_status open_kind(const choir_kernel_table *table, kernel_kind **kind)
{
	const char *name = table->name ? table->name : "without a name";
	const uint32_t count = chi_atomic32_load(&registry.count);
	*kind = find_kind(table->kind);
	if (*kind && chi_atomic32_load(&(*kind)->closed))
		return choir_fail(CHOIR_STATE,
				"kernel %s for %s: is registered too late; operations have run already on %s",
				name, table->operation, table->kind);
	if (*kind)
		return CHOIR_OK;
	if (count == MAX_KINDS)
		return choir_fail(CHOIR_UNSUPPORTED,
				"kernel %s for %s: %d kinds of devices have kernels already; no more are possible",
				name, table->operation, MAX_KINDS);
	*kind = &registry.kind[count];
	(*kind)->name = table->kind;
	CHOIR_TRY(reserve(*kind));
	chi_atomic32_store(&registry.count, count + 1);
	return CHOIR_OK;
}

choir_status choir_register_kernel(const choir_kernel_table *given)
{
	choir_kernel_table table;
	kernel_kind *kind;
	CHOIR_TRY(chi_table_take("kernel", &table, sizeof(table),
			offsetof(choir_kernel_table, run) + sizeof(table.run), given));
	if (!table.operation || !table.kind || !table.run || chi_dtype_size(table.dtype) == 0)
		return choir_fail(CHOIR_INVALID, "kernel %s: operation, kind, dtype and run are needed",
				table.name ? table.name : "without a name");
	if ((unsigned) table.arithmetic > CHOIR_ARITHMETIC_FP8_E5M2)
		return choir_fail(CHOIR_INVALID,
				"kernel %s for %s: arithmetic %d is unknown; a choir_arithmetic is needed",
				table.name ? table.name : "without a name", table.operation,
				(int) table.arithmetic);
	chi_mutex_lock(&registry.lock);
	choir_status status = open_kind(&table, &kind);
	if (status == CHOIR_OK)
		status = add(kind, &table, false);
	chi_mutex_unlock(&registry.lock);
	return status;
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

// Both with the lock. The next lookup retries after a failure.
static choir_status add_built_in(void)
{
	const char *which = getenv("CHOIR_KERNELS");
	const bool all = !which || !*which || same(which, "all");
	kernel_kind *k = &registry.kind[0];
	const size_t before = k->count;

	if (!all && !same(which, "plain"))
		return choir_fail(
				CHOIR_INVALID, "CHOIR_KERNELS: '%s' is unknown; known: all, plain", which);
	CHOIR_TRY(chi_instruction_set_check());
#ifdef CHI_HAS_ONEDNN
	if (all)
		CHOIR_TRY(chi_limit_onednn());
#endif
	chi_kernel_lists *const libraries[] = { chi_plain_list, chi_fma_list, chi_winograd_list,
		chi_onednn_list };
	const char *const names[] = { "plain", "fma", "winograd", "onednn" };
	const size_t n = all ? sizeof names / sizeof names[0] : 1;
	choir_status status = CHOIR_OK;
	for (size_t i = 0; i < n && status == CHOIR_OK; i++)
		status = chi_kernel_register(libraries[i], names[i]);
	for (size_t i = 0; i < n && status == CHOIR_OK; i++)
		status = chi_kernel_register_narrow(libraries[i], names[i]);
	if (status == CHOIR_OK)
		return CHOIR_OK;
	k->count = before;
	link_all(k);
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

static choir_status add_to(kernel_kind *k, choir_status (*add_kernels)(void))
{
	const size_t before = k->count;
	CHOIR_TRY(reserve(k));
	const choir_status status = add_kernels();
	if (status == CHOIR_OK)
		return CHOIR_OK;
	k->count = before;
	link_all(k);
	return status;
}

static choir_status close_kind(kernel_kind *k)
{
	chi_mutex_lock(&registry.lock);
	choir_status status = CHOIR_OK;
	if (!chi_atomic32_load(&k->closed)) {
		if (k == &registry.kind[0])
			status = add_built_in();
		else if (k == &registry.kind[1])
			status = add_to(k, chi_cuda_kernels_add);
		else if (k == &registry.kind[2])
			status = add_to(k, chi_remote_kernels_add);
		if (status == CHOIR_OK)
			chi_atomic32_store(&k->closed, 1);
	}
	chi_mutex_unlock(&registry.lock);
	return status;
}

bool chi_kernel_is_update(const char *operation)
{
	const size_t length = strlen(operation), end = sizeof "_update" - 1;
	return length > end && strcmp(operation + length - end, "_update") == 0;
}

bool chi_kernel_is_builtin(const choir_kernel_table *kernel)
{
	return ((const entry *) (const void *) kernel)->builtin;
}

static void report(
		const kernel_kind *k, const choir_device *d, const char *operation, choir_dtype dtype)
{
	chi_text known = { 0 };

	for (choir_dtype other = CHOIR_F32; k && other <= CHOIR_BF16; other++)
		if (*find_slot(k, operation, other, hash_of(operation, other)) != NO_ENTRY)
			chi_text_add(&known, "%s%s", known.data ? ", " : "", choir_dtype_name(other));
	choir_fail(CHOIR_UNSUPPORTED, "%s: no kernel for %s on %s; dtypes with a kernel: %s",
			operation, choir_dtype_name(dtype), d->table->kind,
			known.data && !known.failed ? known.data : "nothing");
	chi_text_free(&known);
}

// With its kernels; NULL: none, or they cannot be added.
static kernel_kind *kind_of(const choir_device *d)
{
	kernel_kind *k = find_kind(d->table->kind);
	return k && (chi_atomic32_load(&k->closed) || close_kind(k) == CHOIR_OK) ? k : NULL;
}

static int32_t first_of(const kernel_kind *k, const char *operation, choir_dtype dtype)
{
	return k ? *find_slot(k, operation, dtype, hash_of(operation, dtype)) : NO_ENTRY;
}

bool chi_kernel_exists(const choir_device *d, const char *operation, choir_dtype dtype)
{
	return first_of(kind_of(d), operation, dtype) != NO_ENTRY;
}

bool chi_kernel_has_tf32(const choir_device *d, const char *operation)
{
	const kernel_kind *k = kind_of(d);
	int32_t i = first_of(k, operation, CHOIR_F32);
	while (i != NO_ENTRY && k->entries[i].table.arithmetic != CHOIR_ARITHMETIC_TF32)
		i = k->entries[i].next;
	return i != NO_ENTRY;
}

bool chi_kernel_has_native_bf16(void)
{
	const char *which = getenv("CHOIR_KERNELS");

	return (which == NULL || !same(which, "plain")) && chi_onednn_has_bf16();
}

const char *chi_kernel_bf16_instructions(void)
{
	if (!chi_kernel_has_native_bf16())
		return "none";
	return chi_onednn_has_amx() ? "AMX" : "AVX512_BF16";
}

const choir_kernel_table *chi_kernel_find(
		choir_device *d, const choir_kernel_call *call, const char *operation, choir_dtype dtype)
{
	return chi_kernel_find_named(d, call, operation, NULL, dtype);
}

// A name finds kernels of any arithmetic.
static const choir_kernel_table *find_best(const kernel_kind *k, const choir_kernel_call *call,
		const char *operation, const char *name, choir_arithmetic arithmetic, choir_dtype dtype)
{
	const choir_kernel_table *best = NULL;
	int best_score = 0;

	for (int32_t i = first_of(k, operation, dtype); i != NO_ENTRY; i = k->entries[i].next) {
		const choir_kernel_table *table = &k->entries[i].table;
		if (name && (!table->name || !same(table->name, name)))
			continue;
		if (!name && table->arithmetic != arithmetic)
			continue;
		choir_kernel_call asked = *call;
		asked.user = table->user;
		const int score = table->score ? table->score(&asked) : 1;
		if (score > best_score) {
			best = table;
			best_score = score;
		}
	}
	return best;
}

const choir_kernel_table *chi_kernel_find_tf32(
		choir_device *d, const choir_kernel_call *call, const char *operation, choir_dtype dtype)
{
	return dtype != CHOIR_F32
			? NULL
			: find_best(kind_of(d), call, operation, NULL, CHOIR_ARITHMETIC_TF32, dtype);
}

const choir_kernel_table *chi_kernel_find_named(choir_device *d, const choir_kernel_call *call,
		const char *operation, const char *name, choir_dtype dtype)
{
	kernel_kind *k = find_kind(d->table->kind);

	if (k && !chi_atomic32_load(&k->closed) && close_kind(k) != CHOIR_OK)
		return NULL;
	const choir_kernel_table *best =
			find_best(k, call, operation, name, CHOIR_ARITHMETIC_OF_DTYPE, dtype);
	if (!best && name)
		choir_fail(CHOIR_UNSUPPORTED, "%s: no kernel \"%s\" for this call in %s on %s", operation,
				name, choir_dtype_name(dtype), d->table->kind);
	else if (!best)
		report(k, d, operation, dtype);
	return best;
}
