// A parameter server's side of the messages. A state machine on a hub; chi_server_model has the
// values.
#pragma once

#include "coordinator/large_message.h"
#include "coordinator/exactly_once.h"
#include "coordinator/protocol.h"

typedef struct {
	void *user;
	// The rest of a PUSH or ASSIGN, applied whole or not at all.
	choir_status (*change)(void *user, uint16_t kind, chi_unpack *u);
	// For a PULL or ROWS.
	choir_status (*values)(void *user, uint16_t kind, chi_unpack *u, chi_pack *to);
	choir_status (*save)(void *user, chi_pack *to);
	choir_status (*restore)(void *user, chi_unpack *u);
	// Updates open.address after a change. NULL: workers cannot read the values directly.
	void (*locate)(void *user);
} chi_server_model;

typedef struct {
	chi_peer *peer;
	chi_pack rows; // for ROWS_THERE
} chi_server_worker;

typedef struct {
	chi_server_model model;
	chi_exactly_once once;
	int index; // of this server, for its model
	uint64_t version; // counts changes
	chi_open_values open;
	chi_scratch offered; // the last message read
	size_t max; // bytes of a message
	uint64_t changes, repeats; // repeats: skipped
	chi_pack values, asked; // values: of values_version, for this PULL
	uint64_t values_version;
	chi_server_worker workers[1024]; // connected
	int n;
	bool ended; // by the coordinator, as end says
	chi_error end;
} chi_server;

void chi_server_init(chi_server *s, const chi_server_model *model);
void chi_server_free(chi_server *s);
choir_status chi_server_admit(void *server, chi_peer *peer, chi_pack *welcome);
void chi_server_joined(void *server, chi_peer *peer);
choir_status chi_server_frame(
		void *server, chi_peer *peer, const chi_net_frame *frame, const void *payload);
void chi_server_lost(void *server, chi_peer *peer, choir_status status);
