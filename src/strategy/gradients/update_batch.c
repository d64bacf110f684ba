// A GPU's launch takes longer than a small variable's update, so one call there updates many
// variables.
#include "strategy/gradients/update_batch.h"

#include "value/narrow_copy.h"

choir_status chi_device_gradient_write(
		const chi_device_gradient *g, int copy, const chi_gradient_chunk *chunk)
{
	chi_pending_update *u = g->update;
	const chi_gradients *a = u->gradients;
	choir_variable *v = g->variable;
	chi_stream *stream = chi_strategy_stream(u->strategy, g->device, v->copy[copy].device);
	chi_atomic32_store(&u->written, 1);
	chi_trace_begin(CHOIR_TRACE_UPDATE, v->name);
	choir_status status = a->table->chunk(a->user, u->state, g->index, v, copy, chunk, stream);
	if (status == CHOIR_OK)
		status = chi_narrow_copy_follow(&v->copy[copy], stream, chunk->first, chunk->count);
	chi_trace_end();
	return status;
}

choir_status chi_device_gradient_write_rows(
		const chi_device_gradient *g, const chi_gradient_rows *rows)
{
	chi_pending_update *u = g->update;
	const chi_gradients *a = u->gradients;
	choir_variable *v = g->variable;
	chi_stream *stream = chi_strategy_stream(u->strategy, g->device, v->copy[0].device);
	const size_t bytes = (size_t) rows->width * chi_dtype_size(v->dtype);
	choir_status status = CHOIR_OK;
	chi_atomic32_store(&u->written, 1);
	chi_trace_begin(CHOIR_TRACE_UPDATE, v->name);
	if (a->table->rows != NULL)
		status = a->table->rows(a->user, u->state, g->index, v, rows, stream);
	for (int64_t k = 0; a->table->rows == NULL && k < rows->n && status == CHOIR_OK; k++) {
		const chi_gradient_chunk chunk = { rows->row[k] * rows->width, rows->width,
			(const char *) rows->values + (size_t) k * bytes, 1, NULL };
		status = a->table->chunk(a->user, u->state, g->index, v, 0, &chunk, stream);
	}
	chi_trace_end();
	return status;
}

choir_status chi_write_list_run(chi_write_list *l)
{
	const chi_pending_update *u = l->update;
	const chi_gradients *a = u->gradients;
	if (l->n == 0)
		return CHOIR_OK;
	chi_atomic32_store(&l->update->written, 1);
	chi_trace_begin(CHOIR_TRACE_UPDATE, l->n > 1 ? "variables" : l->write[0].variable->name);
	const choir_status status = a->table->chunks(a->user, u->state, l->n, l->write, l->stream);
	chi_trace_end();
	l->n = 0;
	return status;
}

choir_status chi_write_list_add(chi_write_list *l, chi_stream *stream, const chi_gradient_write *w)
{
	if (l->n == sizeof l->write / sizeof l->write[0] || (l->n > 0 && l->stream != stream))
		CHOIR_TRY(chi_write_list_run(l));
	l->stream = stream;
	l->write[l->n++] = *w;
	return CHOIR_OK;
}
