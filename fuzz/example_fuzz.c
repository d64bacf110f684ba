// Fuzzes the reader of tf.train.Example; the input is one Example. An independent parser first
// lists all values of a feature, with 128-bit sums, and then computes what a column would get. The
// reader must accept exactly the same Examples, return the same values, and give a message when it
// refuses.
#include "fuzz.h"

#include "data/source/tfrecord/tf_example.h"

enum { MAX_VALUES = 8192, MAX_GROUPS = 32 };

typedef struct {
	const uint8_t *p;
	wide n, at;
} message;

typedef struct {
	uint64_t number, value;
	int type;
	message bytes;
} field;

static int number(message *m, uint64_t *out)
{
	wide v = 0;
	for (int i = 0; i < 10; i++) {
		if (m->at == m->n)
			return 0;
		const uint8_t byte = m->p[m->at++];
		v += (wide) (byte % 128) << 7 * i;
		if (byte < 128) {
			*out = (uint64_t) v;
			return 1;
		}
	}
	return 0;
}

// Reads the next field. Returns 1: a field; 0: the end; -1: invalid. depth: number of enclosing
// groups.
static int next(message *m, field *f, int depth)
{
	uint64_t tag, length = 0;
	if (m->at == m->n)
		return 0;
	if (!number(m, &tag) || tag >> 32 || tag < 8)
		return -1;
	f->number = tag / 8;
	f->type = (int) (tag % 8);
	f->bytes = (message){ m->p, 0, 0 };
	if (f->type == 0)
		return number(m, &f->value) ? 1 : -1;
	if (f->type == 3) {
		field inner;
		int found;
		if (depth == MAX_GROUPS)
			return -1;
		while ((found = next(m, &inner, depth + 1)) == 1)
			if (inner.type == 4)
				return inner.number == f->number ? 1 : -1;
		return -1;
	}
	if (f->type == 4)
		return depth > 0 ? 1 : -1;
	if (f->type > 5)
		return -1;
	if (f->type == 2 && !number(m, &length))
		return -1;
	if (f->type != 2)
		length = f->type == 1 ? 8 : 4;
	if (m->at + length > m->n)
		return -1;
	f->bytes = (message){ m->p + m->at, length, 0 };
	m->at += length;
	return 1;
}

// All values of a feature: floats and integers by their bits, bytes one by one.
typedef struct {
	// refused: there is a value that the column never accepts.
	int found, refused;
	uint64_t kind;
	size_t values, bytes;
	uint64_t value[MAX_VALUES];
	int uneven;
} list;

static void add(list *l, uint64_t value)
{
	if (l->values < MAX_VALUES)
		l->value[l->values] = value;
	l->values++;
}

static uint64_t bits32(const uint8_t *p)
{
	return p[0] | (uint64_t) p[1] << 8 | (uint64_t) p[2] << 16 | (uint64_t) p[3] << 24;
}

static int read_list(list *l, message m, const chi_feature *f)
{
	field v;
	int found;
	while ((found = next(&m, &v, 0)) == 1) {
		if (v.number != 1)
			continue;
		if (l->kind == 1 && v.type == 2) {
			if (l->values > 0 && l->bytes / l->values != v.bytes.n)
				return -1;
			for (wide i = 0; i < v.bytes.n && l->bytes + i < MAX_VALUES; i++)
				l->value[l->bytes + i] = v.bytes.p[i];
			l->bytes += (size_t) v.bytes.n;
			l->values++;
		} else if (l->kind == 2 && v.type == 2) {
			if (v.bytes.n % 4)
				return -1;
			for (wide i = 0; i < v.bytes.n; i += 4)
				add(l, bits32(v.bytes.p + i));
		} else if (l->kind == 2 && v.type == 5) {
			add(l, bits32(v.bytes.p));
		} else if (l->kind == 3 && (v.type == 2 || v.type == 0)) {
			uint64_t n = v.value;
			while (v.type == 0 || v.bytes.at < v.bytes.n) {
				if (v.type == 2 && !number(&v.bytes, &n))
					return -1;
				if (f->dtype == CHOIR_U8 && n > 255)
					return -1;
				add(l, n);
				if (v.type == 0)
					break;
			}
		}
	}
	return found;
}

static int kind_is_taken(uint64_t kind, choir_dtype dtype)
{
	return kind == 1 || (kind == 2 ? dtype == CHOIR_F32 : dtype == CHOIR_I64 || dtype == CHOIR_U8);
}

static int read_feature(list *l, message m, const chi_feature *f)
{
	field k;
	int found;
	while ((found = next(&m, &k, 0)) == 1) {
		if (k.type != 2 || k.number > 3)
			continue;
		if (l->kind != k.number)
			l->values = l->bytes = 0;
		l->kind = k.number;
		if (!kind_is_taken(k.number, f->dtype) || read_list(l, k.bytes, f) < 0)
			return -1;
	}
	return found;
}

// Lists the values of a column's feature; returns -1 if they are invalid or the column does not
// accept them.
static int read_map(message m, const chi_feature *f, list *l)
{
	field features, entry, part;
	int a, b, c;
	message last = { NULL, 0, 0 };
	while ((a = next(&m, &features, 0)) == 1) {
		if (features.number != 1 || features.type != 2)
			continue;
		while ((b = next(&features.bytes, &entry, 0)) == 1) {
			if (entry.number != 1 || entry.type != 2)
				continue;
			message key = { NULL, 0, 0 }, walk = entry.bytes;
			while ((c = next(&walk, &part, 0)) == 1)
				if (part.number == 1 && part.type == 2)
					key = part.bytes;
			if (c < 0)
				return -1;
			if (key.n == f->name_bytes && memcmp(key.p, f->name, f->name_bytes) == 0)
				last = entry.bytes;
		}
		if (b < 0)
			return -1;
	}
	if (a < 0)
		return -1;
	while (last.p && (c = next(&last, &part, 0)) == 1)
		if (part.number == 2 && part.type == 2 && read_feature(l, part.bytes, f) < 0)
			return -1;
	return last.p && c < 0 ? -1 : 0;
}

static const uint8_t nine = 9;
static const chi_feature asked[] = {
	{ .name = "f", .name_bytes = 1, .dtype = CHOIR_F32, .elements = 2, .bytes = 8 },
	{ .name = "i", .name_bytes = 1, .dtype = CHOIR_I64, .elements = 3, .bytes = 24, .pad = true },
	{ .name = "u",
			.name_bytes = 1,
			.dtype = CHOIR_U8,
			.elements = 1,
			.bytes = 1,
			.missing = &nine },
	{ .name = "b", .name_bytes = 1, .dtype = CHOIR_U8, .elements = 4, .bytes = 4, .pad = true },
};

// Returns whether the column accepts the Example; out becomes its values.
static int expected(message m, const chi_feature *f, uint8_t out[32])
{
	static list l;
	l = (list){ .found = 0 };
	if (read_map(m, f, &l) < 0)
		return 0;
	const size_t width = f->bytes / f->elements;
	memset(out, 0, 32);
	if (l.kind == 0) {
		if (f->missing)
			memcpy(out, f->missing, f->bytes);
		return f->missing != NULL;
	}
	const size_t have = l.kind == 1 ? l.bytes : l.values,
				 need = l.kind == 1 ? f->bytes : f->elements;
	if (have > need || (!f->pad && have != need) || (f->pad && l.kind == 1 && l.values > 1))
		return 0;
	for (size_t i = 0; i < have; i++)
		for (size_t k = 0; k < (l.kind == 1 ? 1 : width); k++)
			out[i * (l.kind == 1 ? 1 : width) + k] = (uint8_t) (l.value[i] >> 8 * k);
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { COLUMNS = sizeof asked / sizeof asked[0] };
	uint8_t row[COLUMNS][32], right[COLUMNS][32];
	void *out[COLUMNS], *none[COLUMNS] = { NULL };
	chi_found_feature found[8];
	size_t n;
	for (int i = 0; i < COLUMNS; i++) { // one column at a time, so that each fails by itself
		const message m = { data, size, 0 };
		const int good = expected(m, &asked[i], right[i]);
		chi_error_clear();
		out[i] = row[i];
		const choir_status status = chi_example_read(data, size, 1, &asked[i], &out[i]);
		demand((status == CHOIR_OK) == good,
				good ? "refused a good feature" : "took a bad feature");
		demand(status == CHOIR_OK || choir_error()[0] != '\0', "refused without a word");
		demand(!good || memcmp(row[i], right[i], asked[i].bytes) == 0, "a wrong value");
		demand(chi_example_read(data, size, 1, &asked[i], none) == status,
				"unwanted is not the same");
	}
	chi_example_read(data, size, COLUMNS, asked, out);
	if (chi_tf_example_infer(data, size, 8, found, &n) == CHOIR_OK)
		for (size_t i = 0; i < n && i < 8; i++)
			demand((const uint8_t *) found[i].name >= data &&
							(const uint8_t *) found[i].name + found[i].name_bytes <= data + size,
					"a name from elsewhere");
	return 0;
}
