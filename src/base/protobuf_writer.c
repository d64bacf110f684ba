// Protobuf fields in a growing text. Fixed-size numbers are little endian.
#include "base/protobuf_writer.h"

#include <string.h>

enum { MAX_VARINT = 10 };

static size_t encode(uint64_t value, char out[MAX_VARINT])
{
	size_t n = 0;
	for (; value >= 128; value >>= 7)
		out[n++] = (char) ((value & 127) | 128);
	out[n++] = (char) value;
	return n;
}

void chi_protobuf_varint(chi_text *to, uint64_t value)
{
	char out[MAX_VARINT];
	chi_text_add_bytes(to, out, encode(value, out));
}

size_t chi_protobuf_varint_bytes(uint64_t value)
{
	char out[MAX_VARINT];
	return encode(value, out);
}

void chi_protobuf_tag(chi_text *to, uint32_t number, chi_wire_type type)
{
	chi_protobuf_varint(to, (uint64_t) number << 3 | type);
}

void chi_protobuf_head(chi_text *to, uint32_t number, size_t bytes)
{
	chi_protobuf_tag(to, number, CHI_WIRE_BYTES);
	chi_protobuf_varint(to, bytes);
}

void chi_protobuf_bytes(chi_text *to, uint32_t number, const char *data, size_t bytes)
{
	chi_protobuf_head(to, number, bytes);
	chi_text_add_bytes(to, data, bytes);
}

static void add_fixed(chi_text *to, uint64_t bits, size_t bytes)
{
	char out[8];
	for (size_t i = 0; i < bytes; i++)
		out[i] = (char) (bits >> 8 * i);
	chi_text_add_bytes(to, out, bytes);
}

void chi_protobuf_float(chi_text *to, uint32_t number, float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	chi_protobuf_tag(to, number, CHI_WIRE_32);
	add_fixed(to, bits, sizeof bits);
}

void chi_protobuf_double(chi_text *to, uint32_t number, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	chi_protobuf_tag(to, number, CHI_WIRE_64);
	add_fixed(to, bits, sizeof bits);
}
