// What streams ask of other servers.
#pragma once

#include "serve/session.h"

// Copies between memory here and memory of another server.
choir_status chi_session_push(chi_served_stream *s, uint64_t to, uint64_t from, size_t bytes);
choir_status chi_session_pull(chi_served_stream *s, uint64_t to, uint64_t from, size_t bytes);
// Waits for a stream of another server.
choir_status chi_session_await(
		chi_served_stream *s, uint32_t server, uint32_t stream, uint64_t number);
// False: it cannot be read, or is another process.
bool chi_session_read_memory(
		const chi_served_reading *from, void *to, uint64_t memory, size_t bytes);
