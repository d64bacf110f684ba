// All that a program needs: include this one. Each header is the reference of its subject and may
// be included alone: status.h (how calls fail), library.h, device.h, tensor.h, op.h, nn.h,
// tape.h; source.h, dataset.h and input.h (where data come from, what is done to them, how they
// are dealt out); value.h and variable.h; strategy.h, replica.h, cross.h and update.h (the
// contexts); layer.h, optimizer.h, metric.h and checkpoint.h; trace.h and replay.h (looking at a
// training); cluster.h (several processes). What is asked for separately is extend.h, the tables
// for hardware of one's own.
#pragma once

#include "checkpoint.h"
#include "cluster.h"
#include "input.h"
#include "layer.h"
#include "library.h"
#include "metric.h"
#include "optimizer.h"
#include "replay.h"
#include "source.h"
#include "trace.h"
#include "update.h"
