// Everything a program needs; mpi.h and extend.h are asked for.
#pragma once

#include "checkpoint.h"
#include "input.h"
#include "layer.h"
#include "library.h"
#include "metric.h"
#include "optimizer.h"
#include "update.h"
