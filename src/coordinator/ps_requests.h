// A parameter server's side of the messages: makes each change once, and refuses workers that were
// given up. A state machine on a hub; what the values are is the model's business.
#pragma once

#include "coordinator/large_message.h"
#include "coordinator/exactly_once.h"
#include "coordinator/protocol.h"

typedef struct {
	void *user;
	// Applies the rest of a PUSH or ASSIGN, whole or not at all.
	choir_status (*change)(void *user, uint16_t kind, chi_unpack *u);
	// What a PULL or ROWS asks for.
	choir_status (*values)(void *user, uint16_t kind, chi_unpack *u, chi_pack *to);
	choir_status (*save)(void *user, chi_pack *to);
	choir_status (*restore)(void *user, chi_unpack *u);
	// Where the values lie after a change, for open.address. NULL: they are not open.
	void (*locate)(void *user);
} chi_server_model;

typedef struct {
	chi_peer *peer;
	chi_pack rows; // that it reads from here
} chi_server_worker;

typedef struct {
	chi_server_model model;
	chi_marks marks;
	int index; // of this server, for its model
	uint64_t version; // counts changes
	chi_open_values open;
	chi_scratch offered; // the message that was read last
	size_t max; // bytes of an offered message
	uint64_t changes, repeats; // made, and left out because they had been made
	chi_pack values, asked; // values: of version values_version, for this PULL
	uint64_t values_version;
	chi_server_worker workers[1024]; // connected
	int n;
	bool ended; // the coordinator has ended: end
	chi_error end;
} chi_server;

void chi_server_init(chi_server *s, const chi_server_model *model);
void chi_server_free(chi_server *s);
choir_status chi_server_admit(void *server, chi_peer *peer, chi_pack *welcome);
void chi_server_joined(void *server, chi_peer *peer);
choir_status chi_server_frame(
		void *server, chi_peer *peer, const chi_net_frame *frame, const void *payload);
void chi_server_lost(void *server, chi_peer *peer, choir_status status);
