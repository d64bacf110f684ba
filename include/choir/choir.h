// Includes all that a program needs. Each header is the reference of its subject and can be
// included alone. status.h says how calls fail. source.h, dataset.h and input.h read, transform
// and distribute data. strategy.h, scope.h, replica.h, cross.h and update.h have strategies and
// contexts. trace.h and replay.h show what a training does. Only extend.h, the tables for a
// program's hardware, must be included separately.
//
// Rules of all headers, if a comment does not say otherwise:
// - A getter gives 0, NULL, false or "" for a NULL object, and NULL for an index out of range. The
//   object owns the result, which is valid as long as the object.
// - A variable, layer, optimizer, metric or distributed dataset is owned by the strategy that is
//   current at its creation. The strategy frees it.
// - Every call that makes an object may fail with CHOIR_NO_MEMORY. A required argument that is
//   NULL is CHOIR_INVALID.
// - Names and options are copied. NULL options mean all defaults. The field size is the size of
//   its struct. Set it by CHOIR_OPTIONS or sizeof, else the call fails with CHOIR_INVALID.
// - user is passed to the program's function. It must be valid as long as the function may be
//   called.
// - Comments list failures as "CHOIR_STATE: the cause".
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
