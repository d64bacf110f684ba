// Optimizers in checkpoints. A new optimizer has no slots, so a restore makes those of the
// checkpoint.
#include "train/optimizer/optimizer.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/text.h"
#include "value/shard_rows.h"

#include <math.h>
#include <string.h>

static const char *name(const void *self)
{
	return ((const choir_optimizer *) self)->kind->name;
}

// Slots of shards are saved as one, for any number of shards.
static choir_variable *named(choir_variable *v)
{
	return v->parent != NULL ? v->parent : v;
}

static chi_text slot_name(const choir_optimizer *o, const choir_variable *v, int slot)
{
	chi_text text = { 0 };
	chi_text_add(&text, "%s/%s", v->name, chi_optimizer_slot(o, slot));
	if (text.failed)
		chi_text_free(&text);
	return text;
}

static choir_status save_slots(
		const choir_optimizer *o, const chi_optimized_variable *t, chi_state_dict *to)
{
	for (int i = 0; i < o->slots; i++) {
		if (t->slot[i] == NULL)
			continue;
		choir_variable *slot = named(t->slot[i]);
		chi_text text = slot_name(o, named(t->variable), i);
		const choir_status status = text.data == NULL
				? CHOIR_NO_MEMORY
				: chi_state_dict_add_variable(to, text.data, slot);
		chi_text_free(&text);
		CHOIR_TRY(status);
	}
	return CHOIR_OK;
}

static bool is_saved(const choir_optimizer *o, size_t i)
{
	const choir_variable *whole = o->target[i]->variable->parent;
	for (size_t k = 0; whole != NULL && k < i; k++)
		if (o->target[k]->variable->parent == whole)
			return true;
	return false;
}

// An average that has not begun is left out, as a restore begins those that are there.
static bool has_begun(const choir_optimizer *o, size_t i)
{
	const choir_variable *v = named(o->target[i]->variable);
	bool begun = o->slots == o->kind->slots;
	for (size_t k = i; k < o->targets && !begun; k++)
		begun = named(o->target[k]->variable) == v &&
				chi_atomic32_load(&o->target[k]->averaged) != 0;
	return begun;
}

static choir_status save(void *self, chi_state_dict *to)
{
	choir_optimizer *o = self;
	if (o->swapped)
		return choir_fail(CHOIR_STATE,
				"%s: the averages are in place of the weights; swap them back before a save",
				o->kind->name);
	double *scale = chi_state_dict_add(to, "loss_scale", CHOIR_F64, &CHOIR_SCALAR);
	CHOIR_TRY(chi_made(scale));
	*scale = o->scale;
	double *rate = o->set_rate == 0
			? NULL
			: chi_state_dict_add(to, "learning_rate", CHOIR_F64, &CHOIR_SCALAR);
	if (rate != NULL)
		*rate = o->set_rate;
	else if (o->set_rate != 0)
		return choir_error_status();
	CHOIR_TRY(chi_state_dict_add_count(to, "step", chi_atomic64_load(&o->step)));
	CHOIR_TRY(chi_state_dict_add_count(to, "finite_updates", (uint64_t) o->finite_updates));
	for (size_t i = 0; i < o->targets; i++)
		if (!is_saved(o, i) && has_begun(o, i))
			CHOIR_TRY(save_slots(o, o->target[i], to));
	return CHOIR_OK;
}

static choir_status has_slots(
		const choir_optimizer *o, const choir_variable *v, const chi_state_dict *from, bool *has)
{
	*has = false;
	if (o->slots == 0)
		return CHOIR_OK;
	chi_text text = slot_name(o, v, 0);
	if (text.data == NULL)
		return CHOIR_NO_MEMORY;
	*has = chi_state_dict_find(from, text.data) != NULL;
	chi_text_free(&text);
	return CHOIR_OK;
}

static choir_status take_slot(const choir_optimizer *o, const choir_variable *v, int i,
		chi_state_dict *from, const void **data)
{
	chi_text text = slot_name(o, v, i);
	const choir_status status = text.data == NULL
			? CHOIR_NO_MEMORY
			: chi_state_dict_take(from, text.data, v->dtype, &v->shape, data);
	chi_text_free(&text);
	return status;
}

static choir_status check_variable(choir_optimizer *o, choir_variable *v, chi_state_dict *from)
{
	const void *data;
	for (int i = 0; i < o->slots; i++)
		CHOIR_TRY(take_slot(o, v, i, from, &data));
	for (int i = 0; i < v->shards; i++)
		if (chi_optimized_variable_get(o, v->shard[i]) == NULL)
			return choir_error_status();
	return v->shards > 0 || chi_optimized_variable_get(o, v) != NULL ? CHOIR_OK
																	 : choir_error_status();
}

static choir_status take_rate(chi_state_dict *from, double *rate)
{
	const void *data;
	*rate = 0;
	if (chi_state_dict_find(from, "learning_rate") == NULL)
		return CHOIR_OK;
	CHOIR_TRY(chi_state_dict_take(from, "learning_rate", CHOIR_F64, &CHOIR_SCALAR, &data));
	memcpy(rate, data, sizeof *rate);
	return *rate > 0 && isfinite(*rate)
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID,
					  "%s: state \"%s/learning_rate\" is %g; a number above 0 is needed",
					  from->path, from->object, *rate);
}

static choir_status check(void *self, chi_state_dict *from)
{
	choir_optimizer *o = self;
	const void *data;
	double scale;
	uint64_t count;
	CHOIR_TRY(chi_state_dict_take(from, "loss_scale", CHOIR_F64, &CHOIR_SCALAR, &data));
	memcpy(&scale, data, sizeof scale);
	if (!chi_is_loss_scale(scale))
		return choir_fail(CHOIR_INVALID,
				"%s: state \"%s/loss_scale\" is %g; a number from 1 to the largest f32 is needed",
				from->path, from->object, scale);
	CHOIR_TRY(chi_state_dict_take_count(from, "step", &count));
	CHOIR_TRY(chi_state_dict_take_count(from, "finite_updates", &count));
	CHOIR_TRY(take_rate(from, &scale));
	// check_variable appends slots to this list, which are skipped.
	for (choir_variable *v = o->strategy->variables; v != NULL; v = v->next) {
		bool has = false;
		if (!v->slot && v->parent == NULL)
			CHOIR_TRY(has_slots(o, v, from, &has));
		if (has)
			CHOIR_TRY(check_variable(o, v, from));
	}
	return CHOIR_OK;
}

// data NULL: no update came before the checkpoint.
static choir_status restore_slot(choir_variable *slot, const void *data)
{
	void *zeros = data == NULL ? chi_alloc(chi_variable_bytes(slot)) : NULL;
	if (data == NULL && zeros == NULL)
		return choir_error_status();
	const choir_status status = chi_variable_from_host(slot, data == NULL ? zeros : data);
	chi_free(zeros);
	return status;
}

static choir_status restore_target(
		const choir_optimizer *o, chi_optimized_variable *t, chi_state_dict *from, uint64_t step)
{
	bool has;
	const choir_variable *v = named(t->variable);
	const size_t first =
			v->shards == 0 ? 0 : (size_t) chi_shard_first(t->variable) * chi_dtype_size(v->dtype);
	CHOIR_TRY(has_slots(o, v, from, &has));
	chi_atomic32_store(&t->averaged, has && step > 0);
	for (int i = 0; i < o->slots; i++) {
		const void *data = NULL;
		if (has) {
			CHOIR_TRY(take_slot(o, v, i, from, &data));
			data = (const char *) data + first;
		}
		if (t->slot[i] != NULL)
			CHOIR_TRY(restore_slot(t->slot[i], data));
	}
	return CHOIR_OK;
}

static choir_status restore(void *self, chi_state_dict *from)
{
	choir_optimizer *o = self;
	const void *scale = NULL;
	uint64_t step, finite;
	CHOIR_TRY(chi_state_dict_take_count(from, "step", &step));
	for (size_t i = 0; i < o->targets; i++)
		CHOIR_TRY(restore_target(o, o->target[i], from, step));
	CHOIR_TRY(chi_state_dict_take(from, "loss_scale", CHOIR_F64, &CHOIR_SCALAR, &scale));
	CHOIR_TRY(chi_state_dict_take_count(from, "finite_updates", &finite));
	CHOIR_TRY(take_rate(from, &o->set_rate));
	o->swapped = false;
	chi_atomic64_store(&o->step, step);
	if (o->loss_scale.kind == CHOIR_LOSS_SCALE_FIXED)
		return CHOIR_OK;
	memcpy(&o->scale, scale, sizeof o->scale);
	o->finite_updates = (int64_t) finite;
	return CHOIR_OK;
}

static uint64_t alike(const void *self)
{
	const choir_optimizer *o = self;
	uint64_t scale;
	memcpy(&scale, &o->scale, sizeof scale);
	return chi_hash_mix(chi_hash_mix(chi_atomic64_load(&o->rate_bits)) ^ scale) ^
			chi_atomic64_load(&o->step);
}

const chi_stateful_table chi_optimizer_state = { .free = chi_optimizer_free,
	.name = name,
	.save = save,
	.check = check,
	.restore = restore,
	.alike = alike };
