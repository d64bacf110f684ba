// The table of calls and contexts: what works where, and what is refused where the types of the
// arguments do not forbid it already (a merge function has no choir_replica, a replica has no
// choir_cross: what is tried here are contexts that somebody kept).
#include "choir/op.h"

#include "strategy/world.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

typedef enum {
	DEFAULT_REPLICA,
	SCOPE,
	MERGE,
	REPLICA,
	UPDATE,
	OTHER_SCOPE,
	OTHER_MERGE,
	OTHER_REPLICA,
	CONTEXTS
} context;

static const char *const context_names[] = { "default replica", "scope", "merge", "replica",
	"update", "other's scope", "other's merge", "other's replica" };

// Everything that a call may need, as it is in the context.
typedef struct {
	context where;
	choir_frame *frame; // of the context, or of nobody where it has none
	choir_replica *replica; // the current one, else one that was kept
	choir_cross *cross; // the current one, else the program's own
} place;

static choir_strategy *s, *other;
static choir_variable *v; // of s: mirrored, MEAN, [2]
static choir_replica *kept_replica; // of s
static choir_cross *own_cross; // of s
static float memory[2];

static choir_status nothing(choir_replica *r, void *user)
{
	(void) r, (void) user;
	return CHOIR_OK;
}

static choir_status merge_nothing(choir_cross *x, void *user)
{
	(void) x, (void) user;
	return CHOIR_OK;
}

static choir_status update_nothing(choir_update *u, void *user)
{
	(void) u, (void) user;
	return CHOIR_OK;
}

static choir_status status_of(const void *made)
{
	return made != NULL ? CHOIR_OK : choir_error_status();
}

static choir_tensor *two(const place *p)
{
	return choir_fill(p->frame, CHOIR_F32, CHOIR_SHAPE(2), 1);
}

static choir_tensor *two_of(choir_replica *r)
{
	return choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1);
}

static choir_value *plain(const place *p)
{
	return choir_tensor_as_value(choir_number(p->frame, 0));
}

static choir_status enter_and_leave(choir_status entered, choir_scope *scope)
{
	CHOIR_TRY(entered);
	return choir_scope_exit(scope);
}

static choir_status scope_enter(const place *p)
{
	choir_scope scope;
	(void) p;
	return enter_and_leave(choir_scope_enter(&scope, s), &scope);
}

static choir_status default_scope(const place *p)
{
	choir_scope scope;
	(void) p;
	return enter_and_leave(choir_scope_enter(&scope, choir_default_strategy()), &scope);
}

static choir_status colocate(const place *p)
{
	choir_scope scope;
	(void) p;
	return enter_and_leave(choir_scope_colocate(&scope, choir_variable_as_value(v)), &scope);
}

static choir_status replica_local(const place *p)
{
	choir_scope scope;
	(void) p;
	return enter_and_leave(choir_scope_replica_local(&scope, CHOIR_AGGREGATION_SUM), &scope);
}

static choir_status sync_on_read(const place *p)
{
	choir_scope scope;
	(void) p;
	return enter_and_leave(choir_scope_sync_on_read(&scope), &scope);
}

static choir_status set_current(const place *p)
{
	(void) p;
	CHOIR_TRY(choir_strategy_set_current(s));
	return choir_strategy_set_current(NULL);
}

static choir_status run(const place *p)
{
	(void) p;
	return choir_strategy_run(s, nothing, NULL, NULL, NULL);
}

static choir_status reduce(const place *p)
{
	return status_of(choir_strategy_reduce(s, CHOIR_MEAN, plain(p), CHOIR_NO_AXIS));
}

static choir_status cross(const place *p)
{
	(void) p;
	return status_of(choir_strategy_cross(s));
}

static choir_status cross_run(const place *p)
{
	return choir_cross_run(p->cross, nothing, NULL);
}

static choir_status cross_place(const place *p)
{
	return status_of(choir_cross_destination(p->cross, "cpu:0"));
}

static choir_status cross_reduce(const place *p)
{
	return status_of(choir_cross_reduce(p->cross, CHOIR_MEAN, plain(p), CHOIR_NO_AXIS));
}

static choir_status cross_reduce_to(const place *p)
{
	choir_value *to = choir_variable_as_value(v);
	return status_of(choir_cross_reduce_to(p->cross, CHOIR_MEAN, plain(p), to));
}

static choir_status cross_batch_reduce_to(const place *p)
{
	choir_reduction item = { plain(p), choir_variable_as_value(v), NULL };
	return choir_cross_batch_reduce_to(p->cross, CHOIR_MEAN, 1, &item, NULL);
}

static choir_status cross_broadcast_to(const place *p)
{
	choir_value *to = choir_variable_as_value(v);
	return status_of(choir_cross_broadcast_to(p->cross, plain(p), to));
}

static choir_status cross_gather(const place *p)
{
	return status_of(choir_cross_gather(p->cross, choir_tensor_as_value(two(p)), 0));
}

static choir_status cross_fetch(const place *p)
{
	choir_device *d = choir_device_find("cpu:0");
	return status_of(choir_cross_fetch(p->cross, v, d, NULL, NULL));
}

static choir_status cross_update(const place *p)
{
	return choir_cross_update(p->cross, v, NULL, update_nothing, NULL);
}

static choir_status cross_non_slot_devices(const place *p)
{
	return status_of(choir_cross_non_slot_devices(p->cross, 1, &v));
}

static choir_value *non_slot_place;

static choir_status cross_update_non_slot(const place *p)
{
	return choir_cross_update_non_slot(p->cross, non_slot_place, update_nothing, NULL);
}

static choir_status merge_call(const place *p)
{
	return choir_replica_merge_call(p->replica, merge_nothing, NULL);
}

static choir_status all_reduce(const place *p)
{
	choir_replica *r = p->replica;
	return status_of(choir_replica_all_reduce(r, CHOIR_SUM, two_of(r)));
}

static choir_status batch_all_reduce(const place *p)
{
	choir_tensor *in = two_of(p->replica), *out = NULL;
	return choir_replica_batch_all_reduce(p->replica, CHOIR_SUM, 1, &in, &out);
}

static choir_status all_gather(const place *p)
{
	return status_of(choir_replica_all_gather(p->replica, two_of(p->replica), 0));
}

static choir_status broadcast(const place *p)
{
	return status_of(choir_replica_broadcast(p->replica, two_of(p->replica), 0));
}

static choir_status replica_update(const place *p)
{
	return choir_replica_update(p->replica, v, update_nothing, NULL);
}

static choir_status replica_return(const place *p)
{
	return choir_replica_return(p->replica, "x", two_of(p->replica));
}

static choir_status variable_new(const place *p)
{
	char name[32];
	snprintf(name, sizeof name, "new in %d", (int) p->where);
	return status_of(choir_variable_new(name, CHOIR_SHAPE(2), NULL));
}

static choir_status variable_wrap(const place *p)
{
	char name[32];
	snprintf(name, sizeof name, "wrapped in %d", (int) p->where);
	return status_of(choir_variable_wrap(name, CHOIR_F32, CHOIR_SHAPE(2), memory));
}

static choir_status variable_read(const place *p)
{
	return status_of(choir_variable_read(v, p->frame));
}

static choir_status variable_assign(const place *p)
{
	return choir_variable_assign(v, two(p));
}

static choir_status variable_assign_add(const place *p)
{
	return choir_variable_assign_add(v, two(p));
}

static choir_status variable_scatter(const place *p)
{
	choir_tensor *row = choir_constant(p->frame, CHOIR_I32, CHOIR_SHAPE(1), (int32_t[]){ 1 });
	return choir_variable_scatter(v, CHOIR_SCATTER_ADD, row, choir_number(p->frame, 1));
}

static choir_status values_new(const place *p)
{
	(void) p;
	choir_values *set = choir_values_new(s);
	choir_values_free(set);
	return status_of(set);
}

// What each call gives in each context, in the order of the contexts: + works, s CHOIR_STATE, i
// CHOIR_INVALID.
static const struct {
	const char *name, *expected;
	choir_status (*call)(const place *p);
} calls[] = {
	{ "scope_enter", "+++sssss", scope_enter },
	{ "scope_enter of the default strategy", "+sssssss", default_scope },
	{ "scope_colocate", "s++++iii", colocate },
	{ "scope_replica_local", "s+++++++", replica_local },
	{ "scope_sync_on_read", "++++++++", sync_on_read },
	{ "strategy_set_current", "+sssssss", set_current },
	{ "strategy_run", "+++sssss", run },
	{ "strategy_reduce", "+++sssss", reduce },
	{ "strategy_cross", "+++sssss", cross },
	{ "cross_run", "+++sssss", cross_run },
	{ "cross_place", "+++sssss", cross_place },
	{ "cross_reduce", "+++sssss", cross_reduce },
	{ "cross_reduce_to", "+++sssss", cross_reduce_to },
	{ "cross_batch_reduce_to", "+++sssss", cross_batch_reduce_to },
	{ "cross_broadcast_to", "+++sssss", cross_broadcast_to },
	{ "cross_gather", "+++sssss", cross_gather },
	{ "cross_fetch", "+++sssss", cross_fetch },
	{ "cross_update", "+++sssss", cross_update },
	{ "cross_non_slot_devices", "+++sssss", cross_non_slot_devices },
	{ "cross_update_non_slot", "+++sssss", cross_update_non_slot },
	{ "replica_merge_call", "+ss+ssss", merge_call },
	{ "replica_all_reduce", "+ss+ssss", all_reduce },
	{ "replica_batch_all_reduce", "+ss+ssss", batch_all_reduce },
	{ "replica_all_gather", "+ss+ssss", all_gather },
	{ "replica_broadcast", "+ss+ssss", broadcast },
	{ "replica_update", "sss+ssss", replica_update }, // the default replica's strategy is not v's
	{ "replica_return", "+ss+ssss", replica_return },
	{ "variable_new", "++++s+++", variable_new },
	{ "variable_wrap", "+++ss++s", variable_wrap },
	{ "variable_read", "+++++sss", variable_read },
	{ "variable_assign", "+++++sss", variable_assign },
	{ "variable_assign_add", "+++++sss", variable_assign_add },
	{ "variable_scatter", "+++++sss", variable_scatter },
	{ "values_new", "++++++++", values_new },
};

// One pair: the call in the context, and what came of it.
typedef struct {
	int call;
	context where;
	choir_status status;
	char text[512];
	int times; // that the call was made
} pair;

static void try(pair *t, const place *p)
{
	const choir_status status = calls[t->call].call(p);
	if (p->replica != NULL && choir_replica_current() != NULL && choir_replica_id(p->replica) > 0)
		return; // replica 0 says what happened
	t->times++;
	t->status = status;
	snprintf(t->text, sizeof t->text, "%s", status == CHOIR_OK ? "" : choir_error());
}

static choir_status try_in_replica(choir_replica *r, void *user)
{
	pair *t = user;
	const place p = { t->where, r->frame, t->where == REPLICA ? r : kept_replica, own_cross };
	if (t->where == REPLICA || choir_replica_id(r) == 0)
		try(t, &p);
	return CHOIR_OK;
}

static choir_status try_in_merge(choir_cross *x, void *user)
{
	pair *t = user;
	const place p = { t->where, x->frame, kept_replica, t->where == MERGE ? x : own_cross };
	try(t, &p);
	return CHOIR_OK;
}

static choir_status try_in_merge_of_replica(choir_replica *r, void *user)
{
	return choir_replica_merge_call(r, try_in_merge, user);
}

static choir_status try_in_update(choir_update *u, void *user)
{
	pair *t = user;
	const place p = { t->where, u->frame, kept_replica, own_cross };
	try(t, &p);
	return CHOIR_OK;
}

static void try_outside(pair *t)
{
	choir_frame *f = choir_frame_new(NULL);
	choir_replica *r = t->where == DEFAULT_REPLICA ? choir_replica_current() : kept_replica;
	const place p = { t->where, f, r, own_cross };
	try(t, &p);
	choir_frame_free(f);
}

static void try_pair(pair *t)
{
	switch (t->where) {
	case DEFAULT_REPLICA:
		try_outside(t);
		choir_frame_clear(choir_replica_current()->frame);
		break;
	case SCOPE:
	case OTHER_SCOPE:
		CHOIR_SCOPE (t->where == SCOPE ? s : other)
			try_outside(t);
		break;
	case MERGE:
	case OTHER_MERGE:
		world_unseen(choir_strategy_run(
				t->where == MERGE ? s : other, try_in_merge_of_replica, t, NULL, NULL));
		break;
	case REPLICA:
	case OTHER_REPLICA:
		world_unseen(choir_strategy_run(
				t->where == REPLICA ? s : other, try_in_replica, t, NULL, NULL));
		break;
	default:
		world_unseen(choir_cross_update(own_cross, v, NULL, try_in_update, t));
	}
}

static choir_status keep(choir_replica *r, void *user)
{
	if (choir_replica_id(r) == 0)
		*(choir_replica **) user = r;
	return CHOIR_OK;
}

// What a refusal must say: in which context the call was, or which it needs.
static const char *reason(const pair *t)
{
	choir_status (*const call)(const place *) = calls[t->call].call;
	if (call == default_scope)
		return "the default strategy's scope was entered inside a scope of \"mirrored\"";
	if (call == set_current)
		return "inside a scope or a replica of \"mirrored\"";
	if (t->where == DEFAULT_REPLICA)
		return call == replica_update ? "variable \"v\" belongs to \"mirrored\""
									  : "was called outside of scopes";
	if (call == colocate)
		return "variable \"v\" belongs to another strategy";
	if (strncmp(calls[t->call].name, "replica_", 8) == 0)
		return "this thread is not in replica 0";
	if (t->where == UPDATE)
		return call == variable_new ? "in an update function"
									: "is not possible in an update function";
	if (strncmp(calls[t->call].name, "variable_", 9) == 0 && call != variable_wrap)
		return t->where == OTHER_REPLICA ? "variable \"v\": mixing strategies"
										 : "variable \"v\": ";
	return t->where == REPLICA || t->where == OTHER_REPLICA
			? "in replica 0; it needs cross-replica context, which a merge call gives"
			: "mixing strategies: this thread is in a scope of \"mirrored\"";
}

static void check_pair(const pair *t)
{
	static const char letters[] = "+si";
	static const choir_status statuses[] = { CHOIR_OK, CHOIR_STATE, CHOIR_INVALID };
	const char expected = calls[t->call].expected[t->where];
	const choir_status status = statuses[strchr(letters, expected) - letters];
	if (t->times != 1 || t->status != status ||
			(status != CHOIR_OK && strstr(t->text, reason(t)) == NULL))
		fail_msg("%s in %s, %d times: %s instead of %s: %s", calls[t->call].name,
				context_names[t->where], t->times, choir_status_name(t->status),
				choir_status_name(status), t->text);
}

// spec: A8, A9, A11, A31, A37, B26, B31, D11, D24, E1, E2, E3, E4, E5, 2.2, 2.19
TEST(every_call_in_every_context)
{
	static const char *const devices[] = { "cpu:0", "cpu:0,cpu:1", "cpu:0,far:0" };
	for (int d = 0; d < 3; d++) {
		s = world_new(2, devices[d], 10);
		other = world_new(2, "cpu:0", 10);
		CHOIR_SCOPE (s)
			v = choir_variable_new("v", CHOIR_SHAPE(2),
					CHOIR_OPTIONS(choir_variable_options, .aggregation = CHOIR_AGGREGATION_MEAN));
		world_ok(choir_strategy_run(s, keep, &kept_replica, NULL, NULL));
		own_cross = choir_strategy_cross(s);
		for (int call = 0; call < (int) (sizeof calls / sizeof calls[0]); call++)
			for (int where = 0; where < CONTEXTS; where++) {
				// The default strategy keeps its variables.
				if (d > 0 && where == DEFAULT_REPLICA && strstr(calls[call].name, "variable_") &&
						(calls[call].call == variable_new || calls[call].call == variable_wrap))
					continue;
				if (where == UPDATE && d == 2)
					continue; // two copies: twice
				pair t = { .call = call, .where = (context) where };
				non_slot_place = choir_cross_non_slot_devices(own_cross, 0, NULL);
				try_pair(&t);
				check_pair(&t);
				choir_frame_clear(own_cross->frame);
				choir_frame_clear(kept_replica->frame);
				world_works(s);
			}
		choir_strategy_free(s);
		choir_strategy_free(other);
	}
}

// Exactly one of the two holds on a thread: it is in a replica, or in cross-replica context.
static choir_status check_where(bool in_replica, choir_strategy *expected)
{
	WORLD_NEED((choir_replica_current() != NULL) == in_replica);
	WORLD_NEED(choir_in_cross_replica_context() == !in_replica);
	WORLD_NEED(choir_strategy_current() == expected);
	WORLD_NEED(choir_has_strategy() == (expected != choir_default_strategy()));
	return CHOIR_OK;
}

static choir_status where_in_nested(choir_replica *r, void *user)
{
	WORLD_NEED(choir_replica_current() == r && choir_frame_replica(r->frame) == r);
	return check_where(true, user);
}

static choir_status where_in_update(choir_update *u, void *user)
{
	(void) u;
	return check_where(false, user);
}

static choir_status where_in_merge(choir_cross *x, void *user)
{
	CHOIR_TRY(check_where(false, user));
	WORLD_NEED(choir_frame_replica(x->frame) == NULL && choir_cross_strategy(x) == user);
	CHOIR_TRY(choir_cross_update(x, v, NULL, where_in_update, user));
	CHOIR_TRY(choir_cross_run(x, where_in_nested, user));
	return check_where(false, user);
}

static choir_status where_in_replica(choir_replica *r, void *user)
{
	WORLD_NEED(choir_replica_current() == r && choir_replica_strategy(r) == user);
	CHOIR_TRY(check_where(true, user));
	CHOIR_TRY(choir_replica_merge_call(r, where_in_merge, user));
	return check_where(true, user);
}

// spec: A8, A9, A10, A11, A31, C5, C29, 2.2
TEST(where_a_thread_is)
{
	world_ok(check_where(true, choir_default_strategy()));
	choir_replica *r = choir_replica_current();
	assert_int_equal(choir_replica_id(r), 0);
	assert_int_equal(choir_replica_count(r), 1);
	s = world_new(4, "cpu:0,cpu:1", 10);
	CHOIR_SCOPE (s) {
		world_ok(check_where(false, s));
		v = choir_variable_new("v", CHOIR_SCALAR, NULL);
		world_ok(choir_strategy_run(s, where_in_replica, s, NULL, NULL));
		world_ok(check_where(false, s));
	}
	world_ok(choir_strategy_run(s, where_in_replica, s, NULL, NULL)); // it enters its scope
	world_ok(check_where(true, choir_default_strategy()));
	choir_strategy_free(s);
}

TEST_BEFORE(world_watch)
