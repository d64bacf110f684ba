// Includes the headers that most programs need, but not coordinator.h, serve.h, supervisor.h and
// extend.h. Each header can be included alone. status.h says how calls fail.
//
// Rules of all headers, unless a comment says otherwise:
// - A getter gives 0, NULL, false or "" for a NULL object, and NULL for an index out of range. The
//   object owns the result, which lives as long as the object.
// - A strategy frees its variables, layers, optimizers, metrics, models and distributed datasets.
//   The caller owns every other object of a constructor x_new, and frees it with x_free.
// - Every call that makes an object may fail with CHOIR_NO_MEMORY.
// - Every call may fail with CHOIR_INVALID: an argument is NULL, unknown, out of range, or has a
//   shape or kind that the comment does not allow. CHOIR_NOT_FOUND: no file, device, column or
//   leaf has the given name.
// - After a failure, tensors that a call gives through pointers are NULL.
// - A negative axis counts from the last.
// - Names and options are copied. NULL options mean all defaults. Set the field size of an options
//   struct with CHOIR_OPTIONS or sizeof, else the call fails with CHOIR_INVALID.
// - Choir passes user to the program's function. user must be valid as long as Choir may call the
//   function.
// - In comments, ".name" is a field of an options struct. "0: meaning" says what the value 0
//   means. "CHOIR_STATE: cause" says when a call fails with CHOIR_STATE. "Threads: any" says that
//   any thread may make the call.
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
