// Tables for a program's own hardware and interconnects, which extend/suite.h checks.
//
// Rules of all tables, unless a header says otherwise:
// - The field size is that of the struct, and version is CHOIR_TABLE_VERSION.
// - Registering copies the table, but not its name, which must be valid until the program ends.
//   CHOIR_INVALID: an invalid size or version; a name that is missing or registered; more than 16
//   tables of a type (devices: CHOIR_UNSUPPORTED). Threads: one at a time, each table before its
//   first use.
// - Choir allocates self: self_size bytes, zeroed. It calls close once, even after a failed open.
// - A slot is a function of the table. Each header says what a NULL slot means. A slot that fails
//   calls choir_fail. Choir calls slots marked (any) from any thread, several threads at once.
#pragma once

#include "extend/cross_device_ops_table.h"
#include "extend/device_table.h"
#include "extend/kernel_table.h"
#include "extend/strategy_table.h"
#include "extend/transport_table.h"
