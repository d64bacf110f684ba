// Shared memory without a name, by a descriptor.
#include "base/shared_memory.h"

#include "base/text.h"
#include "choir/status.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int chi_shared_memory(size_t bytes)
{
	char text[96];
	const int fd = memfd_create("choir", MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t) bytes) == 0)
		return fd;
	choir_fail(CHOIR_IO, "shared memory: %s", chi_text_errno(errno, text, sizeof text));
	if (fd >= 0)
		close(fd);
	return -1;
}

void *chi_shared_map(int fd, size_t bytes)
{
	struct stat found;
	if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode) || found.st_nlink != 0 ||
			found.st_size != (off_t) bytes)
		return NULL;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

void chi_shared_unmap(void *memory, size_t bytes)
{
	if (memory != NULL)
		(void) munmap(memory, bytes);
}
