// The interface between libchoir and libchoir-net, the library with sockets, which libchoir loads
// when a program first needs connections. Of Choir's functions, libchoir-net calls only those in
// choir_net_argument.
#pragma once

#include "connection_table.h"

CHOIR_C_BEGIN

// The version of this interface.
#define CHOIR_NET_PLUGIN_VERSION 1

// The argument of the table's open.
typedef struct {
	choir_status (*fail)(choir_status status, const char *fmt, ...) CHOIR_PRINTF(2, 3);
	double (*now)(void); // seconds on a monotonic clock
	void *(*allocate)(size_t bytes); // zeroed; NULL: CHOIR_NO_MEMORY is recorded
	void (*release)(void *memory);
	const void *key; // the job's key, which open copies; NULL: Unix sockets only
	size_t key_bytes; // 32 to 256
	bool plain; // true: no encryption; both ends still prove that they have the key
} choir_net_argument;

// libchoir-net's one symbol is a constant of this type.
#define CHOIR_NET_PLUGIN_SYMBOL "choir_net_plugin_data"
typedef struct {
	uint32_t version; // CHOIR_NET_PLUGIN_VERSION
	const choir_connection_table *table;
} choir_net_plugin;

CHOIR_C_END
