// Collects the instructions, values and constants of a forward pass.
#include "train/export_c/export_c.h"

#include "base/alloc.h"
#include "base/size.h"
#include "base/text.h"
#include "tensor/tensor.h"
#include "train/layer/layer.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

enum { MESSAGE = 256 };

void chi_export_free(chi_export *e)
{
	for (size_t i = 0; i < e->instructions; i++) {
		chi_free(e->instruction[i].how);
		chi_free(e->instruction[i].rest);
	}
	for (size_t i = 0; i < e->weights; i++) {
		chi_free(e->weight[i].name);
		chi_free(e->weight[i].data);
	}
	chi_free(e->value);
	chi_free(e->memory);
	chi_free(e->instruction);
	chi_free(e->weight);
	*e = (chi_export){ 0 };
}

static void *append(void **array, size_t *n, size_t *capacity, size_t size)
{
	if (!chi_grow(array, capacity, *n + 1, size))
		return NULL;
	void *item = (char *) *array + *n * size;
	memset(item, 0, size);
	++*n;
	return item;
}

static chi_export_value *append_value(chi_export *e)
{
	void *array = e->value;
	chi_export_value *item = append(&array, &e->values, &e->value_capacity, sizeof *item);
	e->value = array;
	return item;
}

static int new_memory(chi_export *e, size_t floats, bool given)
{
	void *array = e->memory;
	chi_export_memory *item = append(&array, &e->memories, &e->memory_capacity, sizeof *item);
	e->memory = array;
	if (item == NULL)
		return CHOIR_NONE;
	*item = (chi_export_memory){ .floats = floats, .given = given };
	return (int) e->memories - 1;
}

static int value_in(chi_export *e, choir_shape shape, bool varies, int memory)
{
	chi_export_value *v = memory == CHOIR_NONE ? NULL : append_value(e);
	if (v == NULL)
		return CHOIR_NONE;
	*v = (chi_export_value){ .shape = shape, .varies = varies, .memory = memory };
	return (int) e->values - 1;
}

int chi_export_new_value(chi_export *e, choir_shape shape, bool varies, bool input)
{
	int64_t n = 1;
	for (int i = 0; i < shape.rank; i++)
		if (!chi_int64_multiply(n, shape.dim[i], &n) || n > INT_MAX) {
			choir_fail(CHOIR_UNSUPPORTED, "export: more than %d elements between two layers",
					INT_MAX);
			return CHOIR_NONE;
		}
	return value_in(e, shape, varies, new_memory(e, (size_t) n, input));
}

const choir_shape *chi_export_shape(const chi_export *e, int x)
{
	return &e->value[x].shape;
}

int64_t chi_export_rows(const chi_export *e, int x)
{
	const choir_shape *s = chi_export_shape(e, x);
	int64_t rows = 1;
	for (int i = 0; i < s->rank - 1; i++)
		rows *= s->dim[i];
	return rows;
}

int chi_export_refuse(const choir_layer *l, const chi_export *e, int x, const char *fmt, ...)
{
	char message[MESSAGE], got[CHI_SHAPE_TEXT];
	va_list args;
	va_start(args, fmt);
	chi_text_format(message, sizeof message, fmt, args);
	va_end(args);
	choir_fail(CHOIR_INVALID, "layer \"%s\": %s; got %s",
			l->name != NULL ? l->name : l->kind->name, message,
			chi_shape_print(chi_export_shape(e, x), got));
	return CHOIR_NONE;
}

int chi_layer_describe(choir_layer *l, chi_export *e, int x)
{
	if (x == CHOIR_NONE)
		return CHOIR_NONE;
	if (l->kind->describe != NULL)
		return l->kind->describe(l, e, x);
	choir_fail(CHOIR_UNSUPPORTED, "layer \"%s\": %s cannot be exported as C",
			l->name != NULL ? l->name : l->kind->name, l->kind->name);
	return CHOIR_NONE;
}

int chi_export_view(chi_export *e, int x, choir_shape shape)
{
	return x == CHOIR_NONE ? x : value_in(e, shape, false, e->value[x].memory);
}

static bool is_taken(const chi_export *e, const char *name)
{
	for (size_t i = 0; i < e->weights; i++)
		if (strcmp(e->weight[i].name, name) == 0)
			return true;
	return false;
}

static char *name_weight(const chi_export *e, const char *layer, const char *what)
{
	chi_text text = { 0 };
	chi_text_add(&text, layer[0] >= '0' && layer[0] <= '9' ? "w_%s" : "%s", layer);
	chi_text_add(&text, what == NULL ? "%s" : "_%s", what == NULL ? "" : what);
	for (size_t i = 0; i < text.length; i++) {
		const char c = text.data[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')))
			text.data[i] = '_';
	}
	const size_t length = text.length;
	for (size_t k = e->weights; !text.failed && is_taken(e, text.data); k++) {
		text.length = length; // "a/b" and "a_b" collide
		chi_text_add(&text, "_%zu", k);
	}
	if (!text.failed)
		return text.data;
	chi_text_free(&text);
	return NULL;
}

static chi_export_weight *new_weight(chi_export *e, const char *layer, const char *what)
{
	char *name = name_weight(e, layer, what);
	void *array = e->weight;
	chi_export_weight *w =
			name == NULL ? NULL : append(&array, &e->weights, &e->weight_capacity, sizeof *w);
	e->weight = array;
	if (w == NULL)
		chi_free(name);
	else
		w->name = name;
	return w;
}

const char *chi_export_variable(chi_export *e, choir_variable *v)
{
	const char *known = NULL;
	if (choir_shape_elements(&v->shape) > INT_MAX)
		return chi_fail_null(CHOIR_UNSUPPORTED,
				"export: variable \"%s\" has more than %d elements", v->name, INT_MAX);
	for (size_t i = 0; i < e->weights && known == NULL; i++)
		known = e->weight[i].variable == v ? e->weight[i].name : NULL;
	chi_export_weight *w = known != NULL ? NULL : new_weight(e, v->name, NULL);
	if (w == NULL)
		return known;
	w->variable = v;
	w->n = (size_t) choir_shape_elements(&v->shape);
	return w->name;
}

const char *chi_export_constants(
		chi_export *e, const char *layer, const char *what, size_t n, const float data[])
{
	chi_export_weight *w = new_weight(e, layer, what);
	if (w == NULL)
		return NULL;
	w->n = n;
	w->data = chi_alloc_array(n, sizeof *data);
	if (w->data == NULL)
		return NULL;
	memcpy(w->data, data, n * sizeof *data);
	return w->name;
}

CHOIR_PRINTF(1, 0) static char *format(const char *fmt, va_list args)
{
	va_list again;
	va_copy(again, args);
	const size_t size = (size_t) chi_text_format(NULL, 0, fmt, args) + 1;
	char *line = chi_alloc(size);
	if (line != NULL)
		chi_text_format(line, size, fmt, again);
	va_end(again);
	return line;
}

static bool are_numbers(const chi_export *e, int x)
{
	if (e->dtype == CHOIR_F32 || !e->memory[e->value[x].memory].given)
		return false;
	choir_fail(CHOIR_INVALID, "export: the input is %s; the first layer must be an embedding",
			choir_dtype_name(e->dtype));
	return true;
}

int chi_export_call(
		chi_export *e, chi_c_function function, int x, choir_shape shape, const char *fmt, ...)
{
	if (x == CHOIR_NONE || (function != CHI_C_EMBEDDING && are_numbers(e, x)))
		return CHOIR_NONE;
	va_list args;
	va_start(args, fmt);
	char *rest = format(fmt, args);
	va_end(args);
	const bool varies = e->value[x].varies && function != CHI_C_LAST_PLACE;
	const int out = rest == NULL ? CHOIR_NONE : chi_export_new_value(e, shape, varies, false);
	void *array = e->instruction;
	chi_instruction *s = out == CHOIR_NONE
			? NULL
			: append(&array, &e->instructions, &e->instruction_capacity, sizeof *s);
	e->instruction = array;
	if (s == NULL) {
		chi_free(rest);
		return CHOIR_NONE;
	}
	*s = (chi_instruction){ .function = function,
		.x = x,
		.beside = CHOIR_NONE,
		.out = out,
		.work = CHOIR_NONE,
		.rest = rest };
	return out;
}

int chi_export_add(chi_export *e, int x, int beside)
{
	if (x == CHOIR_NONE || beside == CHOIR_NONE || are_numbers(e, beside))
		return CHOIR_NONE;
	const int out = chi_export_call(e, CHI_C_ADD, x, *chi_export_shape(e, x), "%s", "");
	if (out != CHOIR_NONE)
		e->instruction[e->instructions - 1].beside = beside;
	return out;
}

int chi_export_add_table(chi_export *e, int x, const char *table)
{
	if (x == CHOIR_NONE || table == NULL)
		return CHOIR_NONE;
	const int out = chi_export_call(e, CHI_C_ADD, x, *chi_export_shape(e, x), "%s", "");
	if (out != CHOIR_NONE)
		e->instruction[e->instructions - 1].table = table;
	return out;
}

int chi_export_work(chi_export *e, int out, int64_t floats)
{
	if (out == CHOIR_NONE)
		return CHOIR_NONE;
	return (e->instruction[e->instructions - 1].work = new_memory(e, (size_t) floats, false)) ==
					CHOIR_NONE
			? CHOIR_NONE
			: out;
}

int chi_export_how(chi_export *e, int out, const char *fmt, ...)
{
	if (out == CHOIR_NONE)
		return CHOIR_NONE;
	va_list args;
	va_start(args, fmt);
	char *how = format(fmt, args);
	va_end(args);
	e->instruction[e->instructions - 1].how = how;
	return how == NULL ? CHOIR_NONE : out;
}

int chi_export_activate(chi_export *e, choir_activation activation, int x)
{
	static const chi_c_function functions[] = {
		[CHOIR_RELU] = CHI_C_RELU,
		[CHOIR_TANH] = CHI_C_TANH,
		[CHOIR_SIGMOID] = CHI_C_SIGMOID,
		[CHOIR_GELU] = CHI_C_GELU,
		[CHOIR_GELU_TANH] = CHI_C_GELU_TANH,
		[CHOIR_SILU] = CHI_C_SILU,
	};
	if (x == CHOIR_NONE || activation == CHOIR_LINEAR)
		return x;
	return chi_export_call(e, functions[activation], x, *chi_export_shape(e, x), "%s", "");
}

int chi_export_dense(chi_export *e, choir_activation activation, int x, choir_variable *kernel,
		choir_variable *bias)
{
	if (x == CHOIR_NONE)
		return CHOIR_NONE;
	const int in = (int) kernel->shape.dim[0], out = (int) kernel->shape.dim[1];
	const char *by = chi_export_variable(e, kernel);
	const char *plus = bias == NULL ? NULL : chi_export_variable(e, bias);
	if (by == NULL || (bias != NULL && plus == NULL))
		return CHOIR_NONE;
	choir_shape shape = *chi_export_shape(e, x);
	shape.dim[shape.rank - 1] = out;
	return chi_export_activate(e, activation,
			chi_export_call(e, CHI_C_DENSE, x, shape, ", %d, %d, %s.at, %s%s", in, out, by,
					plus == NULL ? "NULL" : plus, plus == NULL ? "" : ".at"));
}
