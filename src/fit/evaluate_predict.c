// Evaluation and prediction: one pass over data without training.
#include "base/alloc.h"
#include "fit/model_logs.h"
#include "input/input.h"
#include "tensor/tensor.h"

#include <string.h>

// Rewinds the data, also after a failure.
typedef choir_status each_fn(choir_model *m, choir_values *batch, void *user);
static choir_status pass(
		choir_model *m, choir_distributed_dataset *data, each_fn *each, void *user)
{
	choir_values *batch = NULL;
	choir_status status = CHOIR_OK;
	while (status == CHOIR_OK &&
			(status = choir_distributed_dataset_next(data, &batch)) == CHOIR_OK)
		status = each(m, batch, user);
	choir_values_free(batch);
	return status == CHOIR_END ? choir_distributed_dataset_rewind(data) : status;
}

static choir_status test_batch(choir_model *m, choir_values *batch, void *user)
{
	(void) user;
	return choir_strategy_run(m->strategy, chi_model_test_step, m, batch, NULL);
}

choir_status choir_evaluate(choir_model *m, choir_distributed_dataset *data)
{
	CHOIR_TRY(chi_model_check(m, data, "evaluate", true));
	if (m->o.loss == NULL && m->o.test_step == NULL)
		return choir_fail(
				CHOIR_INVALID, "evaluate: model \"%s\" has no loss; it is needed", m->o.name);
	if (m->counting)
		return choir_fail(CHOIR_STATE,
				"evaluate: model \"%s\" is in an epoch, whose metrics are being counted",
				m->o.name);
	for (size_t i = 0; i < m->metrics; i++)
		CHOIR_TRY(choir_metric_reset(m->metric[i]));
	const choir_status status = pass(m, data, test_batch, NULL);
	return status == CHOIR_OK ? chi_model_take_metrics(m, true) : chi_error_prefix("evaluate");
}

typedef struct {
	choir_results_fn *fn;
	void *user;
	choir_values *results;
	int64_t first;
} prediction;

static choir_status give(prediction *p, choir_tensor *results)
{
	if (results == NULL)
		return choir_error_status();
	const int64_t rows = results->shape.rank == 0 ? 1 : results->shape.dim[0];
	const chi_suspended_error before = chi_error_suspend();
	const choir_status status = p->fn(results, p->first, p->user);
	if (status != CHOIR_OK)
		return chi_error_reason(status, "the function of the results");
	chi_error_resume(before);
	p->first += rows;
	return CHOIR_OK;
}

static choir_status predict_batch(choir_model *m, choir_values *batch, void *user)
{
	prediction *p = user;
	CHOIR_TRY(choir_strategy_run(m->strategy, chi_model_predict_step, m, batch, &p->results));
	choir_cross *x = choir_strategy_cross(m->strategy);
	if (x == NULL)
		return choir_error_status();
	const size_t mark = choir_frame_mark(x->frame);
	const choir_status status =
			give(p, choir_cross_gather(x, choir_values_find(p->results, "results"), 0));
	choir_frame_rewind(x->frame, mark);
	return status;
}

choir_status choir_predict_batches(
		choir_model *m, choir_distributed_dataset *data, choir_results_fn *fn, void *user)
{
	CHOIR_TRY(chi_model_check(m, data, "predict", false));
	if (fn == NULL)
		return chi_error_null("predict: the function of the results is NULL");
	if (m->o.layer == NULL && m->o.forward == NULL)
		return choir_fail(CHOIR_INVALID,
				"predict: model \"%s\" has no layer and no forward function; one is needed",
				m->o.name);
	prediction p = { .fn = fn, .user = user };
	const choir_status status = pass(m, data, predict_batch, &p);
	choir_values_free(p.results);
	return status == CHOIR_OK ? status : chi_error_prefix("predict");
}

typedef struct {
	char *data;
	size_t used, capacity;
	choir_dtype dtype;
	choir_shape shape;
} collection;

static choir_status collect(choir_tensor *results, int64_t first, void *user)
{
	collection *c = user;
	const void *data = choir_tensor_data(results);
	const size_t bytes = chi_tensor_bytes(results);
	if (data == NULL || !chi_grow(&c->data, &c->capacity, c->used + bytes + 1, 1))
		return choir_error_status();
	memcpy(c->data + c->used, data, bytes);
	c->used += bytes;
	c->dtype = results->dtype;
	c->shape = results->shape;
	if (c->shape.rank == 0)
		return choir_fail(
				CHOIR_INVALID, "the results are a scalar; one row per example is needed");
	c->shape.dim[0] += first;
	return CHOIR_OK;
}

choir_tensor *choir_predict(choir_model *m, choir_distributed_dataset *data, choir_frame *f)
{
	collection c = { .shape = CHOIR_SHAPE(0) };
	choir_tensor *all = NULL;
	if (f == NULL || f->failed)
		return NULL;
	if (choir_predict_batches(m, data, collect, &c) != CHOIR_OK)
		chi_frame_record_error(f);
	else
		all = choir_constant(f, c.dtype, c.shape, c.data == NULL ? "" : c.data);
	chi_free(c.data);
	return all;
}
