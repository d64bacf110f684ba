// The file is read and compared as a whole before the first variable is written.
#include "choir/weights.h"

#include "strategy/context.h"
#include "trace/trace.h"
#include "train/weights/safetensors.h"
#include "train/weights/weights.h"

#include <string.h>

static void add_difference(chi_name_list *list, const choir_variable *v, const chi_st_tensor *t)
{
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT];
	chi_text more = { 0 };
	chi_text_add(&more, " is %.10s %s, not %s %s", t->dtype_name, chi_shape_print(&t->shape, have),
			chi_safetensors_dtype(v->dtype), chi_shape_print(&v->shape, need));
	chi_name_list_add(list, v->name, more.data == NULL ? " differs" : more.data);
	chi_text_free(&more);
}

static bool fits(const choir_variable *v, const chi_st_tensor *t)
{
	return t->supported && t->dtype == v->dtype && chi_shape_equal(&t->shape, &v->shape);
}

choir_status chi_weights_compare(const char *path, const chi_weights *w, const chi_safetensors *st)
{
	chi_name_list list[] = { { .what = "missing" }, { .what = "too many" },
		{ .what = "different" } };
	for (size_t i = 0, k = 0; i < w->n || k < st->n;) {
		const choir_variable *v = i < w->n ? w->variable[i] : NULL;
		const chi_st_tensor *t = k < st->n ? st->tensor[k] : NULL;
		const int order = v == NULL ? 1 : t == NULL ? -1 : strcmp(v->name, t->name);
		if (order < 0)
			chi_name_list_add(&list[0], v->name, "");
		else if (order > 0)
			chi_name_list_add(&list[1], t->name, "");
		else if (!fits(v, t))
			add_difference(&list[2], v, t);
		i += order <= 0;
		k += order >= 0;
	}
	chi_text text = { 0 };
	choir_status status = CHOIR_OK;
	for (int i = 0; i < 3; i++)
		chi_name_list_print(&text, &list[i]);
	if (list[0].n + list[1].n + list[2].n > 0)
		status = choir_fail(CHOIR_INVALID,
				"%s: its weights differ from this strategy's; %s (choir_strategy_restore_partial "
				"takes some, or other names by a .map)",
				path, text.data == NULL ? "" : text.data);
	chi_text_free(&text);
	for (int i = 0; i < 3; i++)
		chi_text_free(&list[i].text);
	return status;
}

choir_status chi_weights_check_bools(
		const char *path, const chi_st_tensor *t, const unsigned char *data)
{
	for (uint64_t i = 0; t->dtype == CHOIR_BOOL && i < t->end - t->begin; i++)
		if (data[t->begin + i] > 1)
			return choir_fail(CHOIR_CORRUPT,
					"%s: tensor \"%.100s\": has a BOOL of %d; 0 or 1 is needed", path, t->name,
					data[t->begin + i]);
	return CHOIR_OK;
}

choir_status chi_weight_set(choir_variable *v, choir_frame *f, const void *x)
{
	if (v->synchronization != CHOIR_SYNCHRONIZATION_ON_READ ||
			v->aggregation != CHOIR_AGGREGATION_SUM)
		return chi_variable_from_host(v, x);
	return choir_variable_assign(v, choir_borrow(f, v->dtype, v->shape, x));
}

choir_status chi_weights_set(const chi_weights *w, const chi_safetensors *st, const char *data)
{
	choir_frame *f = choir_frame_new(NULL);
	choir_status status = chi_made(f);
	for (size_t i = 0; status == CHOIR_OK && i < w->n; i++) {
		status = chi_weight_set(w->variable[i], f, data + st->tensor[i]->begin);
		// undefined is better than a mix of two models
		for (size_t k = 0; status != CHOIR_OK && k <= i; k++)
			chi_variable_undefine(w->variable[k]);
	}
	choir_frame_free(f);
	return status;
}

static choir_status check(const char *path, const chi_weights *w, const chi_weights_file *f)
{
	CHOIR_TRY(chi_weights_compare(path, w, &f->header));
	for (size_t i = 0; i < f->header.n; i++)
		CHOIR_TRY(chi_weights_check_bools(path, f->header.tensor[i], f->data));
	return CHOIR_OK;
}

choir_status choir_strategy_restore(choir_strategy *s, const char *path)
{
	chi_weights w;
	chi_weights_file f = { 0 };
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "restore"));
	if (path == NULL)
		return choir_fail(CHOIR_INVALID, "restore: the path is NULL");
	chi_trace_begin(CHOIR_TRACE_CHECKPOINT, "restore");
	choir_status status =
			chi_weights_read(s, chi_weights_collect_to_write(s, "restore", &w), path, &f);
	if (status == CHOIR_OK)
		status = chi_strategy_agree(s, check(path, &w, &f), "comparing weights");
	if (status == CHOIR_OK) {
		status = chi_strategy_agree(
				s, chi_weights_set(&w, &f.header, (const char *) f.data), "restoring weights");
		// A failed worker's variables are undefined, so all workers' must be.
		for (size_t i = 0; status != CHOIR_OK && s->process_group != NULL && i < w.n; i++)
			chi_variable_undefine(w.variable[i]);
	}
	chi_weights_file_free(&f);
	chi_weights_free(&w);
	chi_trace_end();
	return status;
}
