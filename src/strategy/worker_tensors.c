// Tensors are brought to the host and go as bytes, after a line about each that says what they
// are.
#include "strategy/worker_tensors.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/text.h"
#include "choir/op.h"
#include "op/op.h"
#include "value/value.h"

#include <stdio.h>
#include <string.h>

void chi_worker_sum_name(const char *call, choir_reduce_op op, choir_dtype dtype,
		const choir_tensor *t, char name[CHI_SUM_NAME])
{
	char shape[CHI_SHAPE_TEXT], text[CHI_SHAPE_TEXT + 160];
	snprintf(text, sizeof text, "%.100s, %s%s, %s %s", call, op == CHOIR_MEAN ? "mean" : "sum",
			t->count == CHOIR_NONE ? "" : " by counts",
			choir_dtype_name(t->is_number ? CHOIR_F64 : dtype), chi_shape_print(&t->shape, shape));
	chi_text_fit(text, name, CHI_SUM_NAME);
}

// ---- Numbers that all have.

typedef struct {
	int plain; // 0 or 1
	double number;
} plain_number;

// The places of names in alphabetical order: replicas may name leaves in any.
static void sort(const chi_named_tensors *names, size_t order[])
{
	for (size_t i = 0; i < names->n; i++) {
		size_t k = i;
		for (; k > 0 && strcmp(names->named[order[k - 1]].name, names->named[i].name) > 0; k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
}

static void describe(char text[CHI_FINGERPRINT_TEXT], const char *what,
		const chi_named_tensors *names, const size_t order[])
{
	uint64_t hash = names->n;
	int length = snprintf(text, CHI_FINGERPRINT_TEXT, "%s", what);
	for (size_t i = 0; i < names->n; i++) {
		const char *name = names->named[order[i]].name;
		hash = chi_hash_mix(hash ^ chi_hash_text(name));
		if (length < CHI_FINGERPRINT_TEXT)
			length += snprintf(text + length, CHI_FINGERPRINT_TEXT - (size_t) length, "%s%s",
					i == 0 ? " with " : ", ", name);
	}
	if (length >= CHI_FINGERPRINT_TEXT) // what does not fit counts, too
		snprintf(text + CHI_FINGERPRINT_TEXT - 10, 10, "~%08x", (unsigned) (hash & 0xffffffffu));
}

static choir_value *of_each(choir_strategy *s, choir_frame *f, double number)
{
	choir_value *v = chi_value_new(f, CHOIR_VALUE_PER_REPLICA, s->replicas);
	for (int i = 0; v != NULL && i < v->count; i++) {
		v->component[i] = choir_number(f, number);
		v->device[i] = s->replica_device[i];
		if (v->component[i] == NULL)
			return NULL;
	}
	return v;
}

static bool is_plain(const choir_value *v)
{
	return v->kind == CHOIR_VALUE_PLAIN && v->component[0]->is_number;
}

// all: what every worker shows of the value.
static bool is_same(const chi_process_group *p, const plain_number *all, size_t n, size_t i)
{
	for (int w = 0; w < p->workers; w++)
		if (all[(size_t) w * n + i].plain == 0 || all[(size_t) w * n + i].number != all[i].number)
			return false;
	return true;
}

choir_status chi_worker_agree_on_numbers(choir_strategy *s, choir_frame *f, const char *what,
		const chi_named_tensors *names, choir_value *values[])
{
	chi_process_group *p = s->process_group;
	const size_t n = names->n;
	char text[CHI_FINGERPRINT_TEXT];
	size_t *order = chi_arena_alloc(&f->arena, (n + 1) * sizeof *order);
	plain_number *all =
			chi_arena_alloc(&f->arena, (n + 1) * (size_t) (p->workers + 1) * sizeof *all);
	if (order == NULL || all == NULL)
		return chi_strategy_abort(s, chi_frame_record_error(f));
	plain_number *own = all + n * (size_t) p->workers;
	sort(names, order);
	describe(text, what, names, order);
	memset(own, 0, n * sizeof *own); // it is sent
	for (size_t i = 0; i < n; i++) {
		own[i].plain = is_plain(values[order[i]]);
		own[i].number = own[i].plain ? values[order[i]]->component[0]->number : 0;
	}
	if (chi_process_group_all_gather(p, own, n * sizeof *own, all, "%s", text) != CHOIR_OK)
		return chi_frame_record_error(f);
	for (size_t i = 0; i < n; i++) {
		choir_value **v = &values[order[i]];
		if (own[i].plain != 0 && !is_same(p, all, n, i) &&
				(*v = of_each(s, f, own[i].number)) == NULL)
			return chi_frame_status(f);
	}
	return CHOIR_OK;
}

// ---- Tensors.

// A line about a tensor.
typedef struct {
	int dtype, rank, is_number, good;
	int64_t dim[CHOIR_MAX_RANK];
	int64_t count;
	double number;
} line;

static void write_line(line *l, const choir_tensor *t)
{
	memset(l, 0, sizeof *l); // it is sent
	if (t == NULL || chi_is_slices(t))
		return;
	l->good = 1;
	l->is_number = t->is_number;
	l->number = t->is_number ? t->number : 0;
	l->dtype = (int) t->dtype;
	l->rank = t->shape.rank;
	l->count = t->count;
	for (int i = 0; i < l->rank; i++)
		l->dim[i] = t->shape.dim[i];
}

static choir_shape shape_of(const line *l)
{
	choir_shape shape = { .rank = l->rank };
	for (int i = 0; i < l->rank; i++)
		shape.dim[i] = l->dim[i];
	return shape;
}

int chi_worker_of_replica(const choir_strategy *s, int replica)
{
	int w = 0;
	while (replica >= s->process_group->first[w + 1])
		w++;
	return w;
}

// Host memory for l's bytes in f's arena; NULL: recorded.
static void *capacity_for(choir_frame *f, const line *l, size_t *bytes)
{
	const choir_shape shape = shape_of(l);
	void *host = NULL;
	if (!chi_shape_bytes(&shape, (choir_dtype) l->dtype, bytes))
		choir_fail(CHOIR_NO_MEMORY, "a tensor of another worker is too large");
	else
		host = chi_arena_alloc(&f->arena, *bytes);
	if (host == NULL)
		chi_frame_record_error(f);
	return host;
}

static choir_tensor *broadcast(
		choir_strategy *s, choir_frame *f, int from, choir_tensor *t, const char *what)
{
	chi_process_group *p = s->process_group;
	line l;
	size_t bytes;
	write_line(&l, t);
	if (chi_process_group_broadcast(p, from, &l, sizeof l, "%s", what) != CHOIR_OK) {
		chi_frame_record_error(f);
		return NULL;
	}
	if (l.good == 0)
		return chi_frame_fail_null(f, CHOIR_UNSUPPORTED,
				"%s: slices cannot be sent to other workers: reduce them", what);
	if (l.is_number)
		return choir_number(f, l.number);
	void *host = capacity_for(f, &l, &bytes);
	if (host == NULL || (p->worker == from && choir_tensor_fetch(t, host, bytes) != CHOIR_OK) ||
			chi_process_group_broadcast(p, from, host, bytes, "%s", what) != CHOIR_OK) {
		chi_frame_record_error(f);
		return NULL;
	}
	t = choir_constant(f, (choir_dtype) l.dtype, shape_of(&l), host);
	return l.count == CHOIR_NONE ? t : choir_counted(t, l.count);
}

choir_tensor *chi_worker_broadcast(
		choir_strategy *s, choir_frame *f, int from, choir_tensor *t, const char *what)
{
	return chi_strategy_abort_if_null(s, f, broadcast(s, f, from, t, what));
}

// ---- One behind another.

typedef struct {
	chi_process_group *group;
	int axis;
	line *line; // of each worker
	size_t *bytes;
	size_t all; // bytes
	choir_shape shape; // of the whole
} concatenation;

static choir_status check_lines(concatenation *c)
{
	char a[CHI_SHAPE_TEXT], b[CHI_SHAPE_TEXT];
	c->shape = shape_of(&c->line[0]);
	c->shape.dim[c->axis] = 0;
	for (int w = 0; w < c->group->workers; w++) {
		const line *l = &c->line[w], *first = &c->line[0];
		bool fits = l->good && l->dtype == first->dtype && l->rank == first->rank;
		for (int k = 0; fits && k < l->rank; k++)
			fits = k == c->axis || l->dim[k] == first->dim[k];
		const choir_shape x = shape_of(first), y = shape_of(l);
		if (!fits)
			return choir_fail(CHOIR_INVALID,
					"gather: worker 0 has %s %s, worker %d %s %s: only axis %d may differ",
					choir_dtype_name((choir_dtype) first->dtype), chi_shape_print(&x, a), w,
					choir_dtype_name((choir_dtype) l->dtype), chi_shape_print(&y, b), c->axis);
		if (!chi_int64_add(c->shape.dim[c->axis], l->dim[c->axis], &c->shape.dim[c->axis]) ||
				!chi_shape_bytes(&y, (choir_dtype) l->dtype, &c->bytes[w]) ||
				!chi_size_add(c->all, c->bytes[w], &c->all))
			return choir_fail(CHOIR_INVALID, "gather: axis %d becomes too long", c->axis);
	}
	return CHOIR_OK;
}

// The bytes of all workers lie one behind another in from: rows of each follow those of the one
// before it in to.
static void interleave(const concatenation *c, const char *from, char *to)
{
	size_t outer = 1, inner = chi_dtype_size((choir_dtype) c->line[0].dtype);
	for (int i = 0; i < c->axis; i++)
		outer *= (size_t) c->shape.dim[i];
	for (int i = c->axis + 1; i < c->shape.rank; i++)
		inner *= (size_t) c->shape.dim[i];
	for (size_t i = 0; i < outer; i++) {
		const char *block = from;
		for (int w = 0; w < c->group->workers; w++) {
			const size_t row = (size_t) c->line[w].dim[c->axis] * inner;
			if (row > 0)
				memcpy(to, block + i * row, row);
			to += row;
			block += c->bytes[w];
		}
	}
}

static choir_tensor *concat(choir_frame *f, concatenation *c, choir_tensor *t, int64_t *first)
{
	chi_process_group *p = c->group;
	line own;
	write_line(&own, t);
	if (chi_process_group_all_gather(
				p, &own, sizeof own, c->line, "gather along axis %d", c->axis) != CHOIR_OK ||
			check_lines(c) != CHOIR_OK)
		return NULL;
	*first = 0;
	for (int w = 0; w < p->worker; w++)
		*first += c->line[w].dim[c->axis];
	char *mine = chi_arena_alloc(&f->arena, c->bytes[p->worker] + 1);
	char *all = chi_arena_alloc(&f->arena, c->all + 1);
	char *whole = chi_arena_alloc(&f->arena, c->all + 1);
	if (mine == NULL || all == NULL || whole == NULL ||
			choir_tensor_fetch(t, mine, c->bytes[p->worker]) != CHOIR_OK ||
			chi_process_group_all_gather_v(p, mine, c->bytes, all, "gather of %s",
					choir_dtype_name((choir_dtype) own.dtype)) != CHOIR_OK)
		return NULL;
	interleave(c, all, whole);
	return choir_constant(f, (choir_dtype) own.dtype, c->shape, whole);
}

choir_tensor *chi_worker_concat(
		choir_strategy *s, choir_frame *f, choir_tensor *t, int axis, int64_t *first)
{
	const size_t n = (size_t) s->process_group->workers;
	concatenation c = { .group = s->process_group, .axis = axis };
	c.line = chi_arena_alloc(&f->arena, n * sizeof *c.line);
	c.bytes = chi_arena_alloc(&f->arena, n * sizeof *c.bytes);
	choir_tensor *all =
			t == NULL || c.line == NULL || c.bytes == NULL ? NULL : concat(f, &c, t, first);
	if (all == NULL)
		chi_frame_record_error(f);
	return chi_strategy_abort_if_null(s, f, all);
}
