// Clearing keeps the frames' memory, so filling a set for each step allocates nothing.
#include "value/value.h"

#include "base/alloc.h"
#include "base/lock.h"
#include "base/text.h"

#include <string.h>

choir_values *chi_values_new(choir_strategy *s, const chi_layout *layout)
{
	choir_values *set = chi_alloc(sizeof *set);
	if (set == NULL)
		return NULL;
	set->strategy = s;
	set->layout = *layout;
	set->in_sync = layout->replicas;
	set->frame = choir_frame_new(NULL);
	set->replica_frame = chi_alloc_array((size_t) layout->replicas, sizeof(choir_frame *));
	set->examples = chi_alloc_array((size_t) layout->replicas, sizeof(int64_t));
	if (set->frame == NULL || set->replica_frame == NULL || set->examples == NULL) {
		choir_values_free(set);
		return NULL;
	}
	choir_values_clear(set);
	return set;
}

void choir_values_free(choir_values *set)
{
	if (set == NULL)
		return;
	for (int i = 0; set->replica_frame != NULL && i < set->layout.replicas; i++)
		choir_frame_free(set->replica_frame[i]);
	choir_frame_free(set->frame);
	chi_free(set->replica_frame);
	chi_free(set->examples);
	chi_free(set->leaf);
	chi_free(set);
}

void choir_values_clear(choir_values *set)
{
	if (set == NULL)
		return;
	set->n = 0;
	set->counted_by = NULL;
	set->all_examples = CHOIR_UNKNOWN;
	for (int i = 0; i < set->layout.replicas; i++) {
		if (set->replica_frame[i] != NULL)
			choir_frame_clear(set->replica_frame[i]);
		set->examples[i] = CHOIR_UNKNOWN;
	}
	choir_frame_clear(set->frame);
}

choir_frame *choir_values_frame(choir_values *set)
{
	return set == NULL ? NULL : set->frame;
}

choir_frame *chi_values_replica_frame(choir_values *set, int local_replica)
{
	if (set->replica_frame[local_replica] == NULL)
		set->replica_frame[local_replica] = choir_frame_new(set->layout.device[local_replica]);
	return set->replica_frame[local_replica];
}

choir_status chi_values_publish(choir_values *set)
{
	CHOIR_TRY(chi_frame_publish(set->frame));
	for (int i = 0; i < set->layout.replicas; i++)
		if (set->replica_frame[i] != NULL)
			CHOIR_TRY(chi_frame_publish(set->replica_frame[i]));
	return CHOIR_OK;
}

chi_leaf *chi_values_leaf(choir_values *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++)
		if (strcmp(set->leaf[i].name, name) == 0)
			return &set->leaf[i];
	return NULL;
}

choir_value *choir_values_find(choir_values *set, const char *name)
{
	if (set == NULL || name == NULL)
		return NULL;
	chi_leaf *leaf = chi_values_leaf(set, name);
	if (leaf != NULL)
		return leaf->value;
	chi_text names = { 0 };
	for (size_t i = 0; i < set->n; i++)
		chi_text_add(&names, "%s\"%s\"", i == 0 ? "" : ", ", set->leaf[i].name);
	choir_fail(CHOIR_NOT_FOUND, "values: there is no \"%s\": there %s %s", name,
			set->n == 1 ? "is only" : "are", set->n == 0 ? "none" : names.data);
	chi_text_free(&names);
	return NULL;
}

// When the leaf that counts the examples is replaced, another split leaf counts.
static void forget_rows(choir_values *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->leaf[i].split && set->leaf[i].name != set->counted_by) {
			set->counted_by = set->leaf[i].name;
			return;
		}
	set->counted_by = NULL;
	set->all_examples = CHOIR_UNKNOWN;
	for (int i = 0; i < set->layout.replicas; i++)
		set->examples[i] = CHOIR_UNKNOWN;
}

choir_status chi_values_put(choir_values *set, const char *name, choir_value *v)
{
	if (v == NULL)
		return choir_error_status();
	chi_leaf *leaf = chi_values_leaf(set, name);
	if (leaf == NULL) {
		const bool grown = chi_grow(&set->leaf, &set->capacity, set->n + 1, sizeof(chi_leaf));
		const char *kept = grown ? chi_arena_strdup(&set->frame->arena, name) : NULL;
		CHOIR_TRY(chi_made(kept));
		leaf = &set->leaf[set->n++];
		leaf->name = kept;
	}
	if (set->counted_by == leaf->name)
		forget_rows(set);
	leaf->value = v;
	leaf->split = false;
	return CHOIR_OK;
}

static choir_status check_name(const choir_values *set, const char *name)
{
	if (set == NULL)
		return choir_fail(CHOIR_INVALID, "values: the set is NULL");
	if (name == NULL || name[0] == '\0')
		return choir_fail(CHOIR_INVALID, "values: a leaf needs a name");
	return CHOIR_OK;
}

static choir_status check_arguments(const choir_values *set, const char *name, const void *what)
{
	CHOIR_TRY(check_name(set, name));
	return what == NULL ? chi_error_null("values: \"%s\" is set to NULL", name) : CHOIR_OK;
}

// The own frame's tensors are used directly, even borrowed ones; reads of variables are copied for
// later.
static choir_tensor *keep(const choir_values *set, choir_frame *f, choir_tensor *t)
{
	if (chi_tensor_check_any(t) != CHOIR_OK)
		return NULL;
	if (t->frame == set->frame && t->source == NULL)
		return t;
	return chi_tensor_retain(f, t);
}

choir_status choir_values_set(choir_values *set, const char *name, choir_value *v)
{
	CHOIR_TRY(check_arguments(set, name, v));
	if (v->kind == CHOIR_VALUE_VARIABLE)
		return chi_values_put(set, name, chi_value_of_variable(set->frame, v->variable));
	const bool each = v->kind == CHOIR_VALUE_PER_REPLICA;
	if (each && v->count != set->layout.replicas)
		return choir_fail(CHOIR_INVALID,
				"values: \"%s\" is a value of %d replicas; this set's strategy has %d", name,
				v->count, set->layout.replicas);
	CHOIR_TRY(chi_value_materialize(v));
	choir_value *kept = chi_value_new(set->frame, v->kind, v->count);
	if (kept == NULL)
		return CHOIR_NO_MEMORY;
	for (int i = 0; i < v->count; i++) {
		kept->device[i] = v->device[i];
		if (v->component[i] == NULL)
			continue;
		choir_frame *f = each ? chi_values_replica_frame(set, i) : set->frame;
		kept->component[i] = f == NULL ? NULL : keep(set, f, v->component[i]);
		if (kept->component[i] == NULL)
			return choir_error_status();
	}
	return chi_values_put(set, name, kept);
}

choir_status choir_values_set_local(
		choir_values *set, const char *name, int local_replica, choir_tensor *t)
{
	CHOIR_TRY(check_arguments(set, name, t));
	if (local_replica < 0 || local_replica >= set->layout.replicas)
		return choir_fail(CHOIR_INVALID,
				"values: \"%s\": there is no local replica %d; there are %d", name, local_replica,
				set->layout.replicas);
	choir_frame *f = chi_values_replica_frame(set, local_replica);
	if (f == NULL || (t = keep(set, f, t)) == NULL)
		return choir_error_status();
	chi_leaf *leaf = chi_values_leaf(set, name);
	if (leaf == NULL || leaf->value->kind != CHOIR_VALUE_PER_REPLICA || leaf->split) {
		choir_value *v = chi_value_new(set->frame, CHOIR_VALUE_PER_REPLICA, set->layout.replicas);
		CHOIR_TRY(chi_values_put(set, name, v));
		leaf = chi_values_leaf(set, name);
	}
	leaf->value->component[local_replica] = t;
	leaf->value->device[local_replica] = choir_tensor_device(t);
	if (set->counted_by == NULL && t->shape.rank > 0)
		set->counted_by = leaf->name;
	if (set->counted_by == leaf->name) {
		set->examples[local_replica] = t->shape.rank > 0 ? t->shape.dim[0] : CHOIR_UNKNOWN;
		set->all_examples = CHOIR_UNKNOWN;
	}
	return CHOIR_OK;
}

choir_status choir_values_set_from_function(
		choir_values *set, const char *name, choir_value_fn *fn, void *user)
{
	CHOIR_TRY(check_name(set, name));
	if (fn == NULL)
		return choir_fail(CHOIR_INVALID, "values: \"%s\": the function is NULL", name);
	for (int i = 0; i < set->layout.replicas; i++) {
		choir_frame *f = chi_values_replica_frame(set, i);
		if (f == NULL)
			return choir_error_status();
		chi_error_clear();
		chi_mutex_check_none_held();
		choir_tensor *t = fn(f, set->before + i, set->in_sync, user);
		if (t == NULL && choir_error_status() == CHOIR_OK)
			choir_fail(CHOIR_INVALID, "the function returned NULL");
		if (t == NULL)
			return chi_error_prefix("values: \"%s\": replica %d", name, set->before + i);
		CHOIR_TRY(choir_values_set_local(set, name, i, t));
	}
	return CHOIR_OK;
}

static choir_status check_rows(const choir_values *set, const char *name, const int64_t rows[])
{
	for (size_t i = 0; i < set->n; i++) {
		const chi_leaf *leaf = &set->leaf[i];
		if (!leaf->split || strcmp(leaf->name, name) == 0)
			continue;
		for (int k = 0; k < set->layout.replicas; k++)
			if (set->examples[k] != rows[k])
				return choir_fail(CHOIR_INVALID,
						"values: \"%s\" gives replica %d %lld rows, "
						"but \"%s\" %lld; equal numbers are needed",
						name, set->before + k, (long long) rows[k], leaf->name,
						(long long) set->examples[k]);
		return CHOIR_OK;
	}
	return CHOIR_OK;
}

static choir_status put_rows(
		choir_values *set, const char *name, choir_value *v, const int64_t rows[])
{
	CHOIR_TRY(chi_values_put(set, name, v));
	chi_leaf *leaf = chi_values_leaf(set, name);
	leaf->split = true;
	set->counted_by = leaf->name;
	memcpy(set->examples, rows, (size_t) set->layout.replicas * sizeof *rows);
	return CHOIR_OK;
}

choir_status chi_values_split_rows(
		choir_values *set, const char *name, choir_tensor *t, const int64_t rows[])
{
	CHOIR_TRY(check_rows(set, name, rows));
	const int n = set->layout.replicas;
	choir_value *v = chi_value_new(set->frame, CHOIR_VALUE_PER_REPLICA, n);
	int64_t first = 0;
	for (int i = 0; v != NULL && i < n; i++) {
		v->component[i] = chi_tensor_rows(set->frame, t, first, rows[i]);
		if (v->component[i] == NULL)
			return choir_error_status();
		v->device[i] = choir_tensor_device(t);
		first += rows[i];
	}
	return put_rows(set, name, v, rows);
}

choir_status chi_values_take_rows(
		choir_values *set, const char *name, choir_tensor *const part[], const int64_t rows[])
{
	CHOIR_TRY(check_rows(set, name, rows));
	const int n = set->layout.replicas;
	choir_value *v = chi_value_new(set->frame, CHOIR_VALUE_PER_REPLICA, n);
	for (int i = 0; v != NULL && i < n; i++) {
		v->component[i] = part[i];
		v->device[i] = choir_tensor_device(part[i]);
	}
	return put_rows(set, name, v, rows);
}

choir_status choir_values_split(choir_values *set, const char *name, choir_tensor *t)
{
	CHOIR_TRY(check_arguments(set, name, t));
	if (t->shape.rank == 0)
		return choir_fail(
				CHOIR_INVALID, "values: \"%s\" is a scalar and has no rows to split", name);
	if ((t = keep(set, set->frame, t)) == NULL)
		return choir_error_status();
	const int n = set->layout.replicas;
	const int64_t all = t->shape.dim[0];
	int64_t first = 0, here = 0;
	int64_t *rows = chi_arena_alloc(&set->frame->arena, (size_t) n * sizeof *rows);
	CHOIR_TRY(chi_made(rows));
	for (int i = 0; i < set->before; i++)
		first += chi_share_of(all, set->in_sync, i);
	for (int i = 0; i < n; i++)
		here += rows[i] = chi_share_of(all, set->in_sync, set->before + i);
	if (here < all && (t = chi_tensor_rows(set->frame, t, first, here)) == NULL)
		return choir_error_status();
	CHOIR_TRY(chi_values_split_rows(set, name, t, rows));
	if (set->in_sync > n)
		set->all_examples = all;
	return CHOIR_OK;
}

int64_t chi_values_global_examples(const choir_values *set)
{
	int64_t sum = 0;
	if (set->in_sync > set->layout.replicas)
		return set->all_examples;
	for (int i = 0; i < set->layout.replicas; i++) {
		if (set->examples[i] == CHOIR_UNKNOWN)
			return CHOIR_UNKNOWN;
		sum += set->examples[i];
	}
	return sum;
}

choir_status chi_values_check(const choir_values *set)
{
	for (size_t i = 0; i < set->n; i++) {
		const choir_value *v = set->leaf[i].value;
		for (int k = 0; v->kind != CHOIR_VALUE_DESTINATION && k < v->count; k++)
			if (v->component[k] == NULL)
				return choir_fail(CHOIR_INVALID, "values: \"%s\" is not set for replica %d",
						set->leaf[i].name, set->before + k);
	}
	return CHOIR_OK;
}
