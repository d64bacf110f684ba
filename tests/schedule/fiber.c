// Switching is ucontext's, which keeps the floating-point environment apart as well. Thread-local
// variables of the program, in which the static library is, lie in one block for each thread of
// the system; all fibers share that one, so its bytes are exchanged at each switch. That block is
// a kilobyte or so. Thread-local variables of shared libraries (errno) stay common.
#include "fiber.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK = 256 << 10 };

static struct {
	char *block; // this thread's
	const char *initial;
	size_t size, initial_size;
} locals;

static int look_at_program(struct dl_phdr_info *info, size_t size, void *user)
{
	(void) size, (void) user;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		if (header->p_type != PT_TLS)
			continue;
		locals.block = info->dlpi_tls_data;
		locals.initial = (const char *) (info->dlpi_addr + header->p_vaddr);
		locals.size = header->p_memsz;
		locals.initial_size = header->p_filesz;
	}
	return 1; // the program comes first, and the rest is not asked for
}

static void need(int condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	exit(2);
}

void fiber_begin(fiber *f)
{
	dl_iterate_phdr(look_at_program, NULL);
	need(locals.size == 0 || locals.block != NULL, "the program's thread-local variables");
	*f = (fiber){ .locals = malloc(locals.size + 1) };
	need(f->locals != NULL, "malloc");
}

void fiber_make(fiber *f, void (*start)(void))
{
	f->locals = calloc(1, locals.size + 1);
	need(f->locals != NULL, "malloc");
	memcpy(f->locals, locals.initial, locals.initial_size);
	f->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(f->stack != MAP_FAILED, "mmap");
	need(mprotect(f->stack, 4096, PROT_NONE) == 0, "mprotect"); // who needs more is stopped
	need(getcontext(&f->context) == 0, "getcontext");
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = STACK;
	f->context.uc_link = NULL;
	makecontext(&f->context, start, 0);
}

void fiber_free(fiber *f)
{
	if (f->stack != NULL)
		munmap(f->stack, STACK);
	free(f->locals);
	*f = (fiber){ 0 };
}

void fiber_switch(fiber *from, fiber *to)
{
	memcpy(from->locals, locals.block, locals.size);
	memcpy(locals.block, to->locals, locals.size);
	need(swapcontext(&from->context, &to->context) == 0, "swapcontext");
}
