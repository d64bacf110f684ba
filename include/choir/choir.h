// Includes the headers that most programs need. The others are coordinator.h, serve.h,
// supervisor.h and extend.h. Each header can be included alone. status.h says how calls fail.
//
// Rules of all headers, unless a comment says otherwise:
// - For a NULL object, a getter returns 0, NULL, false or "", for an index out of range NULL. The
//   object owns its getters' results, which live as long.
// - A strategy frees its variables, layers, optimizers, metrics, models and distributed datasets.
//   The caller owns every other object that a function x_new makes, and frees it with x_free.
// - Every call that makes an object may fail with CHOIR_NO_MEMORY.
// - Every call may fail with CHOIR_INVALID: an argument is NULL, unknown or out of range, or has a
//   shape or kind that the comment does not allow. A search for a name may fail with
//   CHOIR_NOT_FOUND.
// - After a failure, the tensors that a call returns through pointers are NULL.
// - Axis -1 is the last axis, -2 the axis before it.
// - Choir copies names and options. NULL options mean all defaults. Set an options struct's field
//   .size to its size, with CHOIR_OPTIONS or sizeof (else CHOIR_INVALID).
// - The pointer user goes to the program's function, and stays valid as long as Choir may call it.
// - In comments, ".name" is a field of an options struct, "0: meaning" what 0 means, "CHOIR_STATE:
//   cause" when a call fails with CHOIR_STATE. "Threads: any": any thread may make the call.
#pragma once

#include "checkpoint.h"
#include "cluster.h"
#include "fit.h"
#include "input.h"
#include "layer.h"
#include "library.h"
#include "metric.h"
#include "optimizer.h"
#include "replay.h"
#include "source.h"
#include "trace.h"
#include "update.h"
