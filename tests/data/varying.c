// A source for tests whose examples differ in size: "word" (u8, [CHOIR_UNKNOWN]) is the word with
// as many letters as its number has, and "number" (i64) is that number.
#include "data/varying.h"

#include "data/elements.h"

#include <string.h>

typedef struct {
	choir_dataset base;
	int64_t n, next;
} words;

static choir_status words_read(choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	words *w = (words *) d;
	chi_ragged_value *cell = column[0];
	int64_t *number = column[1];
	for (*got = 0; *got < want && w->next < w->n; ++*got, w->next++) {
		choir_shape shape = { 1, { word_length(w->next) } };
		if (cell)
			CHOIR_TRY(chi_ragged_value_shape(&cell[*got], CHOIR_U8, &shape));
		if (cell && shape.dim[0] > 0)
			memset(cell[*got].data, (int) ('a' + w->next % 26), (size_t) shape.dim[0]);
		if (number)
			number[*got] = w->next;
	}
	return *got ? CHOIR_OK : CHOIR_END;
}

static choir_status words_rewind(choir_dataset *d)
{
	((words *) d)->next = 0;
	return CHOIR_OK;
}

static choir_status words_seek(choir_dataset *d, int64_t elements)
{
	((words *) d)->next = elements;
	return CHOIR_OK;
}

static const chi_stage words_step = {
	.name = "words",
	.read = words_read,
	.rewind = words_rewind,
	.varies = true,
	.seek = words_seek,
};

int64_t word_length(int64_t number)
{
	return number * 7 % 5;
}

choir_dataset *words_new(int64_t n)
{
	static const choir_column columns[] = {
		{ .name = "word", .dtype = CHOIR_U8, .shape = { 1, { CHOIR_NONE } } },
		{ .name = "number", .dtype = CHOIR_I64 },
	};
	words *w = chi_source_new(&words_step, sizeof *w, 2, columns, n);
	if (!w)
		return NULL;
	w->n = n;
	return &w->base;
}

void assert_word(const chi_ragged_value *cell, int64_t number)
{
	assert_int_equal(cell->shape.rank, 1);
	assert_int_equal(cell->shape.dim[0], word_length(number));
	for (int64_t i = 0; i < cell->shape.dim[0]; i++)
		assert_int_equal(((const char *) cell->data)[i], 'a' + number % 26);
}
