// The number of a step's examples for each replica (docs/rules.md, section 9), from numbers that
// all workers know.
#include "input/input.h"

#include <string.h>

#include "strategy/strategy.h"

bool chi_input_is_shared(const choir_distributed_dataset *data)
{
	return data->rebatch == CHI_REBATCH_SHARED || data->rebatch == CHI_REBATCH_UNKNOWN_SHARED ||
			data->rebatch == CHI_REBATCH_ELEMENTS_SHARED;
}

int64_t chi_input_replicas(const choir_distributed_dataset *data)
{
	const choir_strategy *s = data->strategy;
	return s->process_group != NULL ? s->in_sync : (int64_t) data->o.workers * s->replicas;
}

int64_t chi_input_first(const choir_distributed_dataset *data, int worker)
{
	const choir_strategy *s = data->strategy;
	return s->process_group != NULL ? s->process_group->first[worker]
									: (int64_t) worker * s->replicas;
}

static int64_t first_here(const choir_distributed_dataset *data)
{
	return chi_input_first(data, data->o.worker);
}

static int64_t share(const choir_distributed_dataset *data, int64_t id)
{
	const int64_t n = chi_input_replicas(data);
	return data->batch / n + (id < data->batch % n);
}

static void cut_rows(
		const choir_distributed_dataset *data, const chi_batch_buffer *to, int64_t examples)
{
	for (int i = 0; i < data->strategy->replicas; i++) {
		if (to->rows[i] > examples)
			to->rows[i] = examples;
		examples -= to->rows[i];
	}
}

static choir_status read_element(choir_distributed_dataset *data, chi_batch_buffer *to)
{
	return chi_example_stream_read(&data->stream[0], to, 0, true, &to->rows[0]);
}

// An element per replica. If all are read, skips other workers' elements.
static choir_status read_elements(choir_distributed_dataset *data, chi_batch_buffer *to)
{
	const bool shared = data->rebatch == CHI_REBATCH_ELEMENTS_SHARED;
	const int64_t own = data->strategy->replicas, first = shared ? first_here(data) : 0;
	const int64_t n = shared ? chi_input_replicas(data) : own;
	int64_t all = 0;
	for (int64_t id = 0; id < n; id++) {
		const int64_t i = id - first;
		const bool mine = i >= 0 && i < own;
		int64_t got = 0;
		const choir_status status = chi_example_stream_read(
				&data->stream[data->streams > 1 ? i : 0], mine ? to : NULL, 0, true, &got);
		if (status != CHOIR_OK && status != CHOIR_END)
			return status;
		if (mine)
			to->rows[i] = got;
		all += got;
	}
	to->whole = shared ? all : 0;
	return all > 0 ? CHOIR_OK : CHOIR_END;
}

// By the cyclic list of sizes: worker w begins at its first replica's. All workers advance by one
// worker's replicas, so each step is a global batch.
static choir_status read_stream(choir_distributed_dataset *data, chi_batch_buffer *to)
{
	const int64_t n = chi_input_replicas(data), first = first_here(data);
	const int64_t shift = n / data->o.workers;
	int64_t want = 0, got;
	for (int i = 0; i < data->strategy->replicas; i++) {
		const int64_t id = (first + to->step % n * shift + i) % n;
		to->rows[i] = share(data, id);
		want += to->rows[i];
	}
	if (want == 0) // others have all examples; only an end is no step
		return chi_example_stream_hold(&data->stream[0]);
	CHOIR_TRY(chi_example_stream_fill(&data->stream[0], to, want, &got));
	cut_rows(data, to, got);
	return got > 0 ? CHOIR_OK : CHOIR_END;
}

static choir_status read_shared(choir_distributed_dataset *data, chi_batch_buffer *to)
{
	const int64_t first = first_here(data);
	int64_t before = 0, mine = 0, passed, got = 0, behind = 0;
	for (int64_t id = 0; id < first; id++)
		before += share(data, id);
	for (int i = 0; i < data->strategy->replicas; i++)
		mine += to->rows[i] = share(data, first + i);
	CHOIR_TRY(chi_example_stream_fill(&data->stream[0], NULL, before, &passed));
	if (passed == before)
		CHOIR_TRY(chi_example_stream_fill(&data->stream[0], to, mine, &got));
	cut_rows(data, to, got);
	if (got == mine)
		CHOIR_TRY(chi_example_stream_fill(
				&data->stream[0], NULL, data->batch - before - mine, &behind));
	to->whole = passed + got + behind;
	return to->whole > 0 ? CHOIR_OK : CHOIR_END;
}

// One piece per replica of the job, of ceil(examples / n).
static choir_status read_pieces(choir_distributed_dataset *data, chi_batch_buffer *to)
{
	chi_example_stream *f = &data->stream[0];
	const int64_t n = chi_input_replicas(data), first = first_here(data);
	int64_t before = 0, passed, got;
	CHOIR_TRY(chi_example_stream_hold(f));
	const int64_t piece = f->leftover_examples / n + (f->leftover_examples % n != 0),
				  all = f->leftover_examples;
	const bool shared = data->rebatch == CHI_REBATCH_UNKNOWN_SHARED;
	to->whole = shared ? all : 0;
	if (shared)
		before = first * piece < all ? first * piece : all;
	if (before > 0)
		CHOIR_TRY(chi_example_stream_fill(f, NULL, before, &passed));
	int64_t left = f->leftover_examples - f->used, want = 0;
	for (int i = 0; i < data->strategy->replicas; i++) {
		to->rows[i] = piece < left ? piece : left;
		left -= to->rows[i];
		want += to->rows[i];
	}
	CHOIR_TRY(chi_example_stream_fill(f, to, want, &got));
	return shared ? chi_example_stream_fill(f, NULL, f->leftover_examples - f->used, &passed)
				  : CHOIR_OK;
}

static const char *print_example(const choir_tensor *t, char text[CHI_SHAPE_TEXT])
{
	choir_shape shape = { .rank = t->shape.rank - 1 };
	memcpy(shape.dim, t->shape.dim + 1, (size_t) shape.rank * sizeof shape.dim[0]);
	return chi_shape_print(&shape, text);
}

static choir_status check_pieces(const choir_distributed_dataset *data, const chi_batch_buffer *to)
{
	char text[2][CHI_SHAPE_TEXT];
	const chi_spec *spec = data->stream[0].spec;
	for (size_t i = 0; i < spec->n; i++) {
		int64_t first = 0, offset, there, more;
		for (int k = 0; to->piece[i] != NULL && k < data->strategy->replicas; k++) {
			const choir_tensor *t =
					chi_batch_buffer_find(to, i, first, to->rows[k], &offset, &there);
			const choir_tensor *next = chi_batch_buffer_find(
					to, i, first + there, to->rows[k] - there, &offset, &more);
			if (there < to->rows[k])
				return choir_fail(CHOIR_INVALID,
						"distributed dataset: column \"%s\": replica %d would get examples of "
						"shapes %s and %s in one batch; pad them to a fixed shape, or make the "
						"dataset's batch the global batch",
						spec->column[i].name, (int) chi_input_first(data, data->o.worker) + k,
						print_example(t, text[0]), print_example(next, text[1]));
			first += to->rows[k];
		}
	}
	return CHOIR_OK;
}

choir_status chi_input_read_step(choir_distributed_dataset *data, chi_batch_buffer *to)
{
	choir_status status = CHOIR_INTERNAL;
	to->whole = 0;
	switch (data->rebatch) {
	case CHI_REBATCH_AS_THEY_COME:
		status = read_element(data, to);
		break;
	case CHI_REBATCH_ELEMENTS:
	case CHI_REBATCH_ELEMENTS_SHARED:
		status = read_elements(data, to);
		break;
	case CHI_REBATCH_STREAM:
		status = read_stream(data, to);
		break;
	case CHI_REBATCH_SHARED:
		status = read_shared(data, to);
		break;
	case CHI_REBATCH_UNKNOWN:
	case CHI_REBATCH_UNKNOWN_SHARED:
		status = read_pieces(data, to);
		break;
	}
	if (status == CHOIR_OK)
		status = check_pieces(data, to);
	if (status == CHOIR_END)
		memset(to->rows, 0, (size_t) data->strategy->replicas * sizeof *to->rows);
	return status;
}
