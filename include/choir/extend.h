// Tables for a program's own hardware and interconnects. extend/suite.h checks them.
//
// Rules of all tables, if a header does not say otherwise: the field size is that of the struct,
// and version is CHOIR_TABLE_VERSION. Registering copies the table, but not its name, which must
// be valid until the program ends. CHOIR_INVALID: an invalid size or version; a name that is
// missing or already registered; more than 16 tables of a type (devices: CHOIR_UNSUPPORTED).
// Threads: one thread at a time registers tables, each table before its first use. Choir allocates
// self (self_size bytes, zeroed). A slot is a function of the table; each header says what a NULL
// slot means. A slot that fails calls choir_fail. Choir calls slots marked (any) from any thread,
// several threads at once. Choir calls close once, even after a failed open.
#pragma once

#include "extend/cross_device_ops_table.h"
#include "extend/device_table.h"
#include "extend/kernel_table.h"
#include "extend/strategy_table.h"
#include "extend/transport_table.h"
