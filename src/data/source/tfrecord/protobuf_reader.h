// Protocol Buffers' wire format (https://protobuf.dev/programming-guides/encoding), read in
// place. Unknown fields are skipped, as required.
#pragma once

#include "base/protobuf_writer.h"
#include "choir/status.h"

typedef struct {
	const unsigned char *at, *end;
	const unsigned char *begin; // for "byte N" in messages
} chi_protobuf_reader;

typedef struct {
	uint32_t number;
	chi_wire_type type;
	uint64_t value; // of a VARINT
	chi_protobuf_reader bytes; // empty for a GROUP
} chi_field;

// CHOIR_CORRUPT names the byte.
choir_status chi_protobuf_reader_next(chi_protobuf_reader *w, chi_field *f);
// Reads one as in a packed list. False: invalid, or more than ten bytes.
bool chi_protobuf_reader_varint(chi_protobuf_reader *w, uint64_t *value);
choir_status chi_protobuf_reader_fault(
		const chi_protobuf_reader *w, const unsigned char *at, const char *what);

static inline size_t chi_protobuf_reader_left(const chi_protobuf_reader *w)
{
	return (size_t) (w->end - w->at);
}
