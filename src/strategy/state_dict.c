// An entry that matches the last save's at the same position reuses its memory.
#include "strategy/state_dict.h"

#include "base/size.h"
#include "base/text.h"
#include "tensor/tensor.h"
#include "value/variable.h"

#include <stdio.h>
#include <string.h>

static void free_entry(chi_state_dict_entry *e)
{
	if (!e->borrowed)
		chi_free(e->data);
	chi_free(e->name);
	*e = (chi_state_dict_entry){ 0 };
}

void chi_state_dict_clear(chi_state_dict *s)
{
	s->n = 0;
}

void chi_state_dict_free(chi_state_dict *s)
{
	for (size_t i = 0; i < s->kept; i++)
		free_entry(&s->entry[i]);
	chi_free(s->entry);
	*s = (chi_state_dict){ 0 };
}

static chi_text whole_name(const chi_state_dict *s, const char *name)
{
	chi_text text = { 0 };
	chi_text_add(&text, "%s%s%s", s->object == NULL ? "" : s->object, s->object == NULL ? "" : "/",
			name);
	if (text.failed)
		chi_text_free(&text);
	return text;
}

static choir_status count_bytes(
		const char *name, choir_dtype dtype, const choir_shape *shape, size_t *bytes)
{
	*bytes = chi_dtype_size(dtype);
	for (int i = 0; i < shape->rank; i++)
		if (!chi_size_multiply(*bytes, (size_t) shape->dim[i], bytes))
			return choir_fail(CHOIR_INVALID, "state \"%s\": it is too large", name);
	return CHOIR_OK;
}

static bool matches(const chi_state_dict_entry *e, const char *name, choir_dtype dtype,
		const choir_shape *shape)
{
	return e->dtype == dtype && chi_shape_equal(&e->shape, shape) && strcmp(e->name, name) == 0;
}

static bool give_memory(const chi_state_dict *s, chi_state_dict_entry *e)
{
	chi_state_dict_memory *m = s->memory;
	size_t bytes = 0;
	e->borrowed = m != NULL && chi_size_round_up(e->bytes, CHI_LINE, &bytes) &&
			bytes <= m->scratch.capacity - m->used;
	e->data = e->borrowed ? m->scratch.memory + m->used : chi_alloc_aligned(e->bytes);
	if (e->borrowed)
		m->used += bytes;
	return e->data != NULL;
}

static chi_state_dict_entry *next_entry(
		chi_state_dict *s, char *name, choir_dtype dtype, const choir_shape *shape, bool own)
{
	if (own && s->n < s->kept && matches(&s->entry[s->n], name, dtype, shape)) {
		chi_state_dict_entry *kept = &s->entry[s->n];
		chi_free(name);
		if (kept->borrowed && !give_memory(s, kept))
			return NULL;
		s->n++;
		return kept;
	}
	chi_state_dict_entry e = { .name = name, .dtype = dtype, .shape = *shape, .borrowed = !own };
	void *array = s->entry;
	bool made = count_bytes(name, dtype, shape, &e.bytes) == CHOIR_OK &&
			chi_grow(&array, &s->capacity, s->n + 1, sizeof e) && (!own || give_memory(s, &e));
	s->entry = array;
	if (!made) {
		chi_free(name);
		return NULL;
	}
	if (s->n < s->kept)
		free_entry(&s->entry[s->n]);
	else
		s->kept++;
	s->entry[s->n] = e;
	return &s->entry[s->n++];
}

void *chi_state_dict_add(
		chi_state_dict *s, const char *name, choir_dtype dtype, const choir_shape *shape)
{
	s->ordered = false;
	chi_text text = whole_name(s, name);
	if (text.data == NULL)
		return NULL;
	chi_state_dict_entry *e = next_entry(s, text.data, dtype, shape, true);
	return e == NULL ? NULL : e->data;
}

static choir_status check_defined(const choir_variable *v)
{
	for (int i = 0; i < v->shards; i++)
		CHOIR_TRY(check_defined(v->shard[i]));
	if (v->shards > 0 || chi_atomic32_load(&v->copy[0].undefined) == 0)
		return CHOIR_OK;
	return choir_fail(CHOIR_STATE,
			"save: variable \"%s\" is undefined, because an "
			"update failed halfway; assign or restore it",
			v->parent != NULL ? v->parent->name : v->name);
}

choir_status chi_state_dict_add_variable(chi_state_dict *s, const char *name, choir_variable *v)
{
	CHOIR_TRY(check_defined(v));
	if (s->unread)
		return CHOIR_OK;
	void *data = chi_state_dict_add(s, name, v->dtype, &v->shape);
	return data == NULL ? choir_error_status() : chi_variable_copy_out(v, data);
}

choir_status chi_state_dict_add_count(chi_state_dict *s, const char *name, uint64_t count)
{
	int64_t *to = chi_state_dict_add(s, name, CHOIR_I64, &CHOIR_SCALAR);
	CHOIR_TRY(chi_made(to));
	*to = (int64_t) count;
	return CHOIR_OK;
}

choir_status chi_state_dict_lend(chi_state_dict *s, const char *name, choir_dtype dtype,
		const choir_shape *shape, void *data)
{
	char *own = chi_strdup(name);
	const bool ordered = s->n == 0 || (s->ordered && strcmp(s->entry[s->n - 1].name, name) < 0);
	chi_state_dict_entry *e = own == NULL ? NULL : next_entry(s, own, dtype, shape, false);
	if (e == NULL)
		return choir_error_status();
	s->ordered = ordered;
	e->data = data;
	return CHOIR_OK;
}

static int compare_name(const chi_state_dict *s, const char *name, const char *have)
{
	if (s->object == NULL)
		return strcmp(name, have);
	const size_t length = strlen(s->object);
	const int order = strncmp(s->object, have, length);
	if (order != 0 || have[length] != '/')
		return order != 0 ? order : '/' - (unsigned char) have[length];
	return strcmp(name, have + length + 1);
}

chi_state_dict_entry *chi_state_dict_find(const chi_state_dict *s, const char *name)
{
	size_t low = 0, high = s->n;
	for (size_t i = 0; !s->ordered && i < s->n; i++)
		if (compare_name(s, name, s->entry[i].name) == 0)
			return &s->entry[i];
	while (s->ordered && low < high) {
		const size_t middle = low + (high - low) / 2;
		const int order = compare_name(s, name, s->entry[middle].name);
		if (order == 0)
			return &s->entry[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

static choir_status no_entry(const chi_state_dict *s, const char *name)
{
	enum { SHOWN = 60 };
	char clean[SHOWN];
	chi_text list = { 0 };
	size_t last = 0;
	const char *before = "";
	for (size_t i = 0; i < s->n && list.length < 300; i++) {
		const char *have = s->entry[i].name;
		const size_t length = strcspn(have, "/");
		if (length == last && strncmp(have, before, length) == 0)
			continue;
		char object[SHOWN];
		snprintf(object, sizeof object, "%.*s", (int) length, have);
		chi_text_add(&list, "%s%s", list.length == 0 ? "" : ", ",
				chi_text_clean(object, clean, sizeof clean));
		before = have;
		last = length;
	}
	const choir_status status = choir_fail(CHOIR_INVALID,
			"%s: state \"%s%s%s\" is missing, which this "
			"program needs; the checkpoint has the state of: %s",
			s->path, s->object == NULL ? "" : s->object, s->object == NULL ? "" : "/", name,
			list.data == NULL ? "nothing" : list.data);
	chi_text_free(&list);
	return status;
}

choir_status chi_state_dict_take(chi_state_dict *s, const char *name, choir_dtype dtype,
		const choir_shape *shape, const void **data)
{
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT];
	const char *object = s->object == NULL ? "" : s->object, *slash = s->object == NULL ? "" : "/";
	chi_state_dict_entry *e = chi_state_dict_find(s, name);
	if (e == NULL)
		return no_entry(s, name);
	if (e->dtype != dtype || !chi_shape_equal(&e->shape, shape))
		return choir_fail(CHOIR_INVALID, "%s: state \"%s%s%s\" is %s %s; this program needs %s %s",
				s->path, object, slash, name, choir_dtype_name(e->dtype),
				chi_shape_print(&e->shape, have), choir_dtype_name(dtype),
				chi_shape_print(shape, need));
	e->consumed = true;
	*data = e->data;
	return CHOIR_OK;
}

choir_status chi_state_dict_take_count(chi_state_dict *s, const char *name, uint64_t *count)
{
	const void *data = NULL;
	CHOIR_TRY(chi_state_dict_take(s, name, CHOIR_I64, &CHOIR_SCALAR, &data));
	int64_t value;
	memcpy(&value, data, sizeof value);
	*count = (uint64_t) value;
	return CHOIR_OK;
}
