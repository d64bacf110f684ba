// A worker's changes of variables on the servers.
#pragma once

#include "coordinator/worker_pull.h"

// Of chi_remote (strategy/remote_variables.h).
choir_status chi_worker_push(void *worker, void *optimizer, size_t n, choir_variable *const v[],
		const chi_remote_gradient gradient[]);
choir_status chi_worker_assign(void *worker, choir_variable *v, chi_assign_op op, choir_tensor *t);
// For all changes; returns the first failure.
choir_status chi_worker_await_answers(chi_remote_worker *w);
