// A value's memory is reused after its last reader.
#include "train/export_c/export_c.h"

#include "base/size.h"

#include <limits.h>

// Row-wise instructions at the end compute one row; without any, the last row is copied.
int chi_export_keep_last_place(chi_export *e, int y)
{
	if (y == CHOIR_NONE || !e->value[y].varies)
		return y;
	int out = y;
	choir_shape one = e->value[out].shape;
	one.dim[0] = 1;
	bool any = false;
	for (size_t i = e->instructions; i-- > 0;) {
		chi_instruction *s = &e->instruction[i];
		if (s->out != out || !chi_c_functions[s->function].by_rows || s->table != NULL)
			break;
		s->last_row = any = true;
		out = s->x;
		// Earlier ones compute all rows.
		if (i == 0 || e->instruction[i - 1].out != out)
			break;
	}
	if (any) {
		e->value[y].shape = one;
		e->value[y].varies = false;
		return y;
	}
	return chi_export_call(e, CHI_C_LAST_PLACE, out, one, ", %d", (int) one.dim[1]);
}

static void use(chi_export *e, int memory, size_t step)
{
	chi_export_memory *m = &e->memory[memory];
	if (m->first > step)
		m->first = step;
	if (m->last < step)
		m->last = step;
}

// The output lives beyond the end.
static void find_lives(chi_export *e)
{
	for (size_t i = 0; i < e->memories; i++) {
		e->memory[i].first = SIZE_MAX;
		e->memory[i].last = 0;
	}
	for (size_t i = 0; i < e->instructions; i++) {
		const chi_instruction *s = &e->instruction[i];
		use(e, e->value[s->x].memory, i);
		use(e, e->value[s->out].memory, i);
		if (s->beside != CHOIR_NONE)
			use(e, e->value[s->beside].memory, i);
		if (s->work != CHOIR_NONE)
			use(e, s->work, i);
	}
	use(e, e->value[e->output].memory, e->instructions);
}

static void join(chi_export *e)
{
	for (size_t i = 0; i < e->instructions; i++) {
		const chi_instruction *s = &e->instruction[i];
		const int from = e->value[s->x].memory, to = e->value[s->out].memory;
		chi_export_memory *x = &e->memory[from], *y = &e->memory[to];
		if (!chi_c_functions[s->function].in_place || s->last_row || x->given || x->last != i ||
				to == e->value[e->output].memory || x->floats < y->floats)
			continue;
		x->last = y->last;
		y->first = SIZE_MAX;
		for (size_t k = 0; k < e->values; k++)
			if (e->value[k].memory == to)
				e->value[k].memory = from;
	}
}

static bool overlap(const chi_export_memory *a, const chi_export_memory *b)
{
	return a->first <= b->last && b->first <= a->last && a->at < b->at + b->floats &&
			b->at < a->at + a->floats;
}

static choir_status place(chi_export *e, size_t which)
{
	chi_export_memory *m = &e->memory[which];
	const int output = e->value[e->output].memory;
	for (size_t i = 0; i < which;) {
		const chi_export_memory *other = &e->memory[i++];
		const bool scratch = !other->given && other->first != SIZE_MAX;
		if (scratch && other != &e->memory[output] && overlap(m, other)) {
			m->at = other->at + other->floats;
			i = 0; // compare again from there
		}
	}
	size_t end;
	if (!chi_size_add(m->at, m->floats, &end) || end > INT_MAX)
		return choir_fail(
				CHOIR_UNSUPPORTED, "export: more than %d floats of scratch memory", INT_MAX);
	e->scratch = end > e->scratch ? end : e->scratch;
	return CHOIR_OK;
}

choir_status chi_export_finish(chi_export *e, int out)
{
	if (out == CHOIR_NONE)
		return choir_error_status();
	if (e->instructions == 0 || e->memory[e->value[out].memory].given)
		return choir_fail(CHOIR_UNSUPPORTED,
				"export: the layer returns its input unchanged; there is nothing to export");
	e->output = out;
	find_lives(e);
	join(e);
	for (size_t i = 0; i < e->memories; i++)
		if (!e->memory[i].given && e->memory[i].first != SIZE_MAX &&
				(int) i != e->value[out].memory)
			CHOIR_TRY(place(e, i));
	return CHOIR_OK;
}
