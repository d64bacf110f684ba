// The summary at the start of a training.
#include "train/train_summary.h"

#include "number.h"
#include "output.h"

#include <inttypes.h>
#include <stdio.h>

enum { WEIGHT_BYTES = sizeof(float) };

static int64_t elements(const choir_variable *v)
{
	return choir_shape_elements(choir_variable_shape(v));
}

static int64_t weight_bytes(const summary *s, const choir_device *d)
{
	int64_t sum = 0;
	for (int i = 0; i < choir_layer_variables(s->model->net); i++) {
		const choir_variable *v = choir_layer_variable(s->model->net, i);
		for (int k = 0; k < choir_variable_copies(v); k++)
			if (choir_variable_device(v, k) == d)
				sum += elements(v) * WEIGHT_BYTES;
	}
	return sum;
}

static void print_size(const model_size *size)
{
	json_integer("width", size->width);
	json_integer("layers", size->layers);
	if (size->heads != 0)
		json_integer("heads", size->heads);
	if (size->context != 0)
		json_integer("context", size->context);
}

static void print_memory(const memory_plan *m)
{
	json_begin_object("memory");
	json_number("weights", m->weights);
	json_number("gradients", m->gradients);
	json_number("optimizer", m->optimizer);
	json_number("activations", m->activations);
	json_end_item();
}

static void print_json(const summary *s)
{
	const choir_layer *net = s->model->net;
	json_begin_event("start");
	json_text("model", s->model->plan.kind);
	if (s->model->plan.widths != 0)
		json_list("widths", (size_t) s->model->plan.widths, s->model->plan.width);
	else
		print_size(&s->model->plan.size);
	json_text("data", s->data->name);
	source_print(s->data, true);
	json_list("image", (size_t) s->model->plan.image.rank, s->model->plan.image.dim);
	json_text("task", s->data->targets > 0 ? "regression" : "classification");
	json_integer("classes", s->model->plan.classes);
	json_integer("train_examples", s->train_examples);
	json_integer("test_examples", s->test_examples);
	json_integer("batch", s->batch);
	json_unsigned("seed", s->seed);
	json_text("optimizer", s->optimizer);
	json_text("strategy", choir_strategy_name(s->strategy));
	const choir_cluster *cluster = choir_strategy_cluster(s->strategy);
	json_integer("workers",
			cluster != NULL ? choir_cluster_workers(cluster)
							: choir_strategy_workers(s->strategy));
	json_integer("replicas", choir_strategy_replicas(s->strategy)); // all, or those of one worker
	if (cluster != NULL)
		json_number("overlap_us", 1e6 * choir_strategy_overlap_latency(s->strategy));
	print_memory(s->memory);
	json_begin_list("variables");
	for (int i = 0; i < choir_layer_variables(net); i++) {
		const choir_variable *v = choir_layer_variable(s->model->net, i);
		json_begin_item();
		json_text("name", choir_variable_name(v));
		json_list("shape", (size_t) choir_variable_shape(v)->rank, choir_variable_shape(v)->dim);
		json_integer("bytes", elements(v) * WEIGHT_BYTES);
		json_end_item();
	}
	json_end_list();
	json_begin_list("devices");
	for (int i = 0; i < choir_strategy_worker_devices(s->strategy); i++) {
		const choir_device *d = choir_strategy_worker_device(s->strategy, i);
		json_begin_item();
		json_text("name", choir_device_name(d));
		json_integer("weight_bytes", weight_bytes(s, d));
		json_integer("optimizer_bytes", s->slots * weight_bytes(s, d));
		json_end_item();
	}
	json_end_list();
	json_end();
}

static void print_variables(const summary *s)
{
	char shape[SHAPE_TEXT], bytes[32];
	int64_t sum = 0;
	for (int i = 0; i < choir_layer_variables(s->model->net); i++) {
		const choir_variable *v = choir_layer_variable(s->model->net, i);
		printf("  %-18s %-18s %s\n", choir_variable_name(v),
				shape_text(choir_variable_shape(v), shape),
				print_bytes((double) (elements(v) * WEIGHT_BYTES), bytes));
		sum += elements(v);
	}
	printf("  %lld weights, %s\n", (long long) sum,
			print_bytes((double) (sum * WEIGHT_BYTES), bytes));
}

static void print_text(const summary *s)
{
	char shape[SHAPE_TEXT], weights[32], slots[32];
	if (model_plan_text(&s->model->plan))
		printf("%s on %s: windows of %lld bytes, %lld to train and %lld to test\n",
				s->model->plan.kind, s->data->name, (long long) s->model->plan.size.context,
				(long long) s->train_examples, (long long) s->test_examples);
	else
		printf("%s on %s: %s %s, %lld %s, %lld examples to train and %lld to test\n",
				s->model->plan.kind, s->data->name,
				s->model->plan.image.rank == 1 ? "inputs" : "images",
				shape_text(&s->model->plan.image, shape), (long long) s->model->plan.classes,
				s->data->targets > 0 ? "number(s) to predict (regression)" : "classes",
				(long long) s->train_examples, (long long) s->test_examples);
	print_variables(s);
	const choir_cluster *cluster = choir_strategy_cluster(s->strategy);
	if (cluster != NULL)
		printf("%d workers (%s), in total ", choir_cluster_workers(cluster),
				choir_instruction_set());
	else if (choir_strategy_workers(s->strategy) > 1)
		printf("%d workers, each with ", choir_strategy_workers(s->strategy));
	printf("%d replica%s, batch %lld, %s, seed %" PRIu64 "\n",
			choir_strategy_replicas(s->strategy),
			choir_strategy_replicas(s->strategy) == 1 ? "" : "s", (long long) s->batch,
			s->optimizer, s->seed);
	if (choir_strategy_overlap_latency(s->strategy) > 0)
		printf("  large gradients are exchanged during the "
			   "backward pass; starting one takes up to %.0f us\n",
				1e6 * choir_strategy_overlap_latency(s->strategy));
	printf("  estimated memory: %s of gradients, %s of activations\n",
			print_bytes(s->memory->gradients, weights),
			print_bytes(s->memory->activations, slots));
	for (int i = 0; i < choir_strategy_worker_devices(s->strategy); i++) {
		const choir_device *d = choir_strategy_worker_device(s->strategy, i);
		const int64_t bytes = weight_bytes(s, d);
		if (bytes == 0) {
			printf("  %-8s shares the weights of a device listed above\n", choir_device_name(d));
			continue;
		}
		printf("  %-8s holds %s of weights and %s of optimizer state\n", choir_device_name(d),
				print_bytes((double) bytes, weights),
				print_bytes((double) (s->slots * bytes), slots));
	}
	fflush(stdout);
}

void summary_print(const summary *s, bool json)
{
	if (json)
		print_json(s);
	else
		print_text(s);
}
