// A variable belongs to the strategy current where it was made. In a replica function all replicas make
// the same ones in one order; replica 0 creates (spec 2.3). Reads and writes follow the context of the
// frame or tensor (spec 2.4, 2.5). Threads: that context's.
#pragma once

#include "value.h"

CHOIR_C_BEGIN

typedef enum {
	CHOIR_SYNCHRONIZATION_AUTO = 0, CHOIR_SYNCHRONIZATION_ON_WRITE, CHOIR_SYNCHRONIZATION_ON_READ,
	CHOIR_SYNCHRONIZATION_NONE // refused when made, everywhere
} choir_synchronization;
typedef enum {
	CHOIR_AGGREGATION_NONE = 0, CHOIR_AGGREGATION_SUM, CHOIR_AGGREGATION_MEAN,
	CHOIR_AGGREGATION_ONLY_FIRST_REPLICA
} choir_aggregation;
typedef enum {
	CHOIR_ZEROS = 0, CHOIR_ONES,
	CHOIR_GLOROT_UNIFORM, // Glorot and Bengio 2010, fans as in Keras
	CHOIR_HE_NORMAL, // He et al. 2015
	CHOIR_NORMAL // mean 0, deviation scale
} choir_initializer;
typedef choir_status choir_initializer_fn(void *out, const choir_shape *shape, void *user);
typedef struct {
	size_t size;
	choir_dtype dtype; // CHOIR_F32
	choir_synchronization synchronization; // AUTO: ON_WRITE
	choir_aggregation aggregation; // NONE; integers refuse MEAN
	choir_toggle trainable; // on; ON_READ: off
	choir_initializer initializer; // ZEROS; random ones are Philox of the seed and the name
	double scale; // of NORMAL; 0: 0.05
	const void *initial_value; // packed, copied; instead of initializer
	choir_initializer_fn *initialize; // once, on the host; instead of both
	void *user;
} choir_variable_options;

choir_variable *choir_variable_new(const char *name, choir_shape shape, const choir_variable_options *o);
// The caller's packed memory, which outlives the strategy, as the one copy of host devices; brought up to
// date before run returns where devices have copies of their own.
choir_variable *choir_variable_wrap(const char *name, choir_dtype dtype, choir_shape shape, void *memory);

const char *choir_variable_name(const choir_variable *v);
const choir_shape *choir_variable_shape(const choir_variable *v);
choir_status choir_variable_describe(const choir_variable *v, choir_variable_options *options); // dtype, synchronization, aggregation, trainable; size set by the caller
int choir_variable_copies(const choir_variable *v); // on this worker
choir_device *choir_variable_device(const choir_variable *v, int copy);
// The value now, in frame. Using it after the variable changed is CHOIR_STATE (house 16).
choir_tensor *choir_variable_read(choir_variable *v, choir_frame *f);
// The component itself: as argument or result it stands for the variable; in an operation it is read.
choir_tensor *choir_variable_component(choir_variable *v, choir_frame *f);
choir_variable *choir_tensor_variable(const choir_tensor *t); // its container; NULL: none

// value's frame says which context. In a replica these are merge calls (ON_READ: local writes).
choir_status choir_variable_assign(choir_variable *v, choir_tensor *value);
choir_status choir_variable_assign_add(choir_variable *v, choir_tensor *value);
choir_status choir_variable_assign_sub(choir_variable *v, choir_tensor *value);

CHOIR_C_END
