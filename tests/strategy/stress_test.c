// Random programs of merge calls, collectives, nested runs and failures on random deals of
// replicas, compared with a model that does the same in a loop. Seeded: a program that fails can
// be run again.
#include "choir/op.h"

#include "base/clock.h"
#include "base/philox.h"
#include "strategy/world.h"
#include "test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_OPS = 12, MAX_REPLICAS = 9, LONGEST = 6000 };
static const int64_t MODULUS = 1000003;
static const double SECONDS = 5; // for all programs together

typedef enum { LOCAL, ALL_REDUCE, MERGE, GATHER, BROADCAST, NESTED, KINDS } kind;
typedef enum { NOTHING, FAILS, RETURNS, DIVERGES, MERGE_FAILS, TROUBLES } trouble;

typedef struct {
	kind kind;
	int64_t size; // of tensors
	int from; // of broadcasts
} operation;

typedef struct {
	uint64_t seed;
	int n;
	operation op[MAX_OPS];
	trouble trouble;
	int who, at; // the replica and the operation of the trouble
	int64_t x[MAX_REPLICAS]; // what replicas end with
} program;

typedef struct {
	chi_random_key key;
	uint64_t drawn;
} dice;

static uint32_t throw(dice * d, uint32_t sides)
{
	return chi_random_block(&d->key, d->drawn++).word[0] % sides;
}

static program write_program(uint64_t seed, int replicas)
{
	dice d = { .key = { .seed = seed, .place = 1 } };
	program p = { .seed = seed, .n = 1 + (int) throw(&d, MAX_OPS) };
	for (int i = 0; i < p.n; i++)
		p.op[i] = (operation){ (kind) throw(&d, KINDS),
			throw(&d, 4) == 0 ? 1 + throw(&d, LONGEST) : 1 + throw(&d, 40),
			(int) throw(&d, (uint32_t) replicas) };
	p.trouble = throw(&d, 2) == 0 ? NOTHING : (trouble) throw(&d, TROUBLES);
	p.who = (int) throw(&d, (uint32_t) replicas);
	p.at = (int) throw(&d, (uint32_t) p.n);
	return p;
}

static int64_t begin_with(int id)
{
	return 17 * id + 5;
}

// The same in a loop: what each replica has after all operations.
static void model(const program *p, int replicas, int64_t x[])
{
	for (int r = 0; r < replicas; r++)
		x[r] = begin_with(r);
	for (int i = 0; i < p->n; i++) {
		int64_t sum = 0, weighted = 0;
		const int64_t from = x[p->op[i].from];
		for (int r = 0; r < replicas; r++) {
			sum += x[r];
			weighted += (r + 1) * x[r];
		}
		for (int r = 0; r < replicas; r++) {
			switch (p->op[i].kind) {
			case LOCAL:
				x[r] = 3 * x[r] + r;
				break;
			case ALL_REDUCE:
				x[r] = sum + r;
				break;
			case MERGE:
				x[r] = sum + 2 * r;
				break;
			case GATHER:
				x[r] = weighted + r;
				break;
			case BROADCAST:
				x[r] = from + 7 * r;
				break;
			default:
				x[r] = 2 * sum + r;
			}
			x[r] %= MODULUS;
		}
	}
}

static choir_tensor *spread(choir_replica *r, int64_t x, int64_t size)
{
	int64_t *data = malloc((size_t) size * sizeof *data);
	for (int64_t i = 0; i < size; i++)
		data[i] = x + i;
	choir_tensor *t = choir_constant(r->frame, CHOIR_I64, CHOIR_SHAPE(size), data);
	free(data);
	return t;
}

// The first element, if the last one is what it should be: so much more.
static choir_status collect(choir_tensor *t, int64_t size, int64_t more, int64_t *x)
{
	int64_t *host = malloc((size_t) size * sizeof *host);
	choir_status status = t == NULL ? choir_error_status()
									: choir_tensor_to_host(t, host, (size_t) size * sizeof *host);
	if (status == CHOIR_OK && host[size - 1] != host[0] + more)
		status = choir_fail(CHOIR_INTERNAL, "the last element is wrong");
	*x = host[0];
	free(host);
	return status;
}

static choir_status merge_sum(choir_cross *x, void *user)
{
	const program *p = user;
	choir_value *v = choir_cross_arg(x, "x");
	if (p->trouble == MERGE_FAILS &&
			choir_value_kind_of(choir_cross_arg(x, "bad")) == CHOIR_VALUE_PLAIN &&
			choir_tensor_number(choir_value_tensor(choir_cross_arg(x, "bad"))) != 0)
		return choir_fail(CHOIR_IO, "the merge fails");
	return choir_cross_return(x, "x", choir_cross_reduce_to(x, CHOIR_SUM, v, v));
}

static choir_status inner(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = choir_replica_arg(r, "x");
	return choir_replica_return(r, "x",
			choir_add(choir_replica_all_reduce(r, CHOIR_SUM, x),
					choir_replica_all_reduce(r, CHOIR_SUM, x)));
}

static choir_status merge_run(choir_cross *x, void *user)
{
	(void) user;
	choir_cross_set_arg(x, "x", choir_cross_arg(x, "x"));
	CHOIR_TRY(choir_cross_run(x, inner, NULL));
	return choir_cross_return(x, "x", choir_cross_result(x, "x"));
}

static choir_status do_merge(choir_replica *r, program *p, int i, int64_t *x)
{
	const operation *op = &p->op[i];
	const int n = choir_replica_count(r);
	const bool nested = op->kind == NESTED;
	choir_replica_set_arg(r, "x", spread(r, *x, op->size));
	if (!nested)
		choir_replica_set_arg(
				r, "bad", choir_number(r->frame, p->trouble == MERGE_FAILS && p->at == i));
	CHOIR_TRY(choir_replica_merge_call(r, nested ? merge_run : merge_sum, p));
	CHOIR_TRY(collect(
			choir_replica_result(r, "x"), op->size, (nested ? 2 : 1) * n * (op->size - 1), x));
	*x += (nested ? 1 : 2) * choir_replica_id(r);
	return CHOIR_OK;
}

static choir_status do_gather(choir_replica *r, const operation *op, int64_t *x)
{
	const int n = choir_replica_count(r);
	const size_t all = (size_t) n * (size_t) op->size;
	int64_t *host = malloc(all * sizeof *host);
	choir_tensor *t = choir_replica_all_gather(r, spread(r, *x, op->size), 0);
	const choir_status status =
			t == NULL ? choir_error_status() : choir_tensor_to_host(t, host, all * sizeof *host);
	*x = choir_replica_id(r);
	for (int i = 0; status == CHOIR_OK && i < n; i++)
		*x += (i + 1) * host[(size_t) i * (size_t) op->size];
	free(host);
	return status;
}

static choir_status perform(choir_replica *r, program *p, int i, int64_t *x)
{
	const operation *op = &p->op[i];
	const int id = choir_replica_id(r);
	choir_status status = CHOIR_OK;
	switch (op->kind) {
	case LOCAL:
		*x = 3 * *x + id;
		break;
	case ALL_REDUCE:
		status = collect(choir_replica_all_reduce(r, CHOIR_SUM, spread(r, *x, op->size)), op->size,
				choir_replica_count(r) * (op->size - 1), x);
		*x += id;
		break;
	case GATHER:
		status = do_gather(r, op, x);
		break;
	case BROADCAST:
		status = collect(choir_replica_broadcast(r, spread(r, *x, op->size), op->from), op->size,
				op->size - 1, x);
		*x += 7 * id;
		break;
	default:
		status = do_merge(r, p, i, x);
	}
	*x %= MODULUS;
	return status;
}

static choir_status other_merge(choir_cross *x, void *user)
{
	(void) x, (void) user;
	return CHOIR_OK;
}

static choir_status follow(choir_replica *r, void *user)
{
	program *p = user;
	const int id = choir_replica_id(r);
	int64_t x = begin_with(id);
	for (int i = 0; i < p->n; i++) {
		const bool here = p->who == id && p->at == i;
		if (here && p->trouble == FAILS)
			return choir_fail(CHOIR_IO, "replica number %d has had enough", id);
		if (here && p->trouble == RETURNS)
			return CHOIR_OK;
		if (here && p->trouble == DIVERGES)
			CHOIR_TRY(choir_replica_merge_call(r, other_merge, NULL));
		if ((p->seed + (uint64_t) (i * 31 + id * 7)) % 23 == 0)
			usleep(200);
		CHOIR_TRY(perform(r, p, i, &x));
	}
	p->x[id] = x;
	return CHOIR_OK;
}

static bool meets_from(const program *p, int i)
{
	for (; i < p->n; i++)
		if (p->op[i].kind != LOCAL)
			return true;
	return false;
}

// What run returns: of one replica alone an early return is no trouble.
static choir_status expected_status(const program *p, int replicas)
{
	switch (p->trouble) {
	case FAILS:
		return CHOIR_IO;
	case RETURNS:
		return replicas > 1 && meets_from(p, p->at) ? CHOIR_STATE : CHOIR_OK;
	case DIVERGES:
		return replicas > 1 ? CHOIR_STATE : CHOIR_OK;
	case MERGE_FAILS:
		return p->op[p->at].kind == MERGE ? CHOIR_IO : CHOIR_OK;
	default:
		return CHOIR_OK;
	}
}

static void check(choir_strategy *s, const char *devices, uint64_t seed)
{
	const int replicas = choir_strategy_replicas(s);
	program p = write_program(seed, replicas);
	int64_t x[MAX_REPLICAS];
	model(&p, replicas, x);
	const choir_status status = choir_strategy_run(s, follow, &p, NULL, NULL);
	const choir_status expected = expected_status(&p, replicas);
	if (status != expected || (status != CHOIR_OK && choir_error()[0] == '\0'))
		fail_msg("program %llu, %d replicas on %s: %s instead of %s: %s",
				(unsigned long long) seed, replicas, devices, choir_status_name(status),
				choir_status_name(expected), choir_error());
	for (int r = 0; status == CHOIR_OK && r < replicas; r++)
		if (p.x[r] != x[r] && !(p.trouble == RETURNS && r == p.who))
			fail_msg("program %llu, %d replicas on %s: replica %d has %lld instead of %lld",
					(unsigned long long) seed, replicas, devices, r, (long long) p.x[r],
					(long long) x[r]);
	char name[48];
	snprintf(name, sizeof name, "replica number %d has had enough", p.who);
	if (p.trouble == FAILS && strstr(choir_error(), name) == NULL)
		fail_msg("program %llu: \"%s\" does not name replica %d", (unsigned long long) seed,
				choir_error(), p.who);
}

// Programs on one deal after the other, each many times in a row on the same strategy, so that
// what a failure leaves behind meets the next program.
TEST(random_programs)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2",
		"far:0,far:1", "cpu:0,far:0", "cpu:0,cpu:1,cpu:2,cpu:3,cpu:4" };
	const double end = chi_clock_now() + SECONDS;
	for (uint64_t seed = 0; seed < 3000 && chi_clock_now() < end; seed += 25) {
		dice d = { .key = { .seed = seed } };
		const char *names = devices[throw(&d, sizeof devices / sizeof devices[0])];
		choir_strategy *s = world_new(1 + (int) throw(&d, MAX_REPLICAS), names, 30);
		for (uint64_t k = 0; k < 25; k++)
			check(s, names, seed + k);
		world_works(s);
		choir_strategy_free(s);
	}
}

TEST_BEFORE(world_watch)
