// Protocol buffers' wire format, read where it lies: a message is a row of fields, each with a
// number and one of six types, https://protobuf.dev/programming-guides/encoding. Nothing is
// copied and nothing allocated. What Choir does not know is passed over, as the format asks for.
#pragma once

#include "base/protobuf.h"
#include "choir/status.h"

typedef struct {
	const unsigned char *at, *end; // what is still to be read
	const unsigned char *begin; // of the whole message, for "byte N" in messages
} chi_wire;

typedef struct {
	uint32_t number;
	chi_wire_type type;
	uint64_t value; // of a VARINT
	chi_wire bytes; // of the others; empty for a GROUP, which has been passed over
} chi_field;

// The next field. CHOIR_END: there is none; CHOIR_CORRUPT, with the byte: that is none.
choir_status chi_wire_next(chi_wire *w, chi_field *f);
// The next bare number, as in a packed list; false: that is none, of at most ten bytes.
bool chi_wire_varint(chi_wire *w, uint64_t *value);
// Records that what begins at is wrong.
choir_status chi_wire_fault(const chi_wire *w, const unsigned char *at, const char *what);

static inline size_t chi_wire_left(const chi_wire *w)
{
	return (size_t) (w->end - w->at);
}
