// Fibers: threads in user space. One runs at a time, on the program's only system thread, until it
// switches to another. Each has its own stack and thread-local variables, so code written for
// threads runs unchanged.
#pragma once

#include <stddef.h>
#include <ucontext.h>

typedef struct {
	ucontext_t context;
	char *stack; // NULL: the program's own
	char *locals; // its thread-local variables while another fiber runs
} fiber;

// Turns the program into a fiber; called first.
void fiber_begin(fiber *f);
// Makes a fiber that begins with start, which must never return.
void fiber_make(fiber *f, void (*start)(void));
// Frees a fiber, which must not be running.
void fiber_free(fiber *f);
void fiber_switch(fiber *from, fiber *to);
