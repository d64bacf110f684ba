// Texts between workers name replicas by their ids over all workers, whatever goes wrong: the
// replicas of worker 1 are 2 and 3, and nobody hears of replica 0 or 1.
#include "process_group.h"
#include "plain_kernels.h"
#include "test.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { ODD = 3 }; // the replica that differs

static bool is_odd(const choir_replica *r)
{
	return choir_replica_id(r) == ODD;
}

static choir_tensor *ones(choir_frame *f, choir_shape shape)
{
	return choir_fill(f, CHOIR_F32, shape, 1);
}

static choir_tensor *slices(choir_frame *f, int64_t columns)
{
	const int64_t rows[2] = { 4, 1 };
	return choir_indexed_slices(ones(f, CHOIR_SHAPE(2, columns)),
			choir_constant(f, CHOIR_I64, CHOIR_SHAPE(2), rows), 5);
}

// ---- Merge calls.

static choir_status reduce(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "x");
	return choir_cross_return(x, "y", choir_cross_reduce_to(x, CHOIR_SUM, v, v));
}

static choir_status gather(choir_cross *x, void *user)
{
	(void) user;
	choir_value *v = choir_cross_arg(x, "x");
	return choir_cross_return(x, "y", choir_tensor_as_value(choir_cross_gather(x, v, 0)));
}

static choir_status merge(choir_replica *r, choir_merge_fn *fn, choir_tensor *x)
{
	CHOIR_TRY(choir_replica_set_arg(r, "x", x));
	return choir_replica_merge_call(r, fn, NULL);
}

static choir_status other_shape(choir_replica *r, void *user)
{
	(void) user;
	return merge(r, reduce, ones(r->frame, CHOIR_SHAPE(is_odd(r) ? 5 : 4)));
}

static choir_status slices_beside_a_tensor(choir_replica *r, void *user)
{
	(void) user;
	return merge(r, reduce, is_odd(r) ? slices(r->frame, 3) : ones(r->frame, CHOIR_SHAPE(5, 3)));
}

static choir_status other_slices(choir_replica *r, void *user)
{
	(void) user;
	return merge(r, reduce, slices(r->frame, is_odd(r) ? 2 : 3));
}

static choir_status a_tensor_beside_slices(choir_replica *r, void *user)
{
	(void) user;
	return merge(r, reduce, is_odd(r) ? ones(r->frame, CHOIR_SHAPE(5, 3)) : slices(r->frame, 3));
}

static choir_status other_columns(choir_replica *r, void *user)
{
	(void) user;
	return merge(r, gather, ones(r->frame, CHOIR_SHAPE(2, is_odd(r) ? 7 : 6)));
}

// ---- Contexts and meetings.

static choir_status sum(choir_replica *r)
{
	return choir_replica_all_reduce(r, CHOIR_SUM, ones(r->frame, CHOIR_SHAPE(3))) == NULL
			? choir_error_status()
			: CHOIR_OK;
}

static choir_status run_inside(choir_replica *r, void *user)
{
	return is_odd(r) ? choir_strategy_run(choir_strategy_current(), run_inside, user, NULL, NULL)
					 : sum(r);
}

static choir_status another_call(choir_replica *r, void *user)
{
	(void) user;
	if (!is_odd(r))
		return sum(r);
	return choir_replica_broadcast(r, ones(r->frame, CHOIR_SHAPE(3)), 2) == NULL
			? choir_error_status()
			: CHOIR_OK;
}

static choir_status return_early(choir_replica *r, void *user)
{
	(void) user;
	return is_odd(r) ? CHOIR_OK : sum(r);
}

static choir_status return_nothing(choir_replica *r, void *user)
{
	(void) user;
	return is_odd(r) ? CHOIR_OK : choir_replica_return(r, "a", ones(r->frame, CHOIR_SCALAR));
}

static choir_status add_what_does_not_fit(choir_replica *r, void *user)
{
	(void) user;
	choir_tensor *x = ones(r->frame, CHOIR_SHAPE(2));
	if (!is_odd(r))
		return sum(r);
	return choir_add(x, ones(r->frame, CHOIR_SHAPE(3))) == NULL ? choir_error_status() : CHOIR_OK;
}

// ---- What workers are told.

typedef struct {
	choir_replica_fn *fn;
	choir_status status; // on the worker of the odd replica
	const char *first, *second; // words of its text
	bool is_local; // no other worker hears of it
} text;

static const text texts[] = {
	{ .fn = other_shape,
			.status = CHOIR_INVALID,
			.first = "reduce: replica 2 has f32 [4]",
			.second = "replica 3 f32 [5]" },
	{ .fn = slices_beside_a_tensor,
			.status = CHOIR_INVALID,
			.first = "reduce: replica 2 has a tensor",
			.second = "replica 3 slices" },
	{ .fn = other_slices,
			.status = CHOIR_INVALID,
			.first = "reduce: replica 2 has slices of f32 [5, 3]",
			.second = "replica 3 slices of f32 [5, 2]" },
	{ .fn = a_tensor_beside_slices,
			.status = CHOIR_INVALID,
			.first = "reduce: replica 2 has slices of f32 [5, 3]",
			.second = "replica 3 a tensor, f32 [5, 3]" },
	{ .fn = other_columns,
			.status = CHOIR_INVALID,
			.first = "gather: replica 2 has f32 [2, 6]",
			.second = "replica 3 f32 [2, 7]" },
	{ .fn = run_inside,
			.status = CHOIR_STATE,
			.first = "replica 3: ",
			.second = "run is not possible in replica 3" },
	{ .fn = another_call,
			.status = CHOIR_STATE,
			.first = "replica 2 is in all_reduce",
			.second = "replica 3 in broadcast" },
	{ .fn = return_early,
			.status = CHOIR_STATE,
			.first = "replica 3*returned*0",
			.second = "replica 2 was in all_reduce" },
	{ .fn = return_nothing,
			.status = CHOIR_STATE,
			.first = "replica 3 returned no \"a\"",
			.second = "replica 2 did",
			.is_local = true },
	{ .fn = add_what_does_not_fit,
			.status = CHOIR_INVALID,
			.first = "replica 3: add",
			.second = "[2]*[3]" },
};
enum { TEXTS = sizeof texts / sizeof texts[0] };

// The first replica that a text names and that is none of worker 1; CHOIR_NONE: there is none.
static int other_replica(const char *said)
{
	static const char word[] = "replica ";
	while ((said = strstr(said, word)) != NULL) {
		said += sizeof word - 1;
		const int id = *said - '0';
		if (isdigit((unsigned char) said[0]) && (isdigit((unsigned char) said[1]) || id < 2))
			return id;
	}
	return CHOIR_NONE;
}

static const char *is_told(choir_strategy *s, int worker, void *user)
{
	static _Thread_local char wrong[700];
	const text *t = user;
	if (s == NULL)
		return choir_error();
	if (choir_strategy_first_replica_id(s) != 2 * worker || choir_strategy_local_replicas(s) != 2)
		return "not two replicas each";
	const choir_status status = choir_strategy_run(s, t->fn, NULL, NULL, NULL);
	if (t->is_local && worker == 0)
		return status == CHOIR_OK ? NULL : choir_error();
	if (status == CHOIR_OK) {
		snprintf(wrong, sizeof wrong, "no \"%s\": the run went well", t->first);
		return wrong;
	}
	const char *missing = worker == 1 ? peers_last_failure(t->status, t->first, t->second)
									  : peers_last_failure(CHOIR_CANCELLED, "worker 1", t->first);
	if (missing != NULL || other_replica(choir_error()) == CHOIR_NONE)
		return missing;
	snprintf(
			wrong, sizeof wrong, "replica %d in: %s", other_replica(choir_error()), choir_error());
	return wrong;
}

// spec: 2.17
TEST(test_ids_are_those_of_all_workers)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "far:0,far:1" };
	for (size_t i = 0; i < TEXTS; i++)
		for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++)
			peers_run(&(peers_job){ .replicas = 4,
					.place = { 2, devices[d] },
					.seed = i,
					.fn = is_told,
					.user = (void *) (uintptr_t) &texts[i] });
}
