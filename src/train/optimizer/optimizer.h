// Optimizers from inside: one struct for all kinds, which differ in their kernel, their slots and
// the defaults of their options. apply_gradients.c is how gradients come in, optimizer_step.c what
// is done with their sums.
#pragma once

#include "choir/optimizer.h"
#include "op/op.h"
#include "strategy/gradients/gradients.h"

enum { CHI_SLOTS = 2 };

// What a kind is made of.
typedef struct {
	const char *name; // in messages
	const char *kernel; // "adam_update"
	int slots;
	const char *slot[CHI_SLOTS]; // of the slots' names, behind the variable's
	double rate, standard_momentum; // by default
	bool momentum, nesterov, betas, epsilon, decay, rho; // which options it has
	bool skips_zeros; // without decay, elements without a gradient stay as they are
} chi_optimizer_kind;

// A parameter group, with what 0 and CHOIR_NONE stand for resolved.
typedef struct {
	char *names; // patterns, each ending with a 0
	size_t patterns;
	double rate, decay;
} chi_parameter_group;

// A variable that the optimizer has updated: its slots, and for each copy the kernel that does it.
typedef struct {
	choir_variable *variable;
	choir_variable *slot[CHI_SLOTS];
	const choir_kernel_table **kernel; // of each copy; NULL there: looked up at each call
	double rate, decay; // of its group; rate is a factor
	bool ready; // nothing of it is lacking; under the optimizer's lock
} chi_optimized_variable;

struct choir_optimizer {
	choir_strategy *strategy;
	const chi_optimizer_kind *kind;
	choir_optimizer_options options; // defaults and CHOIR_NONE resolved
	choir_schedule schedule;
	choir_loss_scale loss_scale;
	chi_parameter_group *group;
	size_t groups;
	double scale; // of the next update's loss; 1: there is no scaling
	int64_t finite_updates; // since the scale moved
	chi_gradients *apply;
	chi_gradients_table table; // what apply calls
	chi_atomic64 step; // updates that were applied
	chi_atomic64 rate_bits; // of the rate of the last one, an f64
	chi_atomic32 warned; // of a gradient that is not finite: 1 + the step; 0: not yet
	// The list of targets, while nobody waits: workers may have updates on their way at the same
	// time. Who makes a target holds the strategy's guard of making instead.
	chi_mutex lock;
	chi_optimized_variable **target; // all, in the order in which they came
	size_t targets, target_capacity;
};

// Fills *out from o (NULL: all defaults) for a kind; CHOIR_INVALID naming the option and its
// value.
choir_status chi_optimizer_resolve(const chi_optimizer_kind *kind,
		const choir_optimizer_options *o, choir_optimizer_options *out, choir_schedule *schedule);
// The same for the loss scale; NULL: a fixed one of 1.
choir_status chi_loss_scale_resolve(const choir_loss_scale *given, choir_loss_scale *s);
// 1 or more, within f32.
bool chi_is_loss_scale(double x);
// After an update; finite: it was applied.
void chi_loss_scale_move(choir_optimizer *o, bool finite);
// Copies the groups of o, whose options are resolved but for them. What was made is o's, also
// after a failure. The group of a variable's name; NULL: none.
choir_status chi_groups_make(choir_optimizer *o, const choir_optimizer_options *given);
const chi_parameter_group *chi_groups_find(const choir_optimizer *o, const char *name);
void chi_groups_free(choir_optimizer *o);
// o and r are there, and of one strategy.
choir_status chi_optimizer_check_replica(const choir_optimizer *o, const choir_replica *r);
// The rate of the update that is the step-th, from 0; CHOIR_INVALID if a user's function gives
// none.
choir_status chi_schedule_rate(
		const choir_schedule *schedule, double base, uint64_t step, double *rate);
// What a checkpoint keeps of it (optimizer_state.c), and its end (optimizer.c).
extern const chi_stateful_table chi_optimizer_state;
void chi_optimizer_free(void *self);
// The target of v, made with its slots if it is new; NULL: a failure. It may wait for another
// worker that makes variables, so no mutex may be held.
chi_optimized_variable *chi_optimized_variable_get(choir_optimizer *o, choir_variable *v);
// Fills o->table.
void chi_update_table(choir_optimizer *o);
void chi_optimized_variables_free(choir_optimizer *o);

// The first element of packed host memory, f32 or f64, that is NaN or infinite; CHOIR_NONE: none
// is.
int64_t chi_first_nonfinite(choir_dtype dtype, const void *data, int64_t n);
