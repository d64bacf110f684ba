// Preloaded into workers: they look for each other as seldom as on a machine whose processors are
// taken, and one that has LATE is two seconds behind. Who finalises MPI says so in the file
// FINALISED.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int MPI_Finalize(void);
int MPI_Testall(int n, void *requests, int *done, void *statuses);

typedef int testall_fn(int n, void *requests, int *done, void *statuses);
typedef int finalize_fn(void);

int MPI_Testall(int n, void *requests, int *done, void *statuses)
{
	static int calls;
	const time_t late = calls++ == 0 && getenv("LATE") != NULL ? 2 : 0;
	nanosleep(&(struct timespec){ .tv_sec = late, .tv_nsec = 20000000 }, NULL);
	testall_fn *real;
	*(void **) &real = dlsym(RTLD_NEXT, "MPI_Testall"); // as POSIX has it
	return real(n, requests, done, statuses);
}

int MPI_Finalize(void)
{
	const int file = open(getenv("FINALISED"), O_WRONLY | O_APPEND);
	const int written = write(file, ".", 1) == 1;
	close(file);
	finalize_fn *real;
	*(void **) &real = dlsym(RTLD_NEXT, "MPI_Finalize");
	return written ? real() : 1;
}
