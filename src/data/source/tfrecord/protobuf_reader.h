// Protocol Buffers (https://protobuf.dev/programming-guides/encoding), read in place.
#pragma once

#include "base/protobuf_writer.h"
#include "choir/status.h"

typedef struct {
	const unsigned char *at, *end;
	const unsigned char *begin;
} chi_protobuf_reader;

typedef struct {
	uint32_t number;
	chi_wire_type type;
	uint64_t value;
	chi_protobuf_reader bytes; // empty for a GROUP
} chi_field;

// CHOIR_CORRUPT names the byte.
choir_status chi_protobuf_reader_next(chi_protobuf_reader *w, chi_field *f);
// As in a packed list. False: invalid, or too long.
bool chi_protobuf_reader_varint(chi_protobuf_reader *w, uint64_t *value);
choir_status chi_protobuf_reader_fault(
		const chi_protobuf_reader *w, const unsigned char *at, const char *what);

static inline size_t chi_protobuf_reader_left(const chi_protobuf_reader *w)
{
	return (size_t) (w->end - w->at);
}
