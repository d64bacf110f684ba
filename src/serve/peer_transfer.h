// Requests of streams to other servers.
#pragma once

#include "serve/session.h"

// Between this server's memory and another's.
choir_status chi_session_push(chi_served_stream *s, uint64_t to, uint64_t from, size_t bytes);
choir_status chi_session_pull(chi_served_stream *s, uint64_t to, uint64_t from, size_t bytes);
choir_status chi_session_await(
		chi_served_stream *s, uint32_t server, uint32_t stream, uint64_t number);
// False: the memory cannot be read, or it is another process's.
bool chi_session_read_memory(
		const chi_served_reading *from, void *to, uint64_t memory, size_t bytes);
