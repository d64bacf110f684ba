// Optimizers turn gradients into new values of variables. Each replica adds the gradients of its
// own part of the batch. They are summed over replicas in the canonical tree (so divide the loss
// by the global batch: choir_replica_average_loss), and one update changes all copies. Gradients
// and variables are f32 or f64.
//
// Make an optimizer once, in the strategy's scope. Its slots ("hidden/kernel/m") are variables
// of the strategy, colocated with the variables that it updates. They are made with a variable's
// first update.
// Time: adding a gradient never waits. The update runs on the threads of all devices when all
// replicas have asked for it. That is at the end of the run, or earlier if a replica reads a
// variable that it asked to update or makes a merge call. In the default replica, outside of
// runs, it is done at once.
// Errors: a failure of the update is the run's. Checked before anything is written: shapes,
// dtypes, the learning rate, that all replicas added the same variables in the same order, and
// that each replica's gradients are finite. If the update needs all sums first, the sums are
// checked instead (global_clip_norm, NONFINITE_SKIP, a loss scale, devices with memory of their
// own). Otherwise a sum that overflows is noticed in the next step.
// Threads: choir_optimizer_new and choir_optimizer_distributed_apply: the program's thread, or
// the merge call's; the others: the replica's.
#pragma once

#include "cross.h"
#include "tape.h"

CHOIR_C_BEGIN

typedef struct choir_optimizer choir_optimizer;

// With gradient g, learning rate a, and t = 1 for the first update (formulas of Keras 2.15):
//   SGD       w -= a g
//   MOMENTUM  v = momentum v - a g;  w += v, or with nesterov w += momentum v - a g
//   ADAM      m += (g - m) (1 - beta1);  v += (g g - v) (1 - beta2)
//             w -= a sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)
//             (Kingma and Ba 2015)
//   ADAMW     w -= a weight_decay w first, then as ADAM   (Loshchilov and Hutter 2019)
//   RMSPROP   v = rho v + (1 - rho) g g;  m = momentum m + a g / sqrt(v + epsilon);  w -= m
//             (Hinton's lectures, 2012)
typedef enum {
	CHOIR_SGD,
	CHOIR_MOMENTUM,
	CHOIR_ADAM,
	CHOIR_ADAMW,
	CHOIR_RMSPROP
} choir_optimizer_kind;

// The factor of the learning rate. A step is an applied update, from 0 on.
typedef enum {
	CHOIR_SCHEDULE_CONSTANT = 0, // 1
	CHOIR_SCHEDULE_STEP, // factor ^ ((step - warmup) / steps, rounded down)
	CHOIR_SCHEDULE_COSINE, // half a cosine from 1 at warmup to factor at steps; then constant
	CHOIR_SCHEDULE_FUNCTION // the learning rate is fn's result
} choir_schedule_kind;

typedef struct {
	size_t size;
	choir_schedule_kind kind;
	int64_t warmup; // before this step the factor is step / warmup; not with FUNCTION
	int64_t steps; // STEP: between drops; COSINE: in all, including warm-up
	// STEP: at each drop, 0: 0.1; COSINE: of the learning rate at the end, 0 to 1.
	double factor;
	// FUNCTION: called once for each update, in order, on a thread of the run. It must not call
	// Choir. A result that is negative or not finite fails the update.
	double (*fn)(int64_t step, void *user);
	void *user;
} choir_schedule;

// Loss scaling: the loss is multiplied by the scale, and every gradient divided by it before the
// update (Micikevicius et al. 2018). DYNAMIC: after period applied updates in a row the scale is
// multiplied by multiplier, as long as it stays within f32. If a summed gradient is not finite,
// all replicas skip the update and the scale is divided by multiplier, but not below 1. A
// checkpoint keeps the state of a dynamic scale.
typedef enum { CHOIR_LOSS_SCALE_DYNAMIC = 0, CHOIR_LOSS_SCALE_FIXED } choir_loss_scale_kind;

typedef struct {
	size_t size;
	choir_loss_scale_kind kind;
	double initial; // 1 or more; 0: 32768 (FIXED needs a value); powers of two change no bits
	int64_t period; // DYNAMIC: 0: 2000
	double multiplier; // DYNAMIC: more than 1; 0: 2
} choir_loss_scale;

// A learning rate and a weight decay for the variables whose names match a pattern in names,
// "*/bias,*/beta", as fnmatch (POSIX) without flags: "*" is any text, slashes included.
typedef struct {
	size_t size;
	const char *names;
	// 0: 1; CHOIR_ZERO: 0
	double learning_rate_multiplier;
	double weight_decay; // ADAMW: 0: the optimizer's; CHOIR_ZERO: 0
} choir_parameter_group;

// What happens to an update with a gradient that is not finite. The failure, or a warning in the
// log, names the step, the variable, the element and the replica, as far as the host sees the
// replicas' gradients.
typedef enum {
	CHOIR_NONFINITE_ERROR = 0, // CHOIR_INVALID, and nothing is changed
	CHOIR_NONFINITE_SKIP, // all replicas skip the update, and it is not counted
	// The update is done. Only the first is named. Not with a DYNAMIC loss scale.
	CHOIR_NONFINITE_IGNORE
} choir_nonfinite;

typedef struct {
	size_t size;
	double learning_rate; // 0: 1e-3 (SGD, MOMENTUM: 1e-2)
	const choir_schedule *schedule; // copied; NULL: constant
	double momentum; // MOMENTUM: 0: 0.9; CHOIR_ZERO: 0; RMSPROP: 0
	choir_toggle nesterov; // MOMENTUM: default off
	double beta1, beta2; // ADAM, ADAMW: 0: 0.9, 0.999; CHOIR_ZERO: 0
	double epsilon; // ADAM, ADAMW, RMSPROP: 0: 1e-7; CHOIR_ZERO: 0
	double weight_decay; // ADAMW: 0: 1e-2; CHOIR_ZERO: 0
	// All gradients are multiplied by global_clip_norm / max(norm, global_clip_norm); norm is
	// that of all summed gradients of the update together. 0: no clipping. Costs a second pass
	// over the sums.
	double global_clip_norm;
	choir_nonfinite nonfinite;
	// NULL: no loss scaling. With it all gradients added to the optimizer must be of the scaled
	// loss: choir_optimizer_minimize scales it, elsewhere use choir_optimizer_scale_loss.
	const choir_loss_scale *loss_scale;
	double rho; // RMSPROP: 0: 0.9; CHOIR_ZERO: 0
	// A variable belongs to the first group that matches, if any.
	const choir_parameter_group *groups;
	size_t n_groups;
} choir_optimizer_options;

// CHOIR_INVALID: an option, with its value (a learning rate that is not positive and finite, a
// beta or momentum outside [0, 1), an option that the kind does not have); an unknown kind.
// CHOIR_STATE: in a replica.
choir_optimizer *choir_optimizer_new(choir_optimizer_kind kind, const choir_optimizer_options *o);

// In all replicas. Runs the backward pass of tape from loss, a scalar of the replica's frame.
// Adds the gradients of all trainable variables that were read since the tape began, each as
// soon as it is final; then asks for the update. Earlier reads of those variables must not be
// used afterwards. CHOIR_INVALID: no trainable variable was read.
CHOIR_MUST_CHECK choir_status choir_optimizer_minimize(
		choir_optimizer *o, choir_tensor *loss, choir_tape *tape);

// In all replicas, one variable at a time, in the same order everywhere. Adds v's final gradient
// of this replica: a tensor of the replica's frame, with v's dtype and shape, or indexed slices
// of that (tensor.h). Borrowed memory is copied. CHOIR_INVALID: a second gradient of v in one
// update.
//
// Indexed slices give the bits of the dense gradients, as in Keras: momentum, moments and weight
// decay go on in all rows. No dense gradient is made, and SGD touches only these rows, if all
// replicas give slices and all devices use host memory. There must be no other workers of a
// parameter server, no global_clip_norm, no loss scale and no NONFINITE_SKIP.
choir_status choir_optimizer_add_gradient(
		choir_optimizer *o, choir_replica *r, choir_variable *v, choir_tensor *gradient);

// As choir_optimizer_add_gradient, for a backward pass written by hand: gradient is packed host
// memory of the program, of v's dtype and shape. It must not change until choir_strategy_run has
// returned (outside of runs, until choir_optimizer_apply_gradients has), so it cannot be on the
// replica's stack. From the second step on, gradients are summed while backward passes go on, so
// call this as soon as a gradient is final. CHOIR_INVALID also: bytes is not v's size.
CHOIR_MUST_CHECK choir_status choir_optimizer_add_gradient_memory(choir_optimizer *o,
		choir_replica *r, choir_variable *v, const void *gradient, size_t bytes);

// In all replicas, after the last gradient: asks for the update. A replica that added gradients
// and returns without this call has failed (CHOIR_STATE).
CHOIR_MUST_CHECK choir_status choir_optimizer_apply_gradients(
		choir_optimizer *o, choir_replica *r);

// In all replicas that make gradients without choir_optimizer_minimize: loss times the scale.
// Waits for updates that this replica has asked for.
choir_tensor *choir_optimizer_scale_loss(choir_optimizer *o, choir_replica *r, choir_tensor *loss);

// The scale of the next update; 1 without loss scaling, and for NULL. Call it outside of runs,
// or in a replica after choir_optimizer_scale_loss.
double choir_optimizer_loss_scale(const choir_optimizer *o);

// The learning rate of the next update, with its schedule. NAN for NULL, and if the schedule's
// function gives no valid one. Threads: any, but if the schedule has a function not during an
// update of this optimizer.
double choir_optimizer_learning_rate(const choir_optimizer *o);

// In cross-replica context: updates n different variables at once with n gradients. Per-replica
// values are summed; plain and mirrored ones are used as they are.
CHOIR_MUST_CHECK choir_status choir_optimizer_distributed_apply(choir_optimizer *o, choir_cross *x,
		size_t n, choir_variable *const variables[], choir_value *const gradients[]);

CHOIR_C_END
