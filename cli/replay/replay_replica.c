// choir replay: runs one replica of a training step again. The replica's bits depend on the
// weights before the step, the seed, the numbers of step and replica, and the replica's part of
// the batch. So replay restores the last checkpoint before the step with the recorded options,
// runs forward on any devices, and then runs that replica alone.
#include "commands.h"
#include "number.h"
#include "command_options.h"
#include "replay/replay.h"
#include "output.h"
#include "train/train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What a checkpoint may ask for without an option.
enum { MAX_DRAWN = 1000000, MAX_REPLICAS = 4096, MAX_SIDE = 1024 };

static struct {
	const char *checkpoint, *data, *init, *init_map, *devices;
	int64_t step, replica, replicas, image_size;
	bool check, json;
} given = { .step = CHOIR_NONE, .replica = CHOIR_NONE };

static const option options[] = {
	{ "--checkpoint", "DIR", OPTION_TEXT, &given.checkpoint,
			.help = "directory of choir train --checkpoint, which replay only\nreads (required)" },
	{ "--step", "S", OPTION_INTEGER, &given.step, .help = "step to run, counted from 1 (required)",
			.min = 1 },
	{ "--replica", "K", OPTION_INTEGER, &given.replica,
			.help = "replica to run, counted from 0 (required)" },
	{ "--check", NULL, OPTION_FLAG, &given.check,
			.help = "also run all replicas in the step and up to the next\n"
					"checkpoint, and compare the gradients and weights" },
	{ "--data", "DATA", OPTION_TEXT, &given.data,
			.help = "data of the training (required except for mnist and up\n"
					"to 1,000,000 synthetic digits)" },
	{ "--init", "FILE", OPTION_TEXT, &given.init,
			.help = "the training's --init file (required if the training had\n"
					"one and no checkpoint precedes the step)" },
	{ "--init-map", "FILE", OPTION_TEXT, &given.init_map,
			.help = "the training's --init-map file (required with --init)" },
	{ "--replicas", "R", OPTION_INTEGER, &given.replicas,
			.help = "number of replicas in the training (required if it is above\n4096)", .min = 1,
			.max = 1 << 16 },
	{ "--image-size", "N", OPTION_INTEGER, &given.image_size,
			.help = "height and width of images in the training (required if\nit is above 1024)",
			.min = 1, .max = 1 << 14 },
	{ "--devices", "LIST", OPTION_TEXT, &given.devices, .help = devices_help },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir replay",
	.about = "Runs one replica of one training step again and prints its loss and gradients.\n\n"
			 "The bits are the same as in the training, also on other devices. In a debugger\n"
			 "(gdb --args choir replay ...), break at "
			 "choir_strategy_run_replica, then at train_step.",
	.examples = { "choir replay --checkpoint run --step 120 --replica 1 --check",
			"choir replay --checkpoint run --step 120 --replica 0 --data csv:rows.csv" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	choir_checkpoint_list *list;
	replay_plan plan;
	training t;
	char weights_path[PATH_SIZE]; // with the options
	replay_record alone, among;
	uint64_t weights; // hash after the check
} replay;

static share *own(replay *r)
{
	return &r->t.share[0];
}

static choir_status no_such_step(const replay *r, int64_t last)
{
	char text[200] = "";
	size_t at = 0, n = choir_checkpoint_list_steps(r->list);
	int64_t steps;
	for (size_t i = 0; i < n && at < sizeof text; i++)
		if (train_checkpoint_steps(r->list, i, &steps))
			at += (size_t) snprintf(
					text + at, sizeof text - at, "%s%" PRId64, at == 0 ? "" : ", ", steps);
	return choir_fail(CHOIR_NOT_FOUND,
			"--step %" PRId64 ": the training has steps 1 to %" PRId64
			"; %s has checkpoints after steps %s",
			given.step, last, given.checkpoint, text);
}

// A file that only the checkpoint names is not opened.
static choir_status take_file(
		const char *path, const char *name, const char *own, const char **recorded)
{
	if (*recorded == NULL)
		return CHOIR_OK;
	if (own == NULL)
		return choir_fail(CHOIR_INVALID,
				"%s: records %s \"%.200s\"; needs %s on the command line, as replay opens no file "
				"that only a checkpoint names",
				path, name, *recorded, name);
	*recorded = own;
	return CHOIR_OK;
}

// Such data need no file of the user, and limited memory.
static bool is_built_in(const char *data)
{
	static data_name name;
	return data_name_read(&name, data, DATA_LEARN) == CHOIR_OK &&
			(name.kind == DATA_MNIST || (name.kind == DATA_DIGITS && name.number <= MAX_DRAWN));
}

static choir_status take_files(const char *path)
{
	if (given.data != NULL || !is_built_in(train_given->data))
		CHOIR_TRY(take_file(path, "--data", given.data, &train_given->data));
	CHOIR_TRY(take_file(path, "--init", given.init, &train_given->init));
	return take_file(path, "--init-map", given.init_map, &train_given->init_map);
}

// The checkpoint's own size must explain the memory that it asks for.
static choir_status take_sizes(replay *r, size_t i)
{
	const char *path = choir_checkpoint_list_path(r->list, i);
	if (snprintf(r->weights_path, sizeof r->weights_path, "%s/weights.safetensors", path) >=
			(int) sizeof r->weights_path)
		return choir_fail(CHOIR_INVALID, "%s: path too long", path);
	r->t.weights = r->weights_path;
	const int64_t replicas = train_given->replicas;
	if (given.replicas != replicas && (given.replicas != 0 || replicas > MAX_REPLICAS))
		return choir_fail(CHOIR_INVALID,
				"%s: records %" PRId64 " replicas; needs the same --replicas (required above %d)",
				path, replicas, MAX_REPLICAS);
	const int64_t side = train_given->image_size;
	if (given.image_size != side && (given.image_size != 0 || side > MAX_SIDE))
		return choir_fail(CHOIR_INVALID,
				"%s: records --image-size %" PRId64 "; needs the same one (required above %d)",
				path, side, MAX_SIDE);
	return CHOIR_OK;
}

// After a change of options only the checkpoint at the change has the older ones. Earlier steps
// can be replayed up to it, later ones from it.
static choir_status check_options_known(const replay *r, size_t i)
{
	option_changes changes;
	train_recall_changes(r->list, i, &changes);
	if (changes.text[0] == '\0' || r->plan.from_steps >= changes.after)
		return CHOIR_OK;
	return choir_fail(CHOIR_NOT_FOUND,
			"--step %" PRId64 ": the options changed after step %" PRId64
			", and %s has no undamaged checkpoint of step %" PRId64 "; steps %" PRId64
			" to %" PRId64 " cannot be replayed without it (%s)",
			given.step, changes.after, given.checkpoint, changes.after, r->plan.from_steps + 1,
			r->plan.next_steps, changes.text);
}

static choir_status recall(replay *r)
{
	const size_t i = r->plan.has_next ? r->plan.next : r->plan.from;
	const int replicas = choir_checkpoint_list_replicas(r->list, i);
	if (given.replica >= replicas)
		return choir_fail(CHOIR_NOT_FOUND,
				"--replica %" PRId64 ": the training has %d replicas, 0 to %d", given.replica,
				replicas, replicas - 1);
	CHOIR_TRY(check_options_known(r, i));
	CHOIR_TRY(train_recall(r->list, i));
	train_given->devices = given.devices;
	train_given->json = given.json;
	if (r->plan.has_from)
		train_given->init = train_given->init_map = NULL; // the checkpoint has newer weights
	r->t.given = train_given;
	CHOIR_TRY(take_files(choir_checkpoint_list_path(r->list, i)));
	return take_sizes(r, i);
}

static choir_status begin(replay *r)
{
	CHOIR_TRY(train_make(&r->t));
	if (!r->plan.has_from)
		return CHOIR_OK;
	const char *epochs = choir_checkpoint_list_metadata(r->list, r->plan.from, "train/epochs");
	r->t.epochs = epochs == NULL ? 0 : strtoll(epochs, NULL, 10);
	own(r)->steps = r->plan.from_steps;
	return choir_strategy_restore_checkpoint(
			r->t.strategy, choir_checkpoint_list_path(r->list, r->plan.from));
}

// CHOIR_END: the training has no more steps.
static choir_status next_batch(replay *r)
{
	share *s = own(r);
	choir_status status = CHOIR_END;
	while (status == CHOIR_END && r->t.epochs < train_given->epochs) {
		status = choir_distributed_dataset_next(s->examples, &s->batch);
		if (status != CHOIR_END)
			break;
		r->t.epochs++;
		CHOIR_TRY(choir_distributed_dataset_rewind(s->examples));
	}
	return status;
}

static choir_status run_step(replay *r)
{
	share *s = own(r);
	const choir_status status =
			choir_strategy_run(r->t.strategy, train_step, &r->t, s->batch, NULL);
	if (status != CHOIR_OK)
		return choir_fail(status, "step %" PRId64 ": %s", s->steps + 1, choir_error());
	s->steps++;
	if (!given.json && progress_on())
		progress("step %" PRId64, s->steps);
	return CHOIR_OK;
}

static choir_status go_to(replay *r, int64_t steps)
{
	while (own(r)->steps < steps) {
		CHOIR_TRY(next_batch(r));
		CHOIR_TRY(run_step(r));
	}
	return CHOIR_OK;
}

static choir_status watch(replay *r, replay_record *record)
{
	record->replica = (int) given.replica;
	r->t.inspect_losses = replay_inspect_losses;
	r->t.inspect_user = record;
	return choir_strategy_set_gradient_hook(r->t.strategy, replay_inspect_gradient, record);
}

static choir_status replay_alone(replay *r)
{
	choir_status status = go_to(r, given.step - 1);
	if (status == CHOIR_OK)
		status = next_batch(r);
	progress_clear();
	if (status == CHOIR_END)
		return no_such_step(r, own(r)->steps);
	CHOIR_TRY(status);
	CHOIR_TRY(watch(r, &r->alone));
	CHOIR_TRY(choir_strategy_run_replica(
			r->t.strategy, (int) given.replica, train_step, &r->t, own(r)->batch));
	return r->alone.status;
}

static choir_status check(replay *r)
{
	CHOIR_TRY(watch(r, &r->among));
	CHOIR_TRY(run_step(r));
	CHOIR_TRY(r->among.status);
	r->t.inspect_losses = NULL;
	CHOIR_TRY(choir_strategy_set_gradient_hook(r->t.strategy, NULL, NULL));
	if (r->among.hash != r->alone.hash || r->among.n != r->alone.n)
		return choir_fail(CHOIR_INTERNAL,
				"--check: replica %" PRId64 " computed %016" PRIx64 " alone, but %016" PRIx64
				" with all replicas",
				given.replica, r->alone.hash, r->among.hash);
	if (!r->plan.has_next)
		return CHOIR_OK;
	CHOIR_TRY(go_to(r, r->plan.next_steps));
	progress_clear();
	const char *path = choir_checkpoint_list_path(r->list, r->plan.next);
	r->weights = choir_strategy_hash(r->t.strategy);
	CHOIR_TRY(choir_strategy_restore_checkpoint(r->t.strategy, path));
	const uint64_t needed = choir_strategy_hash(r->t.strategy);
	return r->weights == needed
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID,
					  "--check: after step %" PRId64 " the weights are %016" PRIx64
					  ", but %s has %016" PRIx64 "; other data or another build?",
					  own(r)->steps, r->weights, path, needed);
}

static const char *print_hash(uint64_t hash, char text[17])
{
	snprintf(text, 17, "%016" PRIx64, hash);
	return text;
}

static void print_replay_json(const replay *r, const char *from)
{
	char hash[17];
	const replay_record *a = &r->alone;
	json_begin_event("replay");
	json_integer("step", given.step);
	json_integer("replica", given.replica);
	json_integer("replicas", choir_strategy_replicas(r->t.strategy));
	json_text("from", from);
	json_integer("from_step", r->plan.from_steps);
	json_integer("examples", a->examples);
	json_integer("global_examples", a->global_examples);
	json_number("loss", a->loss);
	json_text("hash", print_hash(a->hash, hash));
	json_begin_list("gradients");
	for (int i = 0; i < a->n; i++) {
		const replay_gradient *g = &a->gradient[i];
		json_begin_item();
		json_text("name", g->name);
		json_list("shape", (size_t) g->shape.rank, g->shape.dim);
		json_number("norm", g->norm);
		json_number("largest", g->largest);
		json_integer("nonfinite", g->nonfinite);
		json_text("hash", print_hash(g->hash, hash));
		json_end_item();
	}
	json_end_list();
	json_end();
}

static void print_replay(const replay *r)
{
	char hash[17], shape[SHAPE_TEXT];
	const replay_record *a = &r->alone;
	const char *from = !r->plan.has_from ? "" : choir_checkpoint_list_path(r->list, r->plan.from);
	if (given.json) {
		print_replay_json(r, from);
		return;
	}
	printf("replica %" PRId64 " of %d in step %" PRId64 ", from %s\n", given.replica,
			choir_strategy_replicas(r->t.strategy), given.step,
			r->plan.has_from ? from : "the beginning");
	printf("%" PRId64 " of %" PRId64 " examples, loss %.9g, bits %s\n", a->examples,
			a->global_examples, a->loss, print_hash(a->hash, hash));
	printf("  %-28s %-18s %12s %12s %10s  %s\n", "gradient of", "shape", "norm", "largest",
			"not finite", "bits");
	for (int i = 0; i < a->n; i++) {
		const replay_gradient *g = &a->gradient[i];
		printf("  %-28s %-18s %12.5g %12.5g %10" PRId64 "  %s\n", g->name,
				shape_text(&g->shape, shape), g->norm, g->largest, g->nonfinite,
				print_hash(g->hash, hash));
	}
}

static void print_checked(const replay *r)
{
	char hash[17];
	const char *path = !r->plan.has_next ? "" : choir_checkpoint_list_path(r->list, r->plan.next);
	if (given.json) {
		json_begin_event("check");
		json_text("path", path);
		json_text("weights", r->plan.has_next ? print_hash(r->weights, hash) : "");
		json_end();
		return;
	}
	printf("checked: same bits with all replicas%s%s\n",
			r->plan.has_next ? "; same weights as " : "; no checkpoint after this step", path);
}

static choir_status run(replay *r)
{
	r->list = choir_checkpoint_list_new(given.checkpoint);
	if (r->list == NULL)
		return choir_error_status();
	CHOIR_TRY(replay_find(r->list, given.checkpoint, given.step, &r->plan));
	CHOIR_TRY(recall(r));
	CHOIR_TRY(begin(r));
	CHOIR_TRY(replay_alone(r));
	print_replay(r);
	if (!given.check)
		return CHOIR_OK;
	CHOIR_TRY(check(r));
	print_checked(r);
	return CHOIR_OK;
}

int replay_main(int argc, char **argv)
{
	options_read(&self, argc, argv, NULL);
	if (given.checkpoint == NULL || given.step == CHOIR_NONE || given.replica == CHOIR_NONE)
		return wrong_use(&self, "an option is missing; needs %s (--help lists the options)",
				given.checkpoint == NULL		   ? "--checkpoint DIR"
						: given.step == CHOIR_NONE ? "--step S"
												   : "--replica K");
	replay r = { .weights = 0 };
	const choir_status status = run(&r);
	if (status != CHOIR_OK)
		progress_clear();
	const int code = status == CHOIR_OK ? EXIT_OK : failed(&self);
	train_free(&r.t);
	replay_record_free(&r.alone);
	replay_record_free(&r.among);
	choir_checkpoint_list_free(r.list);
	return code;
}
