// What a process is in its job.
#pragma once

#include "choir/coordinator.h"
#include "net/hub.h"

struct choir_task {
	choir_task_options o; // with defaults; its texts are copies
	char type[CHI_ROLE], address[128], ps_address[128];
	chi_key key;
	chi_connections *connections;
	chi_hello hello;
	int functions; // of the table
};

// Makes the task's hello, after the model is built: facts of the table and the model.
choir_status chi_task_introduce(
		choir_task *t, const choir_coordinator_options *o, uint64_t model_hash);
// Checks the table and the options; *all has the defaults.
choir_status chi_task_take_options(
		choir_task *t, const choir_coordinator_options *o, choir_coordinator_options *all);
// The number of a function of the table, or CHOIR_NONE.
int chi_task_find(const choir_coordinator_options *o, const char *name);
chi_hub_options chi_task_hub_options(const choir_task *t, size_t model_bytes);
