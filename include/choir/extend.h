// Tables that a program can implement for its own hardware and interconnects: kinds of devices
// (memory and streams), kernels for them, cross-device operations, transports of clusters, and
// strategies.
//
// Rules of all tables, where a header does not say otherwise: the field size is the size of the
// struct, version is CHOIR_TABLE_VERSION. Registering copies the table, but not its name, which
// must be valid as long as the program. CHOIR_INVALID: an invalid size or version; a name that is
// missing or registered already; more than 16 tables of a kind. Threads: one thread registers,
// before the first use. Choir allocates self (self_size bytes, zeroed). A slot (function) may be
// missing (NULL); each header says what happens then. A slot that fails leaves a text by
// choir_fail. Slots marked (any) are called from any thread, several at once. close is called
// once, also after a failed open. extend/suite.h checks a device table.
#pragma once

#include "extend/cross_device_ops_table.h"
#include "extend/device_table.h"
#include "extend/kernel_table.h"
#include "extend/strategy_table.h"
#include "extend/transport_table.h"
