// Blocks are filled in order; one too small for a request is skipped. Under AddressSanitizer,
// unused memory is poisoned.
#include "base/arena.h"
#include "base/alloc.h"
#include "base/size.h"

#include <stdalign.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISONING
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONING
#endif
#endif
#ifdef POISONING
#include <sanitizer/asan_interface.h>
#endif

enum { ALIGNMENT = 16, FIRST_CAPACITY = 16 << 10, MAX_CAPACITY = 1 << 20 };

struct chi_arena_block {
	struct chi_arena_block *next;
	size_t capacity;
	size_t used;
	alignas(ALIGNMENT) unsigned char data[];
};

static void poison(const unsigned char *from, size_t bytes)
{
#ifdef POISONING
	ASAN_POISON_MEMORY_REGION(from, bytes);
#else
	(void) from;
	(void) bytes;
#endif
}

static void unpoison(const unsigned char *from, size_t bytes)
{
#ifdef POISONING
	ASAN_UNPOISON_MEMORY_REGION(from, bytes);
#else
	(void) from;
	(void) bytes;
#endif
}

void chi_arena_init(chi_arena *arena)
{
	*arena = (chi_arena){ 0 };
}

void chi_arena_free(chi_arena *arena)
{
	struct chi_arena_block *block = arena->first;
	while (block) {
		struct chi_arena_block *next = block->next;
		unpoison(block->data, block->capacity);
		chi_free(block);
		block = next;
	}
	chi_arena_init(arena);
}

static struct chi_arena_block *append(chi_arena *arena, size_t bytes)
{
	struct chi_arena_block *last = arena->current;
	size_t capacity = FIRST_CAPACITY;
	if (last)
		capacity = last->capacity < MAX_CAPACITY / 2 ? last->capacity * 2 : MAX_CAPACITY;
	if (capacity < bytes)
		capacity = bytes;
	size_t whole;
	if (!chi_size_add(sizeof(struct chi_arena_block), capacity, &whole))
		whole = SIZE_MAX;
	struct chi_arena_block *block = chi_alloc(whole);
	if (!block)
		return NULL;
	block->capacity = capacity;
	poison(block->data, capacity);
	if (last)
		last->next = block;
	else
		arena->first = block;
	return block;
}

static void go_to(chi_arena *arena, struct chi_arena_block *block)
{
	if (arena->current)
		arena->current->used = arena->used;
	arena->total += arena->used;
	arena->used = 0;
	arena->current = block;
}

static bool reserve(chi_arena *arena, size_t bytes)
{
	while (!arena->current || arena->current->capacity - arena->used < bytes) {
		struct chi_arena_block *next = arena->current ? arena->current->next : arena->first;
		if (!next)
			next = append(arena, bytes);
		if (!next)
			return false;
		go_to(arena, next);
	}
	return true;
}

void *chi_arena_alloc(chi_arena *arena, size_t bytes)
{
	size_t rounded;
	if (!chi_size_round_up(bytes ? bytes : 1, ALIGNMENT, &rounded))
		return chi_alloc(bytes);
	if (!reserve(arena, rounded))
		return NULL;
	unsigned char *p = arena->current->data + arena->used;
	arena->used += rounded;
	unpoison(p, rounded);
	memset(p, 0, rounded);
	return p;
}

char *chi_arena_strdup(chi_arena *arena, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = chi_arena_alloc(arena, bytes);
	if (copy)
		memcpy(copy, text, bytes);
	return copy;
}

void chi_arena_empty(chi_arena *arena)
{
	chi_arena_rewind(arena, 0);
}

size_t chi_arena_mark(const chi_arena *arena)
{
	return arena->total + arena->used;
}

void chi_arena_rewind(chi_arena *arena, size_t mark)
{
	if (mark >= chi_arena_mark(arena))
		return;
	arena->current->used = arena->used;
	struct chi_arena_block *last = arena->current, *block = arena->first;
	size_t before = 0;
	while (mark - before > block->used) {
		before += block->used;
		block = block->next;
	}
	arena->current = block;
	arena->used = mark - before;
	arena->total = before;
	poison(block->data + arena->used, block->capacity - arena->used);
	while (block != last) {
		block = block->next;
		poison(block->data, block->capacity);
	}
}
