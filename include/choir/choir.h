// Includes all that a program needs. Each header is the reference of its subject and can be
// included by itself. status.h says how calls fail; source.h, dataset.h and input.h read,
// transform and distribute data; strategy.h, scope.h, replica.h, cross.h and update.h have
// strategies and contexts; trace.h and replay.h look into a training. Only extend.h, the tables
// for your own hardware, is included separately.
//
// Rules of all headers, where a comment does not say otherwise:
// - A getter gives 0, NULL, false or "" for a NULL object, and NULL for an index out of range.
//   The result belongs to the object and is valid as long as the object.
// - Variables, layers, optimizers, metrics and distributed datasets belong to the strategy that
//   is current when they are made. The strategy frees them.
// - CHOIR_NO_MEMORY is possible wherever something is made, and CHOIR_INVALID where a required
//   argument is NULL.
// - Names and options are copied. NULL options mean all defaults. The field size is the size of
//   its struct: set it by CHOIR_OPTIONS or sizeof, else the call fails with CHOIR_INVALID.
// - user is passed to the program's function. It must live as long as the function may be called.
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
