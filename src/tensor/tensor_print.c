// Tensors as one line, "f32 [2, 3] [[1, 2, 3], [4, 5, 6]]". Long axes show only their ends.
#include "base/alloc.h"
#include "base/text.h"
#include "tensor/tensor.h"

#include <inttypes.h>

enum { WHOLE = 64, EDGE = 3 }; // elements shown in full, and at each end of a longer axis

typedef struct {
	const choir_tensor *t;
	const void *data;
	char *text;
	size_t size, length; // may exceed size
	bool whole;
} writer;

CHOIR_PRINTF(2, 3) static void add(writer *w, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	const size_t left = w->length < w->size ? w->size - w->length : 0;
	const int n = chi_text_format(left ? w->text + w->length : NULL, left, fmt, args);
	va_end(args);
	w->length += n > 0 ? (size_t) n : 0;
}

static void add_element(writer *w, int64_t i)
{
	const choir_dtype dtype = w->t->dtype;

	if (dtype == CHOIR_I64)
		add(w, "%" PRId64, ((const int64_t *) w->data)[i]);
	else if (dtype == CHOIR_BOOL)
		add(w, "%s", ((const uint8_t *) w->data)[i] ? "true" : "false");
	else
		add(w, "%.*g", dtype == CHOIR_F64 || dtype == CHOIR_I32 ? 15 : 6,
				chi_dtype_load(dtype, w->data, i));
}

static void add_axis(writer *w, int axis, int64_t first)
{
	const choir_shape *shape = &w->t->shape;
	int64_t inner = 1;

	if (axis == shape->rank) {
		add_element(w, first);
		return;
	}
	for (int i = axis + 1; i < shape->rank; i++)
		inner *= shape->dim[i];
	add(w, "[");
	for (int64_t i = 0; i < shape->dim[axis]; i++) {
		if (!w->whole && i == EDGE && shape->dim[axis] > 2 * EDGE) {
			add(w, ", ...");
			i = shape->dim[axis] - EDGE;
		}
		if (i)
			add(w, ", ");
		add_axis(w, axis + 1, first + i * inner);
	}
	add(w, "]");
}

// After a failure the text is empty and the result 0.
size_t choir_tensor_print(const choir_tensor *t, char *text, size_t size)
{
	writer w = { .t = t, .text = text, .size = size };
	char shape[CHI_SHAPE_TEXT];

	if (size)
		text[0] = '\0';
	if (!t) {
		add(&w, "(null)");
		return w.length;
	}
	void *copy = chi_alloc(chi_tensor_bytes(t));
	if (!copy || chi_tensor_to_host(t, copy) != CHOIR_OK) {
		chi_free(copy);
		return 0;
	}
	w.data = copy;
	w.whole = choir_shape_elements(&t->shape) <= WHOLE;
	add(&w, "%s %s ", choir_dtype_name(t->dtype), chi_shape_print(&t->shape, shape));
	if (choir_shape_elements(&t->shape) > 0)
		add_axis(&w, 0, 0);
	else
		add(&w, "[]");
	chi_free(copy);
	return w.length;
}
