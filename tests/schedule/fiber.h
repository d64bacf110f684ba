// Fibers: threads that the system knows nothing of. One runs at a time, on the one thread of the
// program, until it switches to another by itself. Each has a stack and its own thread-local
// variables, so code that was written for threads does not notice.
#pragma once

#include <stddef.h>
#include <ucontext.h>

typedef struct {
	ucontext_t context;
	char *stack; // NULL: the program's own
	char *locals; // its thread-local variables, while another runs
} fiber;

// The program's own becomes a fiber. Before all else.
void fiber_begin(fiber *f);
// A new fiber, which begins with start and must never return from it.
void fiber_make(fiber *f, void (*start)(void));
// Gives back what fiber_make took; f must not be running.
void fiber_free(fiber *f);
void fiber_switch(fiber *from, fiber *to);
