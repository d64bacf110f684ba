// Lengths are checked. Deprecated groups are skipped, to a fixed depth.
#include "data/source/tfrecord/protobuf_reader.h"

enum { END_GROUP = 4, MAX_DEPTH = 32, VARINT_BYTES = 10 };

choir_status chi_protobuf_reader_fault(
		const chi_protobuf_reader *w, const unsigned char *at, const char *what)
{
	return choir_fail(CHOIR_CORRUPT, "byte %zu: %s", (size_t) (at - w->begin), what);
}

bool chi_protobuf_reader_varint(chi_protobuf_reader *w, uint64_t *value)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < VARINT_BYTES && w->at < w->end; i++) {
		const unsigned char byte = *w->at++;
		v |= (uint64_t) (byte & 127) << 7 * i;
		if (byte < 128) {
			*value = v;
			return true;
		}
	}
	return false;
}

static bool take(chi_protobuf_reader *w, uint64_t bytes, chi_protobuf_reader *out)
{
	if (bytes > chi_protobuf_reader_left(w))
		return false;
	*out = (chi_protobuf_reader){ w->at, w->at + bytes, w->begin };
	w->at += bytes;
	return true;
}

static choir_status read_field(chi_protobuf_reader *w, int depth, chi_field *f);

static choir_status pass_over_group(
		chi_protobuf_reader *w, const unsigned char *at, uint32_t number, int depth)
{
	chi_field f;
	choir_status status;
	if (depth == MAX_DEPTH)
		return chi_protobuf_reader_fault(w, at, "groups are nested too deeply");
	while ((status = read_field(w, depth + 1, &f)) == CHOIR_OK)
		if ((int) f.type == END_GROUP)
			return f.number == number
					? CHOIR_OK
					: chi_protobuf_reader_fault(w, at, "a group ends with the number of another");
	return status == CHOIR_END ? chi_protobuf_reader_fault(w, at, "a group does not end") : status;
}

static choir_status read_field(chi_protobuf_reader *w, int depth, chi_field *f)
{
	const unsigned char *at = w->at;
	uint64_t tag, length;
	if (at == w->end)
		return CHOIR_END;
	if (!chi_protobuf_reader_varint(w, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
		return chi_protobuf_reader_fault(w, at, "no field begins here");
	f->number = (uint32_t) tag >> 3;
	f->type = (chi_wire_type) (tag & 7);
	f->bytes = (chi_protobuf_reader){ w->at, w->at, w->begin };
	switch ((int) f->type) {
	case CHI_WIRE_VARINT:
		return chi_protobuf_reader_varint(w, &f->value)
				? CHOIR_OK
				: chi_protobuf_reader_fault(w, at, "a number that does not end");
	case CHI_WIRE_64:
		return take(w, 8, &f->bytes)
				? CHOIR_OK
				: chi_protobuf_reader_fault(w, at, "8 bytes needed, the message has fewer");
	case CHI_WIRE_32:
		return take(w, 4, &f->bytes)
				? CHOIR_OK
				: chi_protobuf_reader_fault(w, at, "4 bytes needed, the message has fewer");
	case CHI_WIRE_BYTES:
		if (chi_protobuf_reader_varint(w, &length) && take(w, length, &f->bytes))
			return CHOIR_OK;
		return chi_protobuf_reader_fault(w, at, "a field longer than the rest of the message");
	case CHI_WIRE_GROUP:
		return pass_over_group(w, at, f->number, depth);
	case END_GROUP:
		return depth > 0
				? CHOIR_OK
				: chi_protobuf_reader_fault(w, at, "the end of a group that has not begun");
	default:
		return chi_protobuf_reader_fault(w, at, "a field of an unknown type");
	}
}

choir_status chi_protobuf_reader_next(chi_protobuf_reader *w, chi_field *f)
{
	return read_field(w, 0, f);
}
