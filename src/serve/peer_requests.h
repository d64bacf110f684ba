// A program's other servers.
#pragma once

#include "serve/session.h"

choir_status chi_session_add_peer(chi_session *s, chi_unpack *u);
// Events of connections to other servers. s NULL: no program.
void chi_session_peer_joined(chi_session *s, chi_peer *peer);
void chi_session_peer_lost(chi_session *s, chi_peer *peer);
choir_status chi_session_peer_frame(
		chi_session *s, chi_peer *peer, const chi_net_frame *f, const void *payload);
void chi_session_answer_waiters(chi_session *s, chi_served_stream *stream, bool all);
void chi_session_adopt_waiters(chi_session *s, chi_served_stream *stream); // of a new stream
void chi_session_end_early_waiters(chi_session *s);
void chi_session_send_to(chi_session *s, chi_served_message *m); // takes m
void chi_session_free_others(chi_session *s);
