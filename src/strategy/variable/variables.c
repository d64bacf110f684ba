// Making and reading variables, by context: in cross-replica context all copies are made; in
// replicas replica 0 makes them and the others get the same one.
#include "base/alloc.h"
#include "base/text.h"
#include "op/tape.h"
#include "strategy/update/apply.h"
#include "strategy/run/meet.h"
#include "strategy/merge/reduce.h"
#include "strategy/update/update.h"
#include "strategy/variable/write.h"

#include <stdio.h>
#include <string.h>

choir_variable *chi_strategy_find_variable(choir_strategy *s, const char *name)
{
	s = s->home;
	chi_mutex_lock(&s->lock);
	choir_variable *v = s->variables;
	while (v != NULL && strcmp(v->name, name) != 0)
		v = v->next;
	chi_mutex_unlock(&s->lock);
	return v;
}

// Where the copies of a new mirrored variable go, which is none that others decide about.
static choir_status ask_table(choir_strategy *s, chi_variable_plan *plan, choir_device **places)
{
	const choir_new_variable new = { sizeof new, plan->name, &plan->shape, plan->options.dtype };
	plan->place = places;
	plan->places = s->table.place(s->self, &new, s->parameters, places);
	if (plan->places == CHOIR_NONE)
		return choir_error_status();
	bool known = plan->places > 0 && plan->places <= s->parameters;
	for (int i = 0; known && i < plan->places; i++) {
		int p = 0;
		while (p < s->parameters && s->parameter[p] != places[i])
			p++;
		known = p < s->parameters;
	}
	return known ? CHOIR_OK : choir_fail(CHOIR_INVALID, "variable \"%s\": \"%s\" places it on "
			"what is none of its %d parameter devices", plan->name, s->kind, s->parameters);
}

// Where copies go: beside another variable, where the non-slot variables are, or where the
// strategy says. places has room for all.
static choir_status find_places(choir_strategy *s, chi_variable_plan *plan, const chi_creation *c,
		choir_device **places)
{
	if (plan->options.synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return CHOIR_OK; // parts go to their replicas
	if (c->beside == NULL && !c->non_slot)
		return ask_table(s, plan, places);
	plan->place = c->non_slot ? s->non_slot : places;
	plan->places = c->non_slot ? s->non_slots : c->beside->copies;
	for (int i = 0; !c->non_slot && i < c->beside->copies; i++)
		places[i] = c->beside->copy[i].device;
	return CHOIR_OK;
}

static choir_variable *make_variable(choir_strategy *s, chi_variable_plan *plan,
		const chi_creation *c)
{
	const int beside = c->beside == NULL ? 0 : c->beside->copies;
	const int room = beside > s->parameters ? beside : s->parameters;
	choir_device **places = chi_alloc_array((size_t) room, sizeof(choir_device *));
	if (places == NULL)
		return NULL;
	chi_fpenv host; // random initial values must not depend on it
	chi_fpenv_enter(&host);
	choir_variable *v = NULL;
	if (chi_variable_check_plan(plan) == CHOIR_OK && find_places(s, plan, c, places) == CHOIR_OK)
		v = chi_variable_new(plan);
	chi_fpenv_leave(&host);
	chi_free(places);
	return v;
}

choir_variable *chi_strategy_make_variable(choir_strategy *s, const chi_creation *c)
{
	s = s->home;
	const choir_variable_options *o = c->options;
	chi_variable_plan plan = { .strategy = s, .name = c->name, .shape = *c->shape,
		.layout = &s->everyone, .seed = s->options.seed, .wrap = c->wrap,
		.sharing = s->sharing, .timeout = s->timeout,
		.guard = c->beside != NULL ? c->beside->guard : c->non_slot ? &s->non_slot_guard : NULL };
	if (o != NULL)
		memcpy(&plan.options, o, o->size < sizeof plan.options ? o->size : sizeof plan.options);
	if (c->name != NULL && chi_strategy_find_variable(s, c->name) != NULL) {
		choir_fail(CHOIR_INVALID, "variable \"%s\": the strategy has one of that name", c->name);
		return NULL;
	}
	choir_variable *v = make_variable(s, &plan, c);
	if (v == NULL)
		return NULL;
	v->beside = c->beside;
	v->non_slot = c->non_slot;
	s->wraps = s->wraps || v->wrapped != NULL;
	chi_mutex_lock(&s->lock);
	*s->variables_end = v;
	s->variables_end = &v->next;
	chi_mutex_unlock(&s->lock);
	return v;
}

void chi_strategy_unmake_variable(choir_variable *v)
{
	choir_strategy *s = v->strategy;
	chi_mutex_lock(&s->lock);
	choir_variable **link = &s->variables;
	while (*link != v)
		link = &(*link)->next;
	*link = v->next;
	if (s->variables_end == &v->next)
		s->variables_end = link;
	chi_mutex_unlock(&s->lock);
	chi_variable_free(v);
}

choir_variable *chi_strategy_make_slot(choir_variable *v, const char *what)
{
	chi_text name = { 0 };
	chi_text_add(&name, "%s/%s", v->name, what);
	if (name.failed) {
		chi_text_free(&name);
		return NULL;
	}
	const choir_variable_options o = { .size = sizeof o, .dtype = v->dtype,
		.trainable = CHOIR_OFF };
	choir_variable *slot = chi_strategy_find_variable(v->strategy, name.data);
	if (slot == NULL)
		slot = chi_strategy_make_variable(v->strategy, &(chi_creation){ .name = name.data,
				.shape = &v->shape, .options = &o, .beside = v });
	if (slot != NULL)
		slot->slot = true;
	chi_text_free(&name);
	return slot;
}

// What scopes say about a new variable.
static choir_status apply_scopes(const chi_context *c, const choir_variable_options *o,
		choir_variable_options *all)
{
	*all = (choir_variable_options){ .size = sizeof *all };
	if (o != NULL && (o->size < sizeof(size_t) || o->size > sizeof *o))
		return choir_fail(CHOIR_INVALID,
				"variable: the options' size is %zu, not %zu: set it with "
				"CHOIR_OPTIONS",
				o->size, sizeof *o);
	if (o != NULL)
		memcpy(all, o, o->size);
	all->size = sizeof *all;
	if (c != NULL && c->replica_local) {
		all->synchronization = CHOIR_SYNCHRONIZATION_ON_READ;
		all->aggregation = c->aggregation;
		all->trainable = CHOIR_OFF;
	}
	return CHOIR_OK;
}

// The name without the numbers that make names unique: "_12" at its end and before a "/". Replicas
// whose names differ in these alone mean the same variable. NULL: no memory.
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
	uint64_t hash = chi_hash_text(name) + (uint64_t) c->options->dtype;
	for (int i = 0; i < c->shape->rank; i++)
		hash = chi_hash_mix(hash + (uint64_t) c->shape->dim[i]);
	return hash;
}

// In replicas: replica 0 makes it, whenever it comes; the others wait for that.
static choir_variable *make_in_replica(chi_replica *r, const chi_creation *c)
{
	choir_frame *f = r->shown.frame;
	char text[64];
	bool last;
	snprintf(text, sizeof text, "the creation of variable \"%s\"", c->name);
	// It may park; what others add its gradients to must be there.
	if (f->failed || chi_stream_wait(f->stream) != CHOIR_OK) {
		chi_frame_keep(f);
		return NULL;
	}
	const char *name = canonical_name(&f->arena, c->name);
	chi_meet *m = name == NULL ? NULL
							   : chi_meet_arrive(r, CHI_MEET_CREATE, NULL, hash_creation(c, name),
										 text, NULL, NULL, &last);
	if (m == NULL) {
		chi_frame_keep(f);
		return NULL;
	}
	if (r->id == 0) {
		choir_variable *v = chi_strategy_find_variable(r->run->strategy, c->name);
		if (v == NULL)
			v = chi_strategy_make_variable(r->run->strategy, c);
		else if (v->dtype != c->options->dtype || !chi_shape_equal(&v->shape, c->shape)) {
			choir_fail(CHOIR_INVALID, "variable \"%s\": it exists with another dtype or shape",
					c->name);
			v = NULL;
		}
		if (v == NULL) { // nobody need wait for it
			chi_frame_keep(f);
			chi_run_fail(r->run, 0);
			return NULL;
		}
		m->variable = v;
		chi_meet_ready(r->run, m);
	} else if (chi_lane_wait(r, &m->ready, m) != CHOIR_OK) {
		chi_frame_keep(f);
		return NULL;
	}
	choir_variable *made = m->variable;
	chi_meet_leave(r, m);
	return made;
}

choir_variable *choir_variable_new(const char *name, choir_shape shape,
		const choir_variable_options *o)
{
	const chi_context *c = chi_context_current();
	choir_strategy *s = choir_strategy_current();
	choir_variable_options all;
	if (s == NULL || chi_strategy_check(s) != CHOIR_OK || apply_scopes(c, o, &all) != CHOIR_OK)
		return NULL;
	if (c != NULL && c->kind == CHI_IN_UPDATE) {
		choir_fail(CHOIR_STATE, "variable \"%s\": an update function makes no variables",
				name == NULL ? "" : name);
		return NULL;
	}
	const chi_creation wanted = { .name = name, .shape = &shape, .options = &all,
		.beside = c == NULL ? NULL : c->colocate, .non_slot = c != NULL && c->non_slot };
	if (c == NULL || c->kind == CHI_IN_CROSS)
		return chi_strategy_make_variable(s, &wanted);
	if (name == NULL || name[0] == '\0') {
		choir_fail(CHOIR_INVALID, "variable: a variable needs a name");
		return NULL;
	}
	return make_in_replica(c->what, &wanted);
}

choir_variable *choir_variable_wrap(const char *name, choir_dtype dtype, choir_shape shape,
		void *memory)
{
	choir_strategy *s = choir_strategy_current();
	if (s == NULL || chi_context_need_cross(s, "variable_wrap") != CHOIR_OK)
		return NULL;
	if (memory == NULL) {
		choir_fail(CHOIR_INVALID, "variable \"%s\": the memory to wrap is NULL",
				name == NULL ? "" : name);
		return NULL;
	}
	const chi_context *c = chi_context_current();
	const choir_variable_options o = { .size = sizeof o, .dtype = dtype };
	return chi_strategy_make_variable(s, &(chi_creation){ .name = name, .shape = &shape,
			.options = &o, .beside = c == NULL ? NULL : c->colocate,
			.non_slot = c != NULL && c->non_slot, .wrap = memory });
}

// Which copy of a variable a frame's context sees, or
enum { ALL_COPIES = -1, NO_COPY = -2 }; // all of them; none: the frame keeps why

choir_status chi_replica_check_variable(const chi_replica *r, const choir_variable *v)
{
	const choir_strategy *s = r->run->strategy;
	return chi_strategy_has(s, v)
			? CHOIR_OK
			: chi_frame_fail(r->shown.frame, CHOIR_STATE,
					  "variable \"%s\": mixing strategies: it belongs to \"%s\", this "
					  "replica to \"%s\"",
					  v->name, v->strategy->kind, s->kind);
}

static int copy_for_replica(chi_replica *r, const choir_variable *v)
{
	if (chi_replica_check_variable(r, v) != CHOIR_OK)
		return NO_COPY;
	return chi_apply_settle(r, v) == CHOIR_OK ? chi_strategy_copy(r->run->strategy, v, r->id)
	                                           : NO_COPY;
}

static int copy_for(choir_frame *f, const choir_variable *v)
{
	// The default replica outside any run sees other strategies' variables from outside.
	const chi_replica *r = f->context_kind == CHI_IN_REPLICA ? f->context : NULL;
	if (r != NULL && (!chi_replica_stands(r) || chi_strategy_has(r->run->strategy, v)))
		return copy_for_replica(f->context, v);
	if (f->context_kind == CHI_IN_UPDATE)
		return chi_update_copy_of(f->context, v);
	if (chi_context_sees_all(v->strategy, "reading a variable in this frame") == CHOIR_OK)
		return ALL_COPIES;
	chi_frame_keep(f);
	return NO_COPY;
}

// While a tape records, a variable is one tensor, so that its gradient is one as well.
static choir_tensor *read_before(const choir_variable *v, choir_frame *f)
{
	const choir_tape *tape = f->tape;
	for (size_t i = 0; tape != NULL && i < tape->n_reads; i++) {
		choir_tensor *t = tape->reads[i];
		if (t->source != NULL && t->source->owner == v && t->buffer != NULL &&
				chi_source_current(t->source, t->version))
			return t;
	}
	return NULL;
}

static choir_tensor *read_alone(choir_variable *v, choir_frame *f)
{
	choir_tensor *t = read_before(v, f);
	if (t != NULL)
		return t;
	if (f->context_kind == CHI_IN_UPDATE && ((chi_update *) f->context)->slicing != NULL)
		return chi_slice_read(f->context, v);
	const int copy = copy_for(f, v);
	if (copy == NO_COPY)
		return NULL;
	if (copy != ALL_COPIES)
		t = chi_variable_alias(v, copy, f);
	else if (v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
		return chi_read_aggregated(v, f);
	else
		t = chi_variable_view(v, 0, f);
	if (t != NULL && f->tape != NULL && chi_tape_add_read(f->tape, t) != CHOIR_OK)
		return NULL;
	return t;
}

static choir_tensor *bring_together(
		choir_replica *r, const choir_variable *v, choir_tensor *own)
{
	switch (v->aggregation) {
	case CHOIR_AGGREGATION_SUM:
		return choir_replica_all_reduce(r, CHOIR_SUM, own);
	case CHOIR_AGGREGATION_MEAN:
		return choir_replica_all_reduce(r, CHOIR_MEAN, own);
	case CHOIR_AGGREGATION_ONLY_FIRST_REPLICA:
		return choir_replica_broadcast(r, own, 0);
	case CHOIR_AGGREGATION_NONE:
		break;
	}
	return chi_frame_fail_null(r->frame, CHOIR_INVALID,
			"variable \"%s\": it is ON_READ without an "
			"aggregation, so it has no value outside a replica",
			v->name);
}

// The value of an on-read variable in a replica, of which own is its part.
static choir_tensor *read_together(choir_replica *r, const choir_variable *v, choir_tensor *own)
{
	chi_subject *subject = &chi_replica_of(r)->subject;
	subject->hash = chi_hash_mix((uint64_t) (uintptr_t) v);
	snprintf(subject->name, sizeof subject->name, "\"%.44s\"", v->name);
	choir_tensor *t = bring_together(r, v, own);
	subject->hash = 0;
	return t;
}

choir_tensor *choir_variable_read(choir_variable *v, choir_frame *f)
{
	if (v == NULL || f == NULL || f->failed)
		return NULL;
	const chi_context *c = chi_context_current();
	choir_tensor *own = read_alone(v, f);
	if (own != NULL && v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ && c != NULL &&
			c->sync_on_read && f->context_kind == CHI_IN_REPLICA && f->context == c->what)
		return read_together(f->context, v, own);
	return own;
}

choir_tensor *choir_variable_component(choir_variable *v, choir_frame *f)
{
	if (v == NULL || f == NULL || f->failed)
		return NULL;
	// A set's frame, in which a replica's result is kept, is in no context: any copy stands for
	// it.
	const bool inside = f->context_kind == CHI_IN_REPLICA || f->context_kind == CHI_IN_UPDATE;
	int copy = inside ? copy_for(f, v) : 0;
	if (copy == NO_COPY)
		return NULL;
	copy = copy == ALL_COPIES ? 0 : copy;
	choir_tensor *t = chi_variable_alias(v, copy, f);
	if (t != NULL)
		t->component = true;
	return t;
}
