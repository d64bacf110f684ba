// Random programs on every strategy, against the model, to the bit. A program that fails is
// printed; its seed brings it back: test_random_programs SEED. With "all" as argument it is ten
// thousand programs, otherwise a thousand, and fewer where a sanitizer looks at the same code.
#include "choir/choir.h"

#include "program.h"
#include "strategy/world.h"
#include "short.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ALL = 10000, SOME = SHORT ? 500 : 1000 };

static bool all_of_them;
static uint64_t only_seed;

static program p;
static world_model expected;
static choir_strategy *strategy;
static choir_variable *variable[PROGRAM_VARIABLES];
static choir_optimizer *optimizer;
static int run_number;

static choir_tensor *constant(
		choir_frame *f, double (*at)(const program *, int, int64_t), int which)
{
	double numbers[PROGRAM_ELEMENTS];
	for (int64_t i = 0; i < p.n; i++)
		numbers[i] = at(&p, which, i);
	return choir_cast(choir_constant(f, CHOIR_F64, CHOIR_SHAPE(p.n), numbers), p.dtype);
}

static choir_tensor *full(choir_frame *f, int c)
{
	return choir_fill(f, p.dtype, CHOIR_SHAPE(p.n), c);
}

static choir_status write_variable(const program_op *op, choir_tensor *value)
{
	choir_variable *v = variable[op->v];
	return op->op == 0	  ? choir_variable_assign(v, value)
			: op->op == 1 ? choir_variable_assign_add(v, value)
						  : choir_variable_assign_sub(v, value);
}

// In merge calls and updates.

static choir_status add_number(choir_update *u, void *user)
{
	const program_op *op = user;
	choir_variable *v = choir_update_variable(u);
	if (op->kind == MERGE_UPDATE)
		return choir_variable_assign(
				v, choir_subtract(choir_variable_read(v, u->frame), choir_update_arg(u, "c")));
	return choir_variable_assign_add(v, full(u->frame, op->c));
}

static choir_status inner(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(
			r, "x", choir_replica_all_reduce(r, CHOIR_SUM, choir_replica_arg(r, "x")));
}

static choir_status merge(choir_cross *x, void *user)
{
	const program_op *op = user;
	choir_variable *v = variable[op->v];
	choir_value *all = choir_cross_arg(x, "x");
	switch (op->kind) {
	case MERGE_REDUCE:
		return choir_cross_return(
				x, "x", choir_cross_reduce_to(x, op->mean ? CHOIR_MEAN : CHOIR_SUM, all, all));
	case MERGE_READ:
		return choir_cross_return(x, "x", choir_tensor_as_value(choir_variable_read(v, x->frame)));
	case MERGE_WRITE:
		return write_variable(op, full(x->frame, op->c));
	case MERGE_UPDATE:
		choir_cross_set_arg(x, "c", choir_tensor_as_value(full(x->frame, op->c)));
		return choir_cross_update(x, v, NULL, add_number, user);
	default:
		choir_cross_set_arg(x, "x", all);
		CHOIR_TRY(choir_cross_run(x, inner, NULL));
		return choir_cross_return(x, "x", choir_cross_result(x, "x"));
	}
}

// In replicas.

static choir_tensor *next_one(choir_replica *r, choir_tensor *x)
{
	const int n = choir_replica_count(r);
	const int64_t next = (choir_replica_id(r) + 1) % n;
	choir_tensor *all = choir_cast(choir_replica_all_gather(r, x, 0), CHOIR_F64);
	double *host = calloc((size_t) (n * p.n) + 1, sizeof *host);
	choir_tensor *own = NULL;
	if (all != NULL &&
			choir_tensor_to_host(all, host, (size_t) (n * p.n) * sizeof *host) == CHOIR_OK)
		own = choir_constant(r->frame, CHOIR_F64, CHOIR_SHAPE(p.n), host + next * p.n);
	free(host);
	return own == NULL ? NULL : choir_cast(own, p.dtype);
}

static choir_tensor *merged(choir_replica *r, program_op *op, choir_tensor *x)
{
	const bool gives_x = op->kind == MERGE_REDUCE || op->kind == MERGE_RUN;
	choir_replica_set_arg(r, "x", x);
	if (choir_replica_merge_call(r, merge, op) != CHOIR_OK)
		return NULL;
	if (gives_x)
		return choir_replica_result(r, "x");
	return op->kind == MERGE_READ ? choir_add(x, choir_replica_result(r, "x")) : x;
}

static choir_tensor *perform(choir_replica *r, program_op *op, choir_tensor *x)
{
	choir_frame *f = r->frame;
	choir_variable *v = variable[op->v];
	switch (op->kind) {
	case LOCAL:
		return choir_add(x, full(f, op->c + choir_replica_id(r)));
	case ALL_REDUCE:
		return choir_replica_all_reduce(r, op->mean ? CHOIR_MEAN : CHOIR_SUM, x);
	case ROTATE:
		return next_one(r, x);
	case BROADCAST:
		return choir_replica_broadcast(r, x, op->c % choir_replica_count(r));
	case READ:
		return choir_add(x, choir_variable_read(v, f));
	case WRITE:
		return write_variable(op, x) == CHOIR_OK ? x : NULL;
	case WRITE_NUMBER:
		return write_variable(op, choir_number(f, op->c)) == CHOIR_OK ? x : NULL;
	case OPTIMIZE:
		return choir_optimizer_add_gradient(optimizer, r, v, x) == CHOIR_OK &&
						choir_optimizer_apply_gradients(optimizer, r) == CHOIR_OK
				? x
				: NULL;
	case UPDATE:
		return choir_replica_update(r, v, add_number, op) == CHOIR_OK ? x : NULL;
	default:
		return merged(r, op, x);
	}
}

static choir_status follow(choir_replica *r, void *user)
{
	program_op *ops = user;
	choir_tensor *x = constant(r->frame, program_begin, choir_replica_id(r));
	for (int i = 0; x != NULL && i < p.ops[run_number]; i++)
		x = perform(r, &ops[i], x);
	return choir_replica_return(r, "x", x);
}

// Comparing.

static void wrong(const char *what, int which, int64_t i, double is, double should_be)
{
	program_print(&p);
	fail_msg("seed %llu, run %d: %s %d has %.17g at %lld instead of %.17g; the last failure: %s",
			(unsigned long long) p.seed, run_number, what, which, is, (long long) i, should_be,
			choir_error());
}

static void compare(choir_tensor *t, const double *to, const char *what, int which)
{
	static double host[PROGRAM_ELEMENTS];
	t = choir_cast(t, CHOIR_F64);
	if (t == NULL || choir_shape_elements(choir_tensor_shape(t)) != p.n ||
			choir_tensor_to_host(t, host, (size_t) p.n * sizeof *host) != CHOIR_OK)
		wrong(what, which, -1, 0, 0);
	for (int64_t i = 0; i < p.n; i++)
		if (host[i] != to[i])
			wrong(what, which, i, host[i], to[i]);
}

static void compare_results(choir_values *results)
{
	choir_value *x = choir_values_find(results, "x");
	for (int r = 0; r < p.replicas; r++)
		compare(choir_value_local(x, choir_value_local_count(x) == 1 ? 0 : r), expected.x[r],
				"replica", r);
}

static void compare_variables(void)
{
	static double whole[PROGRAM_ELEMENTS];
	choir_frame *f = choir_strategy_cross(strategy)->frame;
	for (int v = 0; v < PROGRAM_VARIABLES; v++) {
		if (expected.open[v])
			continue;
		const bool can = model_read(&p, &expected, v, whole);
		choir_tensor *t = choir_variable_read(variable[v], f);
		if ((t != NULL) != can)
			wrong("whether it can be read: variable", v, -1, t != NULL, can);
		if (can)
			compare(t, whole, "variable", v);
		choir_frame_clear(f);
	}
}

// A run that failed: nothing that all write is changed by what failed, and what replicas write for
// themselves is open, since some of them may not have got so far.
static void leave_open(void)
{
	for (int v = 0; v < PROGRAM_VARIABLES; v++)
		if (p.variable[v].synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
			expected.open[v] = true;
}

// False: the run fails, as it must.
static bool run_once(void)
{
	choir_values *results = NULL;
	bool right = true;
	model_begin_run(&p, &expected);
	for (int i = 0; i < p.ops[run_number]; i++)
		right = right && model_step(&p, &p.op[run_number][i], &expected);
	const choir_status status =
			choir_strategy_run(strategy, follow, p.op[run_number], NULL, &results);
	if (status != (right ? CHOIR_OK : CHOIR_INVALID))
		wrong("the status of run", run_number, -1, status, right ? CHOIR_OK : CHOIR_INVALID);
	if (right)
		compare_results(results);
	else
		leave_open();
	compare_variables();
	choir_values_free(results);
	return right;
}

static choir_status initialize(void *out, const choir_shape *shape, void *user)
{
	const int v = (int) ((choir_variable **) user - variable);
	(void) shape;
	for (int64_t i = 0; i < p.n; i++) {
		const double x = program_initial(&p, v, i);
		switch (p.dtype) {
		case CHOIR_F32:
			((float *) out)[i] = (float) x;
			break;
		case CHOIR_F64:
			((double *) out)[i] = x;
			break;
		case CHOIR_I32:
			((int32_t *) out)[i] = (int32_t) x;
			break;
		default:
			((int64_t *) out)[i] = (int64_t) x;
		}
	}
	return CHOIR_OK;
}

static void open_program(void)
{
	strategy = choir_strategy_new(p.kind,
			CHOIR_OPTIONS(choir_strategy_options, .replicas = p.replicas, .devices = p.devices));
	if (strategy == NULL)
		wrong("no strategy for replicas", p.replicas, -1, 0, 0);
	CHOIR_SCOPE (strategy) {
		for (int v = 0; v < PROGRAM_VARIABLES; v++) {
			char name[16];
			snprintf(name, sizeof name, "v%d", v);
			variable[v] = choir_variable_new(name, CHOIR_SHAPE(p.n),
					CHOIR_OPTIONS(choir_variable_options, .dtype = p.dtype,
							.synchronization = p.variable[v].synchronization,
							.aggregation = p.variable[v].aggregation, .initializer_fn = initialize,
							.user = &variable[v]));
			if (variable[v] == NULL)
				wrong("no variable", v, -1, 0, 0);
		}
		optimizer = choir_optimizer_new(
				CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1));
	}
	assert_non_null(optimizer);
}

static void check(uint64_t seed)
{
	p = program_write(seed);
	run_number = 0;
	open_program();
	model_begin(&p, &expected);
	compare_variables();
	for (run_number = 0; run_number < p.runs; run_number++)
		if (!run_once())
			break;
	choir_strategy_free(strategy);
}

// spec: 2.3, 2.4, 2.5, 2.6, 2.8, 2.9, A13, A14, A17, A18, A35, A36
static void random_programs(void **state)
{
	(void) state;
	if (only_seed != 0) {
		p = program_write(only_seed);
		program_print(&p);
		check(only_seed);
		return;
	}
	for (uint64_t seed = 1; seed <= (all_of_them ? ALL : SOME); seed++)
		check(seed);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_programs),
	};
	all_of_them = argc > 1 && strcmp(argv[1], "all") == 0;
	only_seed = argc > 1 && !all_of_them ? strtoull(argv[1], NULL, 10) : 0;
	if (!all_of_them)
		world_watch();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
