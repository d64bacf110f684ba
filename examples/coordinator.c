// Shows a coordinator, parameter servers, and workers that may join and leave at any time. All
// processes run this program, and TF_CONFIG gives each process its task (docs/cluster.md has the
// commands). The workers train a classifier of synthetic digits.
#include <choir/choir.h>
#include <choir/coordinator.h>

#include <stdio.h>
#include <string.h>

struct net {
	choir_layer *layers;
	choir_optimizer *optimizer;
};

// Makes the same model in every process.
static choir_status build(choir_strategy *s, void *user)
{
	struct net *net = (struct net *) user;
	CHOIR_SCOPE (s) {
		choir_layer *layers[] = { choir_dense_new("hidden", 784, 64, CHOIR_RELU),
			choir_dense_new("digits", 64, 10, CHOIR_LINEAR) };
		net->layers = choir_sequential_new(2, layers);
		net->optimizer = choir_optimizer_new(CHOIR_MOMENTUM, NULL);
	}
	return net->layers == NULL || net->optimizer == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_dataset *digits(const choir_input_context *context, void *user)
{
	(void) context, (void) user;
	choir_dataset *d = choir_synthetic_digits_dataset_new(2000, 1);
	d = choir_dataset_to_float(choir_dataset_flatten(d, "image"), "image", 1 / 255.0);
	return choir_dataset_batch(choir_dataset_repeat(choir_dataset_shuffle(d, 500, 1), -1), 64);
}

static choir_status replica_step(choir_replica *r, void *user)
{
	struct net *net = (struct net *) user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *logits = choir_layer_apply(net->layers, choir_replica_arg(r, "image"));
	choir_tensor *losses =
			choir_sparse_softmax_cross_entropy(choir_replica_arg(r, "label"), logits);
	CHOIR_TRY(choir_replica_return(r, "loss", choir_mean(losses, CHOIR_ALL_AXES)));
	return choir_optimizer_minimize(net->optimizer, choir_replica_average_loss(r, losses), tape);
}

// The function of a closure: one training step, on a worker.
static choir_status train_step(choir_closure *c, void *user)
{
	choir_values *batch = NULL, *results = NULL;
	choir_status status =
			choir_distributed_dataset_next(choir_closure_dataset(c, "digits"), &batch);
	if (status == CHOIR_OK)
		status =
				choir_strategy_run(choir_closure_strategy(c), replica_step, user, batch, &results);
	if (status == CHOIR_OK)
		status = choir_closure_return(
				c, "loss", choir_value_local(choir_values_find(results, "loss"), 0));
	choir_values_free(batch);
	choir_values_free(results);
	return status;
}

static const choir_function functions[] = { { "train_step", train_step, NULL },
	{ "digits", NULL, digits }, { NULL, NULL, NULL } };

static choir_status coordinate(choir_coordinator *c)
{
	for (int epoch = 1; epoch <= 3; epoch++) {
		choir_remote_value *last = NULL;
		choir_values *result;
		for (int i = 0; i < 100; i++) {
			choir_remote_value_free(last);
			CHOIR_TRY(choir_coordinator_schedule(c, "train_step", NULL, &last));
		}
		CHOIR_TRY(choir_coordinator_join(c));
		CHOIR_TRY(choir_coordinator_fetch(c, last, &result));
		const float *loss = (const float *) choir_tensor_data(
				choir_value_tensor(choir_values_find(result, "loss")));
		printf("epoch %d, %d workers, loss %.3f\n", epoch, choir_coordinator_workers(c),
				(double) *loss);
		choir_remote_value_free(last);
	}
	return CHOIR_OK;
}

int main(void)
{
	struct net net = { NULL, NULL };
	choir_coordinator_options o;
	memset(&o, 0, sizeof o);
	o.size = sizeof o;
	o.functions = functions;
	o.build = build;
	o.user = &net;
	choir_task *task = choir_task_new(NULL); // by TF_CONFIG
	choir_strategy *s = NULL;
	choir_status status = task == NULL ? choir_error_status() : CHOIR_OK;
	if (status == CHOIR_OK && strcmp(choir_task_type(task), "coordinator") != 0) {
		status = choir_task_serve(task, NULL, &o);
	} else if (status == CHOIR_OK) {
		s = choir_parameter_server_strategy_new(NULL);
		choir_coordinator *c = choir_coordinator_new(s, task, &o);
		status = c == NULL ? choir_error_status() : coordinate(c);
		if (status == CHOIR_OK)
			status = choir_strategy_save(s, "digits.safetensors", NULL);
		choir_coordinator_free(c);
	}
	if (status != CHOIR_OK)
		fprintf(stderr, "%s\n", choir_error());
	choir_strategy_free(s);
	choir_task_free(task);
	return status == CHOIR_OK ? 0 : 1;
}
