// A dataset dealt out to replicas. The stream of examples is cut into global batches of a fixed
// number; the examples of one lie in one tensor for each column, in memory of the set that is
// handed out, and replicas get views of their rows. Where the dataset's batches end where ours
// do, examples go from the dataset straight into that memory; elsewhere they pass through a
// spare element, which keeps what is left for the next batch.
#include "choir/input.h"

#include "base/alloc.h"
#include "base/fpenv.h"
#include "data/dataset.h"
#include "strategy/context.h"

#include <inttypes.h>
#include <string.h>

struct choir_distributed_dataset {
	choir_strategy *strategy;
	choir_dataset *data;
	const chi_spec *spec;
	int64_t batch; // examples of a global batch
	bool as_they_come; // one replica: an element is a batch
	int64_t *rows; // of each replica, of the batch that is made
	void *spare[CHI_MAX_COLUMNS]; // an element that is not used up; made when first needed
	int64_t held, used; // examples in spare; of which so many were handed out
};

static void distributed_free(void *self)
{
	choir_distributed_dataset *data = self;
	for (size_t i = 0; i < CHI_MAX_COLUMNS; i++)
		chi_free(data->spare[i]);
	choir_dataset_free(data->data);
	chi_free(data->rows);
	chi_free(data);
}

static choir_status check(choir_strategy *s, choir_dataset *d, const choir_input_options *o)
{
	CHOIR_TRY(chi_strategy_check(s));
	CHOIR_TRY(chi_context_need_cross(s, "distribute_dataset"));
	const chi_spec *spec = chi_dataset_spec(d);
	if (spec == NULL)
		return choir_error_status();
	for (size_t i = 0; i < spec->n; i++)
		if (chi_shape_varies(&spec->column[i].shape))
			return choir_fail(CHOIR_UNSUPPORTED,
					"distribute_dataset: the shape of column \"%s\" varies",
					spec->column[i].name);
	if (o != NULL && (o->size < sizeof(size_t) || o->size > sizeof *o))
		return choir_fail(CHOIR_INVALID,
				"distribute_dataset: the options' size is %zu, not %zu: set "
				"it with CHOIR_OPTIONS",
				o->size, sizeof *o);
	return CHOIR_OK;
}

// The global batch that is asked for; 0: the dataset's own.
static int64_t asked_batch(const choir_input_options *o)
{
	return o != NULL && o->size >= sizeof *o ? o->global_batch : 0;
}

// d in batches, of global examples where it had none. NULL: d is freed.
static choir_dataset *in_batches(choir_dataset *d, int64_t global)
{
	if (global < 0)
		choir_fail(CHOIR_INVALID,
				"distribute_dataset: a global batch of %" PRId64 " examples: at "
				"least 1 is needed",
				global);
	else if (chi_dataset_spec(d)->batch != 0)
		return d;
	else if (global > 0)
		return choir_dataset_batch(d, global);
	else
		choir_fail(CHOIR_INVALID,
				"distribute_dataset: the dataset yields single examples: add a batch "
				"step (choir_dataset_batch), or give global_batch");
	choir_dataset_free(d);
	return NULL;
}

choir_distributed_dataset *choir_strategy_distribute_dataset(
		choir_strategy *s, choir_dataset *d, const choir_input_options *o)
{
	if (check(s, d, o) != CHOIR_OK) {
		choir_dataset_free(d);
		return NULL;
	}
	const int64_t global = asked_batch(o);
	if ((d = in_batches(d, global)) == NULL)
		return NULL;
	choir_distributed_dataset *data = chi_alloc(sizeof *data);
	if (data == NULL) {
		choir_dataset_free(d);
		return NULL;
	}
	data->strategy = s;
	data->data = d;
	data->spec = chi_dataset_spec(d);
	data->batch = global != 0 ? global : data->spec->batch;
	data->as_they_come = global == 0 && s->replicas == 1;
	data->rows = chi_alloc_array((size_t) s->replicas, sizeof *data->rows);
	if (data->rows == NULL) {
		distributed_free(data);
		return NULL;
	}
	return chi_strategy_own(s, distributed_free, data) == CHOIR_OK ? data : NULL;
}

static size_t example_bytes(const chi_spec *spec, size_t column)
{
	const choir_column *c = &spec->column[column];
	return (size_t) choir_shape_elements(&c->shape) * chi_dtype_size(c->dtype);
}

static choir_status make_spare(choir_distributed_dataset *data)
{
	for (size_t i = 0; i < data->spec->n; i++) {
		if (data->spare[i] != NULL)
			continue;
		// A batch step has checked that this many fit in memory.
		data->spare[i] =
				chi_alloc_aligned((size_t) data->spec->batch * example_bytes(data->spec, i));
		if (data->spare[i] == NULL)
			return choir_error_status();
	}
	return CHOIR_OK;
}

// Takes up to want examples out of spare, to the columns' memory from example at on.
static int64_t take_held(
		choir_distributed_dataset *data, choir_tensor *const to[], int64_t at, int64_t want)
{
	const int64_t held = data->held - data->used;
	const int64_t n = held < want ? held : want;
	for (size_t i = 0; n > 0 && i < data->spec->n; i++) {
		const size_t bytes = example_bytes(data->spec, i);
		memcpy((char *) to[i]->data + (size_t) at * bytes,
				(const char *) data->spare[i] + (size_t) data->used * bytes, (size_t) n * bytes);
	}
	data->used += n;
	return n;
}

// Reads one element: into to from example at on if it is sure to fit there, else into spare.
static choir_status read_element(
		choir_distributed_dataset *data, choir_tensor *const to[], int64_t at, int64_t *direct)
{
	chi_element e = { .capacity = data->spec->batch };
	const bool fits = data->spec->batch <= data->batch - at;
	*direct = 0;
	if (!fits)
		CHOIR_TRY(make_spare(data));
	for (size_t i = 0; i < data->spec->n; i++)
		e.column[i] = fits ? (char *) to[i]->data + (size_t) at * example_bytes(data->spec, i)
						   : data->spare[i];
	CHOIR_TRY(chi_dataset_next(data->data, &e));
	if (fits) {
		*direct = e.examples;
		return CHOIR_OK;
	}
	data->held = e.examples;
	data->used = 0;
	return CHOIR_OK;
}

// Fills the columns with up to a batch of examples; CHOIR_END only instead of none.
static choir_status fill(
		choir_distributed_dataset *data, choir_tensor *const to[], int64_t *examples)
{
	*examples = 0;
	while (*examples < data->batch) {
		int64_t n = take_held(data, to, *examples, data->batch - *examples);
		if (n == 0) {
			const choir_status status = read_element(data, to, *examples, &n);
			if (status == CHOIR_END)
				return *examples > 0 ? CHOIR_OK : CHOIR_END;
			CHOIR_TRY(status);
		}
		*examples += n;
		if (data->as_they_come)
			break;
	}
	return CHOIR_OK;
}

static choir_status ready_batch(choir_distributed_dataset *data, choir_values **batch)
{
	if (*batch != NULL && (*batch)->strategy != data->strategy)
		return choir_fail(CHOIR_INVALID,
				"distributed dataset: the batch to refill belongs to another "
				"strategy");
	if (*batch == NULL)
		*batch = choir_values_new(data->strategy);
	else
		choir_values_clear(*batch);
	return *batch == NULL ? choir_error_status() : CHOIR_OK;
}

// One tensor for each column, with room for a whole batch.
static choir_status make_columns(
		choir_distributed_dataset *data, choir_values *set, choir_tensor *column[])
{
	for (size_t i = 0; i < data->spec->n; i++) {
		const choir_column *c = &data->spec->column[i];
		choir_shape shape = { .rank = c->shape.rank + 1, .dim = { data->batch } };
		memcpy(shape.dim + 1, c->shape.dim, (size_t) c->shape.rank * sizeof shape.dim[0]);
		column[i] = chi_tensor_new(set->frame, c->dtype, &shape);
		if (column[i] == NULL)
			return choir_error_status();
	}
	return CHOIR_OK;
}

// Deals examples to the replicas: each has its share of a whole batch, as long as there are any.
static choir_status deal(choir_distributed_dataset *data, choir_values *set,
		choir_tensor *const column[], int64_t examples)
{
	const int n = data->strategy->replicas;
	for (int i = 0; i < n; i++) {
		const int64_t share = chi_share_of(data->batch, n, i);
		data->rows[i] = share < examples ? share : examples;
		examples -= data->rows[i];
	}
	for (size_t i = 0; i < data->spec->n; i++)
		CHOIR_TRY(chi_values_split_rows(set, data->spec->column[i].name, column[i], data->rows));
	return CHOIR_OK;
}

choir_status choir_distributed_dataset_next(choir_distributed_dataset *data, choir_values **batch)
{
	if (data == NULL || batch == NULL)
		return data == NULL && choir_error_status() != CHOIR_OK
				? choir_error_status()
				: choir_fail(CHOIR_INVALID, "distributed dataset: next: %s is NULL",
						  data == NULL ? "the dataset" : "batch");
	CHOIR_TRY(chi_strategy_check(data->strategy));
	CHOIR_TRY(chi_context_need_cross(data->strategy, "the next batch of a distributed dataset"));
	CHOIR_TRY(ready_batch(data, batch));
	choir_tensor *column[CHI_MAX_COLUMNS];
	int64_t examples = 0;
	chi_fpenv host; // of a host that flushes to zero, say: the data must not depend on it
	chi_fpenv_enter(&host);
	choir_status status = make_columns(data, *batch, column);
	if (status == CHOIR_OK)
		status = fill(data, column, &examples);
	if (status == CHOIR_OK)
		status = deal(data, *batch, column, examples);
	if (status != CHOIR_OK)
		choir_values_clear(*batch);
	chi_fpenv_leave(&host);
	return status;
}

choir_status choir_distributed_dataset_rewind(choir_distributed_dataset *data)
{
	if (data == NULL)
		return choir_error_status() != CHOIR_OK
				? choir_error_status()
				: choir_fail(CHOIR_INVALID, "distributed dataset: rewind: the dataset is NULL");
	CHOIR_TRY(chi_context_need_cross(data->strategy, "rewinding a distributed dataset"));
	data->held = data->used = 0;
	return chi_dataset_rewind(data->data);
}
