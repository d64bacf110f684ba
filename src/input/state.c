// What a checkpoint keeps of a distributed dataset: the numbers of its position.
#include "input/input.h"

#include <string.h>

static const char *name(const void *self)
{
	(void) self;
	return "dataset";
}

// Workers that read data of their own each stand in a place of their own, and a checkpoint is the
// chief's.
static choir_status check_shared(const choir_distributed_dataset *data)
{
	if (data->strategy->peers == NULL || chi_input_is_shared(data))
		return CHOIR_OK;
	return choir_fail(CHOIR_UNSUPPORTED,
			"save: a distributed dataset of which each worker reads "
			"a part of its own has no one place: auto_shard DATA has");
}

static choir_status save(void *self, chi_state *to)
{
	CHOIR_TRY(check_shared(self));
	choir_input_position p = { .size = sizeof p };
	CHOIR_TRY(choir_distributed_dataset_save(self, &p));
	const int64_t numbers[] = { p.pass, p.elements, p.examples, p.steps };
	int64_t *position = chi_state_add(to, "position", CHOIR_I64, &CHOIR_SHAPE(4));
	if (position == NULL)
		return choir_error_status();
	for (int i = 0; i < 4; i++)
		position[i] = numbers[i];
	if (p.marks > 0) {
		int64_t *mark = chi_state_add(
				to, "marks", CHOIR_I64, &CHOIR_SHAPE(p.marks, CHOIR_INPUT_MARK_NUMBERS));
		if (mark == NULL)
			return choir_error_status();
		memcpy(mark, p.mark, (size_t) p.marks * sizeof p.mark[0]);
	}
	return chi_state_add_count(to, "signature", (uint64_t) p.signature);
}

// Where there are any.
static choir_status take_marks(chi_state *from, choir_input_position *p)
{
	const chi_state_entry *e = chi_state_find(from, "marks");
	const void *data;
	if (e == NULL)
		return CHOIR_OK;
	p->marks = e->shape.rank == 2 && e->shape.dim[0] <= CHOIR_INPUT_MARKS ? e->shape.dim[0] : 1;
	CHOIR_TRY(chi_state_take(
			from, "marks", CHOIR_I64, &CHOIR_SHAPE(p->marks, CHOIR_INPUT_MARK_NUMBERS), &data));
	memcpy(p->mark, data, (size_t) p->marks * sizeof p->mark[0]);
	return CHOIR_OK;
}

static choir_status take(chi_state *from, choir_input_position *p)
{
	const void *data;
	uint64_t signature;
	CHOIR_TRY(chi_state_take(from, "position", CHOIR_I64, &CHOIR_SHAPE(4), &data));
	CHOIR_TRY(chi_state_take_count(from, "signature", &signature));
	const int64_t *n = data;
	*p = (choir_input_position){ .size = sizeof *p,
		.pass = n[0],
		.elements = n[1],
		.examples = n[2],
		.steps = n[3],
		.signature = (int64_t) signature };
	return take_marks(from, p);
}

static choir_status check(void *self, chi_state *from)
{
	const choir_distributed_dataset *data = self;
	choir_input_position p;
	CHOIR_TRY(take(from, &p));
	if (p.signature != (int64_t) data->signature)
		return choir_fail(CHOIR_INVALID,
				"%s: the position \"%s\" is of a dataset with other "
				"steps, seeds or columns",
				from->path, from->object);
	return CHOIR_OK;
}

static choir_status restore(void *self, chi_state *from)
{
	choir_input_position p;
	CHOIR_TRY(take(from, &p));
	return choir_distributed_dataset_restore(self, &p);
}

const chi_stateful_table chi_input_state = {
	.free = chi_input_free, .name = name, .save = save, .check = check, .restore = restore
};
