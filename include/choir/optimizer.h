// Optimizers update variables. Each replica adds the gradients, f32 or f64, of its part of the
// batch. Choir sums them over replicas in the canonical tree (docs/glossary.md), so divide the
// loss by the global batch (choir_replica_average_loss).
//
// Make an optimizer once, in the strategy's scope. A variable's first update makes its slots
// ("hidden/kernel/m"), colocated with it.
// Time: adding a gradient never waits. After all replicas have asked for the update, the threads
// of all devices run it: at the end of the run, in a merge call, or when a replica reads one of
// its variables. In the default replica outside of runs, it runs at once.
// Errors: a failed update fails the run. Before the update writes, Choir checks shapes, dtypes and
// the learning rate, and that all replicas gave finite gradients of the same variables in the same
// order. With global_clip_norm, NONFINITE_SKIP, a loss scale, or devices with their own memory, it
// checks that the sums are finite. Otherwise a sum may overflow, which only the next step notices.
// Threads: the replica's for calls marked "In all replicas"; the program's or a merge call's for
// choir_optimizer_new and choir_optimizer_distributed_apply.
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
//   NADAM     with b(t) = beta1 (1 - 0.96^t / 2) and p(t) = b(1) b(2) ... b(t), m and v as ADAM;
//             w -= a (b(t+1) m / (1 - p(t+1)) + (1 - b(t)) g / (1 - p(t)))
//                  / (sqrt(v / (1 - beta2^t)) + epsilon)   (Dozat 2016)
//   ADAGRAD   v += g g;  w -= a g / sqrt(v + initial_accumulator + epsilon)
//             (Duchi, Hazan, Singer 2011)
//   LION      w -= a weight_decay w + a sign(beta1 m + (1 - beta1) g);
//             m = beta2 m + (1 - beta2) g   (Chen et al. 2023, arXiv:2302.06675)
//   LAMB      m and v as ADAM;  u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
//             + weight_decay w;  w -= a (|w| / |u|) u, where the norms are those of the whole
//             variable, and |w| / |u| is 1 if a norm is 0   (You et al. 2020, arXiv:1904.00962)
typedef enum {
	CHOIR_SGD,
	CHOIR_MOMENTUM,
	CHOIR_ADAM,
	CHOIR_ADAMW,
	CHOIR_RMSPROP,
	CHOIR_NADAM,
	CHOIR_ADAGRAD,
	CHOIR_LION,
	CHOIR_LAMB // not with sharded variables or lock-free workers: CHOIR_UNSUPPORTED
} choir_optimizer_kind;

// A schedule multiplies the learning rate by a factor. Its step is the number of applied updates.
typedef enum {
	CHOIR_SCHEDULE_CONSTANT = 0, // the factor is 1
	CHOIR_SCHEDULE_STEP, // .factor ^ ((step - .warmup) / .steps, rounded down)
	CHOIR_SCHEDULE_COSINE, // half a cosine from 1 at .warmup to .factor at .steps; then constant
	CHOIR_SCHEDULE_FUNCTION, // the learning rate is fn's result
	CHOIR_SCHEDULE_EXPONENTIAL, // .factor ^ ((step - .warmup) / .steps), not rounded
	// .factor + (1 - .factor) (1 - done)^.power, where done goes from 0 at .warmup to 1 at .steps
	CHOIR_SCHEDULE_POLYNOMIAL,
	// Half a cosine from .factor at step 0 to 1 at step .warmup; half a cosine to .factor / 10^4
	// at step .steps - 1; then constant (arXiv:1708.07120; PyTorch's OneCycleLR with max_lr)
	CHOIR_SCHEDULE_ONE_CYCLE
} choir_schedule_kind;
typedef struct {
	size_t size;
	choir_schedule_kind kind;
	// Before this step the factor is step / .warmup. ONE_CYCLE: the step of the highest rate; 0:
	// 0.3 * .steps - 1. Not with FUNCTION.
	int64_t warmup;
	// STEP: steps between drops. EXPONENTIAL: steps in which .factor multiplies the rate once.
	// Others: all steps, including the warm-up.
	int64_t steps;
	// STEP, EXPONENTIAL: of each drop; 0: 0.1. COSINE, POLYNOMIAL: at the end, between 0 and 1.
	// ONE_CYCLE: at step 0; 0: 0.04.
	double factor;
	// FUNCTION: gives a step's learning rate, always the same, finite and 0 or more. Each update
	// calls it once, in order, on a thread of the run. choir_optimizer_learning_rate and the logs
	// of choir_fit call it, too. Must not call Choir.
	double (*fn)(int64_t step, void *user);
	void *user;
	double power; // POLYNOMIAL: the exponent, more than 0; 0: 1
} choir_schedule;

// The scale multiplies the loss, and divides gradients before the update (Micikevicius et al.
// 2018). DYNAMIC: after .period applied updates in a row, .multiplier multiplies the scale, if f32
// can hold the product. If a summed gradient is not finite, all replicas skip the update, and
// .multiplier divides the scale, down to 1. At 1 the update fails with CHOIR_INVALID, unless
// .nonfinite is SKIP. A checkpoint keeps a dynamic scale.
typedef enum { CHOIR_LOSS_SCALE_DYNAMIC = 0, CHOIR_LOSS_SCALE_FIXED } choir_loss_scale_kind;

// How the loss is scaled.
typedef struct {
	size_t size;
	choir_loss_scale_kind kind;
	double initial; // 1 or more; 0 if DYNAMIC: 32768. A power of two changes no bits
	int64_t period; // DYNAMIC only; 0: 2000
	double multiplier; // DYNAMIC only, more than 1; 0: 2
} choir_loss_scale;

// Settings for variables whose names match a pattern of .names ("*/bias,*/beta"; POSIX fnmatch
// without flags). The first update fails with CHOIR_NOT_FOUND if no variable matches, or none
// matches a pattern of a group whose multiplier is CHOIR_ZERO.
typedef struct {
	size_t size;
	const char *names;
	// 0: 1; CHOIR_ZERO: 0
	double learning_rate_multiplier;
	double weight_decay; // ADAMW, LION, LAMB; 0: the optimizer's; CHOIR_ZERO: 0
} choir_parameter_group;

// What happens to an update with a gradient that is not finite. The error or warning names the
// variable, the element and the update.
typedef enum {
	CHOIR_NONFINITE_ERROR = 0, // CHOIR_INVALID, and nothing is changed
	CHOIR_NONFINITE_SKIP, // all replicas skip the update, and it is not counted
	// Done; only the first is logged. Not with a DYNAMIC loss scale.
	CHOIR_NONFINITE_IGNORE
} choir_nonfinite;

// How an optimizer works.
typedef struct {
	size_t size;
	double learning_rate; // 0: 1e-3 (SGD, MOMENTUM: 1e-2)
	const choir_schedule *schedule; // copied; NULL: constant
	double momentum; // MOMENTUM (0: 0.9; CHOIR_ZERO: 0), RMSPROP
	choir_toggle nesterov; // MOMENTUM: default off
	// ADAM, ADAMW, NADAM, LAMB (0: 0.9 and 0.999), LION (0: 0.9 and 0.99); CHOIR_ZERO: 0.
	double beta1, beta2;
	double epsilon; // all but SGD, MOMENTUM, LION; 0: 1e-7; CHOIR_ZERO: 0
	double weight_decay; // ADAMW (0: 1e-2; CHOIR_ZERO: 0), LION, LAMB
	// Multiplies gradients by global_clip_norm / max(norm, global_clip_norm), with the norm of all
	// sums together. 0: no clipping. Costs a second pass over the sums.
	double global_clip_norm;
	choir_nonfinite nonfinite;
	// choir_optimizer_minimize scales the loss. Other programs add gradients of
	// choir_optimizer_scale_loss's result. NULL: no scale.
	const choir_loss_scale *loss_scale;
	double rho; // RMSPROP; 0: 0.9; CHOIR_ZERO: 0
	// A variable belongs to the first group that matches.
	const choir_parameter_group *groups;
	size_t n_groups;
	double initial_accumulator; // ADAGRAD; 0: 0.1; CHOIR_ZERO: 0
	// Above 0 (and below 1): the optimizer keeps an exponential moving average of each variable,
	// "NAME/average" (Keras' use_ema), for choir_optimizer_swap_averages. A variable's first
	// update sets average = w, later ones average = ema_momentum * average + (1 - ema_momentum) *
	// w. CHOIR_UNSUPPORTED: lock-free workers.
	double ema_momentum;
} choir_optimizer_options;

// Makes an optimizer. The learning rate is above 0; betas and momentum are in [0, 1).
// CHOIR_INVALID: an option that this kind does not use is set, and is not CHOIR_ZERO. CHOIR_STATE:
// in a replica.
choir_optimizer *choir_optimizer_new(choir_optimizer_kind kind, const choir_optimizer_options *o);

// In all replicas (replica.h). Runs tape's backward pass from loss, a scalar of the replica's
// frame. Adds the gradient of each trainable variable read since the tape began, and asks for the
// update, after which earlier reads are stale.
CHOIR_MUST_CHECK choir_status choir_optimizer_minimize(
		choir_optimizer *o, choir_tensor *loss, choir_tape *tape);
// The same for these variables only (Keras' var_list).
CHOIR_MUST_CHECK choir_status choir_optimizer_minimize_variables(choir_optimizer *o,
		choir_tensor *loss, choir_tape *tape, size_t n, choir_variable *const variables[]);

// In all replicas, with the same variables in the same order. Adds v's final gradient in this
// replica, once per update: a tensor of the replica's frame with v's dtype and shape, or indexed
// slices of one (tensor.h). Borrowed memory is copied.
//
// Indexed slices give the bits of dense gradients: momentum, moments and weight decay act on all
// rows. Choir makes no dense gradient, and SGD changes only the slices' rows, if:
// - all replicas add slices, and all devices use host memory;
// - the strategy is not a parameter server strategy with several workers;
// - there is no global_clip_norm, loss scale or NONFINITE_SKIP;
// - in a cluster of several workers, the slices are smaller than the dense gradient.
choir_status choir_optimizer_add_gradient(
		choir_optimizer *o, choir_replica *r, choir_variable *v, choir_tensor *gradient);

// Like choir_optimizer_add_gradient, for a backward pass by hand. gradient is packed host memory
// with v's dtype and shape, unchanged until choir_strategy_run returns or, outside of runs,
// choir_optimizer_apply_gradients. Call this as soon as a gradient is final: from the second step
// on, Choir sums gradients during backward passes.
CHOIR_MUST_CHECK choir_status choir_optimizer_add_gradient_memory(choir_optimizer *o,
		choir_replica *r, choir_variable *v, const void *gradient, size_t bytes);

// In all replicas, after the last gradient. Asks for the update. CHOIR_STATE: a replica added
// gradients, but did not make this call.
CHOIR_MUST_CHECK choir_status choir_optimizer_apply_gradients(
		choir_optimizer *o, choir_replica *r);

// In all replicas. Waits for the updates this replica has asked for, then gives loss times the
// scale.
choir_tensor *choir_optimizer_scale_loss(choir_optimizer *o, choir_replica *r, choir_tensor *loss);

// The scale of the next update; 1 without loss scaling. Called outside of runs, or in a replica
// after choir_optimizer_scale_loss.
double choir_optimizer_loss_scale(const choir_optimizer *o);

// The learning rate of the next update. NAN: o is NULL; the schedule's function gives an invalid
// rate. Threads: any; with a FUNCTION schedule, not during an update of o.
double choir_optimizer_learning_rate(const choir_optimizer *o);

// Sets the rate that the schedule (not FUNCTION) multiplies, from the next update on. A checkpoint
// keeps the rate. All workers make this call in cross-replica context, outside of runs.
CHOIR_MUST_CHECK choir_status choir_optimizer_set_learning_rate(choir_optimizer *o, double rate);

// Swaps o's variables with their averages (ema_momentum); the next call swaps them back. Until
// then, o's updates and checkpoints fail with CHOIR_STATE. Statistics of batch normalization are
// not averaged. All workers make this call in cross-replica context, outside of runs. After a
// device's failure the variables are undefined.
CHOIR_MUST_CHECK choir_status choir_optimizer_swap_averages(choir_optimizer *o);

// True: averages are in place.
bool choir_optimizer_has_swapped(const choir_optimizer *o);

// Updates n different variables, in cross-replica context. Sums per-replica gradients; uses plain
// and mirrored ones as they are.
CHOIR_MUST_CHECK choir_status choir_optimizer_distributed_apply(choir_optimizer *o, choir_cross *x,
		size_t n, choir_variable *const variables[], choir_value *const gradients[]);

CHOIR_C_END
