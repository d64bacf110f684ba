// A forward pass as instructions for one example, printed as C. Layers add instructions; in the
// end values between them get scratch memory.
#pragma once

#include "base/file.h"
#include "choir/export_c.h"
#include "train/export_c/c_functions.h"

typedef struct {
	choir_shape shape;
	bool varies; // a sequence: its first dimension is a maximum
	int memory;
} chi_export_value;

// One value, its views, or several values in turn.
typedef struct {
	size_t floats;
	size_t first, last;
	size_t at;
	bool given;
} chi_export_memory;

typedef struct {
	chi_c_function function;
	int x, beside, out;
	const char *table; // instead of beside, a row for each of x
	int work; // in scratch, or CHOIR_NONE
	bool last_row;
	char *how; // initializer of a struct convolution
	char *rest;
} chi_instruction;

typedef struct {
	char *name;
	choir_variable *variable;
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
	choir_dtype dtype;
	choir_shape input;
	int64_t numbers; // of the input: must be less
	size_t scratch;
	int output;
} chi_export;

void chi_export_free(chi_export *e);

// For layers. A value is an index; after a failure, recorded on the thread, CHOIR_NONE, which
// later calls accept as x and return.

int chi_layer_describe(choir_layer *l, chi_export *e, int x);
const choir_shape *chi_export_shape(const chi_export *e, int x);
// Or its maximum; 0: too many.
int64_t chi_export_rows(const chi_export *e, int x);
// CHOIR_INVALID with 'layer "hidden": ', the message, and the shape of x.
int chi_export_refuse(const choir_layer *l, const chi_export *e, int x, const char *fmt, ...)
		CHOIR_PRINTF(4, 5);
int chi_export_view(chi_export *e, int x, choir_shape shape);
const char *chi_export_variable(chi_export *e, choir_variable *v);
const char *chi_export_constants(
		chi_export *e, const char *layer, const char *what, size_t n, const float data[]);
// fmt gives the arguments after x and its count, each after a comma.
int chi_export_call(chi_export *e, chi_c_function function, int x, choir_shape shape,
		const char *fmt, ...) CHOIR_PRINTF(5, 6);
int chi_export_add(chi_export *e, int x, int beside);
int chi_export_add_table(chi_export *e, int x, const char *table);
// The scratch floats, or the struct, of the instruction that made out. Return out.
int chi_export_work(chi_export *e, int out, int64_t floats);
int chi_export_how(chi_export *e, int out, const char *fmt, ...) CHOIR_PRINTF(3, 4);
int chi_export_activate(chi_export *e, choir_activation activation, int x);
int chi_export_dense(chi_export *e, choir_activation activation, int x, choir_variable *kernel,
		choir_variable *bias);

int chi_export_new_value(chi_export *e, choir_shape shape, bool varies, bool input);
// Only a sequence's last time step.
int chi_export_keep_last_place(chi_export *e, int y);
// All memory gets its offset.
choir_status chi_export_finish(chi_export *e, int out);
choir_status chi_export_print(const chi_export *e, const choir_export_options *o, chi_writer *to);
