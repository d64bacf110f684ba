// Switching between stacks, for the threads of a block.
#pragma once

#include <stddef.h>

typedef struct {
	void *at; // its stack pointer while it does not run
	char *stack; // the lowest address; NULL: the thread's own
	size_t size;
	void *fake; // the address sanitizer's
} standin_fiber;

// A fiber that calls start when it is first switched to; start never returns.
void standin_fiber_make(standin_fiber *f, void (*start)());
void standin_fiber_again(standin_fiber *f, void (*start)()); // on the stack that it has
void standin_fiber_switch(standin_fiber *from, standin_fiber *to);
// The first thing that start does: it came from there, whose stack the address sanitizer wants to
// know.
void standin_fiber_arrive(standin_fiber *from);
