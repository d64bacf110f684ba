// The stand-in's part of NCCL: bytes between the devices of one process. As on a GPU, what is
// given to a group is one kernel on each device's stream, which runs when all that it talks to
// have come to theirs.
#pragma once

#include <cuda_runtime.h>

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5
} ncclResult_t;
typedef enum {
	ncclInt8 = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclInt64 = 4,
	ncclFloat32 = 7,
	ncclFloat64 = 8
} ncclDataType_t;
typedef struct standin_rank *ncclComm_t;

extern "C" {
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices);
ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
		ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		cudaStream_t stream);
const char *ncclGetErrorString(ncclResult_t result);
}
