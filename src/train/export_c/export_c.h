// A forward pass as a list of steps, which becomes C source. Each layer says what its formula on
// one example is (chi_layer_kind's describe), in terms of the functions of c_functions.h. What is
// between steps are values: numbered, with a shape, and a place in the scratch memory of the
// exported function when all steps are known.
#pragma once

#include "base/file.h"
#include "choir/export_c.h"
#include "train/export_c/c_functions.h"

typedef struct {
	choir_shape shape; // of one example
	bool varies; // its first dimension is how many places there are, and that the most
	int memory; // that it stands in
} chi_export_value;

// A piece of memory: of one value, of several that are the same elements in other shapes, or of
// values that follow each other in one place. The input and the output are the caller's.
typedef struct {
	size_t floats;
	size_t first, last; // steps that use it
	size_t at; // in the scratch memory
	bool given; // the caller's input: is only read
} chi_export_memory;

typedef struct {
	chi_c_function function;
	int x, beside, out; // values; beside is CHOIR_NONE where there is none
	const char *table; // constants in the place of beside, of which a row belongs to each of x's
	int work; // memory that is used while the step runs; CHOIR_NONE: none
	bool last_row; // only that of x, and of the result
	char *how; // the initialiser of a struct convolution; NULL: none
	char *rest; // further arguments, each with a comma before it
} chi_instruction;

// Constants of the file: a variable's value, or what was made of variables.
typedef struct {
	char *name;
	choir_variable *variable; // NULL: data
	float *data;
	size_t n;
} chi_export_weight;

typedef struct {
	chi_export_value *value;
	chi_export_memory *memory;
	chi_instruction *instruction;
	chi_export_weight *weight;
	size_t values, memories, instructions, weights;
	size_t value_capacity, memory_capacity, instruction_capacity, weight_capacity;
	choir_dtype dtype; // of the input
	choir_shape input;
	int64_t numbers; // of a sequence must be less
	size_t scratch; // floats
	int output;
} chi_export;

void chi_export_free(chi_export *e);

// ---- For layers. Values are indices; a failure is CHOIR_NONE, with an error, and flows through.

// Describes l's formula on x.
int chi_layer_describe(choir_layer *l, chi_export *e, int x);
const choir_shape *chi_export_shape(const chi_export *e, int x);
// How many rows of the last dimension x has, or the most; 0: that many are not possible.
int64_t chi_export_rows(const chi_export *e, int x);
// 'layer "hidden": ', the message, and ", got " with x's shape, as CHOIR_INVALID.
int chi_export_refuse(const choir_layer *l, const chi_export *e, int x, const char *fmt, ...)
		CHOIR_PRINTF(4, 5);
// The elements of x in another shape.
int chi_export_view(chi_export *e, int x, choir_shape shape);
// The expression for a variable's value; NULL: no memory. It is e's.
const char *chi_export_variable(chi_export *e, choir_variable *v);
// The same for n numbers that are made here, which are copied; the name is layer_what.
const char *chi_export_constants(
		chi_export *e, const char *layer, const char *what, size_t n, const float data[]);
// A step on x that gives a value of that shape; fmt are the arguments behind x, and how much of it
// there is, each with a comma before it.
int chi_export_call(chi_export *e, chi_c_function function, int x, choir_shape shape,
		const char *fmt, ...) CHOIR_PRINTF(5, 6);
int chi_export_add(chi_export *e, int x, int beside);
int chi_export_add_table(chi_export *e, int x, const char *table);
// The step that gave out gets so many floats beside its tensors, or the initialiser of its struct;
// out is returned.
int chi_export_work(chi_export *e, int out, int64_t floats);
int chi_export_how(chi_export *e, int out, const char *fmt, ...) CHOIR_PRINTF(3, 4);
int chi_export_activate(chi_export *e, choir_activation activation, int x);
// activation(x kernel + bias); bias may be NULL.
int chi_export_dense(chi_export *e, choir_activation activation, int x, choir_variable *kernel,
		choir_variable *bias);

// ---- For the rest of the exporter.

// A value of its own memory, which input is the caller's.
int chi_export_new_value(chi_export *e, choir_shape shape, bool varies, bool input);
// All steps are there: the last place alone where places vary, and where everything stands.
choir_status chi_export_finish(chi_export *e, int out);
// Writes the file's text. o is whole.
choir_status chi_export_print(const chi_export *e, const choir_export_options *o, chi_writer *to);
