// Programs from seeds. Steps that the specification makes an error are written now and then, as
// the last step of a run; whether one is, the model is asked.
#include "program.h"

#include "base/philox.h"

#include <stdio.h>

typedef struct {
	chi_random_key key;
	uint64_t drawn;
} dice;

static int throw(dice * d, int sides)
{
	return (int) (chi_random_block(&d->key, d->drawn++).word[0] % (uint32_t) sides);
}

static const char *const deals[] = { "cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2",
	"cpu:0,cpu:1,cpu:2,cpu:3", "far:0,far:1", "cpu:0,far:0" };

static void write_strategy(program *p, dice *d)
{
	static const char *const kinds[] = { "mirrored", "mirrored", "mirrored", "central_storage",
		"parameter_server", "one_device", "default" };
	p->kind = kinds[throw(d, 7)];
	p->replicas = 1 + throw(d, PROGRAM_REPLICAS);
	// far takes its time
	p->devices = deals[throw(d, throw(d, 4) == 0 ? 6 : 4)];
	if (p->kind[0] == 'o' || p->kind[0] == 'd') {
		p->replicas = 1;
		p->devices = throw(d, 4) == 0 ? "far:0" : "cpu:0";
	}
}

static void write_variables(program *p, dice *d)
{
	const bool can_mean = p->dtype == CHOIR_F32 || p->dtype == CHOIR_F64;
	for (int v = 0; v < PROGRAM_VARIABLES; v++) {
		program_variable *w = &p->variable[v];
		w->synchronization = throw(d, 3) == 0 ? CHOIR_SYNCHRONIZATION_ON_READ
				: throw(d, 2) == 0			  ? CHOIR_SYNCHRONIZATION_ON_WRITE
											  : CHOIR_SYNCHRONIZATION_AUTO;
		w->aggregation = (choir_aggregation) throw(d, 4);
		if (w->aggregation == CHOIR_AGGREGATION_MEAN && !can_mean)
			w->aggregation = CHOIR_AGGREGATION_SUM;
	}
}

static bool can_optimize(const program *p, int v)
{
	return (p->dtype == CHOIR_F32 || p->dtype == CHOIR_F64) &&
			p->variable[v].synchronization != CHOIR_SYNCHRONIZATION_ON_READ;
}

static program_op write_op(const program *p, dice *d)
{
	const bool can_mean = p->dtype == CHOIR_F32 || p->dtype == CHOIR_F64;
	program_op op = { .kind = (program_kind) throw(d, PROGRAM_KINDS),
		.v = throw(d, PROGRAM_VARIABLES),
		.op = throw(d, 3),
		.c = throw(d, 9) };
	op.mean = can_mean && throw(d, 2) == 0 && (op.kind == ALL_REDUCE || op.kind == MERGE_REDUCE);
	if (op.kind == OPTIMIZE && !can_optimize(p, op.v))
		op.kind = LOCAL;
	return op;
}

program program_write(uint64_t seed)
{
	static const choir_dtype dtypes[] = { CHOIR_F32, CHOIR_F32, CHOIR_F64, CHOIR_I32, CHOIR_I64 };
	static world_model m;
	dice d = { .key = { .seed = seed, .place = 7 } };
	program p = { .seed = seed };
	write_strategy(&p, &d);
	p.dtype = dtypes[throw(&d, 5)];
	p.n = throw(&d, 40) == 0 ? 1 + throw(&d, PROGRAM_ELEMENTS) : 1 + throw(&d, 6);
	write_variables(&p, &d);
	p.runs = 1 + throw(&d, PROGRAM_RUNS);
	model_begin(&p, &m);
	for (int k = 0; k < p.runs; k++) {
		const int ops = 1 + throw(&d, PROGRAM_OPS);
		const bool may_fail = throw(&d, 8) == 0;
		bool optimizes = false, failed = false;
		model_begin_run(&p, &m);
		while (p.ops[k] < ops && !failed) {
			program_op op = write_op(&p, &d);
			failed = !model_step(&p, &op, &m);
			if (failed && (!may_fail || optimizes)) { // an update that was asked for may be lost
				op = (program_op){ .kind = LOCAL, .c = 1 };
				failed = !model_step(&p, &op, &m);
			}
			optimizes = optimizes || op.kind == OPTIMIZE;
			p.op[k][p.ops[k]++] = op;
		}
	}
	return p;
}

void program_print(const program *p)
{
	static const char *const kinds[] = { "local", "all_reduce", "rotate", "broadcast", "read",
		"write", "write_number", "optimize", "update", "merge_reduce", "merge_read", "merge_write",
		"merge_update", "merge_run" };
	static const char *const ops[] = { "=", "+=", "-=" };
	printf("program %llu: %s, %d replicas on %s, %s [%lld]\n", (unsigned long long) p->seed,
			p->kind, p->replicas, p->devices, choir_dtype_name(p->dtype), (long long) p->n);
	for (int v = 0; v < PROGRAM_VARIABLES; v++)
		printf("  v%d: synchronization %d, aggregation %d\n", v,
				(int) p->variable[v].synchronization, (int) p->variable[v].aggregation);
	for (int k = 0; k < p->runs; k++) {
		printf("  run %d:", k);
		for (int i = 0; i < p->ops[k]; i++) {
			const program_op *op = &p->op[k][i];
			printf(" %s(v%d %s %d%s)", kinds[op->kind], op->v, ops[op->op], op->c,
					op->mean ? " mean" : "");
		}
		printf("\n");
	}
}

// Numbers whose sums depend on their order, if they are not whole.
static double number(const program *p, uint32_t place, int64_t i)
{
	const chi_random_key key = { .seed = p->seed, .place = place };
	const uint32_t word = chi_random_block(&key, (uint64_t) i).word[0];
	if (p->dtype == CHOIR_F32)
		return (double) ((float) (word >> 8) / 1e6f);
	return p->dtype == CHOIR_F64 ? (double) word / 1e6 : (double) (word % 100) - 50;
}

double program_begin(const program *p, int r, int64_t i)
{
	return number(p, 100 + (uint32_t) r, i);
}

double program_initial(const program *p, int v, int64_t i)
{
	return number(p, 200 + (uint32_t) v, i);
}
