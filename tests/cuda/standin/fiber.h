// Switching between stacks, for the threads of a block.
#pragma once

#include <stddef.h>

#if defined(__has_feature) // clang's way to say what gcc has macros for
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

// For functions that do not return, whose calls the thread sanitizer would count for ever. To it,
// all fibers are their thread: between them, calls and returns balance.
#define STANDIN_UNCOUNTED __attribute__((no_sanitize("thread")))

typedef struct {
	void *at; // its stack pointer while it does not run
	char *stack; // the lowest address; NULL: the thread's own
	size_t size;
	void *fake; // the address sanitizer's
} standin_fiber;

// A fiber that calls start when it is first switched to; start never returns.
void standin_fiber_make(standin_fiber *f, void (*start)());
void standin_fiber_again(standin_fiber *f, void (*start)()); // on the stack that it has
STANDIN_UNCOUNTED void standin_fiber_switch(standin_fiber *from, standin_fiber *to);
// The last thing that start does.
STANDIN_UNCOUNTED void standin_fiber_end(standin_fiber *from, standin_fiber *to);
// After a jump from a fiber's stack to the thread's own.
void standin_fiber_jumped(standin_fiber *to);
// The first thing that start does: it came from there, whose stack the address sanitizer wants to
// know.
void standin_fiber_arrive(standin_fiber *from);
