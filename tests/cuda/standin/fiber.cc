// Fibers by a few instructions of x86-64, as a block has up to 1,024 threads and each switches at
// every barrier; by ucontext elsewhere.
#include "fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define ADDRESSES 1
#else
#define ADDRESSES 0
#endif

enum { STACK = 128 << 10, PAGE = 4096 };

static void make_stack(standin_fiber *f)
{
	f->stack = (char *) mmap(NULL, STACK, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (f->stack == MAP_FAILED) {
		perror("stand-in: a stack");
		abort();
	}
	mprotect(f->stack, PAGE, PROT_NONE);
	f->size = STACK;
}

#if defined(__x86_64__)
extern "C" void standin_swap(void **save, void *load);
__asm__(".text\n.globl standin_swap\n.type standin_swap,@function\nstandin_swap:\n"
		"pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
		"subq $8,%rsp\nstmxcsr (%rsp)\nfnstcw 4(%rsp)\n"
		"movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
		"ldmxcsr (%rsp)\nfldcw 4(%rsp)\naddq $8,%rsp\n"
		"popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nretq\n"
		".size standin_swap,.-standin_swap\n");

void standin_fiber_again(standin_fiber *f, void (*start)())
{
	uint64_t *top = (uint64_t *) (f->stack + f->size);
	uint32_t csr;
	uint16_t word;
	__asm__ volatile("stmxcsr %0" : "=m"(csr));
	__asm__ volatile("fnstcw %0" : "=m"(word));
	*--top = 0; // start has no caller, and finds the stack aligned as after a call
	*--top = (uint64_t) start;
	for (int i = 0; i < 6; i++)
		*--top = 0;
	*--top = csr | (uint64_t) word << 32;
	f->at = top;
}
#else
#include <ucontext.h>

static void standin_swap(void **save, void *load)
{
	swapcontext((ucontext_t *) *save, (ucontext_t *) load);
}

void standin_fiber_again(standin_fiber *f, void (*start)())
{
	ucontext_t *c = (ucontext_t *) (f->at == NULL ? calloc(1, sizeof *c) : f->at);
	getcontext(c);
	c->uc_stack.ss_sp = f->stack;
	c->uc_stack.ss_size = f->size;
	c->uc_link = NULL;
	makecontext(c, start, 0);
	f->at = c;
}
#endif

void standin_fiber_make(standin_fiber *f, void (*start)())
{
	memset(f, 0, sizeof *f);
	make_stack(f);
	standin_fiber_again(f, start);
}

// save NULL: from has ended.
STANDIN_UNCOUNTED static void leave(standin_fiber *from, standin_fiber *to, void **save)
{
#if !defined(__x86_64__)
	if (from->at == NULL)
		from->at = calloc(1, sizeof(ucontext_t));
#endif
#if ADDRESSES
	__sanitizer_start_switch_fiber(save, to->stack, to->size);
#else
	(void) save;
#endif
	standin_swap(&from->at, to->at);
#if ADDRESSES
	__sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
#endif
}

void standin_fiber_switch(standin_fiber *from, standin_fiber *to)
{
	leave(from, to, &from->fake);
}

void standin_fiber_end(standin_fiber *from, standin_fiber *to)
{
	leave(from, to, NULL);
}

void standin_fiber_jumped(standin_fiber *to)
{
#if ADDRESSES
	if (to->stack != NULL) {
		void *gone = NULL;
		__sanitizer_start_switch_fiber(&gone, to->stack, to->size);
		__sanitizer_finish_switch_fiber(to->fake, NULL, NULL);
	}
#else
	(void) to;
#endif
}

void standin_fiber_arrive(standin_fiber *from)
{
#if ADDRESSES
	const void *bottom;
	size_t size;
	__sanitizer_finish_switch_fiber(NULL, &bottom, &size);
	if (from->stack == NULL) {
		from->size = size;
		from->stack = (char *) (uintptr_t) bottom;
	}
#else
	(void) from;
#endif
}
