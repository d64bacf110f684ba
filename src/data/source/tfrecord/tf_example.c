// The first pass finds the columns' entries, the second copies values. Examples mostly have one
// order of features: a search begins after the last found.
#include "data/source/tfrecord/tf_example.h"

#include <inttypes.h>
#include <stdlib.h>

#include "data/source/byte_order.h"
#include "data/source/tfrecord/protobuf_reader.h"
#include "tensor/tensor.h"

enum { FEATURES = 1, ENTRY = 1, KEY = 1, VALUE = 2, VALUES = 1 };

const char *chi_feature_kind_name(chi_feature_kind kind)
{
	static const char *const names[] = { "nothing", "bytes", "float", "int64" };
	return names[kind];
}

typedef struct {
	const chi_feature *feature;
	unsigned char *out;
	chi_feature_kind kind;
	size_t count;
	size_t bytes;
} sink;

static choir_status blame(const chi_feature *f)
{
	char name[64];
	return chi_error_prefix("feature \"%s\"", chi_text_clean(f->name, name, sizeof name));
}

static bool kind_fits(chi_feature_kind kind, choir_dtype dtype)
{
	if (kind == CHI_FEATURE_FLOAT)
		return dtype == CHOIR_F32;
	if (kind == CHI_FEATURE_INT64)
		return dtype == CHOIR_I64 || dtype == CHOIR_I32 || dtype == CHOIR_U8 ||
				dtype == CHOIR_BOOL;
	return true;
}

static choir_status begin_list(sink *s, chi_feature_kind kind)
{
	if (s->kind != kind) { // the last counts
		s->kind = kind;
		s->count = s->bytes = 0;
	}
	if (kind_fits(kind, s->feature->dtype))
		return CHOIR_OK;
	choir_fail(CHOIR_CORRUPT, "holds %s values, the column is %s; %s needed",
			chi_feature_kind_name(kind), choir_dtype_name(s->feature->dtype),
			kind == CHI_FEATURE_FLOAT ? "f32" : "i64, i32, u8 or bool");
	return blame(s->feature);
}

static void put_floats(sink *s, const unsigned char *p, size_t n)
{
	const size_t size = sizeof(float), capacity = s->feature->elements;
	if (s->out && s->count <= capacity && n <= capacity - s->count) {
		memcpy(s->out + s->count * size, p, n * size);
		if (chi_order_differs(false))
			chi_reverse_bytes(s->out + s->count * size, n * size, size);
	}
	s->count += n;
}

static choir_status put_int64(sink *s, uint64_t bits)
{
	const int64_t v = (int64_t) bits;
	const chi_feature *f = s->feature;
	const size_t at = s->count++;
	const bool wide = f->dtype == CHOIR_I64, i32 = f->dtype == CHOIR_I32;
	const int64_t min = i32 ? INT32_MIN : 0;
	const int64_t max = i32 ? INT32_MAX : f->dtype == CHOIR_U8 ? UINT8_MAX : 1;
	if (!wide && (v < min || v > max)) {
		choir_fail(CHOIR_CORRUPT, "value %zu is %" PRId64 ", %s holds %" PRId64 " to %" PRId64, at,
				v, choir_dtype_name(f->dtype), min, max);
		return blame(f);
	}
	if (!s->out || at >= f->elements)
		return CHOIR_OK;
	if (wide)
		memcpy(s->out + at * sizeof v, &v, sizeof v);
	else if (i32)
		memcpy(s->out + at * sizeof(int32_t), &(int32_t){ (int32_t) v }, sizeof(int32_t));
	else
		s->out[at] = (unsigned char) v;
	return CHOIR_OK;
}

static choir_status put_bytes(sink *s, const unsigned char *p, size_t n)
{
	const size_t each = s->count ? s->bytes / s->count : n;
	if (n != each) {
		choir_fail(CHOIR_CORRUPT, "value %zu has %zu bytes, earlier values have %zu", s->count, n,
				each);
		return blame(s->feature);
	}
	for (size_t i = 0; s->feature->dtype == CHOIR_BOOL && i < n; i++)
		if (p[i] > 1) {
			choir_fail(CHOIR_CORRUPT, "byte %zu is %d; a bool must be 0 or 1", s->bytes + i, p[i]);
			return blame(s->feature);
		}
	if (s->out && s->bytes <= s->feature->bytes && n <= s->feature->bytes - s->bytes && n > 0)
		memcpy(s->out + s->bytes, p, n);
	s->count++;
	s->bytes += n;
	return CHOIR_OK;
}

static choir_status put_list(sink *s, chi_protobuf_reader w)
{
	if (s->kind == CHI_FEATURE_FLOAT) {
		if (chi_protobuf_reader_left(&w) % sizeof(float) != 0)
			return chi_protobuf_reader_fault(
					&w, w.at, "the packed floats are not a multiple of 4 bytes");
		put_floats(s, w.at, chi_protobuf_reader_left(&w) / sizeof(float));
		return CHOIR_OK;
	}
	while (w.at < w.end) {
		uint64_t v = *w.at;
		if (v < 128)
			w.at++;
		else if (!chi_protobuf_reader_varint(&w, &v))
			return chi_protobuf_reader_fault(&w, w.at, "the packed numbers end within one");
		CHOIR_TRY(put_int64(s, v));
	}
	return CHOIR_OK;
}

static choir_status read_list(sink *s, chi_protobuf_reader w)
{
	chi_field f;
	choir_status status;
	while ((status = chi_protobuf_reader_next(&w, &f)) == CHOIR_OK) {
		if (f.number != VALUES)
			continue;
		if (f.type == CHI_WIRE_BYTES && s->kind == CHI_FEATURE_BYTES)
			CHOIR_TRY(put_bytes(s, f.bytes.at, chi_protobuf_reader_left(&f.bytes)));
		else if (f.type == CHI_WIRE_BYTES)
			CHOIR_TRY(put_list(s, f.bytes));
		else if (f.type == CHI_WIRE_32 && s->kind == CHI_FEATURE_FLOAT)
			put_floats(s, f.bytes.at, 1);
		else if (f.type == CHI_WIRE_VARINT && s->kind == CHI_FEATURE_INT64)
			CHOIR_TRY(put_int64(s, f.value));
	}
	return status == CHOIR_END ? CHOIR_OK : status;
}

static choir_status read_feature(sink *s, chi_protobuf_reader w)
{
	chi_field f;
	choir_status status;
	while ((status = chi_protobuf_reader_next(&w, &f)) == CHOIR_OK) {
		if (f.type != CHI_WIRE_BYTES || f.number > CHI_FEATURE_INT64)
			continue;
		CHOIR_TRY(begin_list(s, (chi_feature_kind) f.number));
		CHOIR_TRY(read_list(s, f.bytes));
	}
	return status == CHOIR_END ? CHOIR_OK : status;
}

static void fill_up(sink *s, size_t used)
{
	if (s->out && used < s->feature->bytes)
		memset(s->out + used, 0, s->feature->bytes - used);
}

static choir_status end_bytes(sink *s)
{
	const chi_feature *f = s->feature;
	if (f->pad ? s->bytes > f->bytes : s->bytes != f->bytes) {
		choir_fail(CHOIR_CORRUPT, "%zu bytes, %s%zu needed", s->bytes, f->pad ? "at most " : "",
				f->bytes);
		return blame(f);
	}
	if (f->pad && s->count > 1) {
		choir_fail(CHOIR_CORRUPT, "%zu values of bytes; at most 1 can be padded", s->count);
		return blame(f);
	}
	fill_up(s, s->bytes);
	if (chi_order_differs(false) && s->out)
		chi_reverse_bytes(s->out, f->bytes, chi_dtype_size(f->dtype));
	return CHOIR_OK;
}

static choir_status end_values(sink *s)
{
	const chi_feature *f = s->feature;
	if (f->pad ? s->count > f->elements : s->count != f->elements) {
		choir_fail(CHOIR_CORRUPT, "%zu values, %s%zu needed", s->count, f->pad ? "at most " : "",
				f->elements);
		return blame(f);
	}
	fill_up(s, s->count * chi_dtype_size(f->dtype));
	return CHOIR_OK;
}

choir_status chi_raw_read(const unsigned char *data, size_t bytes, const chi_feature *f, void *out)
{
	sink s = { .feature = f, .out = out };
	CHOIR_TRY(begin_list(&s, CHI_FEATURE_BYTES));
	CHOIR_TRY(put_bytes(&s, data, bytes));
	return end_bytes(&s);
}

// Empty if missing.
static choir_status read_key(chi_protobuf_reader entry, chi_protobuf_reader *key)
{
	chi_field f;
	choir_status status;
	*key = (chi_protobuf_reader){ entry.at, entry.at, entry.begin };
	while ((status = chi_protobuf_reader_next(&entry, &f)) == CHOIR_OK)
		if (f.number == KEY && f.type == CHI_WIRE_BYTES)
			*key = f.bytes;
	return status == CHOIR_END ? CHOIR_OK : status;
}

typedef choir_status entry_fn(void *user, chi_protobuf_reader key, chi_protobuf_reader entry);

static choir_status each_entry(const unsigned char *data, size_t bytes, entry_fn *fn, void *user)
{
	if (bytes == 0)
		return CHOIR_OK;
	chi_protobuf_reader w = { data, data + bytes, data }, key;
	chi_field f, e;
	choir_status status;
	while ((status = chi_protobuf_reader_next(&w, &f)) == CHOIR_OK) {
		while (f.number == FEATURES && f.type == CHI_WIRE_BYTES &&
				(status = chi_protobuf_reader_next(&f.bytes, &e)) == CHOIR_OK) {
			if (e.number != ENTRY || e.type != CHI_WIRE_BYTES)
				continue;
			CHOIR_TRY(read_key(e.bytes, &key));
			CHOIR_TRY(fn(user, key, e.bytes));
		}
		if (status != CHOIR_OK && status != CHOIR_END)
			return status;
	}
	return status == CHOIR_END ? CHOIR_OK : status;
}

typedef struct {
	size_t n, next;
	const chi_feature *features;
	chi_protobuf_reader entry[CHI_MAX_COLUMNS];
} search;

static choir_status note_entry(void *user, chi_protobuf_reader key, chi_protobuf_reader entry)
{
	search *s = user;
	const size_t length = chi_protobuf_reader_left(&key);
	for (size_t tried = 0, i = s->next; tried < s->n; tried++, i = i + 1 < s->n ? i + 1 : 0) {
		const chi_feature *f = &s->features[i];
		if (f->name_bytes != length || memcmp(f->name, key.at, length) != 0)
			continue;
		s->entry[i] = entry;
		s->next = i + 1 < s->n ? i + 1 : 0;
		if (!f->shared)
			break;
	}
	return CHOIR_OK;
}

static choir_status add_name(void *user, chi_protobuf_reader key, chi_protobuf_reader entry)
{
	chi_text *known = user;
	(void) entry;
	const size_t length = chi_protobuf_reader_left(&key);
	chi_text_add(known, "%s\"%.*s\"", known->length ? ", " : "", length < 64 ? (int) length : 64,
			(const char *) key.at);
	return CHOIR_OK;
}

static choir_status not_there(const unsigned char *data, size_t bytes, const chi_feature *f)
{
	chi_text known = { NULL, 0, 0, false };
	char name[64], names[384];
	const choir_status status = each_entry(data, bytes, add_name, &known);
	if (status == CHOIR_OK && !known.failed)
		choir_fail(CHOIR_NOT_FOUND, "no feature \"%s\"; the Example has %s",
				chi_text_clean(f->name, name, sizeof name),
				chi_text_clean(known.length ? known.data : "no features", names, sizeof names));
	const bool failed = known.failed;
	chi_text_free(&known);
	return status != CHOIR_OK ? status : failed ? CHOIR_NO_MEMORY : CHOIR_NOT_FOUND;
}

static choir_status read_entry(const unsigned char *data, size_t bytes, const chi_feature *feature,
		chi_protobuf_reader w, void *out)
{
	sink s = { .feature = feature, .out = out };
	chi_field f;
	choir_status status = CHOIR_END;
	while (w.at && (status = chi_protobuf_reader_next(&w, &f)) == CHOIR_OK)
		if (f.number == VALUE && f.type == CHI_WIRE_BYTES)
			CHOIR_TRY(read_feature(&s, f.bytes));
	if (status != CHOIR_END)
		return status;
	if (s.kind == CHI_FEATURE_BYTES)
		return end_bytes(&s);
	if (s.kind != CHI_FEATURE_NONE)
		return end_values(&s);
	if (!feature->missing)
		return not_there(data, bytes, feature);
	if (out)
		memcpy(out, feature->missing, feature->bytes);
	return CHOIR_OK;
}

choir_status chi_example_read(const unsigned char *data, size_t bytes, size_t n,
		const chi_feature features[], void *const out[])
{
	search s = { .n = n, .features = features };
	CHOIR_TRY(each_entry(data, bytes, note_entry, &s));
	for (size_t i = 0; i < n; i++)
		CHOIR_TRY(read_entry(data, bytes, &features[i], s.entry[i], out[i]));
	return CHOIR_OK;
}

static size_t count_numbers(chi_protobuf_reader list)
{
	size_t n = 0;
	for (const unsigned char *p = list.at; p < list.end; p++)
		n += *p < 128; // a varint's last byte
	return n;
}

static choir_status infer_list(chi_found_feature *found, chi_protobuf_reader w)
{
	chi_field f;
	choir_status status;
	while ((status = chi_protobuf_reader_next(&w, &f)) == CHOIR_OK) {
		if (f.number != VALUES)
			continue;
		const size_t length = chi_protobuf_reader_left(&f.bytes);
		if (f.type != CHI_WIRE_BYTES) {
			found->values++;
		} else if (found->kind == CHI_FEATURE_FLOAT) {
			found->values += length / sizeof(float);
		} else if (found->kind == CHI_FEATURE_INT64) {
			found->values += count_numbers(f.bytes);
		} else {
			found->even = found->values == 0 || (found->even && length == found->value_bytes);
			found->value_bytes = length;
			found->values++;
		}
	}
	return status == CHOIR_END ? CHOIR_OK : status;
}

static choir_status infer_feature(chi_found_feature *found, chi_protobuf_reader w)
{
	chi_field f;
	choir_status status;
	while ((status = chi_protobuf_reader_next(&w, &f)) == CHOIR_OK) {
		if (f.type != CHI_WIRE_BYTES || f.number > CHI_FEATURE_INT64)
			continue;
		if (found->kind != (chi_feature_kind) f.number)
			found->values = found->value_bytes = 0;
		found->kind = (chi_feature_kind) f.number;
		CHOIR_TRY(infer_list(found, f.bytes));
	}
	return status == CHOIR_END ? CHOIR_OK : status;
}

typedef struct {
	size_t n, max;
	chi_found_feature *found;
} inference;

static choir_status infer_entry(void *user, chi_protobuf_reader key, chi_protobuf_reader entry)
{
	inference *l = user;
	const size_t length = chi_protobuf_reader_left(&key), have = l->n < l->max ? l->n : l->max;
	chi_found_feature f = { .name = (const char *) key.at, .name_bytes = length };
	chi_field value;
	choir_status status;
	while ((status = chi_protobuf_reader_next(&entry, &value)) == CHOIR_OK)
		if (value.number == VALUE && value.type == CHI_WIRE_BYTES)
			CHOIR_TRY(infer_feature(&f, value.bytes));
	if (status != CHOIR_END)
		return status;
	size_t i = 0;
	while (i < have &&
			(l->found[i].name_bytes != length || memcmp(l->found[i].name, key.at, length) != 0))
		i++;
	if (i < l->max)
		l->found[i] = f;
	l->n += i == have;
	return CHOIR_OK;
}

static int by_name(const void *a, const void *b)
{
	const chi_found_feature *x = a, *y = b;
	const size_t min = x->name_bytes < y->name_bytes ? x->name_bytes : y->name_bytes;
	const int order = memcmp(x->name, y->name, min);
	return order ? order : (x->name_bytes > y->name_bytes) - (x->name_bytes < y->name_bytes);
}

choir_status chi_tf_example_infer(
		const unsigned char *data, size_t bytes, size_t max, chi_found_feature found[], size_t *n)
{
	inference l = { .max = max, .found = found };
	CHOIR_TRY(each_entry(data, bytes, infer_entry, &l));
	qsort(found, l.n < max ? l.n : max, sizeof *found, by_name);
	*n = l.n;
	return CHOIR_OK;
}
