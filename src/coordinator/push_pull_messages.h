// A strategy's variables and optimizers as messages between workers and parameter servers. All
// processes make the same ones in one order. Variable i, or a shard, belongs to server i modulo
// the number of servers.
#pragma once

#include "coordinator/large_message.h"
#include "strategy/remote_variables.h"
#include "train/optimizer/optimizer.h"

typedef struct {
	choir_strategy *strategy;
	int servers;
	size_t n;
	choir_variable **variable;
	size_t optimizers;
	choir_optimizer **optimizer;
	size_t bytes; // of all variables
} chi_job_model;

// Lists s's variables and optimizers. CHOIR_UNSUPPORTED: an optimizer needs the gradients of all
// servers, or a dynamic loss scale.
choir_status chi_job_model_collect(chi_job_model *m, choir_strategy *s, int servers);
void chi_job_model_free(chi_job_model *m);
uint64_t chi_job_model_hash(const chi_job_model *m); // of names, dtypes, shapes
uint64_t chi_job_model_versions(
		const chi_job_model *m); // changes when a variable or optimizer does
// The variable's number, or n.
size_t chi_job_model_find(const chi_job_model *m, const choir_variable *v);

// Of one server's variables.
choir_status chi_job_model_pack_values(const chi_job_model *m, int server, chi_pack *to);
// For a PULL or ROWS, after its version.
choir_status chi_job_model_pack_asked(const chi_job_model *m, chi_unpack *u, chi_pack *to);
choir_status chi_job_model_pack_rows(const chi_job_model *m, chi_unpack *u, chi_pack *to);
// A PUSH or ASSIGN without its first fields; refers to the gradients. Returns their number for
// this server.
uint32_t chi_job_model_pack_push(const chi_job_model *m, int server, const void *optimizer,
		size_t n, choir_variable *const v[], const chi_remote_gradient gradient[],
		chi_large_message *to);
choir_status chi_job_model_pack_assign(const chi_job_model *m, const choir_variable *v,
		chi_assign_op op, choir_tensor *t, chi_pack *to);
choir_status chi_job_model_push(chi_job_model *m, chi_unpack *u);
choir_status chi_job_model_assign(chi_job_model *m, chi_unpack *u);
