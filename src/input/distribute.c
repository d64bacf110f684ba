// Options, sharding, rebatching. The strategy owns the datasets.
#include "input/input.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/hash.h"
#include "base/size.h"
#include "data/component.h"
#include "strategy/worker_sync.h"

enum { MAX_WORKERS = 1 << 16 };

void chi_input_free(void *self)
{
	choir_distributed_dataset *data = self;
	chi_read_ahead_free(data->read_ahead);
	for (int i = 0; data->stream != NULL && i < data->streams; i++)
		chi_example_stream_free(&data->stream[i]);
	chi_free(data->stream);
	chi_glob_free(&data->files);
	chi_free(data->files_of);
	chi_free(data->rows);
	chi_free(data->messages);
	chi_free(data->column);
	chi_free(data);
}

static choir_status check_workers(const choir_strategy *s, choir_input_options *o)
{
	const int workers = s->process_group != NULL ? s->process_group->workers : 1;
	const int worker = s->process_group != NULL ? s->process_group->worker : 0;
	if (o->workers == 0 && o->worker == 0) {
		o->workers = workers;
		o->worker = worker;
	}
	if (s->process_group != NULL && (o->workers != workers || o->worker != worker))
		return choir_fail(CHOIR_INVALID,
				"distribute_dataset: worker %d of %d given; in the strategy's "
				"cluster this is worker %d of %d",
				o->worker, o->workers, worker, workers);
	if (o->workers < 1 || o->workers > MAX_WORKERS)
		return choir_fail(CHOIR_INVALID, "distribute_dataset: %d workers given; 1 to %d needed",
				o->workers, (int) MAX_WORKERS);
	if (o->worker < 0 || o->worker >= o->workers)
		return choir_fail(CHOIR_INVALID, "distribute_dataset: worker %d given; 0 to %d needed",
				o->worker, o->workers - 1);
	return CHOIR_OK;
}

static choir_status check_places(
		const choir_strategy *s, const choir_input_options *o, bool from_function)
{
	if (o->place_on_device && o->replication != CHOIR_REPLICATION_PER_REPLICA)
		return choir_fail(CHOIR_INVALID,
				"distribute_dataset: place_on_device needs the replication mode "
				"CHOIR_REPLICATION_PER_REPLICA");
	if (o->place_on_device && o->fetch != CHOIR_FETCH_TO_HOST)
		return choir_fail(CHOIR_INVALID,
				"distribute_dataset: place_on_device needs fetch CHOIR_FETCH_TO_HOST, since its "
				"data are already on the device");
	if (o->replication == CHOIR_REPLICATION_PER_REPLICA &&
			(!from_function || strcmp(s->kind, "mirrored") != 0))
		return choir_fail(CHOIR_UNSUPPORTED,
				"distribute_dataset: the replication mode PER_REPLICA needs a mirrored strategy "
				"and distribute_datasets_from_function");
	if (o->place_on_device)
		return choir_fail(CHOIR_UNSUPPORTED,
				"distribute_dataset: place_on_device: this build has no devices with datasets");
	return CHOIR_OK;
}

static choir_status check_choice(const char *name, int value, int last, const char *known)
{
	if (value >= 0 && value <= last)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID, "distribute_dataset: %s is %d; %s (0 to %d) needed", name,
			value, known, last);
}

static choir_status complete(const choir_strategy *s, const choir_input_options *given,
		bool from_function, choir_input_options *o)
{
	CHOIR_TRY(chi_options_take("distribute_dataset: the options'", o, sizeof *o, given));
	if (o->global_batch < 0)
		return choir_fail(CHOIR_INVALID,
				"distribute_dataset: a global batch of %" PRId64
				" examples given; at least 1 needed",
				o->global_batch);
	if (o->global_batch > 0 && (o->per_replica_batches || from_function))
		return choir_fail(CHOIR_INVALID,
				"distribute_dataset: a global batch of %" PRId64
				" examples given, but each replica takes a whole batch of "
				"the dataset; leave global_batch 0",
				o->global_batch);
	CHOIR_TRY(check_choice("read_ahead", (int) o->read_ahead, CHOIR_OFF, "CHOIR_ON or CHOIR_OFF"));
	if (o->read_ahead_steps < 0 || (o->read_ahead_steps > 0 && o->read_ahead == CHOIR_OFF))
		return choir_fail(CHOIR_INVALID,
				"distribute_dataset: read_ahead_steps is %d; 0 or more needed, "
				"and 0 with read_ahead CHOIR_OFF",
				o->read_ahead_steps);
	CHOIR_TRY(check_choice("auto_shard", (int) o->auto_shard, CHOIR_AUTO_SHARD_HINT,
			"DATA, OFF, AUTO, FILE or HINT"));
	CHOIR_TRY(check_choice("fetch", (int) o->fetch, CHOIR_FETCH_TO_HOST, "TO_DEVICE or TO_HOST"));
	CHOIR_TRY(check_choice("replication", (int) o->replication, CHOIR_REPLICATION_PER_REPLICA,
			"PER_WORKER or PER_REPLICA"));
	CHOIR_TRY(check_choice("checkpoint", (int) o->checkpoint, CHOIR_OFF, "CHOIR_ON or CHOIR_OFF"));
	CHOIR_TRY(check_workers(s, o));
	return check_places(s, o, from_function);
}

static choir_dataset *in_batches(choir_dataset *d, int64_t global)
{
	if (chi_dataset_spec(d)->batch != 0)
		return d;
	if (global > 0)
		return choir_dataset_batch(d, global);
	return chi_refuse(d, CHOIR_INVALID,
			"distribute_dataset: the dataset has single examples; add a batch stage "
			"(choir_dataset_batch) or set global_batch");
}

static chi_rebatch find_rebatch(const choir_distributed_dataset *data)
{
	const bool shared = data->o.workers > 1 && data->o.auto_shard == CHOIR_AUTO_SHARD_DATA;
	if (data->o.per_replica_batches)
		return shared ? CHI_REBATCH_ELEMENTS_SHARED : CHI_REBATCH_ELEMENTS;
	if (chi_input_replicas(data) == 1 && data->o.global_batch == 0)
		return CHI_REBATCH_AS_THEY_COME;
	if (data->batch == CHOIR_UNKNOWN)
		return shared ? CHI_REBATCH_UNKNOWN_SHARED : CHI_REBATCH_UNKNOWN;
	return shared ? CHI_REBATCH_SHARED : CHI_REBATCH_STREAM;
}

static bool find_capacity(choir_distributed_dataset *data, int64_t element)
{
	const int64_t n = chi_input_replicas(data), r = data->strategy->replicas;
	int64_t each = element;
	switch (data->rebatch) {
	case CHI_REBATCH_AS_THEY_COME:
		data->capacity = element;
		return true;
	case CHI_REBATCH_ELEMENTS:
	case CHI_REBATCH_ELEMENTS_SHARED:
		break;
	case CHI_REBATCH_STREAM:
	case CHI_REBATCH_SHARED:
		each = data->batch / n + (data->batch % n != 0);
		break;
	case CHI_REBATCH_UNKNOWN:
	case CHI_REBATCH_UNKNOWN_SHARED:
		each = element / n + (element % n != 0);
		break;
	}
	if (!chi_int64_multiply(each, r, &data->capacity))
		return false;
	if (n == r && data->batch != CHOIR_UNKNOWN)
		data->capacity = data->batch;
	return true;
}

static choir_status check_space(const choir_distributed_dataset *data)
{
	const choir_dataset *d = data->stream[0].data;
	size_t bytes;
	for (size_t i = 0; i < d->spec.n; i++)
		if (!chi_size_multiply((size_t) data->capacity, d->bytes[i], &bytes) ||
				bytes > PTRDIFF_MAX)
			return choir_fail(CHOIR_INVALID,
					"distribute_dataset: %" PRId64 " examples "
					"of column \"%s\" do not fit in a tensor",
					data->capacity, d->spec.column[i].name);
	return CHOIR_OK;
}

// Only if all steps have as many.
static void find_columns(choir_distributed_dataset *data)
{
	const chi_spec *spec = data->stream[0].spec;
	const int64_t n = chi_input_replicas(data), g = data->batch;
	int64_t rows = CHOIR_UNKNOWN;
	if (data->rebatch == CHI_REBATCH_AS_THEY_COME && spec->full)
		rows = spec->batch;
	if (data->rebatch == CHI_REBATCH_STREAM && data->o.workers == 1 && g % n == 0 &&
			(spec->endless || (spec->full && spec->batch % g == 0)))
		rows = g / n;
	for (size_t i = 0; i < spec->n; i++) {
		choir_column *c = &data->column[i];
		*c = spec->column[i];
		memmove(c->shape.dim + 1, c->shape.dim, (size_t) c->shape.rank * sizeof c->shape.dim[0]);
		c->shape.dim[0] = rows;
		c->shape.rank++;
	}
}

static choir_distributed_dataset *new_data(
		choir_strategy *s, const choir_input_options *o, int feeds)
{
	choir_distributed_dataset *data = chi_alloc(sizeof *data);
	if (data == NULL)
		return NULL;
	data->strategy = s;
	data->o = *o;
	data->streams = feeds;
	data->batch = CHOIR_UNKNOWN;
	data->stream = chi_alloc_array((size_t) feeds, sizeof *data->stream);
	data->rows = chi_alloc_array((size_t) s->replicas, sizeof *data->rows);
	data->column = chi_alloc_array(CHI_MAX_COLUMNS, sizeof *data->column);
	if (s->process_group != NULL)
		data->messages = chi_input_new_messages(s);
	if (data->stream != NULL && data->rows != NULL && data->column != NULL &&
			(s->process_group == NULL || data->messages != NULL))
		return data;
	chi_input_free(data);
	return NULL;
}

// The program's functions may need their own thread; a rewind loses a queue's examples. *files: d
// reads files.
static bool reads_by_itself(const choir_dataset *d, bool *files)
{
	if (d == NULL)
		return true;
	const bool file = d->stage->files == CHI_FILES_HERE && !d->random;
	*files = *files || file;
	if (d->stage->calls || (d->from[0] == NULL && !file && !d->random))
		return false;
	return reads_by_itself(d->from[0], files) && reads_by_itself(d->from[1], files);
}

// In a core's inner caches.
static int fitting_steps(const choir_distributed_dataset *data)
{
	enum { BYTES = 1 << 20, MAX_STEPS = 8 };
	const choir_dataset *d = data->stream[0].data;
	size_t example = 0, bytes = 0;
	for (size_t i = 0; i < d->spec.n; i++)
		if (!chi_size_add(example, d->bytes[i], &example))
			return 1;
	if (!chi_size_multiply(example, (size_t) data->capacity, &bytes) || bytes > BYTES / 2)
		return 1;
	return bytes < BYTES / MAX_STEPS ? MAX_STEPS : (int) (BYTES / bytes);
}

// Takes ownership of d. The largest batch decides the capacity.
static choir_status add_stream(choir_distributed_dataset *data, int i, choir_dataset *d)
{
	const int64_t before = data->capacity;
	CHOIR_TRY(chi_example_stream_init(&data->stream[i], d));
	if (!find_capacity(data, data->stream[i].spec->batch))
		return choir_fail(CHOIR_INVALID, "distribute_dataset: the batches do not fit in memory");
	if (data->capacity < before)
		data->capacity = before;
	return check_space(data);
}

// A position in a share fits no other worker or policy.
static void sign_part(choir_distributed_dataset *data)
{
	if (data->o.workers == 1 || chi_input_is_shared(data))
		return;
	const uint64_t part[] = { (uint64_t) data->o.auto_shard, (uint64_t) data->o.workers,
		(uint64_t) data->o.worker };
	for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
		data->signature = chi_hash_mix(data->signature ^ part[i]);
}

// By default only files. With functions of the program, not beyond the pass.
static bool read_ahead(choir_distributed_dataset *data)
{
	const choir_dataset *d = data->stream[0].data;
	bool files = false;
	const bool by_itself = reads_by_itself(d, &files);
	const bool wanted = data->o.read_ahead == CHOIR_ON ||
			(data->o.read_ahead == CHOIR_DEFAULT && by_itself && files &&
					strcmp(d->stage->name, "prefetch") != 0);
	const bool some = wanted && data->o.read_ahead_steps == 0;
	const int steps = some ? fitting_steps(data) : data->o.read_ahead_steps;
	if (steps == 0)
		return true;
	const bool alone = by_itself && data->streams == 1;
	data->read_ahead = chi_read_ahead_new(data, steps, some, alone);
	return data->read_ahead != NULL &&
			(!alone || !data->o.start_reading_now ||
					chi_read_ahead_begin(data->read_ahead) == CHOIR_OK);
}

// Nothing after this can fail on one worker alone.
static choir_distributed_dataset *complete_data(choir_distributed_dataset *data)
{
	data->pass = chi_dataset_pass(data->stream[0].data);
	if (read_ahead(data))
		return data;
	chi_input_free(data);
	return NULL;
}

static choir_status compare_files(const choir_strategy *s, const choir_distributed_dataset *data)
{
	chi_glob paths = { .n = 0 };
	if (s->process_group == NULL || data->from_function || !chi_input_is_shared(data))
		return CHOIR_OK;
	choir_status status = chi_dataset_all_files(data->stream[0].data, &paths);
	status = status == CHOIR_OK ? chi_input_compare_files(s->process_group->cluster, &paths)
								: chi_cluster_give_up(s->process_group->cluster);
	chi_glob_free(&paths);
	return status == CHOIR_OK ? status : chi_error_prefix("distribute_dataset");
}

static choir_distributed_dataset *finish(choir_strategy *s, choir_distributed_dataset *data)
{
	choir_status status = chi_made(data);
	status = chi_input_check_data(s, status, data);
	if (status == CHOIR_OK)
		status = compare_files(s, data);
	if (status != CHOIR_OK) {
		if (data != NULL)
			chi_input_free(data);
		return NULL;
	}
	find_columns(data);
	if (chi_strategy_own_stateful(s, &chi_input_state, data) == CHOIR_OK)
		return data;
	chi_strategy_abort(s, choir_error_status());
	return NULL;
}

static choir_distributed_dataset *make(
		choir_strategy *s, choir_dataset *d, const choir_input_options *given)
{
	choir_input_options o;
	if (chi_dataset_spec(d) == NULL || complete(s, given, false, &o) != CHOIR_OK) {
		choir_dataset_free(d);
		return NULL;
	}
	if ((d = in_batches(d, o.global_batch)) == NULL)
		return NULL;
	// Before sharding it is equal on all workers.
	const uint64_t signature = chi_dataset_signature(d);
	choir_distributed_dataset *data = new_data(s, &o, 1);
	if (data == NULL || chi_input_shard(data, d) != CHOIR_OK) {
		choir_dataset_free(d);
		if (data != NULL)
			chi_input_free(data);
		return NULL;
	}
	if (!o.per_replica_batches)
		data->batch = o.global_batch != 0 ? o.global_batch : d->spec.global;
	data->rebatch = find_rebatch(data);
	data->signature = signature;
	sign_part(data);
	if (add_stream(data, 0, d) == CHOIR_OK)
		return complete_data(data);
	chi_input_free(data);
	return NULL;
}

static bool may_distribute(choir_strategy *s, const char *what)
{
	return chi_strategy_check(s) == CHOIR_OK && chi_context_need_cross(s, what) == CHOIR_OK;
}

choir_distributed_dataset *choir_strategy_distribute_dataset(
		choir_strategy *s, choir_dataset *d, const choir_input_options *given)
{
	if (may_distribute(s, "distribute_dataset"))
		return finish(s, make(s, d, given));
	choir_dataset_free(d);
	return NULL;
}

choir_status choir_input_context_per_replica_batch(
		const choir_input_context *context, int64_t global, int64_t *batch)
{
	if (context == NULL || batch == NULL || context->replicas_in_sync < 1)
		return choir_fail(CHOIR_INVALID,
				"input context: the context or the result is NULL, or it has no replicas");
	if (global < 0 || global % context->replicas_in_sync != 0)
		return choir_fail(CHOIR_INVALID,
				"input context: a global batch of %" PRId64 " cannot be divided by %d replicas",
				global, context->replicas_in_sync);
	*batch = global / context->replicas_in_sync;
	return CHOIR_OK;
}

static choir_status refuse_columns(
		const chi_spec *first, const chi_spec *spec, const char *what, int replica)
{
	char here[CHI_COLUMN_TEXT], there[CHI_COLUMN_TEXT];
	size_t i = 0;
	if (spec->n != first->n)
		return choir_fail(CHOIR_INVALID,
				"distribute_datasets_from_function: replica %d's dataset has %zu columns, replica "
				"0's has %zu; all need the same columns",
				replica, spec->n, first->n);
	while (i + 1 < spec->n &&
			strcmp(chi_input_print_column(&spec->column[i], here),
					chi_input_print_column(&first->column[i], there)) == 0)
		i++;
	return choir_fail(CHOIR_INVALID,
			"distribute_datasets_from_function: the datasets differ in %s: replica %d's column "
			"%zu is %s, replica 0's is %s; all need the same columns",
			what, replica, i, chi_input_print_column(&spec->column[i], here),
			chi_input_print_column(&first->column[i], there));
}

static choir_status call(choir_distributed_dataset *data, int i, const choir_input_context *c,
		choir_dataset_fn *fn, void *user)
{
	chi_error before; // fn neither sees nor loses it
	chi_error_save(&before);
	chi_error_clear();
	chi_mutex_check_none_held();
	choir_dataset *d = fn(c, user);
	if (d == NULL && choir_error_status() == CHOIR_OK)
		choir_fail(CHOIR_INVALID, "the function returned no dataset");
	if (d == NULL)
		return chi_error_prefix("distribute_datasets_from_function: input pipeline %d of %d",
				c->input_pipeline, c->input_pipelines);
	chi_error_restore(&before);
	data->signature = chi_hash_mix(data->signature) ^ chi_dataset_signature(d);
	if (chi_dataset_spec(d)->batch == 0) {
		choir_dataset_free(d);
		return choir_fail(CHOIR_INVALID,
				"distribute_datasets_from_function: the dataset has single examples; add a batch "
				"stage (choir_dataset_batch)");
	}
	const char *differs =
			i > 0 ? chi_columns_differ(data->stream[0].spec, chi_dataset_spec(d)) : NULL;
	if (differs != NULL) {
		choir_status status =
				refuse_columns(data->stream[0].spec, chi_dataset_spec(d), differs, i);
		choir_dataset_free(d);
		return status;
	}
	return add_stream(data, i, d);
}

static choir_distributed_dataset *make_from_function(
		choir_strategy *s, choir_dataset_fn *fn, void *user, const choir_input_options *given)
{
	choir_input_options o;
	if (complete(s, given, true, &o) != CHOIR_OK)
		return NULL;
	if (fn == NULL)
		return chi_fail_null(
				CHOIR_INVALID, "distribute_datasets_from_function: the function is NULL");
	o.per_replica_batches = true;
	o.auto_shard = CHOIR_AUTO_SHARD_OFF;
	const bool each = o.replication == CHOIR_REPLICATION_PER_REPLICA;
	choir_distributed_dataset *data = new_data(s, &o, each ? s->replicas : 1);
	if (data == NULL)
		return NULL;
	const int n = (int) chi_input_replicas(data);
	const int first = (int) chi_input_first(data, o.worker);
	data->rebatch = CHI_REBATCH_ELEMENTS;
	data->from_function = true;
	choir_status status = CHOIR_OK;
	for (int i = 0; i < data->streams && status == CHOIR_OK; i++) {
		const choir_input_context c = { .size = sizeof c,
			.input_pipelines = each ? n : o.workers,
			.input_pipeline = each ? first + i : o.worker,
			.replicas_in_sync = n };
		status = call(data, i, &c, fn, user);
	}
	sign_part(data);
	if (status == CHOIR_OK)
		return complete_data(data);
	chi_input_free(data);
	return NULL;
}

choir_distributed_dataset *choir_strategy_distribute_datasets_from_function(
		choir_strategy *s, choir_dataset_fn *fn, void *user, const choir_input_options *given)
{
	return may_distribute(s, "distribute_datasets_from_function")
			? finish(s, make_from_function(s, fn, user, given))
			: NULL;
}

void choir_distributed_dataset_free(choir_distributed_dataset *data)
{
	if (data != NULL)
		chi_strategy_free_owned(data->strategy, data);
}
