// The header with all offsets comes first, so values are fetched and written one by one.
#include "choir/weights.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/size.h"
#include "base/text.h"
#include "strategy/value_consistency.h"
#include "strategy/context.h"
#include "trace/trace.h"
#include "base/sort.h"
#include "choir/op.h"
#include "train/weights/torch_keras_convention.h"
#include "train/weights/safetensors.h"
#include "train/weights/torch_recurrent.h"
#include "train/weights/weights.h"

#include <string.h>

// Larger elements first, so that data is aligned.
static bool by_size_and_name(const void *a, const void *b)
{
	const choir_variable *v = a, *w = b;
	const size_t s = chi_dtype_size(v->dtype), t = chi_dtype_size(w->dtype);
	return s != t ? s > t : strcmp(v->name, w->name) < 0;
}

typedef struct {
	chi_mapped_name as;
	chi_text zeros; // the name of a tensor of zeros behind it, or empty
	bool is_row; // of the tensor of the variable before it
	choir_shape file, before; // before: of v's elements, before the axes are put back
	int axes;
	int axis[CHI_NAME_MAP_AXES];
} target;

static choir_status invert(const choir_variable *v, target *t)
{
	const chi_rearrangement *how = &t->as.how;
	choir_shape shape = how->reshaped ? how->shape : v->shape;
	char have[CHI_SHAPE_TEXT];
	t->before = shape;
	if (how->axes > 0 && how->axes != shape.rank)
		return choir_fail(CHOIR_INVALID,
				"save: variable \"%.60s\" is %s; %d axes of the map do not fit", v->name,
				chi_shape_print(&shape, have), how->axes);
	for (int i = 0; i < how->axes; i++) {
		if (how->reshaped)
			t->before.dim[i] = shape.dim[how->axis[i]];
		else
			t->file.dim[how->axis[i]] = v->shape.dim[i];
		t->axis[how->axis[i]] = i;
	}
	t->axes = how->axes;
	t->file.rank = v->shape.rank;
	if (how->reshaped)
		t->file = how->file.rank > 0 ? how->file : shape;
	else if (how->axes == 0)
		t->file = v->shape;
	return choir_shape_elements(&t->file) == v->elements
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID,
					  "save: variable \"%.60s\" has %lld elements; the map's shape %s does not "
					  "fit",
					  v->name, (long long) v->elements, chi_shape_print(&t->file, have));
}

static bool is_of(const char *name, const target *t)
{
	return !t->is_row &&
			(strcmp(t->as.name.data, name) == 0 ||
					(t->zeros.length > 0 && strcmp(t->zeros.data, name) == 0));
}

static void join_biases(const chi_name_map *map, chi_weights *w, size_t i, target *to)
{
	size_t other = chi_keras_second_bias(map, w, w->variable[i], &to[i].as.how);
	if (other == w->n)
		return;
	choir_variable *second = w->variable[other];
	for (; other > i + 1; other--)
		w->variable[other] = w->variable[other - 1];
	w->variable[i + 1] = second;
	to[i].file = CHOIR_SHAPE(2, second->elements);
	to[i + 1].is_row = true;
}

static choir_status find_targets(
		const char *path, const chi_name_map *map, chi_weights *w, target *to)
{
	for (size_t i = 0; i < w->n; i++) {
		const choir_variable *v = w->variable[i];
		if (to[i].is_row)
			continue;
		CHOIR_TRY(chi_convention_find_tensor(map, w, v, &to[i].as, &to[i].zeros));
		CHOIR_TRY(chi_convention_check(map, v, &to[i].as, path, to[i].as.name.data));
		CHOIR_TRY(invert(v, &to[i]));
		join_biases(map, w, i, to);
		for (size_t k = 0; k < i; k++)
			if (is_of(to[i].as.name.data, &to[k]) ||
					(to[i].zeros.length > 0 && is_of(to[i].zeros.data, &to[k])))
				return choir_fail(CHOIR_INVALID,
						"save: variables \"%.60s\" and \"%.60s\" are both tensor \"%.60s\"",
						w->variable[k]->name, v->name, to[i].as.name.data);
	}
	return CHOIR_OK;
}

static choir_status add_tensor(
		const char *name, const choir_variable *v, const choir_shape *shape, chi_st_tensor *t)
{
	const size_t begin = t->end;
	if (!chi_text_is_utf8(name, strlen(name)) || strcmp(name, "__metadata__") == 0)
		return choir_fail(CHOIR_INVALID,
				"save: variable \"%.100s\" has a reserved name "
				"or one that is not UTF-8; give it another",
				name);
	*t = (chi_st_tensor){ .name = name, .dtype = v->dtype, .shape = *shape, .begin = begin };
	return chi_size_add(begin, chi_variable_bytes(v), &t->end)
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID, "save: the tensors have too many bytes");
}

static choir_status print_header(
		chi_text *text, const chi_weights *w, const target *to, const chi_metadata *l)
{
	chi_st_tensor *tensor = chi_alloc_array(2 * w->n + 1, sizeof *tensor);
	choir_status status = tensor == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
	size_t n = 0;
	for (size_t i = 0; status == CHOIR_OK && i < w->n; i++) {
		const choir_variable *v = w->variable[i];
		const choir_shape *shape = to == NULL ? &v->shape : &to[i].file;
		const bool zeros = to != NULL && to[i].zeros.length > 0;
		if (to != NULL && to[i].is_row) {
			tensor[n - 1].end += chi_variable_bytes(v);
			continue;
		}
		tensor[n].end = n == 0 ? 0 : tensor[n - 1].end;
		status = add_tensor(to == NULL ? v->name : to[i].as.name.data, v, shape, &tensor[n]);
		n++;
		tensor[n].end = tensor[n - 1].end;
		if (status == CHOIR_OK && zeros)
			status = add_tensor(to[i].zeros.data, v, shape, &tensor[n]);
		n += zeros;
	}
	if (status == CHOIR_OK) {
		chi_safetensors_print(text, n, tensor, l->n, l->pair);
		status = text->failed ? CHOIR_NO_MEMORY : CHOIR_OK;
	}
	chi_free(tensor);
	return status;
}

// to: NULL on other workers. After a failure the rest is fetched: some weights need all workers.
typedef struct {
	chi_writer *to;
	const target *target; // of the next weight; NULL: no map
	choir_frame *frame;
	choir_status status;
	chi_error failure;
} writing;

static void fail(writing *w, choir_status status)
{
	if (status == CHOIR_OK || w->status != CHOIR_OK)
		return;
	w->status = status;
	chi_error_save(&w->failure);
}

static const void *arrange(
		const choir_variable *v, const void *data, const target *t, choir_frame *f)
{
	choir_tensor *x = choir_borrow(f, v->dtype, t->before, data);
	if (t->axes > 0)
		x = choir_transpose(x, t->axis);
	if (t->as.how.gates_swapped)
		x = chi_torch_swap_gates(x);
	return x == NULL ? NULL : choir_tensor_data(x);
}

static void write_zeros(writing *w, size_t bytes)
{
	void *zeros = chi_alloc_array(bytes, 1);
	fail(w, zeros == NULL ? CHOIR_NO_MEMORY : chi_writer_write(w->to, zeros, bytes));
	chi_free(zeros);
}

static choir_status write_weight(
		const choir_variable *v, const void *data, size_t bytes, void *user)
{
	writing *w = user;
	const target *t = w->target;
	if (t != NULL)
		w->target++;
	if (w->to == NULL || w->status != CHOIR_OK)
		return CHOIR_OK;
	if (t == NULL || (t->axes == 0 && !t->as.how.gates_swapped))
		fail(w, chi_writer_write(w->to, data, bytes));
	else {
		const size_t mark = choir_frame_mark(w->frame);
		const void *moved = arrange(v, data, t, w->frame);
		fail(w,
				moved == NULL ? chi_frame_status(w->frame)
							  : chi_writer_write(w->to, moved, bytes));
		choir_frame_rewind(w->frame, mark);
	}
	if (t != NULL && t->zeros.length > 0 && w->status == CHOIR_OK)
		write_zeros(w, bytes);
	return CHOIR_OK;
}

static choir_status write_file(const char *path, const chi_weights *weights, const target *to,
		const chi_text *header, bool writes)
{
	writing w = { .to = writes ? chi_writer_new(path) : NULL, .target = to };
	if (to != NULL && (w.frame = choir_frame_new(NULL)) == NULL)
		fail(&w, choir_error_status());
	if (w.to != NULL)
		fail(&w, chi_writer_write(w.to, header->data, header->length));
	else if (writes)
		fail(&w, choir_error_status());
	fail(&w, chi_weights_each(weights, write_weight, &w));
	choir_frame_free(w.frame);
	if (w.status == CHOIR_OK)
		return w.to == NULL ? CHOIR_OK : chi_writer_commit(w.to);
	if (w.to != NULL)
		chi_writer_abort(w.to);
	chi_error_restore(&w.failure);
	return w.status;
}

typedef struct {
	const char *path;
	chi_name_map map;
	chi_weights weights;
	target *to;
	chi_text header;
} saving;

static choir_status begin_file(choir_strategy *s, saving *f, const char *map, const char *metadata)
{
	chi_metadata l = { 0 };
	if (f->path == NULL)
		return choir_fail(CHOIR_INVALID, "save: the path is NULL");
	choir_status status = chi_weights_collect(s, "save", &f->weights);
	if (status == CHOIR_OK)
		status = chi_metadata_cut(metadata, &l);
	if (status == CHOIR_OK)
		chi_heap_sort(f->weights.variable, f->weights.n, by_size_and_name);
	if (status == CHOIR_OK && map != NULL) {
		f->to = chi_alloc_array(f->weights.n + 1, sizeof *f->to);
		status = f->to == NULL ? CHOIR_NO_MEMORY : chi_name_map_read(map, &f->map);
		if (status == CHOIR_OK)
			status = find_targets(f->path, &f->map, &f->weights, f->to);
	}
	if (status == CHOIR_OK)
		status = print_header(&f->header, &f->weights, f->to, &l);
	chi_metadata_free(&l);
	return status;
}

static void end_file(saving *f)
{
	for (size_t i = 0; f->to != NULL && i < f->weights.n; i++) {
		chi_text_free(&f->to[i].as.name);
		chi_text_free(&f->to[i].zeros);
	}
	chi_free(f->to);
	chi_name_map_free(&f->map);
	chi_text_free(&f->header);
	chi_weights_free(&f->weights);
}

static choir_status save(
		choir_strategy *s, const char *path, const char *map, const char *metadata)
{
	saving f = { .path = path };
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "save"));
	CHOIR_TRY(chi_compare_workers(s->owner));
	chi_trace_begin(CHOIR_TRACE_CHECKPOINT, "save");
	choir_status status =
			chi_strategy_agree(s, begin_file(s, &f, map, metadata), "the weights to save");
	if (status == CHOIR_OK)
		status = chi_strategy_agree(s,
				write_file(path, &f.weights, f.to, &f.header, choir_strategy_is_chief(s)),
				"saving weights");
	end_file(&f);
	chi_trace_end();
	return status;
}

choir_status choir_strategy_save(choir_strategy *s, const char *path, const char *metadata)
{
	return save(s, path, NULL, metadata);
}

choir_status choir_strategy_save_mapped(
		choir_strategy *s, const char *path, const char *map, const char *metadata)
{
	return map == NULL ? chi_error_null("save_mapped: the map is NULL")
					   : save(s, path, map, metadata);
}
