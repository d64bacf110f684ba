// The workers that a strategy is in step with. They compare what must be equal before anything
// else, tell each other how many replicas they have, and make each variable together. What they
// add up is the collective room's business (collective/multi_worker.c); here is only what belongs
// to no collective.
#include "base/alloc.h"
#include "base/hash.h"
#include "base/text.h"
#include "op/op.h"
#include "strategy/strategy.h"
#include "strategy/gradients/overlap_workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// What decides bits, or in which order workers exchange what.
static choir_status agree_on_options(const choir_strategy *s)
{
	const choir_strategy_options *o = &s->options;
	const choir_communication_options *by = &s->communication;
	static const char *const toggles[] = { "default", "on", "off" };
	char library[CHI_KERNEL_LIBRARY];
	chi_setting facts[9];
	int n = 0;
	chi_setting_set(&facts[n++], "its kernels' library", "%s", chi_kernel_library(library));
	chi_setting_set(&facts[n++], "the strategy", "%s", s->kind);
	chi_setting_set(&facts[n++], "its .replicas", "%d", o->replicas);
	chi_setting_set(&facts[n++], "its .seed", "%" PRIu64, o->seed);
	chi_setting_set(&facts[n++], "its .bytes_per_pack", "%" PRId64, by->bytes_per_pack);
	chi_setting_set(&facts[n++], "its .num_packs", "%" PRId64, by->num_packs);
	chi_setting_set(&facts[n++], "its .slices", "%d", (int) by->slices);
	chi_setting_set(&facts[n++], "its .overlap", "%s", toggles[o->overlap]);
	chi_setting_set(&facts[n++], "its .compare_steps", "%" PRId64, o->compare_steps);
	return chi_cluster_check_consistency(o->cluster, facts, n);
}

choir_status chi_strategy_open_process_group(choir_strategy *s, int *local)
{
	choir_cluster *c = s->options.cluster;
	if (c == NULL || choir_cluster_workers(c) == 1)
		return CHOIR_OK;
	CHOIR_TRY(chi_overlap_workers_choose(s));
	CHOIR_TRY(agree_on_options(s));
	if (s->options.replicas > 0)
		*local = (int) chi_share_of(*local, choir_cluster_workers(c), choir_cluster_worker(c));
	if (c->one_thread && *local > 1) // each may come to an exchange on a thread of its own
		return choir_fail(CHOIR_UNSUPPORTED,
				"strategy: %d replicas here, but %s, with which one thread may call MPI: give "
				"each worker one replica, or initialise MPI with MPI_THREAD_SERIALIZED",
				*local, choir_cluster_transport(c));
	s->process_group = chi_alloc(sizeof *s->process_group);
	return s->process_group == NULL
			? choir_error_status()
			: chi_process_group_open(s->process_group, c, CHI_TAG_COLLECTIVES, *local);
}

void chi_strategy_close_process_group(choir_strategy *s)
{
	if (s->process_group != NULL)
		chi_process_group_close(s->process_group);
	chi_text_free(&s->notes);
	chi_free(s->process_group);
}

choir_status chi_strategy_abort(choir_strategy *s, choir_status status)
{
	return s->process_group == NULL || status == CHOIR_OK
			? status
			: chi_process_group_fail(s->process_group);
}

choir_tensor *chi_strategy_abort_if_null(choir_strategy *s, choir_frame *f, choir_tensor *t)
{
	if (t == NULL && s->process_group != NULL)
		chi_strategy_abort(s, chi_frame_status(f));
	return t;
}

choir_status chi_strategy_same(choir_strategy *s, const char *fmt, ...)
{
	char text[CHI_ERROR_SIZE];
	va_list args;
	if (s->process_group == NULL)
		return CHOIR_OK;
	va_start(args, fmt);
	chi_text_format(text, sizeof text, fmt, args);
	va_end(args);
	return chi_process_group_all_gather(s->process_group, NULL, 0, NULL, "%s", text);
}

choir_status chi_strategy_note(choir_strategy *s, const char *fmt, ...)
{
	char text[CHI_ERROR_SIZE];
	va_list args;
	if (s->process_group == NULL || s->options.compare_steps < 0)
		return CHOIR_OK;
	va_start(args, fmt);
	chi_text_format(text, sizeof text, fmt, args);
	va_end(args);
	chi_text_add(&s->notes, "%s\n", text);
	if (!s->notes.failed)
		return CHOIR_OK;
	s->notes.failed = false; // what was there before is whole
	return CHOIR_NO_MEMORY;
}

void chi_strategy_forget_notes(choir_strategy *s, size_t length)
{
	if (s->notes.length <= length)
		return;
	s->notes.length = length;
	s->notes.data[length] = '\0';
}

static uint64_t hash_values(const char *data, size_t bytes)
{
	uint64_t hash = bytes, word;
	for (; bytes >= sizeof word; data += sizeof word, bytes -= sizeof word) {
		memcpy(&word, data, sizeof word);
		hash = chi_hash_mix(hash ^ word);
	}
	word = 0;
	memcpy(&word, data, bytes);
	return chi_hash_mix(hash ^ word);
}

// The values travel only if not all workers have the chief's already, which random ones do.
choir_status chi_strategy_agree_on_variable(
		choir_strategy *s, const chi_variable_plan *plan, void *initial, size_t bytes)
{
	chi_process_group *p = s->process_group;
	char shape[CHI_SHAPE_TEXT];
	if (p == NULL)
		return CHOIR_OK;
	uint64_t *hash = chi_alloc_array((size_t) p->workers, sizeof *hash);
	if (hash == NULL)
		return chi_strategy_abort(s, choir_error_status());
	const uint64_t own = hash_values(initial, bytes);
	choir_status status = chi_process_group_all_gather(p, &own, sizeof own, hash,
			"variable \"%s\", %s %s, synchronization %d, aggregation %d, trainable %d", plan->name,
			choir_dtype_name(plan->options.dtype), chi_shape_print(&plan->shape, shape),
			(int) plan->options.synchronization, (int) plan->options.aggregation,
			(int) plan->options.trainable);
	bool equal = true;
	for (int w = 1; status == CHOIR_OK && w < p->workers; w++)
		equal = equal && hash[w] == hash[0];
	if (status == CHOIR_OK && !equal)
		status = chi_process_group_broadcast(
				p, 0, initial, bytes, "values of variable \"%s\"", plan->name);
	chi_free(hash);
	return status;
}

choir_status chi_strategy_count_examples(choir_strategy *s, choir_values *args)
{
	chi_process_group *p = s->process_group;
	if (p == NULL || args->counted_by == NULL || args->all_examples != CHOIR_NONE)
		return CHOIR_OK;
	int64_t own = 0;
	for (int i = 0; i < s->replicas && own != CHOIR_NONE; i++)
		own = args->examples[i] == CHOIR_NONE ? CHOIR_NONE : own + args->examples[i];
	int64_t *each = chi_alloc_array((size_t) p->workers, sizeof *each);
	if (each == NULL)
		return chi_strategy_abort(s, choir_error_status());
	const choir_status status = chi_process_group_all_gather(
			p, &own, sizeof own, each, "examples by \"%s\"", args->counted_by);
	bool known = true;
	own = 0;
	for (int w = 0; status == CHOIR_OK && w < p->workers; w++) {
		known = known && each[w] != CHOIR_NONE;
		own += each[w];
	}
	args->all_examples = known ? own : CHOIR_NONE;
	chi_free(each);
	return status;
}

choir_status chi_strategy_add_counts(choir_strategy *s, double *sum)
{
	chi_process_group *p = s->process_group;
	if (p == NULL)
		return CHOIR_OK;
	double *each = chi_alloc_array((size_t) p->workers, sizeof *each);
	if (each == NULL)
		return chi_strategy_abort(s, choir_error_status());
	const choir_status status =
			chi_process_group_all_gather(p, sum, sizeof *sum, each, "counts of a mean");
	*sum = 0;
	for (int w = 0; status == CHOIR_OK && w < p->workers; w++)
		*sum += each[w];
	chi_free(each);
	return status;
}

choir_status chi_strategy_all_parts(choir_variable *v, void *out)
{
	choir_strategy *s = v->strategy;
	chi_process_group *p = s->process_group;
	const size_t each = chi_variable_bytes(v);
	char *own = (char *) out + (size_t) s->replica_offset * each;
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < v->copies; i++)
		status = chi_variable_to_host(v, i, own + (size_t) i * each);
	if (p == NULL)
		return status;
	size_t *bytes =
			status == CHOIR_OK ? chi_alloc_array((size_t) p->workers, sizeof *bytes) : NULL;
	if (bytes == NULL)
		return chi_strategy_abort(s, choir_error_status());
	for (int w = 0; w < p->workers; w++)
		bytes[w] = (size_t) (p->first[w + 1] - p->first[w]) * each;
	status = chi_process_group_all_gather_v(
			p, own, bytes, out, "the parts of variable \"%s\"", v->name);
	chi_free(bytes);
	return status;
}

// What one worker tells the others of how it went.
typedef struct {
	int32_t status;
	char text[508];
} outcome;

choir_status chi_strategy_agree(choir_strategy *s, choir_status status, const char *what)
{
	chi_process_group *p = s->process_group;
	outcome own = { .status = (int32_t) status };
	if (p == NULL)
		return status;
	if (status != CHOIR_OK)
		snprintf(own.text, sizeof own.text, "%s", choir_error());
	outcome *each = chi_alloc_array((size_t) p->workers, sizeof *each);
	if (each == NULL)
		return chi_strategy_abort(s, choir_error_status());
	choir_status all =
			chi_process_group_all_gather(p, &own, sizeof own, each, "whether %s went well", what);
	if (all != CHOIR_OK && status != CHOIR_OK)
		all = choir_fail(status, "%s", own.text); // which came first
	for (int w = 0; all == CHOIR_OK && w < p->workers; w++) {
		each[w].text[sizeof each[w].text - 1] = '\0';
		if (each[w].status != CHOIR_OK && w == p->worker)
			all = choir_fail(status, "%s", own.text);
		else if (each[w].status != CHOIR_OK)
			all = choir_fail((choir_status) each[w].status, "worker %d: %s", w, each[w].text);
	}
	chi_free(each);
	return all;
}

choir_status chi_strategy_share(choir_strategy *s, void **data, size_t *bytes, const char *what)
{
	chi_process_group *p = s->process_group;
	if (p == NULL)
		return CHOIR_OK;
	uint64_t own = *bytes, *each = chi_alloc_array((size_t) p->workers, sizeof *each);
	if (each == NULL)
		return chi_strategy_abort(s, choir_error_status());
	choir_status status =
			chi_process_group_all_gather(p, &own, sizeof own, each, "bytes of %s", what);
	own = each[0];
	chi_free(each);
	CHOIR_TRY(status);
	if (p->worker != 0) {
		*bytes = (size_t) own;
		*data = own > SIZE_MAX - 1 ? NULL : chi_alloc_aligned((size_t) own + 1);
		if (*data == NULL)
			return chi_strategy_abort(s,
					choir_fail(
							CHOIR_NO_MEMORY, "no memory for %" PRIu64 " bytes of %s", own, what));
	}
	status = own == 0 ? CHOIR_OK : chi_process_group_broadcast(p, 0, *data, *bytes, "%s", what);
	if (status != CHOIR_OK && p->worker != 0) {
		chi_free(*data);
		*data = NULL;
		*bytes = 0;
	}
	return status;
}
