// Includes all that a program needs except extend.h, the tables for hardware. Each header can be
// included alone. status.h says how calls fail.
//
// Rules of all headers, unless a comment says otherwise:
// - A getter gives 0, NULL, false or "" for a NULL object, and NULL for an index out of range. The
//   object owns the result, which is valid as long as the object.
// - The strategy that is current when a variable, layer, optimizer, metric or distributed dataset
//   is made owns and frees it. Any other object of a constructor x_new is the caller's; x_free
//   frees it.
// - Every call that makes an object may fail with CHOIR_NO_MEMORY.
// - CHOIR_INVALID: an argument that the comment does not allow: NULL, unknown, of another shape or
//   kind, out of range. Comments name other causes and statuses.
// - Names and options are copied. NULL options mean all defaults. CHOIR_OPTIONS or sizeof sets a
//   struct's field size, else the call fails with CHOIR_INVALID.
// - user is passed to the program's function, and must be valid as long as the function may be
//   called.
// - In comments, ".name" is a field of an options struct, "0: meaning" says what a value means,
//   and "CHOIR_STATE: the cause" when a call fails.
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
