// Protocol buffers' wire format, written: a message is a row of fields, each with a number and a
// type, https://protobuf.dev/programming-guides/encoding. What is written are the parts; their
// order and nesting are the caller's, who must know a message's size before its content.
#pragma once

#include "base/text.h"

typedef enum {
	CHI_WIRE_VARINT,
	CHI_WIRE_64,
	CHI_WIRE_BYTES,
	CHI_WIRE_GROUP,
	CHI_WIRE_32 = 5
} chi_wire_type;

// A number of 7 bits a byte, the lowest first.
void chi_protobuf_varint(chi_text *to, uint64_t value);
size_t chi_protobuf_varint_bytes(uint64_t value);
// What a field begins with; its content follows.
void chi_protobuf_tag(chi_text *to, uint32_t number, chi_wire_type type);
// The head of a field of so many bytes: tag and size.
void chi_protobuf_head(chi_text *to, uint32_t number, size_t bytes);
// Whole fields.
void chi_protobuf_bytes(chi_text *to, uint32_t number, const char *data, size_t bytes);
void chi_protobuf_float(chi_text *to, uint32_t number, float value);
void chi_protobuf_double(chi_text *to, uint32_t number, double value);
