// A batch is one tensor per column in the set's frame. Replicas get views of their rows, or copies
// on their devices.
#include "input/input.h"

#include "base/fpenv.h"
#include "strategy/worker_sync.h"
#include "trace/trace.h"
#include "value/value.h"

choir_status chi_input_need_data(const choir_distributed_dataset *data, const char *what)
{
	if (data != NULL)
		return CHOIR_OK;
	return chi_error_null("distributed dataset: %s: the dataset is NULL", what);
}

static choir_status ready_batch(choir_distributed_dataset *data, choir_values **batch)
{
	if (batch == NULL)
		return choir_fail(CHOIR_INVALID, "distributed dataset: next: batch is NULL");
	if (*batch != NULL && (*batch)->strategy != data->strategy)
		return choir_fail(CHOIR_INVALID,
				"distributed dataset: next: the batch belongs to another strategy; one of this "
				"strategy or NULL needed");
	if (*batch == NULL)
		*batch = choir_values_new(data->strategy);
	else
		choir_values_clear(*batch);
	return chi_made(*batch);
}

static choir_tensor *new_column(choir_frame *f, const choir_column *c, int64_t rows)
{
	choir_shape shape = { .rank = c->shape.rank + 1, .dim = { rows } };
	for (int i = 0; i < c->shape.rank; i++)
		shape.dim[i + 1] = c->shape.dim[i] == CHOIR_UNKNOWN ? 0 : c->shape.dim[i];
	return chi_tensor_new(f, c->dtype, &shape);
}

choir_status chi_input_make_columns(const choir_distributed_dataset *data, chi_batch_buffer *to)
{
	const chi_spec *spec = data->stream[0].spec;
	to->capacity = data->capacity;
	to->at = 0;
	for (size_t i = 0; i < spec->n; i++) {
		to->column[i] = NULL;
		to->piece[i] = NULL;
		if (chi_shape_varies(&spec->column[i].shape))
			continue;
		to->column[i] = new_column(to->frame, &spec->column[i], to->capacity);
		if (to->column[i] == NULL)
			return choir_error_status();
	}
	return CHOIR_OK;
}

// To devices with memory of their own.
static choir_status fetch(choir_distributed_dataset *data, choir_values *set, const char *name)
{
	choir_value *v = choir_values_find(set, name);
	for (int i = 0; i < set->layout.replicas; i++) {
		choir_frame *f = chi_values_replica_frame(set, i);
		if (f == NULL)
			return choir_error_status();
		v->component[i] = chi_value_view(f, v->component[i]);
		if (v->component[i] == NULL)
			return choir_error_status();
		v->device[i] = data->strategy->replica_device[i];
	}
	return CHOIR_OK;
}

static choir_status deal_pieces(
		choir_values *set, const char *name, const chi_batch_buffer *to, size_t i)
{
	const size_t n = (size_t) set->layout.replicas;
	choir_tensor **part = chi_arena_alloc(&set->frame->arena, n * sizeof *part);
	int64_t first = 0, offset, there;
	if (part == NULL)
		return choir_error_status();
	for (size_t k = 0; k < n; k++) {
		choir_tensor *t = chi_batch_buffer_find(to, i, first, to->rows[k], &offset, &there);
		part[k] = chi_tensor_rows(set->frame, t, offset, to->rows[k]);
		if (part[k] == NULL)
			return choir_error_status();
		first += to->rows[k];
	}
	return chi_values_take_rows(set, name, part, to->rows);
}

static choir_status deal(choir_distributed_dataset *data, choir_values *set, chi_batch_buffer *to)
{
	const chi_spec *spec = data->stream[0].spec;
	const bool fetches = data->o.fetch == CHOIR_FETCH_TO_DEVICE && !data->strategy->all_host;
	for (size_t i = 0; i < spec->n; i++) {
		const choir_column *c = &spec->column[i];
		if (to->column[i] == NULL)
			to->column[i] = new_column(to->frame, c, to->capacity);
		if (to->column[i] == NULL)
			return choir_error_status();
		CHOIR_TRY(to->piece[i] != NULL
						? deal_pieces(set, c->name, to, i)
						: chi_values_split_rows(set, c->name, to->column[i], to->rows));
		if (fetches)
			CHOIR_TRY(fetch(data, set, c->name));
	}
	if (set->in_sync > set->layout.replicas)
		set->all_examples = data->all;
	return CHOIR_OK;
}

void chi_input_where(const choir_distributed_dataset *data, choir_input_position *p)
{
	if (!chi_read_ahead_position(data->read_ahead, p))
		chi_example_stream_position(&data->stream[0], p);
	p->steps = data->steps;
}

void chi_input_hold_position(choir_distributed_dataset *data, bool hold)
{
	data->held = hold;
}

// The next step in which some worker has examples. A worker takes part after its end, and after an
// earlier failure, which it reports.
static choir_status read_step(
		choir_distributed_dataset *data, chi_batch_buffer *to, choir_status own)
{
	choir_status status = own;
	do {
		if (!data->unreported) // else it is the target of a rewind or restore
			chi_input_where(data, &data->before);
		to->step = data->steps;
		if (status == CHOIR_OK)
			status = data->read_ahead != NULL ? chi_read_ahead_take(data->read_ahead, to)
											  : chi_input_read_step(data, to);
		status = chi_input_sync_step(data, to, status);
		data->steps += status == CHOIR_OK;
	} while (status == CHOIR_OK && data->all == 0 && data->strategy->process_group != NULL);
	return status;
}

static choir_status fill(choir_distributed_dataset *data, choir_values *set, choir_status status)
{
	chi_batch_buffer to = { .rows = data->rows, .capacity = data->capacity };
	if (set != NULL)
		to.frame = set->frame;
	if (status == CHOIR_OK && data->read_ahead == NULL)
		status = chi_input_make_columns(data, &to);
	status = read_step(data, &to, status);
	return status == CHOIR_OK ? chi_strategy_abort(data->strategy, deal(data, set, &to)) : status;
}

// Until the rewind, on all workers: a step may be lost.
choir_status chi_input_keep(choir_distributed_dataset *data, choir_status status, bool told)
{
	data->failure.status = CHOIR_OK;
	if (status != CHOIR_OK && status != CHOIR_END)
		chi_error_save(&data->failure);
	data->unreported =
			data->failure.status != CHOIR_OK && !told && data->strategy->process_group != NULL;
	return status;
}

choir_status choir_distributed_dataset_next(choir_distributed_dataset *data, choir_values **batch)
{
	CHOIR_TRY(chi_input_need_data(data, "next"));
	CHOIR_TRY(chi_strategy_check(data->strategy));
	CHOIR_TRY(chi_context_need_cross(data->strategy, "the next batch of a distributed dataset"));
	choir_status ready = ready_batch(data, batch);
	data->held = false;
	if (ready != CHOIR_OK && data->strategy->process_group == NULL)
		return ready;
	if (data->failure.status != CHOIR_OK) {
		chi_error_restore(&data->failure);
		ready = data->failure.status;
		if (!data->unreported)
			return ready;
	}
	chi_fpenv host; // independent of the host's environment, e.g. flush to zero
	chi_fpenv_enter(&host);
	chi_trace_begin(CHOIR_TRACE_INPUT, "next batch");
	const choir_status status =
			chi_input_keep(data, fill(data, ready == CHOIR_OK ? *batch : NULL, ready), true);
	if (ready == CHOIR_OK && status != CHOIR_OK)
		choir_values_clear(*batch);
	chi_trace_end();
	chi_fpenv_leave(&host);
	return status;
}

choir_status choir_distributed_dataset_rewind(choir_distributed_dataset *data)
{
	CHOIR_TRY(chi_input_need_data(data, "rewind"));
	CHOIR_TRY(chi_strategy_check(data->strategy));
	CHOIR_TRY(chi_context_need_cross(data->strategy, "rewinding a distributed dataset"));
	data->steps = 0;
	data->held = false;
	choir_status status = CHOIR_OK;
	int64_t pass = 0;
	chi_fpenv host;
	chi_fpenv_enter(&host);
	chi_trace_begin(CHOIR_TRACE_INPUT, "rewind");
	const bool begun = data->read_ahead != NULL && chi_read_ahead_rewind(data->read_ahead, &pass);
	if (data->read_ahead == NULL)
		pass = chi_dataset_pass(data->stream[0].data) + 1;
	for (int i = 0; !begun && status == CHOIR_OK && i < data->streams; i++)
		status = chi_example_stream_begin(&data->stream[i], pass);
	data->pass = pass;
	data->before = (choir_input_position){ .pass = pass };
	chi_trace_end();
	chi_fpenv_leave(&host);
	return chi_input_keep(data, status, false);
}

const choir_column *choir_distributed_dataset_column(
		const choir_distributed_dataset *data, size_t i)
{
	return data != NULL && i < data->stream[0].spec->n ? &data->column[i] : NULL;
}

static int64_t steps_of(int64_t items, int64_t each)
{
	return items == CHOIR_UNKNOWN_CARDINALITY ? CHOIR_UNKNOWN_CARDINALITY
											  : items / each + (items % each != 0);
}

int64_t choir_distributed_dataset_cardinality(const choir_distributed_dataset *data)
{
	if (data == NULL)
		return 0;
	const choir_dataset *d = data->stream[0].data;
	if (d->spec.endless)
		return CHOIR_INFINITE_CARDINALITY;
	switch (data->rebatch) {
	case CHI_REBATCH_AS_THEY_COME:
	case CHI_REBATCH_UNKNOWN_SHARED:
		return d->elements;
	case CHI_REBATCH_ELEMENTS:
		return data->streams > 1 ? CHOIR_UNKNOWN_CARDINALITY
								 : steps_of(d->elements, data->strategy->replicas);
	case CHI_REBATCH_ELEMENTS_SHARED:
		return steps_of(d->elements, chi_input_replicas(data));
	case CHI_REBATCH_SHARED:
		return steps_of(d->spec.examples, data->batch);
	case CHI_REBATCH_STREAM:
		return data->o.workers > 1 ? CHOIR_UNKNOWN_CARDINALITY
								   : steps_of(d->spec.examples, data->batch);
	case CHI_REBATCH_UNKNOWN:
		break;
	}
	return data->o.workers > 1 ? CHOIR_UNKNOWN_CARDINALITY : d->elements;
}
