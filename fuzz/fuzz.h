// What the fuzzers share: demands that stop the fuzzer with what was wrong, and the input as a
// file that parsers can open.
#pragma once

#include "base/error.h"

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
