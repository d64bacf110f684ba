// Tables for a program's own hardware and interconnects, which extend/suite.h checks.
//
// Rules of all tables, unless a header says otherwise:
// - Set the field .size to the struct's size, and .version to CHOIR_TABLE_VERSION.
// - Registering copies the table, but not its name, which must be valid until the program ends.
//   CHOIR_INVALID: an invalid size or version; a missing or registered name; a 17th table of a
//   type (of devices: CHOIR_UNSUPPORTED). Threads: one at a time, each table before its first use.
// - Choir allocates self: self_size bytes, zeroed. It calls close once, even after a failed open.
// - A slot is a function of the table. Each header says what a NULL slot means. A slot that fails
//   calls choir_fail. Choir calls slots marked (any) from any thread, several threads at once.
#pragma once

#include "extend/cross_device_ops_table.h"
#include "extend/device_table.h"
#include "extend/kernel_table.h"
#include "extend/strategy_table.h"
#include "extend/transport_table.h"
