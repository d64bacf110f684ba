// Kinds differ in kernel, slots and defaults. optimizer.c gets gradients, and slots_kernel_calls.c
// applies their sums.
#pragma once

#include "choir/optimizer.h"
#include "op/op.h"
#include "strategy/gradients/gradients.h"

enum { CHI_SLOTS = 3 }; // with the average

typedef struct {
	const char *name;
	const char *kernel;
	int slots;
	const char *slot[CHI_SLOTS];
	double rate, standard_momentum, standard_beta2, standard_decay;
	bool momentum, nesterov, betas, epsilon, decay, rho, accumulator;
	bool skips_zeros; // zero gradients change nothing, without decay
	bool whole;
} chi_optimizer_kind;

typedef struct {
	char *names; // each ended by a 0
	size_t patterns;
	double rate, decay;
} chi_parameter_group;

typedef struct {
	choir_variable *variable;
	choir_variable *slot[CHI_SLOTS];
	const choir_kernel_table **kernel; // NULL: looked up at each call
	double rate, decay; // of its group; rate is a factor
	bool ready;
	chi_atomic32 averaged; // its average has a value
} chi_optimized_variable;

struct choir_optimizer {
	choir_strategy *strategy;
	const chi_optimizer_kind *kind;
	choir_optimizer_options options;
	int slots; // of the kind, then the average
	double set_rate; // in place of options.learning_rate; 0: none was set
	bool swapped; // averages are in place of values
	choir_schedule schedule;
	choir_loss_scale loss_scale;
	chi_parameter_group *group;
	size_t groups;
	chi_atomic32 groups_known; // chi_groups_check was successful
	double scale;
	int64_t finite_updates;
	chi_gradients *apply;
	chi_gradients_table table;
	chi_atomic64 step;
	chi_atomic64 rate_bits;
	chi_atomic32 warned; // 1 + step of the last report; 0: none
	// Guards the list of targets. The strategy's creation lock guards making one.
	chi_mutex lock;
	chi_optimized_variable **target;
	size_t targets, target_capacity;
};

// o NULL: defaults. CHOIR_INVALID names the option.
choir_status chi_optimizer_resolve(const chi_optimizer_kind *kind,
		const choir_optimizer_options *o, choir_optimizer_options *out, choir_schedule *schedule);
choir_status chi_loss_scale_resolve(const choir_loss_scale *given, choir_loss_scale *s);
bool chi_is_loss_scale(double x);
void chi_loss_scale_move(choir_optimizer *o, bool finite);
// After the other options are resolved. o owns the groups, even after a failure.
choir_status chi_groups_make(choir_optimizer *o, const choir_optimizer_options *given);
const chi_parameter_group *chi_groups_find(const choir_optimizer *o, const char *name);
// CHOIR_NOT_FOUND: a group, or a pattern that freezes, matches no variable.
choir_status chi_groups_check(choir_optimizer *o);
void chi_groups_free(choir_optimizer *o);
choir_status chi_optimizer_check_replica(const choir_optimizer *o, const choir_replica *r);
// Of update `step`, from 0. CHOIR_INVALID: the program's function returned an invalid rate.
choir_status chi_schedule_rate(
		const choir_schedule *schedule, double base, uint64_t step, double *rate);
extern const chi_stateful_table chi_optimizer_state;
void chi_optimizer_free(void *self);
// It may wait for another worker, so no mutex may be held.
chi_optimized_variable *chi_optimized_variable_get(choir_optimizer *o, choir_variable *v);
const char *chi_optimizer_slot(const choir_optimizer *o, int i);
double chi_optimizer_base_rate(const choir_optimizer *o);
void chi_update_table(choir_optimizer *o);
void chi_optimized_variables_free(choir_optimizer *o);

// In host memory; on devices a non-finite element is found later.
choir_status chi_optimizer_check_gradient(
		choir_optimizer *o, const choir_variable *v, const choir_tensor *gradient);
choir_status chi_optimizer_check_dtype(const choir_optimizer *o, const choir_variable *v);
// In host memory. CHOIR_NONE: all are finite.
int64_t chi_first_nonfinite(choir_dtype dtype, const void *data, int64_t n);
