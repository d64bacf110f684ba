// A program is a list of steps, drawn from the seed; the odd worker has another list. Steps of
// replicas that follow one another are one run. What programs may do differently on each worker
// (how many rows they gather, what they have instead of the tensor that is broadcast) is the same
// in all steps, so that two lists that differ are never both right.
#include "mismatch.h"

#include "base/philox.h"
#include "facts.h"

#include <stdio.h>
#include <string.h>

typedef enum {
	ALL_REDUCE,
	COUNTED,
	SLICES,
	BATCH,
	GATHER,
	BROADCAST,
	ASSIGN,
	ASSIGN_ADD,
	MERGE_REDUCE,
	MERGE_GATHER,
	MERGE_BATCH,
	MINIMIZE,
	UPDATE,
	REPLICA_KINDS, // the others are steps outside of runs
	MAKE = REPLICA_KINDS,
	REDUCE,
	READ_PARTS,
	COUNT_EXAMPLES,
	MAKE_OPTIMIZER,
	KINDS
} kind;

static const char *const kinds[KINDS] = { "all_reduce", "all_reduce of counted", "of slices",
	"batch_all_reduce", "all_gather", "broadcast", "assign", "assign_add", "reduce_to", "gather",
	"batch_reduce_to", "minimize", "update", "making a variable", "reduce", "reading parts",
	"counting examples", "making an optimizer" };

typedef struct {
	kind kind;
	choir_reduce_op op;
	choir_dtype dtype;
	int64_t rows, columns;
	int which; // root, variable, axis
	int id; // of the step
} step;

typedef enum {
	OTHER_KIND,
	OTHER_ORDER,
	OTHER_OPERATION,
	OTHER_DTYPE,
	OTHER_SHAPE,
	MISSING
} change;
enum { CHANGES = MISSING + 1 };

static const char *const changes[CHANGES] = { "another kind", "another order", "another operation",
	"another dtype", "another shape", "one left out" };

enum { MAX_STEPS = 6, VARIABLES = 6, PARTS = 6 };

typedef struct {
	step step[MAX_STEPS];
	int steps;
} list;

typedef struct {
	list usual, other; // other: of the odd worker
	change change;
	int at, odd;
} program;

typedef struct {
	choir_variable *v[VARIABLES], *part[PARTS];
	choir_optimizer *sgd;
	const step *step;
	int steps;
} doing;

// ---- Drawing.

typedef struct {
	uint64_t seed;
	uint32_t place;
} dice;

static int draw(dice *d, int max)
{
	const chi_random_key key = { .seed = d->seed, .place = d->place++ };
	return (int) (chi_random_block(&key, 0).word[0] % (uint32_t) max);
}

static bool has_operation(kind k)
{
	return k == ALL_REDUCE || k == COUNTED || k == SLICES || k == BATCH || k == MERGE_REDUCE ||
			k == MERGE_BATCH || k == REDUCE;
}

static bool has_tensor(kind k)
{
	return has_operation(k) || k == GATHER || k == MERGE_GATHER || k == MAKE;
}

static int choices(kind k)
{
	switch (k) {
	case GATHER:
	case MERGE_GATHER:
	case COUNT_EXAMPLES:
		return 2;
	case ASSIGN:
	case ASSIGN_ADD:
	case MINIMIZE:
	case UPDATE:
		return VARIABLES;
	case READ_PARTS:
		return PARTS;
	case MAKE:
	case MAKE_OPTIMIZER:
		return 3;
	case BROADCAST:
		return 4;
	default:
		return 1;
	}
}

static choir_dtype dtype_of(kind k, int which)
{
	static const choir_dtype all[] = { CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64 };
	return all[which % (k == COUNTED || k == SLICES || k == MAKE ? 2 : 4)];
}

// What does not matter for its kind is the same in all steps.
static void settle(step *s)
{
	if (!has_operation(s->kind))
		s->op = CHOIR_SUM;
	if (!has_tensor(s->kind))
		s->dtype = CHOIR_F32, s->rows = 3, s->columns = 1;
	if (s->kind == COUNTED || s->kind == SLICES || s->kind == MAKE)
		s->dtype = s->dtype == CHOIR_F64 ? CHOIR_F64 : CHOIR_F32;
	s->which %= choices(s->kind);
	if (s->kind == GATHER || s->kind == MERGE_GATHER)
		*(s->which == 0 ? &s->rows : &s->columns) = 2;
	s->id = s->kind == MAKE ? s->id : 0;
}

static step draw_step(dice *d, int id)
{
	static const int64_t sizes[] = { 1, 2, 3, 5, 40, 700 };
	step s = { .kind = (kind) draw(d, draw(d, 3) == 0 ? KINDS : REPLICA_KINDS), .id = id };
	s.op = draw(d, 2) == 0 ? CHOIR_SUM : CHOIR_MEAN;
	s.dtype = dtype_of(s.kind, draw(d, 4));
	s.rows = 1 + sizes[draw(d, 6)];
	s.columns = 1 + sizes[draw(d, 4)];
	s.which = draw(d, 12);
	settle(&s);
	return s;
}

static bool is_same(const step *a, const step *b)
{
	return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->rows == b->rows &&
			a->columns == b->columns && a->which == b->which && a->id == b->id;
}

// Another step of the same kind, or if that cannot differ in what is asked for, another kind.
static step change_step(dice *d, step s, change how)
{
	const step old = s;
	const int by = 1 + draw(d, 11);
	if (how == OTHER_OPERATION && has_operation(s.kind))
		s.op = s.op == CHOIR_SUM ? CHOIR_MEAN : CHOIR_SUM;
	else if (how == OTHER_OPERATION)
		s.which += by;
	else if (how == OTHER_DTYPE && has_tensor(s.kind))
		s.dtype = dtype_of(s.kind, by);
	else if (how == OTHER_SHAPE && has_tensor(s.kind) && by < 4)
		s.rows = old.columns, s.columns = old.rows;
	else if (how == OTHER_SHAPE && has_tensor(s.kind))
		*(by % 2 == 0 ? &s.rows : &s.columns) += by;
	settle(&s);
	while (is_same(&s, &old)) {
		s.kind = (kind) draw(d, KINDS);
		settle(&s);
	}
	return s;
}

static void remove_step(list *l, int at)
{
	memmove(&l->step[at], &l->step[at + 1], (size_t) (l->steps - at - 1) * sizeof l->step[0]);
	l->steps--;
}

static program draw_program(uint64_t seed, int workers)
{
	dice d = { .seed = seed };
	program p = { .change = (change) draw(&d, CHANGES), .odd = draw(&d, workers) };
	p.usual.steps = 1 + draw(&d, MAX_STEPS);
	for (int i = 0; i < p.usual.steps; i++)
		p.usual.step[i] = draw_step(&d, i);
	p.at = draw(&d, p.usual.steps);
	p.other = p.usual;
	step *at = &p.other.step[p.at];
	if (p.change == OTHER_ORDER && (p.at + 1 == p.usual.steps || is_same(at, at + 1)))
		p.change = MISSING;
	if (p.change == MISSING) {
		remove_step(&p.other, p.at);
	} else if (p.change == OTHER_ORDER) {
		const step first = at[0];
		at[0] = at[1];
		at[1] = first;
	} else {
		*at = change_step(&d, *at, p.change);
	}
	return p;
}

// ---- Doing it.

static choir_tensor *tensor_of(choir_frame *f, const step *s)
{
	return choir_fill(f, s->dtype, CHOIR_SHAPE(s->rows, s->columns), 1);
}

static choir_tensor *slices_of(choir_frame *f, const step *s)
{
	const int64_t at[2] = { 0, s->rows - 1 };
	return choir_indexed_slices(choir_fill(f, s->dtype, CHOIR_SHAPE(2, s->columns), 1),
			choir_constant(f, CHOIR_I64, CHOIR_SHAPE(2), at), s->rows);
}

static choir_status merge(choir_cross *x, void *user)
{
	const step *s = ((const doing *) user)->step;
	choir_value *v = choir_cross_arg(x, "x");
	choir_reduction two[2] = { { v, v, NULL }, { v, v, NULL } };
	if (s->kind == MERGE_BATCH)
		return choir_cross_batch_reduce_to(x, s->op, 2, two,
				CHOIR_OPTIONS(choir_communication_options, .bytes_per_pack = 1 << 20));
	return choir_cross_return(x, "y",
			s->kind == MERGE_REDUCE ? choir_cross_reduce_to(x, s->op, v, v)
									: choir_tensor_as_value(choir_cross_gather(x, v, s->which)));
}

static choir_status minimize(choir_replica *r, const doing *d, int which)
{
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *x = choir_variable_read(d->v[which], r->frame);
	return choir_optimizer_minimize(d->sgd, choir_sum(choir_square(x), CHOIR_ALL_AXES), tape);
}

static choir_status leave_alone(choir_update *u, void *user)
{
	(void) u, (void) user;
	return CHOIR_OK;
}

static choir_status take_step(choir_replica *r, doing *d, const step *s)
{
	choir_frame *f = r->frame;
	choir_tensor *t = tensor_of(f, s);
	choir_tensor *two[2] = { t, choir_fill(f, CHOIR_F32, CHOIR_SHAPE(4), 1) };
	switch (s->kind) {
	case ALL_REDUCE:
		t = choir_replica_all_reduce(r, s->op, t);
		break;
	case COUNTED:
		t = choir_replica_all_reduce(r, s->op, choir_with_count(t, 1 + choir_replica_id(r)));
		break;
	case SLICES:
		t = choir_replica_all_reduce(r, s->op, slices_of(f, s));
		break;
	case BATCH:
		return choir_replica_batch_all_reduce(r, s->op, 2, two, two);
	case GATHER:
		t = choir_replica_all_gather(r, t, s->which);
		break;
	case BROADCAST:
		t = choir_replica_broadcast(r, t, s->which);
		break;
	case ASSIGN:
		return choir_variable_assign(d->v[s->which], t);
	case ASSIGN_ADD:
		return choir_variable_assign_add(d->v[s->which], t);
	case MINIMIZE:
		return minimize(r, d, s->which);
	case UPDATE:
		return choir_replica_update(r, d->v[s->which], leave_alone, NULL);
	default:
		choir_replica_set_arg(r, "x", t);
		return choir_replica_merge_call(r, merge, &(doing){ .step = s });
	}
	return t == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status take_steps(choir_replica *r, void *user)
{
	doing *d = user;
	for (int i = 0; i < d->steps; i++)
		CHOIR_TRY(take_step(r, d, &d->step[i]));
	return CHOIR_OK;
}

static choir_status do_nothing(choir_replica *r, void *user)
{
	(void) r, (void) user;
	return CHOIR_OK;
}

static choir_status use_values(choir_strategy *s, const step *is)
{
	choir_values *set = choir_values_new(s);
	const char *name = is->which == 0 ? "x" : "y";
	choir_status status = set == NULL ? choir_error_status() : CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < choir_strategy_local_replicas(s); i++)
		status = choir_values_set_local(set, name, i, tensor_of(choir_values_frame(set), is));
	if (status == CHOIR_OK && is->kind == COUNT_EXAMPLES)
		status = choir_strategy_run(s, do_nothing, NULL, set, NULL);
	else if (status == CHOIR_OK &&
			choir_strategy_reduce(s, is->op, choir_values_find(set, name), CHOIR_NO_AXIS) == NULL)
		status = choir_error_status();
	choir_values_free(set);
	return status;
}

static choir_status read_parts(choir_variable *part)
{
	choir_frame *f = choir_frame_new(NULL);
	const choir_status status =
			f == NULL || choir_variable_read(part, f) == NULL ? choir_error_status() : CHOIR_OK;
	choir_frame_free(f);
	return status;
}

static choir_variable *make(choir_strategy *s, const char *name, const step *is, bool parts)
{
	static const choir_aggregation by[3] = { CHOIR_AGGREGATION_SUM, CHOIR_AGGREGATION_MEAN,
		CHOIR_AGGREGATION_ONLY_FIRST_REPLICA };
	choir_variable *v = NULL;
	CHOIR_SCOPE (s)
		v = choir_variable_new(name, CHOIR_SHAPE(is->rows, is->columns),
				CHOIR_OPTIONS(choir_variable_options, .dtype = is->dtype,
						.aggregation = by[is->which % 3],
						.synchronization = parts ? CHOIR_SYNCHRONIZATION_ON_READ
												 : CHOIR_SYNCHRONIZATION_AUTO));
	return v;
}

static choir_optimizer *make_optimizer(choir_strategy *s, choir_optimizer_kind by, int rate)
{
	choir_optimizer *o = NULL;
	CHOIR_SCOPE (s)
		o = choir_optimizer_new(
				by, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.1 * (1 + rate)));
	return o;
}

static choir_status step_outside(choir_strategy *s, const doing *d, const step *is)
{
	char name[16];
	switch (is->kind) {
	case MAKE:
		snprintf(name, sizeof name, "made%d", is->id);
		return make(s, name, is, false) == NULL ? choir_error_status() : CHOIR_OK;
	case READ_PARTS:
		return read_parts(d->part[is->which]);
	case MAKE_OPTIMIZER:
		return make_optimizer(s, CHOIR_ADAM, is->which) == NULL ? choir_error_status() : CHOIR_OK;
	default:
		return use_values(s, is);
	}
}

// How many steps from i on are one run; a frame has one tape, so a step with one is alone.
static int run_from(const list *l, int i)
{
	int n = 0;
	while (i + n < l->steps && l->step[i + n].kind < REPLICA_KINDS) {
		if (l->step[i + n].kind == MINIMIZE)
			return n == 0 ? 1 : n;
		n++;
	}
	return n;
}

static choir_status do_list(choir_strategy *s, doing *d, const list *l)
{
	for (int i = 0; i < l->steps;) {
		const int n = run_from(l, i);
		d->step = &l->step[i];
		d->steps = n;
		CHOIR_TRY(n > 0 ? choir_strategy_run(s, take_steps, d, NULL, NULL)
						: step_outside(s, d, &l->step[i]));
		i += n > 0 ? n : 1;
	}
	return CHOIR_OK;
}

static choir_status do_all(choir_strategy *s, const list *l)
{
	// As no other is, so that what was left out at the end shows.
	static const list last = { { { ALL_REDUCE, CHOIR_SUM, CHOIR_F64, 997, 1, 0, 0 } }, 1 };
	doing d = { .steps = 0 };
	char name[16];
	for (int i = 0; i < VARIABLES + PARTS; i++) {
		const bool part = i >= VARIABLES;
		const step is = { .dtype = CHOIR_F32, .rows = 3, .columns = 1, .which = i };
		snprintf(name, sizeof name, "v%d", i);
		choir_variable *v = make(s, name, &is, part);
		if (v == NULL)
			return choir_error_status();
		*(part ? &d.part[i - VARIABLES] : &d.v[i]) = v;
	}
	if ((d.sgd = make_optimizer(s, CHOIR_SGD, 0)) == NULL)
		return choir_error_status();
	CHOIR_TRY(do_list(s, &d, l));
	return do_list(s, &d, &last);
}

// ---- What workers are told.

static bool names_both(const char *said, int odd, int workers)
{
	char name[32];
	snprintf(name, sizeof name, "worker %d ", odd);
	bool one = strstr(said, name) != NULL, other = false;
	for (int i = 0; i < workers; i++) {
		snprintf(name, sizeof name, "worker %d ", i);
		other |= i != odd && strstr(said, name) != NULL;
	}
	return one && other;
}

static void print_step(const step *s, char text[100])
{
	snprintf(text, 100, "%s (%s %s [%d, %d] %d)", kinds[s->kind],
			s->op == CHOIR_SUM ? "sum" : "mean", choir_dtype_name(s->dtype), (int) s->rows,
			(int) s->columns, s->which);
}

const char *mismatch_run(choir_strategy *s, int worker, int workers, uint64_t seed)
{
	static _Thread_local char text[1100];
	static _Thread_local char said[600];
	const program p = draw_program(seed, workers);
	const list *own = worker == p.odd ? &p.other : &p.usual;
	const choir_status status = s == NULL ? choir_error_status() : do_all(s, own);
	if ((status == CHOIR_STATE || status == CHOIR_INVALID || status == CHOIR_CANCELLED) &&
			text_holds(choir_error(), "differ") && names_both(choir_error(), p.odd, workers))
		return NULL;
	char usual[100], other[100] = "";
	snprintf(said, sizeof said, "%s", status == CHOIR_OK ? "nothing" : choir_error());
	print_step(&p.usual.step[p.at], usual);
	if (p.change != MISSING)
		print_step(&p.other.step[p.at], other);
	snprintf(text, sizeof text,
			"seed %llu, step %d of %d, worker %d has %s: %s, not %s: told %s: %s",
			(unsigned long long) seed, p.at, p.usual.steps, p.odd, changes[p.change], other, usual,
			choir_status_name(status), said);
	return text;
}
