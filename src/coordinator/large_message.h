// A message that refers to its large fields. On one host, the receiver reads them from the
// sender's memory, if the system allows it. Else all bytes are sent (0101).
#pragma once

#include "base/alloc.h"
#include "base/serialization.h"

typedef struct {
	size_t at; // bytes of the pack before it
	const void *data;
	size_t bytes;
} chi_large_field;

typedef struct {
	chi_pack pack; // the other fields; failed: out of memory
	chi_large_field *field;
	size_t n, capacity;
	size_t field_bytes;
} chi_large_message;

void chi_large_message_free(chi_large_message *m);
// A field, aligned in the message. data must stay unchanged.
void chi_large_message_add(chi_large_message *m, const void *data, size_t bytes);
size_t chi_large_message_bytes(const chi_large_message *m);
void chi_large_message_join(const chi_large_message *m, chi_pack *to);
// Appends where the message's parts lie.
void chi_large_message_offer(const chi_large_message *m, chi_pack *to);

// A field of chi_large_message_add; NULL after a failure.
const void *chi_unpack_large(chi_unpack *u, size_t bytes);
// Copies the message of chi_large_message_offer from process pid. CHOIR_CORRUPT: damaged, or more
// than max bytes. CHOIR_PEER_LOST: the memory cannot be read.
choir_status chi_large_message_fetch(
		chi_unpack *u, int64_t pid, size_t max, chi_scratch *to, size_t *bytes);
