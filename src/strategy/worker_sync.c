// A tensor is sent from host memory, after a record with its dtype and shape.
#include "strategy/worker_sync.h"

#include "base/hash.h"
#include "base/size.h"
#include "choir/op.h"
#include "op/op.h"
#include "strategy/gradients/overlap_workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Options that influence results or the order of exchanges.
static choir_status agree_on_options(const choir_strategy *s)
{
	const choir_strategy_options *o = &s->options;
	const choir_communication_options *by = &s->communication;
	static const char *const toggles[] = { "default", "on", "off" };
	char library[CHI_KERNEL_LIBRARY];
	chi_setting facts[12];
	int n = 0;
	chi_setting_set(&facts[n++], "kernels' library", "%s", chi_kernel_library(library));
	chi_setting_set(&facts[n++], "strategy", "%s", s->kind);
	chi_setting_set(&facts[n++], ".replicas", "%d", o->replicas);
	chi_setting_set(&facts[n++], ".seed", "%" PRIu64, o->seed);
	chi_setting_set(&facts[n++], ".bytes_per_pack", "%" PRId64, by->bytes_per_pack);
	chi_setting_set(&facts[n++], ".num_packs", "%" PRId64, by->num_packs);
	chi_setting_set(&facts[n++], ".slices", "%d", (int) by->slices);
	chi_setting_set(&facts[n++], ".overlap", "%s", toggles[o->overlap]);
	chi_setting_set(&facts[n++], ".compare_steps", "%" PRId64, o->compare_steps);
	chi_setting_set(&facts[n++], ".precision", "%s", choir_precision_name(o->precision));
	chi_setting_set(&facts[n++], ".wire", "%s", choir_dtype_name(o->wire));
	// Sums of products by bf16 instructions have other bits.
	chi_setting_set(&facts[n++], "bf16 instructions", "%s",
			o->precision <= CHOIR_PRECISION_TF32 ? "not used" : chi_kernel_bf16_instructions());
	return chi_cluster_check_consistency(o->cluster, facts, n);
}

choir_status chi_strategy_open_process_group(choir_strategy *s, int *local)
{
	choir_cluster *c = s->options.cluster;
	if (c == NULL || choir_cluster_workers(c) == 1)
		return CHOIR_OK;
	CHOIR_TRY(chi_overlap_workers_choose(s));
	CHOIR_TRY(agree_on_options(s));
	if (s->options.replicas > 0)
		*local = (int) chi_share_of(*local, choir_cluster_workers(c), choir_cluster_worker(c));
	if (c->one_thread && *local > 1) // they may communicate on different threads
		return choir_fail(CHOIR_UNSUPPORTED,
				"strategy: this worker has %d replicas, but with %s only one thread may call "
				"MPI; give each worker one replica, or initialise MPI with MPI_THREAD_SERIALIZED",
				*local, choir_cluster_transport(c));
	s->process_group = chi_alloc(sizeof *s->process_group);
	return s->process_group == NULL
			? choir_error_status()
			: chi_process_group_open(s->process_group, c, CHI_TAG_COLLECTIVES, *local);
}

void chi_strategy_close_process_group(choir_strategy *s)
{
	if (s->process_group != NULL)
		chi_process_group_close(s->process_group);
	chi_text_free(&s->notes);
	chi_free(s->process_group);
}

choir_status chi_strategy_abort(choir_strategy *s, choir_status status)
{
	return s->process_group == NULL || status == CHOIR_OK
			? status
			: chi_process_group_fail(s->process_group);
}

choir_tensor *chi_strategy_abort_if_null(choir_strategy *s, choir_frame *f, choir_tensor *t)
{
	if (t == NULL && s->process_group != NULL)
		chi_strategy_abort(s, chi_frame_status(f));
	return t;
}

choir_status chi_strategy_same(choir_strategy *s, const char *fmt, ...)
{
	char text[CHI_ERROR_SIZE];
	va_list args;
	if (s->process_group == NULL)
		return CHOIR_OK;
	va_start(args, fmt);
	chi_text_format(text, sizeof text, fmt, args);
	va_end(args);
	return chi_process_group_all_gather(s->process_group, NULL, 0, NULL, "%s", text);
}

choir_status chi_strategy_note(choir_strategy *s, const char *fmt, ...)
{
	char text[CHI_ERROR_SIZE];
	va_list args;
	if (s->process_group == NULL || s->options.compare_steps < 0)
		return CHOIR_OK;
	va_start(args, fmt);
	chi_text_format(text, sizeof text, fmt, args);
	va_end(args);
	chi_text_add(&s->notes, "%s\n", text);
	if (!s->notes.failed)
		return CHOIR_OK;
	s->notes.failed = false;
	return CHOIR_NO_MEMORY;
}

void chi_strategy_forget_notes(choir_strategy *s, size_t length)
{
	if (s->notes.length <= length)
		return;
	s->notes.length = length;
	s->notes.data[length] = '\0';
}

static uint64_t hash_values(const char *data, size_t bytes)
{
	uint64_t hash = bytes, word;
	for (; bytes >= sizeof word; data += sizeof word, bytes -= sizeof word) {
		memcpy(&word, data, sizeof word);
		hash = chi_hash_mix(hash ^ word);
	}
	word = 0;
	memcpy(&word, data, bytes);
	return chi_hash_mix(hash ^ word);
}

// Values are sent only if they differ from the chief's.
choir_status chi_strategy_agree_on_variable(
		choir_strategy *s, const chi_variable_plan *plan, void *initial, size_t bytes)
{
	chi_process_group *p = s->process_group;
	char shape[CHI_SHAPE_TEXT];
	if (p == NULL)
		return CHOIR_OK;
	uint64_t *hash = chi_alloc_array((size_t) p->workers, sizeof *hash);
	if (hash == NULL)
		return chi_strategy_abort(s, choir_error_status());
	const uint64_t own = hash_values(initial, bytes);
	choir_status status = chi_process_group_all_gather(p, &own, sizeof own, hash,
			"variable \"%s\", %s %s, synchronization %d, aggregation %d, trainable %d", plan->name,
			choir_dtype_name(plan->options.dtype), chi_shape_print(&plan->shape, shape),
			(int) plan->options.synchronization, (int) plan->options.aggregation,
			(int) plan->options.trainable);
	bool equal = true;
	for (int w = 1; status == CHOIR_OK && w < p->workers; w++)
		equal = equal && hash[w] == hash[0];
	if (status == CHOIR_OK && !equal)
		status = chi_process_group_broadcast(
				p, 0, initial, bytes, "values of variable \"%s\"", plan->name);
	chi_free(hash);
	return status;
}

choir_status chi_strategy_count_examples(choir_strategy *s, choir_values *args)
{
	chi_process_group *p = s->process_group;
	if (p == NULL || args->counted_by == NULL || args->all_examples != CHOIR_UNKNOWN)
		return CHOIR_OK;
	int64_t own = 0;
	for (int i = 0; i < s->replicas && own != CHOIR_UNKNOWN; i++)
		own = args->examples[i] == CHOIR_UNKNOWN ? CHOIR_UNKNOWN : own + args->examples[i];
	int64_t *each = chi_alloc_array((size_t) p->workers, sizeof *each);
	if (each == NULL)
		return chi_strategy_abort(s, choir_error_status());
	const choir_status status = chi_process_group_all_gather(
			p, &own, sizeof own, each, "examples by \"%s\"", args->counted_by);
	bool known = true;
	own = 0;
	for (int w = 0; status == CHOIR_OK && w < p->workers; w++) {
		known = known && each[w] != CHOIR_UNKNOWN;
		own += each[w];
	}
	args->all_examples = known ? own : CHOIR_UNKNOWN;
	chi_free(each);
	return status;
}

choir_status chi_strategy_add_counts(choir_strategy *s, double *sum)
{
	chi_process_group *p = s->process_group;
	if (p == NULL)
		return CHOIR_OK;
	double *each = chi_alloc_array((size_t) p->workers, sizeof *each);
	if (each == NULL)
		return chi_strategy_abort(s, choir_error_status());
	const choir_status status =
			chi_process_group_all_gather(p, sum, sizeof *sum, each, "counts of a mean");
	*sum = 0;
	for (int w = 0; status == CHOIR_OK && w < p->workers; w++)
		*sum += each[w];
	chi_free(each);
	return status;
}

choir_status chi_strategy_all_parts(choir_variable *v, void *out)
{
	choir_strategy *s = v->strategy;
	chi_process_group *p = s->process_group;
	const size_t each = chi_variable_bytes(v);
	char *own = (char *) out + (size_t) s->replica_offset * each;
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < v->copies; i++)
		status = chi_variable_to_host(v, i, own + (size_t) i * each);
	if (p == NULL)
		return status;
	size_t *bytes =
			status == CHOIR_OK ? chi_alloc_array((size_t) p->workers, sizeof *bytes) : NULL;
	if (bytes == NULL)
		return chi_strategy_abort(s, choir_error_status());
	for (int w = 0; w < p->workers; w++)
		bytes[w] = (size_t) (p->first[w + 1] - p->first[w]) * each;
	status = chi_process_group_all_gather_v(
			p, own, bytes, out, "the parts of variable \"%s\"", v->name);
	chi_free(bytes);
	return status;
}

typedef struct {
	int32_t status;
	char text[508];
} outcome;

choir_status chi_strategy_agree(choir_strategy *s, choir_status status, const char *what)
{
	chi_process_group *p = s->process_group;
	outcome own = { .status = (int32_t) status };
	if (p == NULL)
		return status;
	if (status != CHOIR_OK)
		snprintf(own.text, sizeof own.text, "%s", choir_error());
	outcome *each = chi_alloc_array((size_t) p->workers, sizeof *each);
	if (each == NULL)
		return chi_strategy_abort(s, choir_error_status());
	choir_status all =
			chi_process_group_all_gather(p, &own, sizeof own, each, "whether %s went well", what);
	if (all != CHOIR_OK && status != CHOIR_OK)
		all = choir_fail(status, "%s", own.text);
	for (int w = 0; all == CHOIR_OK && w < p->workers; w++) {
		each[w].text[sizeof each[w].text - 1] = '\0';
		if (each[w].status != CHOIR_OK && w == p->worker)
			all = choir_fail(status, "%s", own.text);
		else if (each[w].status != CHOIR_OK)
			all = choir_fail((choir_status) each[w].status, "worker %d: %s", w, each[w].text);
	}
	chi_free(each);
	return all;
}

choir_status chi_strategy_share(choir_strategy *s, void **data, size_t *bytes, const char *what)
{
	chi_process_group *p = s->process_group;
	if (p == NULL)
		return CHOIR_OK;
	uint64_t own = *bytes, *each = chi_alloc_array((size_t) p->workers, sizeof *each);
	if (each == NULL)
		return chi_strategy_abort(s, choir_error_status());
	choir_status status =
			chi_process_group_all_gather(p, &own, sizeof own, each, "bytes of %s", what);
	own = each[0];
	chi_free(each);
	CHOIR_TRY(status);
	if (p->worker != 0) {
		*bytes = (size_t) own;
		*data = own > SIZE_MAX - 1 ? NULL : chi_alloc_aligned((size_t) own + 1);
		if (*data == NULL)
			return chi_strategy_abort(s,
					choir_fail(
							CHOIR_NO_MEMORY, "no memory for %" PRIu64 " bytes of %s", own, what));
	}
	status = own == 0 ? CHOIR_OK : chi_process_group_broadcast(p, 0, *data, *bytes, "%s", what);
	if (status != CHOIR_OK && p->worker != 0) {
		chi_free(*data);
		*data = NULL;
		*bytes = 0;
	}
	return status;
}

void chi_worker_sum_name(const char *call, choir_reduce_op op, choir_dtype dtype,
		const choir_tensor *t, char name[CHI_SUM_NAME])
{
	char shape[CHI_SHAPE_TEXT], text[CHI_SHAPE_TEXT + 160];
	snprintf(text, sizeof text, "%.100s, %s%s, %s %s", call, op == CHOIR_MEAN ? "mean" : "sum",
			t->count == CHOIR_NONE ? "" : " by counts",
			choir_dtype_name(t->is_number ? CHOIR_F64 : dtype), chi_shape_print(&t->shape, shape));
	chi_text_fit(text, name, CHI_SUM_NAME);
}

typedef struct {
	int plain;
	double number;
} plain_number;

// Workers may have other orders.
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
	if (length >= CHI_FINGERPRINT_TEXT)
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
	memset(own, 0, n * sizeof *own);
	for (size_t i = 0; i < n; i++) {
		const choir_value *v = values[order[i]];
		own[i].plain = v->kind == CHOIR_VALUE_PLAIN && v->component[0]->is_number;
		own[i].number = own[i].plain ? v->component[0]->number : 0;
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

typedef struct {
	int dtype, rank, is_number, good;
	int64_t dim[CHOIR_MAX_RANK];
	int64_t count;
	double number;
} line;

static void write_line(line *l, const choir_tensor *t)
{
	memset(l, 0, sizeof *l);
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
	if (chi_process_group_broadcast(p, from, &l, sizeof l, "%s", what) != CHOIR_OK)
		return chi_frame_record_null(f);
	if (l.good == 0)
		return chi_frame_fail_null(f, CHOIR_UNSUPPORTED,
				"%s: slices are not sent to other workers; reduce them", what);
	if (l.is_number)
		return choir_number(f, l.number);
	void *host = capacity_for(f, &l, &bytes);
	if (host == NULL || (p->worker == from && choir_tensor_to_host(t, host, bytes) != CHOIR_OK) ||
			chi_process_group_broadcast(p, from, host, bytes, "%s", what) != CHOIR_OK)
		return chi_frame_record_null(f);
	t = choir_constant(f, (choir_dtype) l.dtype, shape_of(&l), host);
	return l.count == CHOIR_NONE ? t : choir_with_count(t, l.count);
}

choir_tensor *chi_worker_broadcast(
		choir_strategy *s, choir_frame *f, int from, choir_tensor *t, const char *what)
{
	return chi_strategy_abort_if_null(s, f, broadcast(s, f, from, t, what));
}

typedef struct {
	chi_process_group *group;
	int axis;
	line *line;
	size_t *bytes;
	size_t all;
	choir_shape shape;
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
					"gather: worker 0 has %s %s, worker %d %s %s; only axis %d may differ",
					choir_dtype_name((choir_dtype) first->dtype), chi_shape_print(&x, a), w,
					choir_dtype_name((choir_dtype) l->dtype), chi_shape_print(&y, b), c->axis);
		if (!chi_int64_add(c->shape.dim[c->axis], l->dim[c->axis], &c->shape.dim[c->axis]) ||
				!chi_shape_bytes(&y, (choir_dtype) l->dtype, &c->bytes[w]) ||
				!chi_size_add(c->all, c->bytes[w], &c->all))
			return choir_fail(CHOIR_INVALID, "gather: axis %d of the result is too long", c->axis);
	}
	return CHOIR_OK;
}

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
			choir_tensor_to_host(t, mine, c->bytes[p->worker]) != CHOIR_OK ||
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
