// A program is a short list of meetings that all replicas make, and perhaps a trouble: a replica
// fails, two do, one returns, one calls something else, one stands still, the merge function
// fails. A model computes in a loop what each replica must have in the end. If nothing goes wrong
// the run must succeed and agree with it. If replicas failed by themselves, which they note, run
// must report the lowest of these. A time-out is right only where somebody stood still, or where
// the schedule lets deadlines pass at will. One strategy runs many programs, so what a failure
// leaves behind meets the next. Some have variables that are large enough for their gradients to
// be summed while others are still being given; then a trouble may come between two gradients.
#include "programs.h"

#include "choir/choir.h"

#include "base/gate.h"
#include "base/clock.h"
#include "collective/tree.h"
#include "scheduler.h"
#include "value/variable.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPS = 5, MAX_PEACEFUL = 12, MAX_REPLICAS = 5, LARGE = 2 };
enum { ELEMENTS = 2 * CHI_CHUNK + 1 }; // of a large variable: three slices
static const int64_t MODULUS = 10007;
static const double TIMEOUT = 5, STANDSTILL = 100; // seconds of the schedule

typedef enum { SUM, MEAN, MERGE, UPDATE, READ, ASSIGN, CREATE, NESTED, KINDS } kind;
static const char *const kind_names[] = { "sum", "mean", "merge", "update", "read", "assign",
	"create", "nested" };
typedef enum {
	NOTHING,
	FAILS,
	TWO_FAIL,
	RETURNS,
	DIVERGES,
	MERGE_FAILS,
	STANDS,
	TROUBLES
} trouble;
static const char *const trouble_names[] = { "nothing", "fails", "two fail", "returns", "diverges",
	"merge fails", "stands still" };

typedef struct {
	int n;
	kind op[MAX_PEACEFUL];
	trouble trouble;
	int who, at, other, other_at; // replicas and operations of the trouble
	bool between; // two gradients, where the operation gives several
	schedule_options schedule;
	bool failed[MAX_REPLICAS]; // by itself
	int64_t x[MAX_REPLICAS]; // what replicas end with
} program;

static struct {
	uint64_t seed;
	int number, replicas;
	bool peaceful; // no troubles: collectives go on until their places are used again
	char devices[64];
	choir_strategy *strategy;
	choir_variable *weight, *total;
	choir_variable *large[LARGE]; // NULL: there are none
	choir_optimizer *optimizer;
	int64_t weight_is, total_is, large_is[LARGE]; // in the model
	const program *p;
} world;

static void print_program(void)
{
	const program *p = world.p;
	fprintf(stderr, "batch %llu, program %d: %d replicas on %s:", (unsigned long long) world.seed,
			world.number, world.replicas, world.devices);
	for (int i = 0; p != NULL && i < p->n; i++)
		fprintf(stderr, " %s", kind_names[p->op[i]]);
	if (p != NULL)
		fprintf(stderr,
				"; %s: replica %d at %d, replica %d at %d, %s; %s, 1 in %u, spurious %u, "
				"late %u\n",
				trouble_names[p->trouble], p->who, p->at, p->other, p->other_at,
				p->between ? "between gradients" : "before",
				p->schedule.style == SCHEDULE_RANDOM ? "anyone" : "priorities", p->schedule.change,
				p->schedule.spurious, p->schedule.late);
}

static _Noreturn void wrong(const char *text)
{
	print_program();
	fprintf(stderr, "%s\n", text);
	fflush(NULL);
	_Exit(1);
}

static void never_ends(const char *text)
{
	wrong(text);
}

// A crash is a program's as well. What is printed is not safe in a handler, but lost otherwise.
static void crashed(int number)
{
	print_program();
	fprintf(stderr, "ended by signal %d\n", number);
	signal(number, SIG_DFL);
	raise(number);
}

static void watch_for_crashes(void)
{
	static char stack[64 << 10];
	const int numbers[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGALRM };
	sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		sigaction(numbers[i], &(struct sigaction){ .sa_handler = crashed, .sa_flags = SA_ONSTACK },
				NULL);
}

static void need(bool condition, const char *what)
{
	char text[800];
	if (condition)
		return;
	snprintf(text, sizeof text, "%s; the last failure: %s", what, choir_error());
	wrong(text);
}

// What the replicas do.

static choir_tensor *tensor_of(choir_frame *f, choir_dtype dtype, int64_t x)
{
	return choir_fill(f, dtype, CHOIR_SCALAR, (double) x);
}

static choir_status number_of(choir_tensor *t, int64_t *x)
{
	if (t == NULL)
		return choir_error_status();
	*x = (int64_t) choir_tensor_number(t);
	return CHOIR_OK;
}

static choir_status add_up(choir_cross *x, void *user)
{
	const program *p = user;
	choir_value *v = choir_cross_arg(x, "x");
	int64_t sum = 0, bad = 0, own = 0;
	for (int i = 0; i < choir_value_local_count(v); i++) {
		CHOIR_TRY(number_of(choir_value_local(v, i), &own));
		sum += own;
	}
	CHOIR_TRY(number_of(choir_value_tensor(choir_cross_arg(x, "bad")), &bad));
	if (bad != 0 && p->trouble == MERGE_FAILS)
		return choir_fail(CHOIR_IO, "the merge fails");
	return choir_cross_return(x, "x", choir_tensor_as_value(tensor_of(x->frame, CHOIR_I64, sum)));
}

static choir_status inner(choir_replica *r, void *user)
{
	(void) user;
	return choir_replica_return(
			r, "x", choir_replica_all_reduce(r, CHOIR_SUM, choir_replica_arg(r, "x")));
}

static choir_status run_inside(choir_cross *x, void *user)
{
	(void) user;
	choir_cross_set_arg(x, "x", choir_cross_arg(x, "x"));
	CHOIR_TRY(choir_cross_run(x, inner, NULL));
	return choir_cross_return(x, "x", choir_cross_result(x, "x"));
}

static choir_status do_merge(choir_replica *r, program *p, int i, int64_t *x)
{
	const bool nested = p->op[i] == NESTED;
	choir_replica_set_arg(r, "x", tensor_of(r->frame, CHOIR_I64, *x));
	if (!nested)
		choir_replica_set_arg(r, "bad", choir_number(r->frame, p->at == i));
	CHOIR_TRY(choir_replica_merge_call(r, nested ? run_inside : add_up, p));
	return number_of(choir_replica_result(r, "x"), x);
}

static choir_status do_create(choir_replica *r, int i, int64_t *x)
{
	char name[16];
	snprintf(name, sizeof name, "made/%d", i);
	const float initial = (float) i;
	choir_variable *v = choir_variable_new(
			name, CHOIR_SCALAR, CHOIR_OPTIONS(choir_variable_options, .initial_value = &initial));
	int64_t is = 0;
	if (v == NULL)
		return choir_error_status();
	CHOIR_TRY(number_of(choir_variable_read(v, r->frame), &is));
	*x += is;
	return CHOIR_OK;
}

static choir_status other_merge(choir_cross *x, void *user)
{
	(void) x, (void) user;
	return CHOIR_OK;
}

static void stand_still(void)
{
	chi_atomic32 nobody = { 0 };
	const double end = chi_clock_deadline(STANDSTILL);
	while (chi_futex_wait(&nobody, 0, end))
		;
}

static bool fails_at(const program *p, int id, int i)
{
	if (p->trouble == TWO_FAIL && p->other == id && p->other_at == i)
		return true;
	return (p->trouble == FAILS || p->trouble == TWO_FAIL) && p->who == id && p->at == i;
}

// Fails, calls something else or stands still, if that is what r does here.
static choir_status trouble_at(choir_replica *r, program *p, int i)
{
	const int id = choir_replica_id(r);
	if (fails_at(p, id, i)) {
		p->failed[id] = true;
		return choir_fail(CHOIR_IO, "replica number %d has had enough", id);
	}
	if (p->who != id || p->at != i)
		return CHOIR_OK;
	if (p->trouble == DIVERGES)
		return choir_replica_merge_call(r, other_merge, NULL);
	if (p->trouble == STANDS)
		stand_still();
	return CHOIR_OK;
}

// Whether the trouble of operation i comes between its gradients.
static bool is_between(const program *p, int i)
{
	return p->between && p->op[i] == UPDATE && world.large[0] != NULL;
}

// The gradient of large variable k, all of whose elements are alike.
static int64_t large_gradient(int64_t x, int k)
{
	return (x + 3 * k + 1) % 16;
}

static choir_status give_large(choir_replica *r, int k, int64_t x)
{
	choir_tensor *g =
			choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(ELEMENTS), (double) large_gradient(x, k));
	return choir_optimizer_add_gradient(world.optimizer, r, world.large[k], g);
}

// The order in which gradients come changes, and only those of the same place are summed early.
static choir_status do_update(choir_replica *r, program *p, int i, int64_t x)
{
	const bool large = world.large[0] != NULL;
	const int first = i % LARGE;
	if (large)
		CHOIR_TRY(give_large(r, first, x));
	if (is_between(p, i))
		CHOIR_TRY(trouble_at(r, p, i));
	CHOIR_TRY(choir_optimizer_add_gradient(
			world.optimizer, r, world.weight, tensor_of(r->frame, CHOIR_F32, x % 16)));
	for (int k = 1; large && k < LARGE; k++)
		CHOIR_TRY(give_large(r, (first + k) % LARGE, x));
	return choir_optimizer_apply_gradients(world.optimizer, r);
}

static choir_status perform(choir_replica *r, program *p, int i, int64_t *x)
{
	int64_t is = 0;
	choir_tensor *t;
	switch (p->op[i]) {
	case SUM:
		t = choir_replica_all_reduce(r, CHOIR_SUM, tensor_of(r->frame, CHOIR_I64, *x));
		return number_of(t, x);
	case MEAN: // of so many times as much
		t = tensor_of(r->frame, CHOIR_F64, *x * choir_replica_count(r));
		return number_of(choir_replica_all_reduce(r, CHOIR_MEAN, t), x);
	case UPDATE:
		return do_update(r, p, i, *x);
	case READ:
		CHOIR_TRY(number_of(choir_variable_read(world.weight, r->frame), &is));
		*x += is;
		return CHOIR_OK;
	case ASSIGN:
		t = tensor_of(r->frame, CHOIR_I64, *x);
		CHOIR_TRY(choir_variable_assign_add(world.total, t));
		return number_of(choir_variable_read(world.total, r->frame), x);
	case CREATE:
		return do_create(r, i, x);
	default:
		return do_merge(r, p, i, x);
	}
}

static choir_status follow(choir_replica *r, void *user)
{
	program *p = user;
	const int id = choir_replica_id(r);
	int64_t x = 3 + id;
	for (int i = 0; i < p->n; i++) {
		if (p->trouble == RETURNS && p->who == id && p->at == i)
			return CHOIR_OK;
		if (!is_between(p, i))
			CHOIR_TRY(trouble_at(r, p, i));
		CHOIR_TRY(perform(r, p, i, &x));
		x = (x + id) % MODULUS;
	}
	p->x[id] = x;
	return CHOIR_OK;
}

// The same in a loop.

typedef struct {
	int64_t x[MAX_REPLICAS], weight, total, large[LARGE];
} outcome;

static void model_one(const program *p, int i, outcome *o)
{
	const int n = world.replicas;
	int64_t sum = 0, gradient = 0;
	for (int r = 0; r < n; r++) {
		sum += o->x[r];
		gradient += o->x[r] % 16;
	}
	if (p->op[i] == UPDATE)
		o->weight -= gradient;
	for (int k = 0; k < LARGE && p->op[i] == UPDATE; k++)
		for (int r = 0; r < n; r++)
			o->large[k] -= large_gradient(o->x[r], k);
	if (p->op[i] == ASSIGN)
		o->total += sum;
	for (int r = 0; r < n; r++) {
		int64_t *x = &o->x[r];
		switch (p->op[i]) {
		case UPDATE:
			break;
		case READ:
			*x += o->weight;
			break;
		case ASSIGN:
			*x = o->total;
			break;
		case CREATE:
			*x += i;
			break;
		default:
			*x = sum;
		}
		*x = (*x + r) % MODULUS;
	}
}

static outcome model(const program *p)
{
	outcome o = { .weight = world.weight_is, .total = world.total_is };
	memcpy(o.large, world.large_is, sizeof o.large);
	for (int r = 0; r < world.replicas; r++)
		o.x[r] = 3 + r;
	for (int i = 0; i < p->n; i++)
		model_one(p, i, &o);
	return o;
}

// Whether there is anything to meet for from operation i on.
static bool meets_from(const program *p, int i)
{
	for (; i < p->n; i++)
		if (p->op[i] != READ)
			return true;
	return false;
}

static choir_status expected_status(const program *p)
{
	switch (p->trouble) {
	case FAILS:
	case TWO_FAIL:
		return CHOIR_IO;
	case RETURNS:
		return meets_from(p, p->at) ? CHOIR_STATE : CHOIR_OK;
	case DIVERGES:
		return CHOIR_STATE;
	case STANDS:
		return CHOIR_OK;
	case MERGE_FAILS:
		return p->op[p->at] == MERGE ? CHOIR_IO : CHOIR_OK;
	default:
		return CHOIR_OK;
	}
}

// Whether a time-out is as right as what was expected. Who stands still may have a device on which
// all others are to run and have not begun, or be somebody for whom nobody waits.
static bool may_time_out(const program *p)
{
	return p->schedule.late != 0 || p->trouble == STANDS;
}

static bool must_time_out(const program *p)
{
	const kind op = p->op[p->at];
	return p->trouble == STANDS &&
			choir_strategy_worker_devices(world.strategy) == world.replicas && op != UPDATE &&
			op != READ && op != CREATE;
}

static void check_named(const program *p, choir_status status)
{
	char name[64];
	int lowest = 0;
	while (lowest < world.replicas && !p->failed[lowest])
		lowest++;
	if (lowest < world.replicas) {
		snprintf(name, sizeof name, "replica number %d has had enough", lowest);
		need(status == CHOIR_IO && strstr(choir_error(), name) != NULL,
				"not the lowest replica that failed by itself");
	} else if (status == CHOIR_TIMEOUT && p->schedule.late == 0) {
		snprintf(name, sizeof name, "replica %d", p->who);
		need(strstr(choir_error(), name) != NULL, "the time-out names another replica");
	} else if (status != CHOIR_OK) {
		need(choir_error()[0] != '\0', "a failure without a text");
	}
}

static void read_back(choir_variable *v, int64_t expected, const char *what)
{
	choir_frame *f = choir_strategy_cross(world.strategy)->frame;
	int64_t is = 0;
	need(number_of(choir_variable_read(v, f), &is) == CHOIR_OK && is == expected, what);
	choir_frame_clear(f);
}

// All of its elements are expected.
static void read_back_large(int k, int64_t expected)
{
	static float data[ELEMENTS];
	need(chi_variable_to_host(world.large[k], 0, data) == CHOIR_OK, "a variable cannot be read");
	for (int i = 0; i < ELEMENTS; i++)
		need((int64_t) data[i] == expected, "a large variable is not the model's");
}

static void start_over(choir_variable *v)
{
	choir_frame *f = choir_strategy_cross(world.strategy)->frame;
	need(choir_variable_assign(v, choir_number(f, 0)) == CHOIR_OK, "a variable is not reset");
	choir_frame_clear(f);
}

static void check(const program *p, choir_status status)
{
	const choir_status expected = expected_status(p);
	char text[100];
	const bool right =
			status == CHOIR_TIMEOUT ? may_time_out(p) : status == expected && !must_time_out(p);
	if (!right) {
		snprintf(text, sizeof text, "%s instead of %s", choir_status_name(status),
				choir_status_name(expected));
		need(false, text);
	}
	// Who has not been woken goes on at its time-out, perhaps to find that all is well.
	need(may_time_out(p) || scheduler_stood() < TIMEOUT, "nobody went on before a time-out");
	check_named(p, status);
	if (status != CHOIR_OK || p->trouble == RETURNS) {
		world.weight_is = world.total_is = 0;
		memset(world.large_is, 0, sizeof world.large_is);
		start_over(world.weight);
		start_over(world.total);
		for (int k = 0; k < LARGE && world.large[0] != NULL; k++)
			start_over(world.large[k]);
		return;
	}
	const outcome o = model(p);
	for (int r = 0; r < world.replicas; r++)
		need(p->x[r] == o.x[r], "a replica has another number than the model");
	read_back(world.weight, o.weight, "the weight is not the model's");
	read_back(world.total, o.total, "the total is not the model's");
	for (int k = 0; k < LARGE && world.large[0] != NULL; k++)
		read_back_large(k, o.large[k]);
	world.weight_is = o.weight;
	world.total_is = o.total;
	memcpy(world.large_is, o.large, sizeof o.large);
}

// Writing programs.

static void write_trouble(program *p)
{
	const uint32_t n = (uint32_t) world.replicas;
	p->trouble = scheduler_random(2) == 0 ? NOTHING : (trouble) scheduler_random(TROUBLES);
	p->who = (int) scheduler_random(n);
	p->at = (int) scheduler_random((uint32_t) p->n);
	p->other = (p->who + 1 + (int) scheduler_random(n - 1)) % world.replicas;
	p->other_at = (int) scheduler_random((uint32_t) p->n);
	p->between = scheduler_random(2) == 0;
}

static program write_program(void)
{
	static const kind collectives[] = { MEAN, MEAN, SUM, UPDATE };
	static const uint32_t changes[] = { 1, 2, 4, 8, 16, 40 };
	const bool peaceful = world.peaceful;
	program p = { .n = 1 + (int) scheduler_random(peaceful ? MAX_PEACEFUL : MAX_OPS) };
	for (int i = 0; i < p.n; i++)
		p.op[i] = peaceful ? collectives[scheduler_random(4)] : (kind) scheduler_random(KINDS);
	if (!peaceful)
		write_trouble(&p);
	p.schedule = (schedule_options){
		.style = (schedule_style) scheduler_random(SCHEDULE_STYLES),
		.change = changes[scheduler_random(sizeof changes / sizeof changes[0])],
		.spurious = scheduler_random(3) == 0 ? 50 : 0,
		.late = !peaceful && scheduler_random(10) == 0 ? 300 : 0,
	};
	return p;
}

static void write_devices(void)
{
	const int devices = 1 + (int) scheduler_random(4);
	const bool far = scheduler_random(8) == 0;
	int at = 0;
	for (int i = 0; i < devices; i++)
		at += snprintf(world.devices + at, sizeof world.devices - (size_t) at, "%s%s:%d",
				i == 0 ? "" : ",", far && i < 2 ? "far" : "cpu", i);
}

static void open_large(void)
{
	char name[16];
	for (int k = 0; k < LARGE; k++) {
		snprintf(name, sizeof name, "large/%d", k);
		CHOIR_SCOPE (world.strategy)
			world.large[k] = choir_variable_new(name, CHOIR_SHAPE(ELEMENTS), NULL);
		need(world.large[k] != NULL, "no large variable");
	}
}

static void open_world(void)
{
	world.replicas = 2 + (int) scheduler_random(MAX_REPLICAS - 1);
	world.peaceful = scheduler_random(8) == 0;
	write_devices();
	world.strategy = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.replicas = world.replicas, .devices = world.devices, .timeout = TIMEOUT));
	need(world.strategy != NULL, "no strategy");
	CHOIR_SCOPE (world.strategy) {
		world.weight = choir_variable_new("weight", CHOIR_SCALAR, NULL);
		world.total = choir_variable_new("total", CHOIR_SCALAR,
				CHOIR_OPTIONS(choir_variable_options, .dtype = CHOIR_I64,
						.aggregation = CHOIR_AGGREGATION_SUM));
		world.optimizer = choir_optimizer_new(CHOIR_SGD,
				CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1,
						.nonfinite = (choir_nonfinite) scheduler_random(3)));
	}
	need(world.weight != NULL && world.total != NULL && world.optimizer != NULL, "no variables");
	if (scheduler_random(4) == 0)
		open_large();
}

void programs_batch(uint64_t seed)
{
	world.seed = seed;
	watch_for_crashes();
	scheduler_on_failure(never_ends);
	scheduler_seed(seed << 32, &(schedule_options){ .change = 4 });
	open_world();
	for (int i = 0; i < PROGRAMS_A_BATCH; i++) {
		world.number = i;
		scheduler_seed(seed << 32 | (uint64_t) (i + 1), &(schedule_options){ .change = 4 });
		program p = write_program();
		world.p = &p;
		scheduler_seed(seed << 32 | (uint64_t) (i + 1) << 16, &p.schedule);
		const choir_status status = choir_strategy_run(world.strategy, follow, &p, NULL, NULL);
		scheduler_in_time();
		check(&p, status);
		world.p = NULL;
	}
	choir_strategy_free(world.strategy);
}
