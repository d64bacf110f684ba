// The second Adam optimizer is "adam_2", in the order of creation. The next step's bits depend on
// weights, the strategy's step, seed and ON_READ components, and objects' slots, counters and
// positions.
#include "train/checkpoint/snapshot.h"

#include "base/size.h"
#include "strategy/value_consistency.h"

#include <string.h>

typedef struct {
	size_t n;
	chi_stateful **object;
	char **name;
} objects;

static void free_objects(objects *o)
{
	for (size_t i = 0; i < o->n; i++)
		chi_free(o->name[i]);
	chi_free(o->name);
	chi_free(o->object);
}

static bool is_taken(const objects *o, size_t n, const char *name)
{
	if (strcmp(name, "strategy") == 0 || strcmp(name, "parts") == 0)
		return true;
	for (size_t i = 0; i < n; i++)
		if (strcmp(o->name[i], name) == 0)
			return true;
	return false;
}

static char *unique_name(const objects *o, size_t i)
{
	const char *name = o->object[i]->table->name(o->object[i]->self);
	for (int k = 1;; k++) {
		chi_text text = { 0 };
		chi_text_add(&text, k == 1 ? "%s" : "%s_%d", name, k);
		if (text.failed) {
			chi_text_free(&text);
			return NULL;
		}
		if (!is_taken(o, i, text.data))
			return text.data;
		chi_text_free(&text);
	}
}

static choir_status find_objects(choir_strategy *s, objects *o)
{
	*o = (objects){ 0 };
	size_t n = 0;
	for (chi_stateful *i = s->stateful; i != NULL; i = i->next)
		n += i->table != NULL;
	o->object = chi_alloc_array(n + 1, sizeof *o->object);
	o->name = chi_alloc_array(n + 1, sizeof *o->name);
	if (o->object == NULL || o->name == NULL)
		return CHOIR_NO_MEMORY;
	size_t at = n;
	for (chi_stateful *i = s->stateful; i != NULL; i = i->next)
		if (i->table != NULL)
			o->object[--at] = i;
	for (; o->n < n; o->n++)
		if ((o->name[o->n] = unique_name(o, o->n)) == NULL)
			return CHOIR_NO_MEMORY;
	return CHOIR_OK;
}

// The heap serves what is small or of unknown size.
static bool add_need(const choir_variable *v, size_t *need)
{
	const bool parts = v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ;
	const size_t times = parts ? (size_t) chi_strategy_parts(v) + !v->slot : 1;
	size_t bytes = chi_variable_bytes(v);
	return v->parent != NULL ||
			(chi_size_multiply(bytes, times, &bytes) &&
					chi_size_round_up(bytes, CHI_LINE, &bytes) &&
					chi_size_add(*need, bytes, need) && chi_size_add(*need, CHI_LINE, need));
}

choir_status chi_snapshot_reserve(chi_snapshot *snapshot, choir_strategy *s)
{
	size_t need = 0;
	bool fits = true;
	s = s->owner;
	if (!choir_strategy_is_chief(s))
		return CHOIR_OK;
	chi_mutex_lock(&s->lock);
	for (const choir_variable *v = s->variables; v != NULL && fits; v = v->next)
		fits = add_need(v, &need);
	chi_mutex_unlock(&s->lock);
	if (!fits)
		return choir_fail(CHOIR_NO_MEMORY, "save: the tensors have too many bytes");
	return chi_scratch_reserve(&snapshot->memory.scratch, need) ? CHOIR_OK : choir_error_status();
}

void chi_snapshot_touch(chi_snapshot *snapshot)
{
	const chi_scratch *kept = &snapshot->memory.scratch;
	if (kept->capacity > 0)
		memset(kept->memory, 0, kept->capacity);
}

static choir_status take_aggregate(chi_state_dict *to, choir_variable *v, choir_frame *f)
{
	void *data = chi_state_dict_add(to, v->name, v->dtype, &v->shape);
	return data == NULL ? choir_error_status() : chi_weights_fetch(v, f, data);
}

static choir_status take_weights(chi_state_dict *to, const chi_weights *w)
{
	chi_state_dict_clear(to);
	choir_frame *f = choir_frame_new(NULL);
	choir_status status = chi_made(f);
	for (size_t i = 0; status == CHOIR_OK && i < w->n; i++) {
		choir_variable *v = w->variable[i];
		status = v->synchronization == CHOIR_SYNCHRONIZATION_ON_READ
				? take_aggregate(to, v, f)
				: chi_state_dict_add_variable(to, v->name, v);
	}
	choir_frame_free(f);
	return status;
}

static choir_shape parts_shape(const choir_variable *v)
{
	return CHOIR_SHAPE(chi_strategy_parts(v), v->elements);
}

static choir_status take_parts(chi_state_dict *to, choir_variable *v)
{
	const choir_shape shape = parts_shape(v);
	char *data = chi_state_dict_add(to, v->name, v->dtype, &shape);
	return data == NULL ? choir_error_status() : chi_strategy_all_parts(v, data);
}

static choir_status take_state(
		chi_state_dict *to, choir_strategy *s, const chi_weights *w, const objects *o)
{
	chi_state_dict_clear(to);
	to->object = "strategy";
	int64_t *steps = chi_state_dict_add(to, "step", CHOIR_I64, &CHOIR_SHAPE(s->workers));
	CHOIR_TRY(chi_made(steps));
	for (int i = 0; i < s->workers; i++)
		steps[i] = (int64_t) s->by_worker[i]->step;
	CHOIR_TRY(chi_state_dict_add_count(to, "seed", s->options.seed));
	to->object = "parts";
	for (size_t i = 0; i < w->n; i++)
		if (w->variable[i]->synchronization == CHOIR_SYNCHRONIZATION_ON_READ)
			CHOIR_TRY(take_parts(to, w->variable[i]));
	for (size_t i = 0; i < o->n; i++) {
		to->object = o->name[i];
		CHOIR_TRY(o->object[i]->table->save(o->object[i]->self, to));
	}
	return CHOIR_OK;
}

choir_status chi_snapshot_take(chi_snapshot *snapshot, choir_strategy *s)
{
	chi_weights w;
	objects o = { 0 };
	CHOIR_TRY(chi_compare_workers(s->owner));
	choir_status status = chi_weights_collect(s, "save", &w);
	if (status == CHOIR_OK) {
		s = s->owner;
		snapshot->weights.unread = snapshot->state.unread = !choir_strategy_is_chief(s);
		snapshot->weights.memory = snapshot->state.memory = &snapshot->memory;
		snapshot->memory.used = 0;
		status = chi_snapshot_reserve(snapshot, s);
	}
	if (status == CHOIR_OK)
		status = find_objects(s, &o);
	if (status == CHOIR_OK)
		status = take_weights(&snapshot->weights, &w);
	if (status == CHOIR_OK)
		status = take_state(&snapshot->state, s, &w, &o);
	snapshot->state.object = NULL;
	if (status == CHOIR_OK) {
		snapshot->step = s->step;
		snapshot->replicas =
				(uint64_t) (s->process_group == NULL ? s->all_replicas.replicas : s->in_sync);
	}
	free_objects(&o);
	chi_weights_free(&w);
	// a worker may fail alone
	return chi_strategy_agree(s, status, "copying the state to save");
}

void chi_snapshot_free(chi_snapshot *snapshot)
{
	chi_state_dict_free(&snapshot->weights);
	chi_state_dict_free(&snapshot->state);
	chi_free(snapshot->memory.scratch.memory);
	snapshot->memory = (chi_state_dict_memory){ 0 };
}

static choir_status check_strategy(chi_state_dict *from)
{
	const void *data;
	uint64_t seed;
	from->object = "strategy";
	const chi_state_dict_entry *e = chi_state_dict_find(from, "step");
	const bool some = e != NULL && e->shape.rank == 1 && e->shape.dim[0] > 0;
	CHOIR_TRY(chi_state_dict_take(
			from, "step", CHOIR_I64, some ? &e->shape : &CHOIR_SHAPE(1), &data));
	return chi_state_dict_take_count(from, "seed", &seed);
}

// Any number of replicas: the weights were compared.
static void check_parts(chi_state_dict *from, const chi_weights *w)
{
	from->object = "parts";
	for (size_t i = 0; i < w->n; i++) {
		chi_state_dict_entry *e = chi_state_dict_find(from, w->variable[i]->name);
		if (e != NULL)
			e->consumed = true;
	}
}

static choir_status check_rest(const chi_state_dict *from)
{
	chi_name_list left = { .what = "too many" };
	for (size_t i = 0; i < from->n; i++)
		if (!from->entry[i].consumed)
			chi_name_list_add(&left, from->entry[i].name, "");
	chi_text text = { 0 };
	chi_name_list_print(&text, &left);
	if (left.n > 0)
		choir_fail(CHOIR_INVALID, "%s: its state differs from this program's; %s", from->path,
				text.data == NULL ? "" : text.data);
	chi_text_free(&text);
	chi_text_free(&left.text);
	return left.n > 0 ? CHOIR_INVALID : CHOIR_OK;
}

static choir_status check_all(chi_state_dict *from, const chi_weights *w, const objects *o)
{
	CHOIR_TRY(check_strategy(from));
	check_parts(from, w);
	for (size_t i = 0; i < o->n; i++) {
		from->object = o->name[i];
		CHOIR_TRY(o->object[i]->table->check(o->object[i]->self, from));
	}
	return check_rest(from);
}

// With the same number of replicas, each gets its own component, else one from the weights.
static choir_status apply_parts(chi_state_dict *from, choir_variable *v)
{
	const choir_shape shape = parts_shape(v);
	const chi_state_dict_entry *e = chi_state_dict_find(from, v->name);
	if (e == NULL || v->synchronization != CHOIR_SYNCHRONIZATION_ON_READ || e->dtype != v->dtype ||
			!chi_shape_equal(&e->shape, &shape))
		return CHOIR_OK;
	const size_t each = chi_variable_bytes(v);
	const char *own = (const char *) e->data + (size_t) v->strategy->replica_offset * each;
	for (int i = 0; i < v->copies; i++)
		CHOIR_TRY(chi_variable_copy_from_host(v, i, own + (size_t) i * each));
	return CHOIR_OK;
}

static void apply_strategy(choir_strategy *s, chi_state_dict *from)
{
	from->object = "strategy";
	const chi_state_dict_entry *e = chi_state_dict_find(from, "step");
	const int64_t *steps = e->data;
	for (int i = 0; i < s->workers; i++)
		s->by_worker[i]->step = (uint64_t) steps[i < e->shape.dim[0] ? i : 0];
	uint64_t seed;
	if (chi_state_dict_take_count(from, "seed", &seed) == CHOIR_OK)
		for (int i = 0; i < s->workers; i++)
			s->by_worker[i]->options.seed = seed;
}

static choir_status apply_all(choir_strategy *s, const chi_weights *w, const objects *o,
		const chi_safetensors *st, const char *data, chi_state_dict *from)
{
	CHOIR_TRY(chi_weights_set(w, st, data));
	from->object = "parts";
	for (size_t i = 0; i < w->n; i++)
		CHOIR_TRY(apply_parts(from, w->variable[i]));
	for (size_t i = 0; i < o->n; i++) {
		from->object = o->name[i];
		CHOIR_TRY(o->object[i]->table->restore(o->object[i]->self, from));
	}
	apply_strategy(s, from);
	return CHOIR_OK;
}

choir_status chi_snapshot_apply(choir_strategy *s, const char *path, const chi_safetensors *st,
		const char *data, chi_state_dict *state)
{
	chi_weights w;
	objects o = { 0 };
	choir_status status = chi_weights_collect_to_write(s, "restore", &w);
	state->path = path;
	if (status == CHOIR_OK) {
		s = s->owner;
		status = find_objects(s, &o);
	}
	if (status == CHOIR_OK)
		status = chi_weights_compare(path, &w, st);
	if (status == CHOIR_OK)
		status = check_all(state, &w, &o);
	status = chi_strategy_agree(s, status, "comparing a checkpoint");
	if (status == CHOIR_OK) {
		status = apply_all(s, &w, &o, st, data, state);
		status = chi_strategy_agree(s, status, "restoring a checkpoint");
		// undefined is better than a mix of two trainings
		for (size_t i = 0; status != CHOIR_OK && i < w.n; i++)
			chi_variable_undefine(w.variable[i]);
	}
	free_objects(&o);
	chi_weights_free(&w);
	return status;
}
