// All that a program needs. Each header is the reference of its subject and can be included by
// itself: status.h (errors), library.h, log.h, device.h, tensor.h, op.h, nn.h, tape.h; source.h,
// dataset.h and input.h (reading, transforming and distributing data); value.h and variable.h;
// strategy.h, scope.h, replica.h, cross.h and update.h (strategies and contexts); layer.h,
// export_c.h, optimizer.h, metric.h, weights.h and checkpoint.h; trace.h and replay.h (looking
// into a training); cluster.h (several processes). Only extend.h, the tables for your own
// hardware, is included separately.
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
