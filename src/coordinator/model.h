// The variables and optimizers of a strategy as messages. All processes of a job make the same
// ones in the same order. Variable i belongs to server i modulo the number of servers; a shard
// counts as a variable.
#pragma once

#include "base/fields.h"
#include "train/optimizer/optimizer.h"

typedef struct {
	choir_strategy *strategy;
	int servers;
	size_t n;
	choir_variable **variable;
	size_t optimizers;
	choir_optimizer **optimizer;
	size_t bytes; // of all variables
} chi_model;

// Collects what has been made in s. CHOIR_UNSUPPORTED: an optimizer needs the gradients of all
// servers, or a dynamic loss scale.
choir_status chi_model_collect(chi_model *m, choir_strategy *s, int servers);
void chi_model_free(chi_model *m);
uint64_t chi_model_hash(const chi_model *m); // of names, dtypes, shapes
uint64_t chi_model_versions(const chi_model *m); // changes when a variable or optimizer does
// The variable's number, or n.
size_t chi_model_find(const chi_model *m, const choir_variable *v);

// The values of the variables of one server.
choir_status chi_model_pack_values(const chi_model *m, int server, chi_pack *to);
choir_status chi_model_take_values(const chi_model *m, int server, chi_unpack *u);
// A PUSH or ASSIGN, without its closure and ordinal, and what it does.
// Returns the number of gradients for this server.
uint32_t chi_model_pack_push(const chi_model *m, int server, const void *optimizer, size_t n,
		choir_variable *const v[], const void *const gradient[], chi_pack *to);
choir_status chi_model_pack_assign(const chi_model *m, const choir_variable *v, chi_assign_op op,
		choir_tensor *t, chi_pack *to);
choir_status chi_model_push(chi_model *m, chi_unpack *u);
choir_status chi_model_assign(chi_model *m, chi_unpack *u);
// All values, slots and counters. From each server its own part is taken.
choir_status chi_model_save(const chi_model *m, chi_pack *to);
choir_status chi_model_restore(chi_model *m, int states, const chi_pack state[]);

// A set of named tensors as a message.
choir_status chi_values_pack(choir_values *set, chi_pack *to);
choir_status chi_values_unpack(choir_values *set, chi_unpack *u);
