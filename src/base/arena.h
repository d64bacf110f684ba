// Memory that is freed all at once. An emptied arena keeps its blocks, so repeated steps allocate
// nothing. Threads: one at a time.
#pragma once

#include <stddef.h>

struct chi_arena_block;
typedef struct {
	struct chi_arena_block *first, *current;
	size_t used;
	size_t total;
} chi_arena;

void chi_arena_init(chi_arena *arena);
void chi_arena_free(chi_arena *arena);
// Zeroed, aligned to 16 bytes, until the arena is emptied or rewound to an earlier mark.
void *chi_arena_alloc(chi_arena *arena, size_t bytes);
char *chi_arena_strdup(chi_arena *arena, const char *text);
void chi_arena_empty(chi_arena *arena);
// For a rewind, which gives back later memory.
size_t chi_arena_mark(const chi_arena *arena);
void chi_arena_rewind(chi_arena *arena, size_t mark);
