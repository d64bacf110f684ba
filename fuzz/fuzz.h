// Shared by the fuzzers: demand() stops the fuzzer with a message, fuzz_file() turns the input
// into a file that parsers can open, and fuzz_largest limits allocations.
#pragma once

#include "base/status.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Holds sums and products of sizes without wrapping around.
__extension__ typedef unsigned __int128 wide;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Stops the fuzzer with a message unless good.
static inline void demand(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s (the last error: %s)\n", what, choir_error());
	abort();
}

// The maximum size of one allocation: what the file can fill, plus blocks of a fixed size. 0: no
// limit.
static size_t fuzz_largest;

void __sanitizer_malloc_hook(const volatile void *memory, size_t bytes);
void __sanitizer_malloc_hook(const volatile void *memory, size_t bytes)
{
	(void) memory;
	demand(!fuzz_largest || bytes <= fuzz_largest, "an allocation larger than the file can fill");
}

// Returns the path of a file in memory with these bytes, and clears the last error. The next call
// overwrites the file.
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
