// Restores what a file and a strategy both have, after all tensors are compared.
#include "choir/weights.h"

#include "base/alloc.h"
#include "base/lock.h"
#include "base/options.h"
#include "choir/op.h"
#include "strategy/context.h"
#include "train/weights/torch_keras_convention.h"
#include "train/weights/name_map.h"
#include "train/weights/safetensors.h"
#include "train/weights/torch_recurrent.h"
#include "train/weights/weights.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SHOWN = 60 };

typedef struct {
	const chi_st_tensor *tensor;
	const chi_st_tensor *added; // the variable is the sum of both
	chi_rearrangement how;
	bool recurrent;
	int halves;
	int row; // 0: the whole tensor; else this one of its two rows
} source;

typedef struct {
	const choir_restore_options *o;
	const char *path;
	chi_name_map map;
	chi_weights weights;
	chi_weights_file file;
	source *from;
	bool *used; // taken, or left out by the map
} part;

static bool can_cast(const chi_st_tensor *t, const choir_variable *v)
{
	return t->supported &&
			(t->dtype == v->dtype ||
					(chi_dtype_is_float(t->dtype) && chi_dtype_is_float(v->dtype)));
}

static const char *rearrange(
		const choir_shape *shape, const chi_rearrangement *how, choir_shape *to)
{
	*to = how->reshaped ? how->shape : *shape;
	if (how->file.rank > 0 && !chi_shape_equal(&how->file, shape))
		return "which has another shape than the map";
	if (how->reshaped && choir_shape_elements(&how->shape) != choir_shape_elements(shape))
		return "which has another number of elements";
	if (how->axes != 0 && how->axes != to->rank)
		return "which has another number of axes than the map";
	const choir_shape before = *to;
	for (int i = 0; i < how->axes; i++)
		to->dim[i] = before.dim[how->axis[i]];
	return NULL;
}

static bool fits(const choir_variable *v, const chi_st_tensor *t, const chi_rearrangement *how)
{
	choir_shape shape;
	return can_cast(t, v) && rearrange(&t->shape, how, &shape) == NULL &&
			(how->reshaped ? choir_shape_elements(&shape) == v->elements
						   : chi_shape_equal(&shape, &v->shape));
}

static choir_status does_not_fit(const part *p, const choir_variable *v, const chi_st_tensor *t,
		const chi_rearrangement *how)
{
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT], mapped[CHI_SHAPE_TEXT], more[300] = "";
	char name[NAME_SHOWN], tensor[NAME_SHOWN];
	choir_shape shape;
	const char *why = rearrange(&t->shape, how, &shape);
	if (how->axes != 0 && why != NULL && !how->reshaped)
		snprintf(more, sizeof more, ", to which the map gives %d axes", how->axes);
	else if (how->reshaped || how->axes != 0)
		snprintf(more, sizeof more, ", which the map makes %s", chi_shape_print(&shape, mapped));
	return choir_fail(CHOIR_INVALID,
			"%s: tensor \"%s\" is %.10s %s%s; variable \"%s\" needs %s %s", p->path,
			chi_text_clean(t->name, tensor, sizeof tensor), t->dtype_name,
			chi_shape_print(&t->shape, have), more, chi_text_clean(v->name, name, sizeof name),
			chi_safetensors_dtype(v->dtype), chi_shape_print(&v->shape, need));
}

static choir_status taken_twice(const part *p, const chi_st_tensor *t, size_t i)
{
	return choir_fail(CHOIR_INVALID,
			"%s: tensors \"%.60s\" and \"%.60s\" are both for variable \"%.60s\"", p->path,
			p->from[i].tensor->name, t->name, p->weights.variable[i]->name);
}

// The rows of t are the biases i and k of a GRU; false: t is not of this shape.
static bool are_rows(const part *p, const chi_st_tensor *t, size_t i, size_t k)
{
	const choir_variable *v = p->weights.variable[i];
	const choir_shape rows = CHOIR_SHAPE(2, v->elements);
	return k < p->weights.n && can_cast(t, v) && chi_shape_equal(&t->shape, &rows);
}

static choir_status take_rows(part *p, const chi_st_tensor *t, size_t i, size_t k)
{
	const size_t both[] = { i, k };
	for (int row = 0; row < 2; row++) {
		if (p->from[both[row]].tensor != NULL)
			return taken_twice(p, t, both[row]);
		p->from[both[row]] = (source){ .tensor = t, .row = row + 1 };
	}
	return CHOIR_OK;
}

static choir_status take(part *p, size_t k, chi_mapped_name *m)
{
	const chi_st_tensor *t = p->file.header.tensor[k];
	size_t i;
	CHOIR_TRY(chi_convention_find(&p->map, &p->weights, m, &i));
	p->used[k] = m->left_out || i < p->weights.n;
	if (i == p->weights.n)
		return CHOIR_OK;
	const choir_variable *v = p->weights.variable[i];
	source *from = &p->from[i];
	const size_t other = chi_keras_second_bias(&p->map, &p->weights, v, &m->how);
	if (are_rows(p, t, i, other))
		return take_rows(p, t, i, other);
	const bool second = from->halves + m->halves == 3 && from->added == NULL;
	if (from->tensor != NULL && !second)
		return taken_twice(p, t, i);
	if (!fits(v, t, &m->how))
		return does_not_fit(p, v, t, &m->how);
	CHOIR_TRY(chi_convention_check(&p->map, v, m, p->path, t->name));
	if (second)
		from->added = t;
	else
		*from = (source){
			.tensor = t, .how = m->how, .recurrent = m->recurrent, .halves = m->halves
		};
	return CHOIR_OK;
}

// Without reset_after a GRU has one bias, and another formula.
static choir_status check_gru_of_keras(const part *p, size_t i)
{
	const choir_variable *v = p->weights.variable[i];
	const source *from = &p->from[i];
	const size_t other = chi_keras_second_bias(&p->map, &p->weights, v, &from->how);
	if (other == p->weights.n || from->tensor == NULL || p->from[other].tensor != NULL)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"%s: tensor \"%.60s\" is the one bias of a GRU without reset_after; \"%.60s\" and "
			"\"%.60s\" need the two biases of one with reset_after, [2, %lld]",
			p->path, from->tensor->name, v->name, p->weights.variable[other]->name,
			(long long) v->elements);
}

// A cell without biases would leave the variables' biases at their initial values.
static choir_status check_recurrent(const part *p, size_t i)
{
	const choir_variable *v = p->weights.variable[i];
	const source *from = &p->from[i];
	const size_t kernel =
			from->tensor == NULL ? chi_torch_recurrent_kernel(&p->weights, v) : p->weights.n;
	if (from->halves != 0 && from->added == NULL)
		return choir_fail(CHOIR_INVALID,
				"%s: tensor \"%.60s\" is one of torch's two biases for variable \"%.60s\"; the "
				"file needs the other one, too",
				p->path, from->tensor->name, v->name);
	if (kernel < p->weights.n && p->from[kernel].recurrent)
		return choir_fail(CHOIR_INVALID,
				"%s: has tensor \"%.60s\" but none for variable \"%.60s\" of the same layer; "
				"the file needs all of them (zeros for biases that torch does not have)",
				p->path, p->from[kernel].tensor->name, v->name);
	return check_gru_of_keras(p, i);
}

static choir_status match(part *p)
{
	bool any = false;
	for (size_t k = 0; k < p->file.header.n; k++) {
		chi_mapped_name m;
		CHOIR_TRY(chi_name_map_find(&p->map, p->file.header.tensor[k]->name, &m));
		const choir_status status = take(p, k, &m);
		chi_text_free(&m.name);
		CHOIR_TRY(status);
	}
	for (size_t i = 0; i < p->weights.n; i++) {
		any |= p->from[i].tensor != NULL;
		CHOIR_TRY(check_recurrent(p, i));
	}
	if (any)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"%s: none of its %zu tensors has the name of one of the %zu variables", p->path,
			p->file.header.n, p->weights.n);
}

static choir_tensor *arranged(
		const part *p, const source *s, const chi_st_tensor *t, choir_dtype dtype, choir_frame *f)
{
	choir_tensor *x = choir_borrow(
			f, t->dtype, s->how.reshaped ? s->how.shape : t->shape, p->file.data + t->begin);
	if (s->row > 0 && (x = choir_slice(x, 0, s->row - 1, 1)) != NULL)
		x = choir_reshape(x, CHOIR_SHAPE(CHOIR_UNKNOWN));
	if (s->how.gates_swapped)
		x = chi_torch_swap_gates(x);
	if (s->how.axes != 0)
		x = choir_transpose(x, s->how.axis);
	return choir_cast(x, dtype);
}

static choir_status set(const part *p, size_t i, choir_frame *f)
{
	const source *s = &p->from[i];
	choir_variable *v = p->weights.variable[i];
	const size_t mark = choir_frame_mark(f);
	choir_tensor *x = arranged(p, s, s->tensor, v->dtype, f);
	if (s->added != NULL)
		x = choir_add(x, arranged(p, s, s->added, v->dtype, f));
	const choir_status status =
			x == NULL ? chi_frame_status(f) : chi_weight_set(v, f, choir_tensor_data(x));
	choir_frame_rewind(f, mark);
	return status;
}

static choir_status set_all(const part *p)
{
	choir_frame *f = choir_frame_new(NULL);
	choir_status status = chi_made(f);
	for (size_t i = 0; status == CHOIR_OK && i < p->weights.n; i++) {
		if (p->from[i].tensor != NULL)
			status = set(p, i, f);
		for (size_t k = 0; status != CHOIR_OK && k <= i; k++)
			if (p->from[k].tensor != NULL)
				chi_variable_undefine(p->weights.variable[k]);
	}
	choir_frame_free(f);
	return status;
}

static void tell_all(const part *p)
{
	if (p->o->report == NULL)
		return;
	chi_mutex_check_none_held();
	for (size_t i = 0; i < p->weights.n; i++)
		p->o->report(p->from[i].tensor != NULL ? CHOIR_RESTORED_VALUE : CHOIR_RESTORED_MISSING,
				p->weights.variable[i]->name, p->o->user);
	for (size_t k = 0; k < p->file.header.n; k++)
		if (!p->used[k])
			p->o->report(CHOIR_RESTORED_UNEXPECTED, p->file.header.tensor[k]->name, p->o->user);
}

static choir_status check(part *p)
{
	p->from = chi_alloc_array(p->weights.n, sizeof *p->from);
	p->used = chi_alloc_array(p->file.header.n, sizeof *p->used);
	if (p->from == NULL || p->used == NULL)
		return choir_error_status();
	CHOIR_TRY(match(p));
	for (size_t i = 0; i < p->weights.n; i++)
		if (p->from[i].tensor != NULL)
			CHOIR_TRY(chi_weights_check_bools(p->path, p->from[i].tensor, p->file.data));
	return CHOIR_OK;
}

choir_status choir_strategy_restore_partial(
		choir_strategy *s, const char *path, const choir_restore_options *o)
{
	choir_restore_options all;
	if (path == NULL)
		return choir_fail(CHOIR_INVALID, "restore_partial: the path is NULL");
	CHOIR_TRY(chi_options_take("restore_partial: the options'", &all, sizeof all, o));
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "restore_partial"));
	part p = { .o = &all, .path = path };
	choir_status status = chi_name_map_read(all.map, &p.map);
	if (status == CHOIR_OK)
		status = chi_weights_collect_to_write(s, "restore_partial", &p.weights);
	status = chi_weights_read(s, status, path, &p.file);
	if (status == CHOIR_OK)
		status = chi_strategy_agree(s, check(&p), "comparing weights");
	if (status == CHOIR_OK) {
		status = chi_strategy_agree(s, set_all(&p), "restoring weights");
		for (size_t i = 0; status != CHOIR_OK && s->process_group != NULL && i < p.weights.n; i++)
			if (p.from[i].tensor != NULL)
				chi_variable_undefine(p.weights.variable[i]);
	}
	if (status == CHOIR_OK)
		tell_all(&p);
	chi_name_map_free(&p.map);
	chi_free(p.from);
	chi_free(p.used);
	chi_weights_file_free(&p.file);
	chi_weights_free(&p.weights);
	return status;
}
