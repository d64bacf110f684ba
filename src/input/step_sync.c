// At construction and in each step, workers exchange status, number of examples and a failure's
// text. A step runs if any worker has examples, and fails on all or none.
#include "input/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "collective/process_group.h"
#include "strategy/worker_sync.h"

enum { MAX_TEXT = 232 };

struct chi_input_message {
	int32_t status;
	int32_t end;
	int64_t examples; // of this worker
	int64_t whole; // of all workers, if each reads all; else 0
	char text[MAX_TEXT];
};
typedef chi_input_message message;

static message make_message(choir_status status, int64_t examples, int64_t whole)
{
	message w = { .status = (int32_t) status, .examples = examples, .whole = whole };
	if (status == CHOIR_END) {
		w.status = CHOIR_OK;
		w.end = 1;
	}
	if (w.status != CHOIR_OK)
		snprintf(w.text, sizeof w.text, "%.*s", MAX_TEXT - 1, choir_error());
	return w;
}

static choir_status find_failure(const chi_process_group *p, const message all[])
{
	if (all[p->worker].status != CHOIR_OK)
		return choir_error_status();
	for (int w = 0; w < p->workers; w++)
		if (all[w].status != CHOIR_OK)
			return choir_fail(CHOIR_CANCELLED, "distributed dataset: worker %d: %.*s", w,
					MAX_TEXT - 1, all[w].text);
	return CHOIR_OK;
}

chi_input_message *chi_input_new_messages(const choir_strategy *s)
{
	return chi_alloc_array((size_t) s->process_group->workers, sizeof(message));
}

choir_status chi_input_check_creation(
		choir_strategy *s, choir_status own, uint64_t signature, const char *differs)
{
	if (s->process_group == NULL)
		return own;
	message *all = chi_input_new_messages(s);
	if (all == NULL)
		return chi_strategy_abort(s, choir_error_status());
	const message w = make_message(own, 0, (int64_t) signature);
	choir_status status = chi_process_group_all_gather(
			s->process_group, &w, sizeof w, all, "making a distributed dataset");
	if (status == CHOIR_OK)
		status = find_failure(s->process_group, all);
	for (int i = 0; status == CHOIR_OK && i < s->process_group->workers; i++)
		if (all[i].whole != all[0].whole)
			status = choir_fail(CHOIR_INVALID, "worker %d's %s", i, differs);
	chi_free(all);
	return status;
}

enum { MAX_STEPS = 160 };
typedef struct {
	int64_t policy, rebatch, checkpoint, batch;
	uint64_t signature; // 0: each reads its own dataset
	char column[CHI_MAX_COLUMNS][64];
	char steps[MAX_STEPS];
} facts;

const char *chi_input_print_column(const choir_column *c, char text[CHI_COLUMN_TEXT])
{
	char shape[CHI_SHAPE_TEXT];
	snprintf(text, CHI_COLUMN_TEXT, "\"%.60s\" %s %s", c->name, choir_dtype_name(c->dtype),
			chi_shape_print(&c->shape, shape));
	return text;
}

// From the source on: "memory, shuffle, batch".
static void print_steps(const choir_dataset *d, char text[MAX_STEPS])
{
	if (d->from[0] != NULL)
		print_steps(d->from[0], text);
	const size_t at = strlen(text);
	snprintf(text + at, MAX_STEPS - at, "%s%s", at == 0 ? "" : ", ", d->stage->name);
}

static void find_facts(const choir_distributed_dataset *data, facts *f)
{
	char text[CHI_COLUMN_TEXT];
	f->policy = data->o.auto_shard;
	f->rebatch = data->rebatch;
	f->checkpoint = data->o.checkpoint;
	f->batch = data->batch;
	if (!chi_input_is_shared(data))
		return;
	const chi_spec *spec = data->stream[0].spec;
	f->signature = data->signature;
	for (size_t i = 0; i < spec->n; i++)
		snprintf(f->column[i], sizeof f->column[i], "%.63s",
				chi_input_print_column(&spec->column[i], text));
	print_steps(data->stream[0].data, f->steps);
}

static choir_status differs(int worker, const char *what, int64_t here, int64_t there)
{
	return choir_fail(CHOIR_INVALID,
			"distribute_dataset: worker %d has %s %" PRId64 ", worker 0 has %" PRId64
			"; all workers need the same",
			worker, what, here, there);
}

static const char *print_policy(int64_t policy)
{
	static const char *const names[] = { [CHOIR_AUTO_SHARD_DATA] = "DATA",
		[CHOIR_AUTO_SHARD_OFF] = "OFF",
		[CHOIR_AUTO_SHARD_AUTO] = "AUTO",
		[CHOIR_AUTO_SHARD_FILE] = "FILE",
		[CHOIR_AUTO_SHARD_HINT] = "HINT" };
	return names[policy];
}

static choir_status compare_datasets(int worker, const facts *f, const facts *first)
{
	for (size_t i = 0; i < CHI_MAX_COLUMNS; i++)
		if (strcmp(f->column[i], first->column[i]) != 0)
			return choir_fail(CHOIR_INVALID,
					"distribute_dataset: column %zu: worker %d's dataset has %s, worker 0's has "
					"%s; under the policy DATA all workers need the same",
					i, worker, f->column[i][0] != '\0' ? f->column[i] : "missing",
					first->column[i][0] != '\0' ? first->column[i] : "missing");
	if (strcmp(f->steps, first->steps) != 0)
		return choir_fail(CHOIR_INVALID,
				"distribute_dataset: worker %d's dataset has the stages %s, worker 0's has %s; "
				"under the policy DATA all workers need the same",
				worker, f->steps, first->steps);
	return choir_fail(CHOIR_INVALID,
			"distribute_dataset: worker %d's dataset has other seeds, sizes or data than worker "
			"0's in the stages %s; under the policy DATA all workers need the same",
			worker, f->steps);
}

static choir_status compare(int worker, const facts *f, const facts *first)
{
	if (f->policy != first->policy)
		return choir_fail(CHOIR_INVALID,
				"distribute_dataset: worker %d has the policy "
				"%s, worker 0 has %s; all workers need the same",
				worker, print_policy(f->policy), print_policy(first->policy));
	if (f->batch != first->batch)
		return differs(worker,
				f->batch < 0 || first->batch < 0 ? "a global batch (-1: unknown) of"
												 : "a global batch of",
				f->batch, first->batch);
	if (f->checkpoint != first->checkpoint)
		return differs(worker, ".checkpoint", f->checkpoint, first->checkpoint);
	if (f->rebatch != first->rebatch)
		return choir_fail(CHOIR_INVALID,
				"distribute_dataset: worker %d splits batches unlike worker 0: "
				".per_replica_batches differs, or a function makes only one of the datasets",
				worker);
	return f->signature == first->signature ? CHOIR_OK : compare_datasets(worker, f, first);
}

choir_status chi_input_check_data(
		choir_strategy *s, choir_status own, const choir_distributed_dataset *data)
{
	typedef struct {
		message message;
		facts facts;
	} made;
	if (s->process_group == NULL)
		return own;
	made *all = chi_alloc_array((size_t) s->process_group->workers + 1, sizeof *all);
	message *messages = chi_input_new_messages(s);
	choir_status status = all == NULL || messages == NULL
			? chi_strategy_abort(s, choir_error_status())
			: CHOIR_OK;
	if (status == CHOIR_OK) {
		made *here = &all[s->process_group->workers];
		here->message = make_message(own, 0, 0);
		if (data != NULL)
			find_facts(data, &here->facts);
		status = chi_process_group_all_gather(
				s->process_group, here, sizeof *here, all, "making a distributed dataset");
	}
	for (int i = 0; status == CHOIR_OK && i < s->process_group->workers; i++)
		messages[i] = all[i].message;
	if (status == CHOIR_OK)
		status = find_failure(s->process_group, messages);
	for (int i = 1; status == CHOIR_OK && i < s->process_group->workers; i++)
		status = compare(i, &all[i].facts, &all[0].facts);
	chi_free(messages);
	chi_free(all);
	return status;
}

static choir_status count_step(choir_distributed_dataset *data, const message all[])
{
	const chi_process_group *p = data->strategy->process_group;
	bool ended = true;
	data->all = 0;
	for (int w = 0; w < p->workers; w++) {
		data->all += all[w].examples;
		ended = ended && all[w].end;
		if (all[w].whole != all[0].whole)
			return choir_fail(CHOIR_INVALID,
					"distributed dataset: step %" PRId64 ": worker %d read %" PRId64
					" examples, worker 0 read %" PRId64 "; all workers need the same data",
					data->steps, w, all[w].whole, all[0].whole);
	}
	return ended ? CHOIR_END : CHOIR_OK;
}

choir_status chi_input_sync_step(
		choir_distributed_dataset *data, const chi_batch_buffer *to, choir_status own)
{
	choir_strategy *s = data->strategy;
	int64_t examples = 0;
	for (int i = 0; own == CHOIR_OK && i < s->replicas; i++)
		examples += to->rows[i];
	data->all = examples;
	if (s->process_group == NULL)
		return own;
	const message w = make_message(own, examples, own == CHOIR_OK ? to->whole : 0);
	choir_status status = chi_process_group_all_gather(s->process_group, &w, sizeof w,
			data->messages, "reading step %" PRId64 " of pass %" PRId64 " of the data",
			data->steps, data->pass);
	if (status == CHOIR_OK)
		status = find_failure(s->process_group, data->messages);
	return status == CHOIR_OK ? count_step(data, data->messages) : status;
}
