// Requests of streams to other servers.
#pragma once

#include "serve/session.h"

// Between this server and another. push: from here to there.
choir_status chi_session_transfer(
		chi_served_stream *s, uint64_t here, uint64_t there, size_t bytes, bool push);
// Asks another server when its stream reaches a command. With the lock. NULL: no memory.
chi_served_request *chi_session_ask(
		chi_served_stream *s, uint32_t server, uint32_t stream, uint64_t number);
choir_status chi_session_await(chi_session *s, const chi_served_request *r);
// Whether a server of this host shows its progress in its memory. With the lock.
bool chi_session_shows(const chi_session *s, uint32_t server);
// Looks there for a short time. False: not yet, or it must be asked.
bool chi_session_sees(chi_session *s, uint32_t server, uint32_t stream, uint64_t command);
void chi_session_drop(chi_session *s, chi_served_request *r); // the lock is held
// For tests: of all sessions of this process.
uint64_t chi_session_requests(void);
// False: the memory cannot be read, or it is another process's.
bool chi_session_read_memory(
		const chi_served_reading *from, void *to, uint64_t memory, size_t bytes);
