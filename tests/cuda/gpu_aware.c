// A layer in front of an MPI (LD_PRELOAD) that plays a GPU-aware one: it says that it takes memory
// of GPUs, and copies such memory by way of the stand-in for CUDA, to and from memory of its own.
// At the end it prints how many messages had memory of GPUs. Memory that the stand-in refuses, and
// memory for which queued work was not waited for, end the program.
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 256 };

// A message of which the layer has a copy. One thread at a time calls MPI. An MPI may give one
// request to several messages that are sent at once.
typedef struct {
	bool used;
	MPI_Request request;
	void *copy, *to; // to NULL: it is sent
} message;

static message messages[CAPACITY];
static unsigned long of_gpus;

static int copy_bytes(void *to, const void *from, size_t bytes)
{
	static int (*copy)(void *, const void *, size_t);
	static unsigned (*reports)(void);
	if (copy == NULL) {
		void *library = dlopen(getenv("CHOIR_CUDA"), RTLD_NOW | RTLD_NOLOAD);
		if (library == NULL) { // so there is no memory of GPUs yet
			memcpy(to, from, bytes);
			return 1;
		}
		void *found[] = { dlsym(library, "standin_copy"), dlsym(library, "standin_reports") };
		memcpy(&copy, &found[0], sizeof copy);
		memcpy(&reports, &found[1], sizeof reports);
	}
	const int copied = copy(to, from, bytes);
	if (copied == 0 || reports() > 0) {
		fprintf(stderr, "gpu_aware: a copy of %zu bytes was refused\n", bytes);
		abort();
	}
	return copied;
}

static void keep(MPI_Request request, void *copy, void *to)
{
	int i = 0;
	while (i < CAPACITY && messages[i].used && messages[i].request != request)
		i++;
	if (i == CAPACITY)
		abort();
	if (messages[i].used) // done, and not tested
		free(messages[i].copy);
	messages[i] = (message){ true, request, copy, to };
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
		MPI_Request *request)
{
	void *copy = malloc((size_t) count + 1);
	if (copy == NULL)
		return MPI_ERR_NO_MEM;
	of_gpus += count > 0 && copy_bytes(copy, data, (size_t) count) == 2;
	const int error = PMPI_Isend(copy, count, type, to, tag, comm, request);
	keep(*request, copy, NULL);
	return error;
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
		MPI_Request *request)
{
	void *copy = malloc((size_t) count + 1);
	if (copy == NULL)
		return MPI_ERR_NO_MEM;
	const int error = PMPI_Irecv(copy, count, type, from, tag, comm, request);
	keep(*request, copy, data);
	return error;
}

static void end(message *m, MPI_Status *status)
{
	int count = 0;
	if (m->to != NULL)
		PMPI_Get_count(status, MPI_BYTE, &count);
	if (count > 0)
		of_gpus += copy_bytes(m->to, m->copy, (size_t) count) == 2;
	free(m->copy);
	m->used = false;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
	const MPI_Request before = *request;
	MPI_Status own;
	const int error = PMPI_Test(request, done, &own);
	for (int i = 0; i < CAPACITY && error == MPI_SUCCESS && *done; i++)
		if (messages[i].used && messages[i].request == before) {
			end(&messages[i], &own);
			break;
		}
	if (status != MPI_STATUS_IGNORE)
		*status = own;
	return error;
}

int MPIX_Query_cuda_support(void)
{
	return 1;
}

#if defined(MPIX_GPU_SUPPORT_CUDA)
int MPIX_GPU_query_support(int kind, int *is)
{
	*is = kind == MPIX_GPU_SUPPORT_CUDA;
	return MPI_SUCCESS;
}
#endif

__attribute__((destructor)) static void tell(void)
{
	if (of_gpus > 0)
		fprintf(stderr, "gpu_aware: %lu messages of GPUs\n", of_gpus);
}
