// Replica context: what one replica may do inside a run, where a function of the program's is
// called once for each of them. A replica sees its own part: its arguments, its frame, its id;
// and it can meet the others. In a merge call all come together, one function runs for all of
// them in cross-replica context, and each goes on with its share of what that gave; collectives
// are such meetings as expressions, most of them with gradients. Outside any strategy a program
// is itself a replica, 0 of 1, the default one; there a meeting is over at once.
//
// In all replicas: calls of which this is said are meetings (docs/rules.md, section 1). Every
// replica of the run must make them, in the same order, with the same function, names, dtypes,
// shapes and options; who comes waits for the others. The one that differs, or that others find
// has returned, is named in the run's failure, CHOIR_STATE; all that wait are released with
// CHOIR_CANCELLED, as they are when another replica fails, or none has come for the strategy's
// timeout (the run returns CHOIR_TIMEOUT). If the frame has failed before, such a call returns
// that failure, and nobody is met.
//
// Directions: arg and return are the called function's side, give and take the caller's. What
// they return need not be looked at: the frame keeps the first failure, and the run reports it.
// Errors: CHOIR_STATE, for calls with a replica whose context the thread is not in;
// CHOIR_INVALID for a NULL replica; for NULL instead of a tensor what tensor.h says.
// Threads: the one that runs this replica, from the start of the function to its end; the
// getters: any, while it runs. The default replica: one thread of the program at a time.
#pragma once

#include "variable.h"

CHOIR_C_BEGIN

typedef struct choir_cross choir_cross;
typedef struct choir_update choir_update;

// One replica in one call of a run's function, valid until that returns.
typedef struct {
	// Owns what the replica makes, on its device; emptied when the function returns. The
	// default replica's is emptied by the program (choir_frame_empty).
	choir_frame *frame;
} choir_replica;

// The function of a run (choir_strategy_run). What it returns other than CHOIR_OK is the
// replica's failure, with the text of choir_fail if it called that.
typedef choir_status choir_replica_fn(choir_replica *r, void *user);

// The function of a merge call, once for all replicas.
typedef choir_status choir_merge_fn(choir_cross *x, void *user);

// The function of an update, once for each copy of a variable (update.h).
typedef choir_status choir_update_fn(choir_update *u, void *user);

// How values of replicas become one (docs/rules.md, section 8). MEAN divides the sum by the
// number of replicas, or by the sum of counts if all have one (choir_counted).
typedef enum { CHOIR_SUM = 1, CHOIR_MEAN } choir_reduce_op;

// Who it is

// The replica that this thread is in, the default one outside of everything. NULL in scopes,
// merge calls and updates, where choir_strategy_set_current has set a strategy, or if there is
// no memory for the default one.
choir_replica *choir_replica_current(void);

// The replica whose frame f is. NULL: no replica's, or f is NULL.
choir_replica *choir_frame_replica(const choir_frame *f);

// Its id among the replicas of the job, 0 to count - 1. CHOIR_NONE for NULL.
int choir_replica_id(const choir_replica *r);

// How many replicas the job has. 0 for NULL.
int choir_replica_count(const choir_replica *r);

// The strategy whose run it is. NULL for NULL.
choir_strategy *choir_replica_strategy(const choir_replica *r);

// The device that carries it. NULL for NULL.
choir_device *choir_replica_device(const choir_replica *r);

// Which of the strategy's worker devices that is; several replicas may share one. CHOIR_NONE
// for NULL.
int choir_replica_device_index(const choir_replica *r);

// Arguments and results

// What the run's arguments hold for this replica under a name, in r's frame: of a per-replica
// leaf its own, of a plain or mirrored one what all get, of a variable its component, which
// stands for the variable when it is given or returned. A view; a copy if it lies on another
// device. NULL: CHOIR_NOT_FOUND, with the names that there are; CHOIR_INVALID: a place.
choir_tensor *choir_replica_arg(choir_replica *r, const char *name);

// Makes value, of r's frame, this replica's result of that name, in place of an earlier one. It
// is kept beyond the frame, without a copy unless it is borrowed or a read. All replicas must
// return the same names, else the run is CHOIR_STATE. Checked, but not kept, where the run's
// caller wants no results. CHOIR_INVALID: no name, another frame's tensor.
choir_status choir_replica_return(choir_replica *r, const char *name, choir_tensor *value);

// Meeting in a merge call

// Makes value, of r's frame, what r brings to its next merge call or update under that name, in
// place of an earlier one; borrowed memory is copied. Nothing is given any more after that
// call. CHOIR_INVALID: no name, another frame's tensor.
choir_status choir_replica_give(choir_replica *r, const char *name, choir_tensor *value);

// In all replicas. When the last one has come, fn runs once, on that one's thread and with its
// user (which others may point to their own), in cross-replica context, after the updates that
// optimizers were asked for. What replicas gave is merged by name: choir_cross_arg. A failure
// of fn is the run's; it is returned here in the replica that came last, CHOIR_CANCELLED in the
// others. CHOIR_INVALID: fn is NULL.
CHOIR_MUST_CHECK choir_status choir_replica_merge_call(
		choir_replica *r, choir_merge_fn *fn, void *user);

// What the merge function returned under a name, for this replica, in r's frame, as
// choir_replica_arg sees it; until r's next merge call, update, gather, broadcast or writing of
// a mirrored variable. NULL: CHOIR_NOT_FOUND, with the names that there are; CHOIR_STATE: no
// merge call came before, or the frame has failed; CHOIR_INVALID: a place.
choir_tensor *choir_replica_take(choir_replica *r, const char *name);

// In all replicas, with the same variable. A merge call that updates v with what was given, by
// choir_cross_update; what fn returned for the copy that this replica reads can be taken
// (choir_replica_take). What was given must be the same plain number from all, or a variable:
// tensors, which may differ, are CHOIR_INVALID before anything changes, and are reduced in a
// merge call of one's own. CHOIR_INVALID also: v or fn is NULL.
CHOIR_MUST_CHECK choir_status choir_replica_update(
		choir_replica *r, choir_variable *v, choir_update_fn *fn, void *user);

// Collectives: expressions on tensors of r's frame, whose result is in r's frame. Sums are made
// in the canonical tree (docs/decisions/0012), so their bits do not depend on devices. Replicas
// must make the tensors that they pass to collectives in one order: a tensor is recognised by its
// place in the frame. Replicas that pass the same tensors in another order get CHOIR_STATE.

// In all replicas, with equal op, shape and dtype: the sum or mean of all replicas' t, of t's
// shape. Dtypes are those of choir_strategy_reduce. A plain number is an f64 scalar, and counts
// once for each replica. The gradient is the all-reduce of what comes back, so all replicas
// must go back, too. Of slices (tensor.h) slices, through which no gradient flows. CHOIR_INVALID:
// an unknown op; another frame's tensor. CHOIR_STATE also if some have a count and some have none.
choir_tensor *choir_replica_all_reduce(choir_replica *r, choir_reduce_op op, choir_tensor *t);

// In all replicas: choir_replica_all_reduce of in[0] to in[n - 1] into out[], which may be in[],
// with any mixture of dtypes and shapes, and the same bits. Those of at most 64 KiB travel
// together, one pack for each dtype, forth and, as gradients, back. After a failure out[] is as it
// was.
CHOIR_MUST_CHECK choir_status choir_replica_batch_all_reduce(choir_replica *r, choir_reduce_op op,
		size_t n, choir_tensor *const in[], choir_tensor *out[]);

// In all replicas, with the same axis (negative: from the back): all replicas' t one behind
// another along axis, in the order of their ids. Sizes along axis may differ, and be 0; ranks,
// dtypes and the other dimensions must agree. The gradient is this replica's part of the sum of
// what comes back in all. CHOIR_INVALID: there is no such axis, or shapes or dtypes that do not
// fit. CHOIR_UNSUPPORTED: slices.
choir_tensor *choir_replica_all_gather(choir_replica *r, choir_tensor *t, int axis);

// In all replicas, with the same from: replica from's t, for all; the others' t may be any
// tensors. No gradient. CHOIR_INVALID: there is no replica from.
choir_tensor *choir_replica_broadcast(choir_replica *r, choir_tensor *t, int from);

// Means over the global batch, which replicas hold unequal parts of

// Examples that this replica has: the rows of what choir_values_split, a distributed dataset
// or, where there is none of these, choir_values_set_local set for it. May be 0, and is if
// nothing says.
int64_t choir_replica_examples(const choir_replica *r);

// Examples of all replicas together; 0 if nothing says, or not of all of them.
int64_t choir_replica_global_examples(const choir_replica *r);

// The sum of this replica's losses, of which each example has one or more ([n, ...], f32 or
// f64), divided by the examples of the global batch: a scalar. SUM over replicas is then the
// mean over the batch, whatever the parts (TensorFlow's compute_average_loss;
// docs/decisions/0014), and so is what its gradients add up to. Where the arguments say nothing
// of examples, every replica counts as having n; where there are none at all it is 0. To weight
// examples, multiply before. CHOIR_INVALID: a scalar.
choir_tensor *choir_replica_mean(choir_replica *r, choir_tensor *losses);

// The same for a global batch whose size the program says itself, as it must where replicas make
// their own data in unequal parts: the sum of losses divided by it; 0 for a batch of 0.
// CHOIR_INVALID: a scalar, a negative size.
choir_tensor *choir_replica_average_loss(
		choir_replica *r, choir_tensor *losses, int64_t global_batch);

// The sum of loss divided by the number of replicas, for a term that is the same in all and
// counts once: TensorFlow's scale_regularization_loss. f32 or f64, any shape; gives a scalar.
choir_tensor *choir_replica_scale_regularization(choir_replica *r, choir_tensor *loss);

CHOIR_C_END
