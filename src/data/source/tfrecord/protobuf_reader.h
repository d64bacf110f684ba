// Protocol buffers' wire format, read where it lies: a message is a row of fields, each with a
// number and one of six types, https://protobuf.dev/programming-guides/encoding. Nothing is
// copied and nothing allocated. What Choir does not know is passed over, as the format asks for.
#pragma once

#include "base/protobuf_writer.h"
#include "choir/status.h"

typedef struct {
	const unsigned char *at, *end; // what is still to be read
	const unsigned char *begin; // of the whole message, for "byte N" in messages
} chi_protobuf_reader;

typedef struct {
	uint32_t number;
	chi_wire_type type;
	uint64_t value; // of a VARINT
	chi_protobuf_reader bytes; // of the others; empty for a GROUP, which has been passed over
} chi_field;

// The next field. CHOIR_END: there is none; CHOIR_CORRUPT, with the byte: that is none.
choir_status chi_protobuf_reader_next(chi_protobuf_reader *w, chi_field *f);
// The next bare number, as in a packed list; false: that is none, of at most ten bytes.
bool chi_protobuf_reader_varint(chi_protobuf_reader *w, uint64_t *value);
// Records that what begins at is wrong.
choir_status chi_protobuf_reader_fault(
		const chi_protobuf_reader *w, const unsigned char *at, const char *what);

static inline size_t chi_protobuf_reader_left(const chi_protobuf_reader *w)
{
	return (size_t) (w->end - w->at);
}
