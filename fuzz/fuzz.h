// What the fuzzers share: demands that stop the fuzzer with what was wrong, the input as a file
// that parsers can open, and a limit for what they allocate.
#pragma once

#include "base/status.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Sums and products of sizes that cannot wrap around.
__extension__ typedef unsigned __int128 wide;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void demand(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s (the last error: %s)\n", what, choir_error());
	abort();
}

// The most bytes that one allocation may have: what the file can fill, and blocks that are of one
// size for every file. 0: any.
static size_t fuzz_largest;

void __sanitizer_malloc_hook(const volatile void *memory, size_t bytes);
void __sanitizer_malloc_hook(const volatile void *memory, size_t bytes)
{
	(void) memory;
	demand(!fuzz_largest || bytes <= fuzz_largest, "an allocation larger than the file can fill");
}

// A file in memory with these bytes, and no failure that was before. The next call changes it.
static inline const char *fuzz_file(const void *data, size_t size)
{
	static int fd = -1;
	static char path[64];
	if (fd < 0) {
		fd = memfd_create("fuzz", 0);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	}
	demand(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t) size, "no file");
	chi_error_clear();
	return path;
}
