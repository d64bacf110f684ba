// Positions of distributed datasets, for the program and in checkpoints. If workers read different
// shares, the chief writes all positions.
#include "input/input.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/fpenv.h"
#include "collective/process_group.h"
#include "strategy/worker_sync.h"

// Programs built before seek points have shorter positions.
static choir_status check_size(const char *what, const choir_input_position *p)
{
	const size_t size = p == NULL ? 0 : p->size, min = offsetof(choir_input_position, seek_points);
	if (size >= min && size <= sizeof *p)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"distributed dataset: %s: the position's size is %zu; %zu needed", what, size,
			sizeof *p);
}

choir_status choir_distributed_dataset_save(
		const choir_distributed_dataset *data, choir_input_position *position)
{
	CHOIR_TRY(chi_input_need_data(data, "save"));
	CHOIR_TRY(chi_strategy_check(data->strategy));
	CHOIR_TRY(chi_context_need_cross(data->strategy, "saving where a distributed dataset stands"));
	CHOIR_TRY(check_size("save", position));
	choir_input_position all = { .size = position->size };
	if (data->failure.status != CHOIR_OK || data->held)
		all = data->before;
	else
		chi_input_where(data, &all);
	all.size = position->size;
	all.signature = (int64_t) data->signature;
	memcpy(position, &all, position->size);
	return CHOIR_OK;
}

static choir_status go_each(choir_distributed_dataset *data, const choir_input_position *p)
{
	for (int i = 0; i < data->streams; i++) {
		chi_element e = { .capacity = data->stream[i].spec->batch };
		choir_status status = chi_example_stream_begin(&data->stream[i], p->pass);
		for (int64_t k = 0; k < p->steps && status == CHOIR_OK; k++)
			status = chi_dataset_next(data->stream[i].data, &e);
		if (status != CHOIR_OK && status != CHOIR_END)
			return status;
		data->stream[i].elements = p->steps;
	}
	return CHOIR_OK;
}

choir_status choir_distributed_dataset_restore(
		choir_distributed_dataset *data, const choir_input_position *given)
{
	choir_input_position p = { 0 };
	CHOIR_TRY(chi_input_need_data(data, "restore"));
	CHOIR_TRY(chi_strategy_check(data->strategy));
	CHOIR_TRY(chi_context_need_cross(data->strategy, "restoring a distributed dataset"));
	CHOIR_TRY(check_size("restore", given));
	memcpy(&p, given, given->size);
	if (p.pass < 0 || p.elements < 0 || p.examples < 0 || p.steps < 0 || p.seek_points < 0 ||
			p.seek_points > CHOIR_INPUT_SEEK_POINTS)
		return choir_fail(CHOIR_INVALID,
				"distributed dataset: restore: the position has negative numbers, "
				"or more than %d seek points",
				(int) CHOIR_INPUT_SEEK_POINTS);
	if (p.signature != (int64_t) data->signature)
		return choir_fail(CHOIR_INVALID,
				"distributed dataset: restore: the position is from a dataset with other stages, "
				"seeds or columns, or from another worker's share");
	chi_read_ahead_halt(data->read_ahead);
	data->held = false;
	data->steps = p.steps;
	data->pass = p.pass;
	data->before = p;
	chi_fpenv host; // a restore may compute, and a cache keeps the result
	chi_fpenv_enter(&host);
	const choir_status status =
			data->streams > 1 ? go_each(data, &p) : chi_example_stream_seek(&data->stream[0], &p);
	chi_fpenv_leave(&host);
	return chi_input_keep(data, status, false);
}

static const char *name(const void *self)
{
	(void) self;
	return "dataset";
}

static bool in_parts(const choir_distributed_dataset *data)
{
	return data->strategy->process_group != NULL && data->o.workers > 1 &&
			!chi_input_is_shared(data);
}

// Positions are a row of numbers for each worker, without the size.

enum {
	BEGIN = offsetof(choir_input_position, pass),
	ROW_BYTES = sizeof(choir_input_position) - BEGIN,
	ROW = ROW_BYTES / sizeof(int64_t)
};
_Static_assert(ROW_BYTES == ROW * sizeof(int64_t), "a position is numbers alone");

// A function of the program is a policy of its own.
enum { OF_A_FUNCTION = CHOIR_AUTO_SHARD_HINT + 1, POLICIES };

static uint64_t way_of(const choir_distributed_dataset *data)
{
	return data->from_function ? OF_A_FUNCTION : (uint64_t) data->o.auto_shard;
}

static choir_status save_parts(const choir_distributed_dataset *data, chi_state_dict *to)
{
	choir_input_position p = { .size = sizeof p };
	int64_t *rows = NULL;
	if (choir_distributed_dataset_save(data, &p) == CHOIR_OK)
		rows = chi_state_dict_add(to, "positions", CHOIR_I64, &CHOIR_SHAPE(data->o.workers, ROW));
	if (rows == NULL)
		return chi_strategy_abort(data->strategy, choir_error_status());
	CHOIR_TRY(chi_process_group_all_gather(data->strategy->process_group,
			(const char *) &p + BEGIN, ROW_BYTES, rows, "where each worker stands in its data"));
	return chi_state_dict_add_count(to, "policy", way_of(data));
}

static const char *whose(char out[64], int64_t workers, uint64_t way)
{
	static const char *const name[POLICIES] = { "DATA", "OFF", "AUTO", "FILE", "HINT",
		"a function" };
	if (workers == 0)
		snprintf(out, 64, "one for all (DATA, or one worker)");
	else
		snprintf(out, 64, "of %" PRId64 " workers under %s", workers,
				way < POLICIES ? name[way] : "?");
	return out;
}

typedef struct {
	int64_t saved, own; // workers; 0: no shares
	uint64_t way;
} parts;

static choir_status find_parts(
		const choir_distributed_dataset *data, chi_state_dict *from, parts *p)
{
	const chi_state_dict_entry *e = chi_state_dict_find(from, "positions");
	*p = (parts){ .saved = e == NULL || e->shape.rank == 0 ? 0 : e->shape.dim[0],
		.own = in_parts(data) ? data->o.workers : 0 };
	return e == NULL ? CHOIR_OK : chi_state_dict_take_count(from, "policy", &p->way);
}

static bool are_the_same(const choir_distributed_dataset *data, const parts *p)
{
	return p->saved == p->own && (p->own == 0 || p->way == way_of(data));
}

static choir_status check_parts(const choir_distributed_dataset *data, chi_state_dict *from)
{
	char there[64], here[64];
	parts p;
	CHOIR_TRY(find_parts(data, from, &p));
	if (p.saved == 0 && chi_state_dict_find(from, "position") == NULL)
		return CHOIR_OK; // another failure than a missing position
	if (are_the_same(data, &p))
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"%s: the position \"%s\" is %s, here it is %s; the same policy and number of workers "
			"needed, or a dataset with checkpoint CHOIR_OFF",
			from->path, from->object, whose(there, p.saved, p.way),
			whose(here, p.own, way_of(data)));
}

static bool reads_a_queue(const choir_dataset *d)
{
	return d != NULL && (d->stage->gone || reads_a_queue(d->from[0]) || reads_a_queue(d->from[1]));
}

// By its option, or as a queue whose shares differ.
static choir_status stays(const choir_distributed_dataset *data, chi_state_dict *from, bool *does)
{
	parts p;
	*does = data->o.checkpoint == CHOIR_OFF;
	if (*does || !reads_a_queue(data->stream[0].data))
		return CHOIR_OK;
	CHOIR_TRY(find_parts(data, from, &p));
	*does = !are_the_same(data, &p);
	return CHOIR_OK;
}

static void leave(chi_state_dict *from)
{
	static const char *const names[] = { "positions", "policy", "position", "marks", "signature" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		chi_state_dict_entry *e = chi_state_dict_find(from, names[i]);
		if (e != NULL)
			e->consumed = true;
	}
}

static choir_status take_part(
		const choir_distributed_dataset *data, chi_state_dict *from, choir_input_position *p)
{
	const void *rows;
	CHOIR_TRY(chi_state_dict_take(
			from, "positions", CHOIR_I64, &CHOIR_SHAPE(data->o.workers, ROW), &rows));
	p->size = sizeof *p;
	memcpy((char *) p + BEGIN, (const int64_t *) rows + data->o.worker * ROW, ROW_BYTES);
	return CHOIR_OK;
}

static choir_status save(void *self, chi_state_dict *to)
{
	if (((const choir_distributed_dataset *) self)->o.checkpoint == CHOIR_OFF)
		return CHOIR_OK;
	if (in_parts(self))
		return save_parts(self, to);
	choir_input_position p = { .size = sizeof p };
	CHOIR_TRY(choir_distributed_dataset_save(self, &p));
	const int64_t numbers[] = { p.pass, p.elements, p.examples, p.steps };
	int64_t *position = chi_state_dict_add(to, "position", CHOIR_I64, &CHOIR_SHAPE(4));
	CHOIR_TRY(chi_made(position));
	for (int i = 0; i < 4; i++)
		position[i] = numbers[i];
	if (p.seek_points > 0) {
		int64_t *mark = chi_state_dict_add(to, "marks", CHOIR_I64,
				&CHOIR_SHAPE(p.seek_points, CHOIR_INPUT_SEEK_POINT_NUMBERS));
		CHOIR_TRY(chi_made(mark));
		memcpy(mark, p.seek_point, (size_t) p.seek_points * sizeof p.seek_point[0]);
	}
	return chi_state_dict_add_count(to, "signature", (uint64_t) p.signature);
}

static choir_status take_seek_index(chi_state_dict *from, choir_input_position *p)
{
	const chi_state_dict_entry *e = chi_state_dict_find(from, "marks");
	const void *data;
	if (e == NULL)
		return CHOIR_OK;
	p->seek_points =
			e->shape.rank == 2 && e->shape.dim[0] <= CHOIR_INPUT_SEEK_POINTS ? e->shape.dim[0] : 1;
	CHOIR_TRY(chi_state_dict_take(from, "marks", CHOIR_I64,
			&CHOIR_SHAPE(p->seek_points, CHOIR_INPUT_SEEK_POINT_NUMBERS), &data));
	memcpy(p->seek_point, data, (size_t) p->seek_points * sizeof p->seek_point[0]);
	return CHOIR_OK;
}

static choir_status take(
		const choir_distributed_dataset *data, chi_state_dict *from, choir_input_position *p)
{
	if (in_parts(data))
		return take_part(data, from, p);
	const void *numbers;
	uint64_t signature;
	CHOIR_TRY(chi_state_dict_take(from, "position", CHOIR_I64, &CHOIR_SHAPE(4), &numbers));
	CHOIR_TRY(chi_state_dict_take_count(from, "signature", &signature));
	const int64_t *n = numbers;
	*p = (choir_input_position){ .size = sizeof *p,
		.pass = n[0],
		.elements = n[1],
		.examples = n[2],
		.steps = n[3],
		.signature = (int64_t) signature };
	return take_seek_index(from, p);
}

static choir_status check(void *self, chi_state_dict *from)
{
	const choir_distributed_dataset *data = self;
	choir_input_position p;
	bool does_stay;
	CHOIR_TRY(stays(data, from, &does_stay));
	if (does_stay) {
		leave(from);
		return CHOIR_OK;
	}
	CHOIR_TRY(check_parts(data, from));
	CHOIR_TRY(take(data, from, &p));
	if (p.signature != (int64_t) data->signature)
		return choir_fail(CHOIR_INVALID,
				"%s: the position \"%s\" is from a dataset with other stages, seeds or columns, "
				"or from another worker's share",
				from->path, from->object);
	return CHOIR_OK;
}

static choir_status restore(void *self, chi_state_dict *from)
{
	choir_input_position p;
	bool does_stay;
	CHOIR_TRY(stays(self, from, &does_stay));
	if (does_stay)
		return CHOIR_OK;
	CHOIR_TRY(take(self, from, &p));
	return choir_distributed_dataset_restore(self, &p);
}

const chi_stateful_table chi_input_state = {
	.free = chi_input_free, .name = name, .save = save, .check = check, .restore = restore
};
