// A model of fit: its options, and a step of training, of validation and of prediction.
#include "fit/model_logs.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/text.h"
#include "input/input.h"
#include "op/nn/nn.h"
#include "op/op.h"
#include "strategy/context.h"
#include "train/layer/layer.h"
#include "train/metric/metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { MAX_EPOCHS = 10000000 }; // the history of more may be too large

static choir_status check_options(const choir_model_options *o)
{
	if (o->layer != NULL && o->forward != NULL)
		return choir_fail(CHOIR_INVALID,
				"model: it has both a layer and a forward function; one of them is needed");
	if (o->layer == NULL && o->forward == NULL && o->train_step == NULL)
		return chi_error_null(
				"model: it has neither a layer nor a forward function; one of them is needed");
	if (o->train_step != NULL ? o->loss != NULL : o->test_step != NULL)
		return choir_fail(CHOIR_INVALID,
				"model: it has %s; .loss, or .train_step and .test_step are needed",
				o->loss != NULL ? "a loss and a train_step" : "a test_step without a train_step");
	if (o->train_step != NULL &&
			(o->sample_weights != NULL || o->n_classes > 0 || o->regularized != NULL ||
					o->lengths != NULL))
		return choir_fail(CHOIR_INVALID,
				"model: it has a train_step and .%s; such a step handles them itself",
				o->sample_weights != NULL	 ? "sample_weights"
						: o->n_classes > 0	 ? "class_weights"
						: o->lengths != NULL ? "lengths"
											 : "regularized");
	if ((o->n_classes > 0 && o->class_weights == NULL) || (o->n_metrics > 0 && o->metrics == NULL))
		return chi_error_null("model: %s is NULL",
				o->n_classes > 0 && o->class_weights == NULL ? ".class_weights" : ".metrics");
	for (size_t i = 0; i < o->n_classes; i++)
		if (!(o->class_weights[i] >= 0) || !isfinite((float) o->class_weights[i]))
			return choir_fail(CHOIR_INVALID,
					"model: the weight of class %zu is %g; 0 or a positive number is needed", i,
					o->class_weights[i]);
	for (size_t i = 0; i < o->n_metrics; i++) {
		const choir_metric *metric = o->metrics[i];
		if (metric == NULL)
			return chi_error_null("model: metric %zu is NULL", i);
		if ((metric->kind == CHI_METRIC_MEAN && o->train_step == NULL) ||
				metric->kind == CHI_METRIC_CONFUSION)
			return choir_fail(CHOIR_INVALID,
					"model: metric \"%s\" is %s; a metric of labels and results with one number "
					"is needed",
					metric->name,
					metric->kind == CHI_METRIC_MEAN ? "a mean" : "a confusion matrix");
	}
	return CHOIR_OK;
}

static bool copy_text(const char **to, const char *from)
{
	*to = from == NULL ? NULL : chi_strdup(from);
	return from == NULL || *to != NULL;
}

static bool copy_class_weights(choir_model *m, const choir_model_options *o)
{
	m->o.class_weights = NULL;
	if (o->n_classes == 0)
		return true;
	m->class_weights = chi_alloc_array(o->n_classes, sizeof *m->class_weights);
	for (size_t i = 0; m->class_weights != NULL && i < o->n_classes; i++)
		m->class_weights[i] = (float) o->class_weights[i];
	return m->class_weights != NULL;
}

static bool make_loss_metric(choir_model *m)
{
	chi_text name = { 0 };
	chi_text_add(&name, "%s/loss", m->o.name);
	m->loss = name.failed ? NULL : choir_metric_new(name.data, CHOIR_METRIC_MEAN);
	chi_text_free(&name);
	return m->loss != NULL;
}

static bool fill_in(choir_model *m, const choir_model_options *o)
{
	const char *name = o->name == NULL ? "model" : o->name;
	m->o = *o;
	m->o.name = m->o.input = m->o.labels = m->o.sample_weights = m->o.lengths = NULL;
	const size_t own = o->train_step == NULL; // the loss
	m->metrics = o->n_metrics + own;
	m->metric = chi_alloc_array(m->metrics + 1, sizeof *m->metric);
	if (m->metric == NULL || !copy_text(&m->o.name, name) || !copy_text(&m->o.input, o->input) ||
			!copy_text(&m->o.labels, o->labels) ||
			!copy_text(&m->o.sample_weights, o->sample_weights) ||
			!copy_text(&m->o.lengths, o->lengths) || !copy_class_weights(m, o))
		return false;
	for (size_t i = 0; i < o->n_metrics; i++)
		m->metric[i + own] = o->metrics[i];
	m->o.metrics = NULL;
	if (!chi_model_name_logs(m) || (own != 0 && !make_loss_metric(m)))
		return false;
	if (own != 0)
		m->metric[0] = m->loss;
	return true;
}

choir_model *choir_model_new(const choir_model_options *given)
{
	choir_model_options o;
	choir_strategy *s = choir_strategy_current();
	if (s == NULL || chi_strategy_check(s) != CHOIR_OK ||
			chi_context_need_cross(s, "making a model") != CHOIR_OK)
		return NULL;
	if (chi_options_take("model: the options'", &o, sizeof o, given) != CHOIR_OK ||
			check_options(&o) != CHOIR_OK)
		return NULL;
	choir_model *m = chi_alloc(sizeof *m);
	if (m == NULL)
		return NULL;
	m->strategy = s->owner;
	m->plateau_best = (double) NAN;
	choir_layer *regularized = o.regularized != NULL ? o.regularized : o.layer;
	m->regularized = chi_layer_is_regularized(regularized) ? regularized : NULL;
	if (!fill_in(m, &o)) {
		chi_model_free(m);
		return NULL;
	}
	return (o.saved == CHOIR_OFF ? chi_strategy_own(s, chi_model_free, m)
								 : chi_strategy_own_stateful(s, &chi_model_state, m)) == CHOIR_OK
			? m
			: NULL;
}

void chi_model_free(void *self)
{
	choir_model *m = self;
	for (size_t i = 0; m->log_name != NULL && i < m->logs; i++)
		chi_free(m->log_name[i]);
	chi_best_weights_free(&m->best_weights);
	const void *texts[] = { m->o.name, m->o.input, m->o.labels, m->o.sample_weights,
		m->o.lengths };
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		chi_free((void *) (uintptr_t) texts[i]);
	chi_free(m->class_weights);
	chi_free(m->metric);
	chi_free(m->log_name);
	chi_free(m->log);
	chi_free(m->history);
	chi_free(m);
}

static choir_status take_column(
		const char **name, const choir_distributed_dataset *data, size_t i, const char *call)
{
	if (*name != NULL)
		return CHOIR_OK;
	const choir_column *c = choir_distributed_dataset_column(data, i);
	if (c == NULL)
		return choir_fail(CHOIR_INVALID,
				"%s: the data have %zu columns; inputs and labels are needed, or .input and "
				".labels of the model",
				call, i);
	return copy_text(name, c->name) ? CHOIR_OK : choir_error_status();
}

choir_status chi_model_check(
		choir_model *m, choir_distributed_dataset *data, const char *call, bool labels)
{
	if (m == NULL)
		return chi_error_null("%s: the model is NULL", call);
	if (data == NULL)
		return chi_error_null("%s: the data are NULL", call);
	CHOIR_TRY(chi_strategy_check(m->strategy));
	CHOIR_TRY(chi_context_need_cross(m->strategy, call));
	if (data->strategy != m->strategy)
		return choir_fail(CHOIR_INVALID,
				"%s: the data belong to another strategy than the model; both need the same",
				call);
	if (m->o.layer != NULL)
		CHOIR_TRY(take_column(&m->o.input, data, 0, call));
	return labels && m->o.loss != NULL ? take_column(&m->o.labels, data, 1, call) : CHOIR_OK;
}

// *ended: no axis of time steps is left.
static choir_tensor *results_of(const choir_model *m, choir_replica *r, bool *ended)
{
	*ended = false;
	if (m->o.layer == NULL)
		return m->o.forward(r, m->o.user);
	choir_tensor *x = choir_replica_arg(r, m->o.input);
	return m->o.lengths == NULL
			? choir_layer_apply(m->o.layer, x)
			: chi_layer_apply_sequences(m->o.layer, x, choir_replica_arg(r, m->o.lengths), ended);
}

// What the loss and the metrics compare.
typedef struct {
	choir_tensor *labels, *results;
	choir_tensor *lengths, *mask; // of sequences whose time steps are the examples, or NULL
} comparison;

static comparison compare(const choir_model *m, choir_replica *r)
{
	bool ended;
	comparison c = { .results = results_of(m, r, &ended),
		.labels = choir_replica_arg(r, m->o.labels) };
	if (m->o.lengths == NULL || c.results == NULL || ended || c.results->shape.rank < 3)
		return c;
	const int64_t t = c.results->shape.dim[1];
	c.lengths = choir_replica_arg(r, m->o.lengths);
	c.mask = choir_sequence_mask(c.lengths, t);
	c.labels = chi_time_steps(choir_zero_padding(c.labels, c.lengths));
	c.results = chi_time_steps(c.results);
	return c;
}

// With the whole penalty, or without one.
static choir_tensor *shown(choir_tensor *losses, choir_tensor *penalty, choir_replica *r)
{
	return penalty == NULL
			? losses
			: choir_add(losses, choir_scale(penalty, (double) choir_replica_count(r)));
}

static choir_tensor *penalty_of(const choir_model *m, choir_replica *r)
{
	return m->regularized == NULL ? NULL : choir_layer_regularization_loss(m->regularized, r);
}

static choir_tensor *mean_by_example(choir_tensor *losses)
{
	if (losses == NULL || losses->shape.rank == 1)
		return losses;
	const int64_t n = losses->shape.dim[0], each = choir_shape_elements(&losses->shape);
	return choir_mean(choir_reshape(losses, CHOIR_SHAPE(n, n == 0 ? 0 : each / n)), CHOIR_AXIS(1));
}

// Weights are per loss or, as the result then is, per example. NULL: recorded.
static choir_tensor *weigh(
		const choir_model *m, choir_tensor *losses, choir_tensor *given, const char *what)
{
	char have[CHI_SHAPE_TEXT], need[CHI_SHAPE_TEXT];
	if (given == NULL || losses == NULL)
		return NULL;
	const choir_shape *all = &losses->shape, example = CHOIR_SHAPE(all->dim[0]);
	choir_tensor *weights = choir_cast(given, losses->dtype);
	if (weights == NULL || (weights = chi_match_last_axis(weights, all)) == NULL)
		return NULL;
	if (chi_shape_equal(&weights->shape, all))
		return choir_multiply(losses, weights);
	weights = chi_match_last_axis(weights, &example);
	if (weights == NULL || chi_shape_equal(&weights->shape, &example))
		return choir_multiply(mean_by_example(losses), weights);
	return chi_frame_fail_null(losses->frame, CHOIR_INVALID,
			"model \"%s\": the %s are %s and the losses %s; one weight per example or per loss is "
			"needed",
			m->o.name, what, chi_shape_print(&given->shape, have), chi_shape_print(all, need));
}

static choir_status infer_class_weights(chi_result *r)
{
	const choir_dtype label = r->in[1]->dtype;
	if (label != CHOIR_U8 && label != CHOIR_I32 && label != CHOIR_I64)
		return choir_fail(CHOIR_INVALID, "the labels are %s; u8, i32 or i64 is needed",
				choir_dtype_name(label));
	r->shape = r->in[1]->shape;
	return CHOIR_OK;
}

// A label that is no class names the weights.
static const chi_op class_weights_op = {
	.name = "gather", .label = "class weights of the labels", .infer = infer_class_weights
};

static choir_tensor *weigh_classes(
		const choir_model *m, choir_replica *r, choir_tensor *losses, choir_tensor *labels)
{
	choir_tensor *const in[] = { choir_borrow(r->frame, CHOIR_F32,
										 CHOIR_SHAPE((int64_t) m->o.n_classes), m->class_weights),
		labels };
	return weigh(m, losses, chi_op_call(&class_weights_op, r->frame, 2, in, NULL),
			"class weights of the labels");
}

static choir_tensor *weigh_samples(const choir_model *m, choir_replica *r, choir_tensor *losses)
{
	char what[96];
	snprintf(what, sizeof what, "sample weights \"%.60s\"", m->o.sample_weights);
	return weigh(m, losses, choir_replica_arg(r, m->o.sample_weights), what);
}

// [n, t] whose mean over t is the mean without padding.
static choir_tensor *without_padding(choir_tensor *losses, const comparison *c)
{
	losses = mean_by_example(losses);
	if (losses == NULL || c->mask == NULL)
		return NULL;
	const choir_shape *all = &c->mask->shape;
	choir_frame *f = losses->frame;
	choir_tensor *n = choir_maximum(choir_cast(c->lengths, CHOIR_I64), choir_number(f, 1));
	n = n == NULL ? NULL : choir_reshape(n, CHOIR_SHAPE(all->dim[0], 1));
	choir_tensor *share =
			choir_divide(choir_number(f, (double) all->dim[1]), choir_cast(n, losses->dtype));
	return choir_multiply(
			choir_where(c->mask, choir_reshape(losses, *all), choir_number(f, 0)), share);
}

static choir_tensor *losses_of(
		const choir_model *m, choir_replica *r, const comparison *c, bool training)
{
	choir_tensor *losses = m->o.loss(c->labels, c->results);
	if (losses != NULL && losses->shape.rank == 0)
		return chi_frame_fail_null(r->frame, CHOIR_INVALID,
				"model \"%s\": the loss is a scalar; one number per example is needed", m->o.name);
	if (m->o.n_classes > 0 && training)
		losses = weigh_classes(m, r, losses, c->labels);
	if (c->lengths != NULL)
		losses = without_padding(losses, c);
	if (m->o.sample_weights != NULL)
		losses = weigh_samples(m, r, losses);
	return mean_by_example(losses);
}

static choir_status count_step(const choir_model *m, const comparison *c, choir_tensor *losses)
{
	CHOIR_TRY(choir_metric_update(m->loss, losses, NULL));
	choir_tensor *mask = NULL;
	if (c->mask != NULL && c->labels != NULL) {
		choir_shape each = c->labels->shape; // [n t, 1, ..]
		for (int i = 1; i < each.rank; i++)
			each.dim[i] = 1;
		mask = choir_reshape(c->mask, each);
	}
	for (size_t i = 1; i < m->metrics; i++)
		CHOIR_TRY(mask == NULL
						? choir_metric_update(m->metric[i], c->labels, c->results)
						: choir_metric_update_weighted(m->metric[i], c->labels, c->results, mask));
	return CHOIR_OK;
}

choir_status chi_model_train_step(choir_replica *r, void *user)
{
	const choir_model *m = user;
	if (m->o.train_step != NULL)
		return m->o.train_step(r, m->o.user);
	choir_tape *tape = choir_tape_begin(r->frame);
	const comparison c = compare(m, r);
	choir_tensor *losses = losses_of(m, r, &c, true), *penalty = penalty_of(m, r);
	CHOIR_TRY(count_step(m, &c, shown(losses, penalty, r)));
	choir_tensor *loss = choir_replica_average_loss(r, losses);
	return choir_optimizer_minimize(
			m->o.optimizer, penalty == NULL ? loss : choir_add(loss, penalty), tape);
}

choir_status chi_model_test_step(choir_replica *r, void *user)
{
	const choir_model *m = user;
	if (m->o.test_step != NULL)
		return m->o.test_step(r, m->o.user);
	const comparison c = compare(m, r);
	choir_tensor *losses = losses_of(m, r, &c, false);
	return count_step(m, &c, shown(losses, penalty_of(m, r), r));
}

choir_status chi_model_predict_step(choir_replica *r, void *user)
{
	bool ended;
	return choir_replica_return(r, "results", results_of(user, r, &ended));
}

void chi_model_forget(choir_model *m)
{
	m->epochs = m->batch = m->step = m->best_epoch = m->waited = 0;
	m->plateau_waited = m->plateau_cooldown = 0;
	m->plateau_best = (double) NAN;
	for (size_t i = 0; i < m->logs; i++)
		m->log[i] = (double) NAN;
}

void choir_model_stop(choir_model *m)
{
	if (m != NULL)
		chi_atomic32_store(&m->stop, 1);
}

bool choir_model_stopped(const choir_model *m)
{
	return m != NULL && (m->fitting ? chi_atomic32_load(&m->stop) != 0 : m->stopped);
}

choir_fit_progress choir_model_progress(const choir_model *m)
{
	static const choir_model none;
	m = m == NULL ? &none : m;
	return (choir_fit_progress){ .size = sizeof(choir_fit_progress),
		.epochs = m->epochs,
		.batch = m->batch,
		.step = m->step,
		.best_epoch = m->best_epoch,
		.best = m->best,
		.waited = m->waited };
}

choir_status choir_model_set_progress(choir_model *m, const choir_fit_progress *given)
{
	choir_fit_progress p;
	if (m == NULL)
		return chi_error_null("set_progress: the model is NULL");
	CHOIR_TRY(chi_options_take("set_progress: the progress'", &p, sizeof p, given));
	CHOIR_TRY(chi_context_need_cross(m->strategy, "set_progress"));
	if (m->fitting)
		return choir_fail(CHOIR_STATE, "set_progress: model \"%s\" is in choir_fit", m->o.name);
	if (p.epochs < 0 || p.epochs > MAX_EPOCHS || p.batch < 0 || p.step < 0 || p.waited < 0 ||
			p.best_epoch < 0 || p.best_epoch > p.epochs)
		return choir_fail(CHOIR_INVALID,
				"set_progress: epochs %" PRId64 ", batch %" PRId64 ", step %" PRId64
				", waited %" PRId64 ", best epoch %" PRId64 "; numbers of 0 or more are needed, "
				"at most %d epochs, and a best epoch among the epochs",
				p.epochs, p.batch, p.step, p.waited, p.best_epoch, MAX_EPOCHS);
	const size_t logs = (size_t) p.epochs * m->logs;
	if (!chi_grow(&m->history, &m->capacity, logs + 1, sizeof *m->history))
		return choir_error_status();
	if (p.best_epoch > 0)
		CHOIR_TRY(chi_best_weights_keep(&m->best_weights, m->strategy));
	chi_model_forget(m);
	for (size_t i = 0; i < logs; i++)
		m->history[i] = (double) NAN;
	m->epochs = p.epochs;
	m->batch = p.batch;
	m->step = p.step;
	m->best_epoch = p.best_epoch;
	m->best = p.best;
	m->waited = p.waited;
	m->restored = true;
	return CHOIR_OK;
}
