// A message's length precedes its content, so sizes come first.
#include "data/source/tfrecord/tfrecord.h"

#include <string.h>

#include "base/protobuf_writer.h"
#include "base/size.h"
#include "data/source/byte_order.h"
#include "tensor/tensor.h"

enum { ONE = 1, TWO = 2 };

static size_t with_head(size_t bytes)
{
	return 1 + chi_protobuf_varint_bytes(bytes) + bytes;
}

static chi_feature_kind kind_of(const choir_column *c)
{
	switch (c->dtype) {
	case CHOIR_F32:
		return CHI_FEATURE_FLOAT;
	case CHOIR_I32:
	case CHOIR_I64:
	case CHOIR_BOOL:
		return CHI_FEATURE_INT64;
	case CHOIR_U8:
		return c->shape.rank == 0 ? CHI_FEATURE_INT64 : CHI_FEATURE_BYTES;
	default:
		return CHI_FEATURE_NONE;
	}
}

static uint64_t number_at(const choir_column *c, size_t i)
{
	const unsigned char *p = c->data;
	if (c->dtype == CHOIR_I64) {
		int64_t v;
		memcpy(&v, p + i * sizeof v, sizeof v);
		return (uint64_t) v;
	}
	if (c->dtype == CHOIR_I32) {
		int32_t v;
		memcpy(&v, p + i * sizeof v, sizeof v);
		return (uint64_t) (int64_t) v;
	}
	return p[i];
}

// Sizes, innermost first.
typedef struct {
	size_t elements, content, list, feature, entry;
} sizes;

static sizes measure(const choir_column *c)
{
	sizes s = { .elements = (size_t) choir_shape_elements(&c->shape) };
	s.content = s.elements * chi_dtype_size(c->dtype);
	if (kind_of(c) == CHI_FEATURE_INT64) {
		s.content = 0;
		for (size_t i = 0; i < s.elements; i++)
			s.content += chi_protobuf_varint_bytes(number_at(c, i));
	}
	s.list = with_head(s.content);
	s.feature = with_head(s.list);
	s.entry = with_head(strlen(c->name)) + with_head(s.feature);
	return s;
}

static void add_floats(chi_text *to, const choir_column *c, size_t elements)
{
	const char *p = c->data;
	if (!chi_order_differs(false)) {
		chi_text_add_bytes(to, p, elements * sizeof(float));
		return;
	}
	for (size_t i = 0; i < elements; i++) {
		char value[sizeof(float)];
		memcpy(value, p + i * sizeof value, sizeof value);
		chi_reverse_bytes(value, sizeof value, sizeof value);
		chi_text_add_bytes(to, value, sizeof value);
	}
}

static void add_column(chi_text *to, const choir_column *c, const sizes *s)
{
	const chi_feature_kind kind = kind_of(c);
	chi_protobuf_head(to, ONE, s->entry);
	chi_protobuf_bytes(to, ONE, c->name, strlen(c->name));
	chi_protobuf_head(to, TWO, s->feature);
	chi_protobuf_head(to, kind, s->list);
	chi_protobuf_head(to, ONE, s->content);
	if (kind == CHI_FEATURE_FLOAT)
		add_floats(to, c, s->elements);
	else if (kind == CHI_FEATURE_BYTES)
		chi_text_add_bytes(to, c->data, s->content);
	for (size_t i = 0; kind == CHI_FEATURE_INT64 && i < s->elements; i++)
		chi_protobuf_varint(to, number_at(c, i));
}

choir_status chi_example_write(chi_text *to, size_t n, const choir_column columns[])
{
	sizes s[CHI_MAX_COLUMNS];
	size_t features = 0;
	for (size_t i = 0; i < n; i++) {
		if (kind_of(&columns[i]) == CHI_FEATURE_NONE)
			return choir_fail(CHOIR_UNSUPPORTED,
					"column \"%s\" is %s; an Example holds f32, i32, i64, u8 and bool",
					columns[i].name, choir_dtype_name(columns[i].dtype));
		s[i] = measure(&columns[i]);
		if (!chi_size_add(features, with_head(s[i].entry), &features))
			return choir_fail(CHOIR_INVALID, "the columns are too large for an Example");
	}
	chi_protobuf_head(to, ONE, features);
	for (size_t i = 0; i < n; i++)
		add_column(to, &columns[i], &s[i]);
	return to->failed ? CHOIR_NO_MEMORY : CHOIR_OK;
}
