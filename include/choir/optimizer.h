// Optimizers: from gradients to new values of variables. Each replica gives the gradients of its
// own part of the batch; they are summed over replicas in the canonical tree (so divide the loss
// by the global batch: choir_replica_mean), and one update changes all copies. Gradients and
// variables may be operations' or the program's own memory (choir_variable_wrap, choir_borrow);
// f32 or f64.
//
// Ownership: an optimizer belongs to the strategy that is current where it is made, and is freed
// with it; make it once, in the strategy's scope. Its slots are variables of the strategy beside
// those that it updates ("hidden/kernel/m"), made when a variable is first updated; they are not
// saved with the weights. When: giving gradients never waits. The update runs when all replicas
// have given theirs: at the end of the run, on the threads of all devices, or earlier, if a
// replica reads a variable that it asked to update or makes a merge call. A failure of the update
// is the run's. In the default replica, outside any run, it is done when it is asked for. Checked
// before anything is written: shapes, dtypes, that all replicas gave gradients of the same
// variables in the same order, the rate, and that gradients are finite: those of each replica when
// they are given, or their sums where sums are kept (clip_norm, NONFINITE_SKIP, a loss scale,
// devices with memory of their own). Only a sum of finite f32 or f64 gradients that overflows,
// where sums are not kept, is not seen until the next step's gradients are. Threads: new,
// distributed_apply: the program's, or a merge call's; the rest: the replica's own.
#pragma once

#include "cross.h"
#include "tape.h"

CHOIR_C_BEGIN

typedef struct choir_optimizer choir_optimizer;
// With gradient g, rate a, and t = 1 for the first update (formulas of Keras 2.15):
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
// What the rate is multiplied by, at step 0, 1, ...: the number of updates applied so far.
typedef enum {
	CHOIR_CONSTANT = 0, // 1
	CHOIR_STEP, // factor ^ ((step - warmup) / steps, rounded down)
	CHOIR_COSINE, // half a cosine wave from 1 at warmup to factor at steps, which then stays
	CHOIR_FUNCTION // the function's result is the rate itself
} choir_schedule_kind;
typedef struct {
	size_t size;
	choir_schedule_kind kind;
	int64_t warmup; // before that step the factor is step / warmup; not with FUNCTION
	int64_t steps; // STEP: between drops; COSINE: in all, warm-up included
	double factor; // STEP: at each drop, 0: 0.1; COSINE: of the rate at the end, 0 to 1
	// FUNCTION: called once an update, on a thread of the run, in order; a rate that is negative
	// or not finite fails the update. Calls nothing of Choir.
	double (*fn)(int64_t step, void *user);
	void *user; // borrowed while the optimizer lives
} choir_schedule;
// What a loss is multiplied by, so that small gradients of it are not lost, and every gradient
// divided by before the update (Micikevicius et al. 2018). DYNAMIC: after period updates in a row
// that were applied it is multiplied by multiplier, as long as it stays within f32; an update with
// a summed gradient that is not finite is left out, by all replicas alike, and divides it, down to
// 1 at the least. A checkpoint keeps where a dynamic one is; a fixed one stays the program's.
typedef enum { CHOIR_LOSS_SCALE_DYNAMIC = 0, CHOIR_LOSS_SCALE_FIXED } choir_loss_scale_kind;
typedef struct {
	size_t size;
	choir_loss_scale_kind kind;
	double initial; // 1 or more; 0: 32768 (not with FIXED); powers of two change no bits
	int64_t period; // DYNAMIC: 0: 2000
	double multiplier; // DYNAMIC: more than 1; 0: 2
} choir_loss_scale;
// Variables with a rate and a decay of their own: those of which the name matches one of the
// patterns in names, as fnmatch (POSIX) matches without flags: "*" is any text, slashes included.
// Patterns are separated by commas: "*/bias,*/beta,*/gamma".
typedef struct {
	size_t size;
	const char *names;
	double rate; // the optimizer's rate is multiplied by it; 0: 1; CHOIR_NONE: 0
	double weight_decay; // ADAMW: 0: the optimizer's; CHOIR_NONE: none
} choir_parameter_group;
// What becomes of an update with a gradient that is not finite. The step (updates applied before),
// the variable, the element and the replica are named, as far as the host sees the replicas'
// gradients: in the failure, or in a warning to the host's log (library.h).
typedef enum {
	CHOIR_NONFINITE_STOP = 0, // CHOIR_INVALID, and nothing is changed
	CHOIR_NONFINITE_SKIP, // it is left out, by all replicas alike, and not counted
	// It is done, and what is not finite gets into the variables. Only the first is named. Not
	// with a DYNAMIC loss scale.
	CHOIR_NONFINITE_GO_ON
} choir_nonfinite;
typedef struct {
	size_t size;
	double rate; // 0: 1e-3 (SGD, MOMENTUM: 1e-2)
	const choir_schedule *schedule; // copied; NULL: constant
	double momentum; // MOMENTUM: 0: 0.9; CHOIR_NONE: 0; RMSPROP: 0
	choir_toggle nesterov; // MOMENTUM: off
	double beta1, beta2; // ADAM, ADAMW: 0: 0.9, 0.999; CHOIR_NONE: 0
	double epsilon; // ADAM, ADAMW, RMSPROP: 0: 1e-7; CHOIR_NONE: 0
	double weight_decay; // ADAMW: 0: 1e-2; CHOIR_NONE: 0
	// All gradients are multiplied by clip_norm / max(norm, clip_norm), where norm is that of all
	// summed gradients of the update together; 0: they are not. Costs a second pass over the sums.
	double clip_norm;
	choir_nonfinite nonfinite;
	// Copied; NULL: the loss is not scaled. All gradients that come to the optimizer are then of
	// the scaled loss: minimize scales it, elsewhere choir_optimizer_scale_loss does.
	const choir_loss_scale *loss_scale;
	double rho; // RMSPROP: 0: 0.9; CHOIR_NONE: 0
	// n_groups of them, copied, with their patterns; a variable belongs to the first that matches,
	// and to none if none does.
	const choir_parameter_group *groups;
	size_t n_groups;
} choir_optimizer_options;

// NULL: CHOIR_INVALID naming an option and its value (a rate that is not positive and finite, a
// beta or momentum outside [0, 1), an option that the kind does not have, an unknown kind), or
// CHOIR_STATE in a replica.
choir_optimizer *choir_optimizer_new(choir_optimizer_kind kind, const choir_optimizer_options *o);

// In all replicas. Goes back through tape from loss, a scalar of the replica's frame, and gives
// the gradients of all trainable variables that were read since the tape began, each as soon as it
// is final (zeros for those that loss does not depend on); then asks for the update. What was read
// of those variables must not be used any more. No trainable variable read: CHOIR_INVALID.
CHOIR_MUST_CHECK choir_status choir_optimizer_minimize(
		choir_optimizer *o, choir_tape *tape, choir_tensor *loss);
// In all replicas, for one variable at a time, in the same order everywhere: a final gradient, of
// the variable's dtype and shape, or slices of that (tensor.h), made by any means; in the
// replica's frame. It is added to the sums at once; borrowed memory is copied. Twice for one
// variable in one update: CHOIR_INVALID.
//
// Slices give the bits of the larger tensors, as in Keras: of SGD only their rows move; momentum
// goes on, moments fade and weights decay in all rows. On devices of host memory, without a
// parameter server's other workers, a clipped norm, a loss scale or NONFINITE_SKIP, and where all
// replicas give slices, no larger tensor is made: rows are added up, and SGD touches only these.
choir_status choir_optimizer_give(
		choir_optimizer *o, choir_replica *r, choir_variable *v, choir_tensor *gradient);
// The same for a backward pass written by hand: the gradient is bytes of the program's own host
// memory, packed, of v's dtype and shape, which is not copied where the replica's device uses host
// memory. So it stays as it is until choir_strategy_run has returned (outside of runs, until
// choir_optimizer_apply_gradients has), and does not lie on the replica's stack. Call it as soon
// as the gradient is final: from the second step on, what all replicas have handed over is summed
// while their backward passes go on, to the same bits. CHOIR_INVALID also if bytes are not what v
// has.
CHOIR_MUST_CHECK choir_status choir_replica_gradient_ready(choir_replica *r, choir_optimizer *o,
		choir_variable *v, const void *gradient, size_t bytes);
// In all replicas, after the last give: asks for the update. A replica that gave gradients and
// returns without asking has failed (CHOIR_STATE).
CHOIR_MUST_CHECK choir_status choir_optimizer_apply_gradients(
		choir_optimizer *o, choir_replica *r);
// In all replicas, where not minimize but the program makes gradients: loss times the scale.
// It waits for updates that this replica has asked for, since they may move the scale.
choir_tensor *choir_optimizer_scale_loss(choir_optimizer *o, choir_replica *r, choir_tensor *loss);
// The scale of the next update; 1 without scaling, and for NULL. Outside of runs, or in a replica
// after scale_loss.
double choir_optimizer_loss_scale(const choir_optimizer *o);
// The learning rate of the next update, as its schedule has it; a parameter group's is a multiple
// of it. NaN for NULL, and where the schedule's function gives none. Threads: any, but not at the
// same time as an update of this optimizer, if the schedule has a function.
double choir_optimizer_rate(const choir_optimizer *o);
// In a merge call, or a program's own cross-replica context: n gradients for n different
// variables. Per-replica values are summed; plain and mirrored ones are taken as they are. Updates
// at once.
CHOIR_MUST_CHECK choir_status choir_optimizer_distributed_apply(choir_optimizer *o, choir_cross *x,
		size_t n, choir_variable *const variables[], choir_value *const gradients[]);

CHOIR_C_END
