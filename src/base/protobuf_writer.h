// Protocol Buffers (https://protobuf.dev/programming-guides/encoding). The caller orders and nests
// fields, and gives sizes first.
#pragma once

#include "base/text.h"

typedef enum {
	CHI_WIRE_VARINT,
	CHI_WIRE_64,
	CHI_WIRE_BYTES,
	CHI_WIRE_GROUP,
	CHI_WIRE_32 = 5
} chi_wire_type;

void chi_protobuf_varint(chi_text *to, uint64_t value);
size_t chi_protobuf_varint_bytes(uint64_t value);
void chi_protobuf_tag(chi_text *to, uint32_t number, chi_wire_type type);
// Tag and size of a field of bytes.
void chi_protobuf_head(chi_text *to, uint32_t number, size_t bytes);
void chi_protobuf_bytes(chi_text *to, uint32_t number, const char *data, size_t bytes);
void chi_protobuf_float(chi_text *to, uint32_t number, float value);
void chi_protobuf_double(chi_text *to, uint32_t number, double value);
