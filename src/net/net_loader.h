// Opens libchoir-net's sockets, or the caller's table of connections.
#pragma once

#include "choir/extend/connection_table.h"
#include "net/key.h"

typedef struct {
	choir_connection_table table;
	void *self;
	uint64_t job; // a hash of the key, which does not reveal it
} chi_connections;

// key: NULL allows Unix sockets only. plain: see choir_net_argument. Free with
// chi_connections_free. CHOIR_NOT_FOUND: no libchoir-net.
chi_connections *chi_connections_open(const chi_key *key, bool plain);
chi_connections *chi_connections_open_table(
		const choir_connection_table *table, const void *argument, const chi_key *key);
void chi_connections_free(chi_connections *c);
double chi_connections_now(chi_connections *c);
