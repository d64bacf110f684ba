// A process's role in its job.
#pragma once

#include "choir/coordinator.h"
#include "net/hub.h"

struct choir_task {
	choir_task_options o; // with defaults; texts are copies
	char type[CHI_ROLE], address[128], ps_address[128];
	chi_key key;
	chi_connections *connections;
	chi_hello hello;
	int functions; // of the table
};

// The hello with the facts of table and model, after the model is built.
choir_status chi_task_introduce(
		choir_task *t, const choir_coordinator_options *o, uint64_t model_hash);
// Checks the table, too; *all has the defaults.
choir_status chi_task_take_options(
		choir_task *t, const choir_coordinator_options *o, choir_coordinator_options *all);
// Calls .build in the scope of s.
choir_status chi_task_build(choir_strategy *s, const choir_coordinator_options *o);
// The function's number, or CHOIR_NONE.
int chi_task_find(const choir_coordinator_options *o, const char *name);
chi_hub_options chi_task_hub_options(const choir_task *t, size_t model_bytes);
