// Memory that is given back all at once: a list of blocks, filled from the first to the last. An
// arena is emptied, not freed: the blocks stay for the next time, so a steady use allocates
// nothing. Threads: one at a time.
#pragma once

#include <stddef.h>

struct chi_arena_block;
typedef struct {
	struct chi_arena_block *first, *current;
	size_t used; // bytes of the current block
	size_t total; // bytes handed out before the current block
} chi_arena;

void chi_arena_init(chi_arena *arena); // no memory yet; cannot fail
void chi_arena_free(chi_arena *arena); // all blocks; usable again as after init
// Zeroed, aligned to 16 bytes, valid until the arena is emptied or rewound past it; NULL: no
// memory.
void *chi_arena_alloc(chi_arena *arena, size_t bytes);
char *chi_arena_strdup(chi_arena *arena, const char *text);
void chi_arena_empty(chi_arena *arena);
// A mark is the number of bytes handed out so far; rewinding gives back what came after it.
size_t chi_arena_mark(const chi_arena *arena);
void chi_arena_rewind(chi_arena *arena, size_t mark);
