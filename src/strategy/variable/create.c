// Replica 0 makes replicas' variables. Shards are variables; their parent has no copies.
#include "strategy/variable/create.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/options.h"
#include "op/op.h"
#include "strategy/gradients/gradients.h"
#include "strategy/run/sync_point.h"
#include "strategy/worker_sync.h"
#include "value/initializer.h"
#include "value/shard_rows.h"

#include <stdio.h>
#include <string.h>

choir_variable *chi_strategy_find_variable(choir_strategy *s, const char *name)
{
	s = s->owner;
	chi_mutex_lock(&s->lock);
	choir_variable *v = s->variables;
	while (v != NULL && strcmp(v->name, name) != 0)
		v = v->next;
	chi_mutex_unlock(&s->lock);
	return v;
}

static choir_status ask_table(choir_strategy *s, chi_variable_plan *plan, choir_device **places)
{
	const choir_new_variable new = { sizeof new, plan->name, &plan->shape, plan->options.dtype };
	plan->copy_device = places;
	plan->copy_devices = s->table.place_variable(s->self, &new, s->parameters, places);
	if (plan->copy_devices == CHOIR_NONE)
		return choir_error_status();
	bool known = plan->copy_devices > 0 && plan->copy_devices <= s->parameters;
	for (int i = 0; known && i < plan->copy_devices; i++) {
		int p = 0;
		while (p < s->parameters && s->parameter[p] != places[i])
			p++;
		known = p < s->parameters;
	}
	return known ? CHOIR_OK
				 : choir_fail(CHOIR_INVALID,
						   "variable \"%s\": \"%s\" places it on a device "
						   "that is none of its %d parameter devices",
						   plan->name, s->kind, s->parameters);
}

static choir_status find_places(
		choir_strategy *s, chi_variable_plan *plan, const chi_creation *c, choir_device **places)
{
	if (plan->options.synchronization == CHOIR_SYNCHRONIZATION_ON_READ || plan->shards > 0)
		return CHOIR_OK; // components lie with replicas; shards are placed one by one
	if (c->colocated_with == NULL && !c->non_slot)
		return ask_table(s, plan, places);
	plan->copy_device = c->non_slot ? s->non_slot : places;
	plan->copy_devices = c->non_slot ? s->non_slots : c->colocated_with->copies;
	for (int i = 0; !c->non_slot && i < c->colocated_with->copies; i++)
		places[i] = c->colocated_with->copy[i].device;
	return CHOIR_OK;
}

static choir_variable *make_variable(
		choir_strategy *s, chi_variable_plan *plan, const chi_creation *c)
{
	const int beside = c->colocated_with == NULL ? 0 : c->colocated_with->copies;
	const int capacity = beside > s->parameters ? beside : s->parameters;
	choir_device **places = chi_alloc_array((size_t) capacity, sizeof(choir_device *));
	if (places == NULL)
		return NULL;
	plan->lock = c->colocated_with != NULL ? c->colocated_with->lock
			: c->non_slot				   ? &s->non_slot_lock
										   : NULL;
	choir_variable *v = NULL;
	if (chi_strategy_find_variable(s, plan->name) != NULL)
		choir_fail(CHOIR_INVALID,
				"variable \"%s\": the strategy has another variable of that name", plan->name);
	else if (find_places(s, plan, c, places) == CHOIR_OK)
		v = chi_variable_new(plan);
	chi_free(places);
	if (v == NULL)
		return NULL;
	v->colocated_with = c->colocated_with;
	v->non_slot = c->non_slot;
	return v;
}

static choir_status count_shards(const choir_strategy *s, const chi_variable_plan *plan, int *n)
{
	enum { MAX_SHARDS = 4096 };
	const choir_strategy_options *o = &s->options;
	const int64_t rows = plan->shape.dim[0],
				  row = rows == 0 ? 0
								  : (int64_t) chi_dtype_size(plan->options.dtype) *
					(choir_shape_elements(&plan->shape) / rows);
	int64_t parts = o->max_shards, max = o->max_shards > 0 ? o->max_shards : rows;
	if (o->partition == CHOIR_PARTITION_MIN_SIZE) {
		parts = rows * row / (o->partition_size > 0 ? o->partition_size : 256 << 10);
		max = o->max_shards > 0 ? o->max_shards : 1;
	} else if (o->partition == CHOIR_PARTITION_MAX_SIZE) {
		const int64_t fit = row == 0 ? rows : o->partition_size / row;
		parts = fit < 1 ? rows : (rows - 1) / fit + 1;
	}
	parts = parts < max ? parts : max;
	parts = parts < rows ? parts : rows;
	*n = parts < 1 ? 1 : (int) (parts > MAX_SHARDS ? 0 : parts);
	return *n > 0 ? CHOIR_OK
				  : choir_fail(CHOIR_INVALID,
							"variable \"%s\": its %lld rows would lie "
							"in %lld shards; at most %d are possible",
							plan->name, (long long) rows, (long long) parts, (int) MAX_SHARDS);
}

// A variable colocated with shards has as many. 0: none.
static choir_status decide_shards(
		const choir_strategy *s, const chi_variable_plan *plan, const chi_creation *c, int *n)
{
	const choir_variable *colocated_with = c->colocated_with;
	*n = 0;
	if (plan->options.synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return CHOIR_OK;
	if (colocated_with != NULL && colocated_with->shards > 0) {
		*n = colocated_with->shards;
		return plan->shape.rank > 0 && plan->shape.dim[0] == colocated_with->shape.dim[0]
				? CHOIR_OK
				: choir_fail(CHOIR_INVALID,
						  "variable \"%s\": it is colocated with \"%s\", whose "
						  "%d shards have %lld rows; it needs as many rows",
						  plan->name, colocated_with->name, colocated_with->shards,
						  (long long) colocated_with->shape.dim[0]);
	}
	if (s->options.partition == CHOIR_PARTITION_NONE || colocated_with != NULL || c->non_slot ||
			c->wrap != NULL || plan->shape.rank == 0)
		return CHOIR_OK;
	CHOIR_TRY(count_shards(s, plan, n));
	*n = *n > 1 ? *n : 0;
	return CHOIR_OK;
}

static choir_variable *make_shard(choir_strategy *s, const chi_variable_plan *plan,
		const chi_creation *c, int part, int64_t rows, const void *initial)
{
	chi_variable_plan own = *plan;
	chi_creation created = *c;
	chi_text name = { 0 };
	chi_text_add(&name, "%s/part_%d", plan->name, part);
	own.shards = 0;
	own.name = name.data;
	own.shape.dim[0] = rows;
	own.options.initial_value = initial;
	created.colocated_with = c->colocated_with == NULL ? NULL : c->colocated_with->shard[part];
	choir_variable *v = name.failed ? NULL : make_variable(s, &own, &created);
	chi_text_free(&name);
	return v;
}

// Random rows are those of the whole variable.
static choir_status fill_shards(choir_strategy *s, const chi_variable_plan *plan,
		const chi_creation *c, choir_variable *parent)
{
	char *initial = chi_alloc_aligned(chi_variable_bytes(parent));
	if (initial == NULL)
		return chi_error_prefix("variable \"%s\"", parent->name);
	choir_status status = chi_initialize(plan, initial);
	const int64_t all = parent->shape.dim[0];
	const size_t row = chi_variable_bytes(parent) / (size_t) all;
	int64_t first = 0;
	for (int i = 0; status == CHOIR_OK && i < plan->shards; i++) {
		const int64_t rows = chi_share_of(all, plan->shards, i);
		choir_variable *v = make_shard(s, plan, c, i, rows, initial + (size_t) first * row);
		if (v == NULL)
			status = choir_error_status();
		else
			chi_shard_join(parent, i, v, first);
		first += rows;
	}
	chi_free(initial);
	return status;
}

static void free_unlisted(choir_variable *v)
{
	for (int i = 0; i < v->shards; i++)
		chi_variable_free(v->shard[i]);
	chi_variable_free(v);
}

static choir_status agree(choir_strategy *s, chi_variable_plan *plan, void **values)
{
	size_t bytes;
	if (!chi_shape_bytes(&plan->shape, plan->options.dtype, &bytes))
		return choir_fail(CHOIR_NO_MEMORY, "variable \"%s\": it is too large", plan->name);
	if (plan->wrap != NULL)
		return chi_strategy_agree_on_variable(s, plan, plan->wrap, bytes);
	*values = chi_alloc_aligned(bytes);
	if (*values == NULL)
		return chi_error_prefix("variable \"%s\"", plan->name);
	CHOIR_TRY(chi_initialize(plan, *values));
	CHOIR_TRY(chi_strategy_agree_on_variable(s, plan, *values, bytes));
	plan->options.initial_value = *values;
	return CHOIR_OK;
}

static choir_variable *make_agreed(
		choir_strategy *s, chi_variable_plan *plan, const chi_creation *c)
{
	void *values = NULL;
	choir_variable *v = NULL;
	const choir_status status = agree(s, plan, &values);
	if (status == CHOIR_OK)
		v = make_variable(s, plan, c);
	else
		chi_strategy_abort(s, status);
	chi_free(values);
	return v;
}

static choir_variable *make_all(choir_strategy *s, chi_variable_plan *plan, const chi_creation *c)
{
	if (chi_variable_check_plan(plan) != CHOIR_OK ||
			decide_shards(s, plan, c, &plan->shards) != CHOIR_OK)
		return NULL;
	if (s->process_group != NULL && !c->slot)
		return make_agreed(s, plan, c);
	if (plan->shards == 0)
		return make_variable(s, plan, c);
	choir_variable *v = make_variable(s, plan, c);
	if (v == NULL || fill_shards(s, plan, c, v) == CHOIR_OK)
		return v;
	free_unlisted(v);
	return NULL;
}

static void enlist(choir_strategy *s, choir_variable *v)
{
	chi_mutex_lock(&s->lock);
	*s->variables_end = v;
	s->variables_end = &v->next;
	for (int i = 0; i < v->shards; i++) {
		*s->variables_end = v->shard[i];
		s->variables_end = &v->shard[i]->next;
	}
	chi_mutex_unlock(&s->lock);
}

choir_status chi_strategy_begin_creation(choir_strategy *s, const char *name)
{
	if (chi_recursive_lock_enter(&s->owner->creation_lock, chi_clock_deadline(s->timeout)))
		return CHOIR_OK;
	return choir_fail(CHOIR_TIMEOUT,
			"variable \"%s\": waited %g s for another worker that makes variables",
			name == NULL ? "" : name, s->timeout);
}

void chi_strategy_end_creation(choir_strategy *s)
{
	chi_recursive_lock_leave(&s->owner->creation_lock);
}

static choir_variable *make_and_enlist(choir_strategy *s, const chi_creation *c)
{
	const choir_variable_options *o = c->options;
	chi_variable_plan plan = { .strategy = s,
		.name = c->name,
		.shape = *c->shape,
		.layout = &s->all_replicas,
		.seed = s->options.seed,
		.wrap = c->wrap,
		.concurrency = s->concurrency,
		.timeout = s->timeout };
	if (o != NULL)
		plan.options = *o;
	chi_fpenv host; // random values must not depend on it
	chi_fpenv_enter(&host);
	choir_variable *v = make_all(s, &plan, c);
	chi_fpenv_leave(&host);
	if (v == NULL)
		return NULL;
	v->l1 = c->l1;
	v->l2 = c->l2;
	if (v->wrapped != NULL)
		chi_atomic32_store(&s->has_wrapped_memory, 1);
	enlist(s, v);
	return v;
}

choir_variable *chi_strategy_make_variable(choir_strategy *s, const chi_creation *c)
{
	if (chi_strategy_begin_creation(s, c->name) != CHOIR_OK)
		return NULL;
	choir_variable *v = make_and_enlist(s->owner, c);
	chi_strategy_end_creation(s);
	return v;
}

static const char *kind_name(choir_synchronization synchronization, choir_aggregation aggregation)
{
	static const char *const names[2][4] = { { "ON_WRITE NONE", "ON_WRITE SUM", "ON_WRITE MEAN",
													 "ON_WRITE ONLY_FIRST_REPLICA" },
		{ "ON_READ NONE", "ON_READ SUM", "ON_READ MEAN", "ON_READ ONLY_FIRST_REPLICA" } };
	return (unsigned) aggregation > CHOIR_AGGREGATION_ONLY_FIRST_REPLICA
			? "unknown"
			: names[synchronization == CHOIR_SYNCHRONIZATION_ON_READ][aggregation];
}

static choir_variable *find_or_make(choir_strategy *s, const chi_creation *c)
{
	if (chi_strategy_begin_creation(s, c->name) != CHOIR_OK)
		return NULL;
	choir_variable *v = chi_strategy_find_variable(s, c->name);
	if (v == NULL) {
		v = make_and_enlist(s->owner, c);
	} else if (v->dtype != c->options->dtype || !chi_shape_equal(&v->shape, c->shape) ||
			kind_name(v->synchronization, v->aggregation) !=
					kind_name(c->options->synchronization, c->options->aggregation)) {
		char have[CHI_SHAPE_TEXT], wanted[CHI_SHAPE_TEXT];
		choir_fail(CHOIR_INVALID, "variable \"%s\": it exists as %s %s %s, not %s %s %s", c->name,
				kind_name(v->synchronization, v->aggregation), choir_dtype_name(v->dtype),
				chi_shape_print(&v->shape, have),
				kind_name(c->options->synchronization, c->options->aggregation),
				choir_dtype_name(c->options->dtype), chi_shape_print(c->shape, wanted));
		v = NULL;
	}
	chi_strategy_end_creation(s);
	return v;
}

static void delist(choir_strategy *s, const choir_variable *v)
{
	chi_mutex_lock(&s->lock);
	choir_variable **link = &s->variables;
	while (*link != v)
		link = &(*link)->next;
	*link = v->next;
	if (s->variables_end == &v->next)
		s->variables_end = link;
	chi_mutex_unlock(&s->lock);
}

void chi_strategy_delete_variable(choir_variable *v)
{
	for (int i = 0; i < v->shards; i++)
		delist(v->strategy, v->shard[i]);
	delist(v->strategy, v);
	free_unlisted(v);
}

choir_variable *chi_strategy_make_slot(choir_variable *v, const char *what)
{
	chi_text name = { 0 };
	chi_text_add(&name, "%s/%s", v->name, what);
	if (name.failed) {
		chi_text_free(&name);
		return NULL;
	}
	const choir_variable_options o = {
		.size = sizeof o, .dtype = v->dtype, .trainable = CHOIR_OFF
	};
	choir_variable *slot = find_or_make(v->strategy,
			&(chi_creation){ .name = name.data,
					.shape = &v->shape,
					.options = &o,
					.colocated_with = v,
					.slot = true });
	if (slot != NULL)
		slot->slot = true;
	chi_text_free(&name);
	return slot;
}

static choir_status apply_scopes(
		const chi_context *c, const choir_variable_options *o, choir_variable_options *all)
{
	CHOIR_TRY(chi_options_take("variable: the options'", all, sizeof *all, o));
	if (c != NULL && c->replica_local) {
		all->synchronization = CHOIR_SYNCHRONIZATION_ON_READ;
		all->aggregation = c->aggregation;
		all->trainable = CHOIR_OFF;
	}
	return CHOIR_OK;
}

static void use_initializer(const chi_context *c, choir_variable_options *all)
{
	if (c != NULL && c->initializes && chi_initializer_is_random(all)) {
		all->initializer = c->initializer;
		all->scale = c->scale;
	}
}

// Without numbers that make names unique ("_12" at the end or before "/"): replicas may differ in
// them.
static char *canonical_name(chi_arena *arena, const char *name)
{
	char *out = chi_arena_alloc(arena, strlen(name) + 1);
	for (size_t n = 0; out != NULL && *name != '\0';) {
		const size_t digits = *name == '_' ? strspn(name + 1, "0123456789") : 0;
		if (digits > 0 && (name[1 + digits] == '/' || name[1 + digits] == '\0'))
			name += 1 + digits;
		else
			out[n++] = *name++;
		out[n] = '\0';
	}
	return out;
}

static uint64_t hash_creation(const chi_creation *c, const char *name)
{
	const uint64_t on_read = c->options->synchronization == CHOIR_SYNCHRONIZATION_ON_READ;
	uint64_t hash = chi_hash_text(name) + (uint64_t) c->options->dtype;
	hash = chi_hash_mix(hash + 2 * (uint64_t) c->options->aggregation + on_read);
	for (int i = 0; i < c->shape->rank; i++)
		hash = chi_hash_mix(hash + (uint64_t) c->shape->dim[i]);
	return hash;
}

static choir_variable *make_in_replica(chi_replica *r, const chi_creation *c)
{
	choir_frame *f = r->base.frame;
	char text[CHI_SYNC_POINT_NAME], shape[CHI_SHAPE_TEXT], fit[48];
	bool last;
	chi_text_fit(c->name, fit, sizeof fit);
	snprintf(text, sizeof text, "the creation of variable \"%s\", %s %s %.40s", fit,
			kind_name(c->options->synchronization, c->options->aggregation),
			choir_dtype_name(c->options->dtype), chi_shape_print(c->shape, shape));
	// Others' gradients need complete memory before r parks. Workers make the variable at one
	// place in their exchanges, so r's updates come first.
	if (f->failed || chi_stream_wait(f->stream) != CHOIR_OK ||
			(r->run->strategy->process_group != NULL &&
					chi_gradients_finish_updates_of(r, NULL) != CHOIR_OK))
		return chi_frame_record_null(f);
	const char *name = canonical_name(&f->arena, c->name);
	chi_sync_point *point = name == NULL
			? NULL
			: chi_sync_point_arrive(r, CHI_SYNC_POINT_CREATE, NULL, hash_creation(c, name), text,
					  NULL, NULL, &last);
	if (point == NULL)
		return chi_frame_record_null(f);
	if (r->id == 0) {
		choir_variable *v = find_or_make(r->run->strategy, c);
		if (v == NULL) {
			chi_frame_record_error(f);
			chi_run_fail(r->run, 0);
			return NULL;
		}
		point->variable = v;
		chi_sync_point_ready(r->run, point);
	} else if (chi_scheduler_wait(r, &point->ready, point) != CHOIR_OK) {
		chi_frame_record_error(f);
		return NULL;
	}
	choir_variable *made = point->variable;
	chi_sync_point_leave(point);
	return made;
}

static choir_variable *kept_by_replica(const chi_context *c)
{
	if (c != NULL && c->kind == CHI_IN_REPLICA)
		chi_frame_record_error(((const chi_replica *) c->what)->base.frame);
	return NULL;
}

choir_variable *choir_variable_new(
		const char *name, choir_shape shape, const choir_variable_options *o)
{
	const chi_context *c = chi_context_current();
	choir_strategy *s = choir_strategy_current();
	choir_variable_options all;
	if (s == NULL || chi_strategy_check(s) != CHOIR_OK || apply_scopes(c, o, &all) != CHOIR_OK)
		return kept_by_replica(c);
	if (c != NULL && c->kind == CHI_IN_UPDATE)
		return chi_fail_null(CHOIR_STATE,
				"variable \"%s\": it was made in an update function; make it before the update",
				name == NULL ? "" : name);
	const bool regularized = c != NULL && chi_initializer_is_random(&all);
	use_initializer(c, &all);
	const chi_creation wanted = { .name = name,
		.shape = &shape,
		.options = &all,
		.l1 = regularized ? c->l1 : 0,
		.l2 = regularized ? c->l2 : 0,
		.colocated_with = c == NULL ? NULL : c->colocate,
		.non_slot = c != NULL && c->non_slot };
	if (c == NULL || c->kind == CHI_IN_CROSS)
		return chi_strategy_make_variable(s, &wanted);
	if (name == NULL || name[0] == '\0') {
		choir_fail(CHOIR_INVALID, "variable: a variable needs a name");
		return kept_by_replica(c);
	}
	return make_in_replica(c->what, &wanted);
}
