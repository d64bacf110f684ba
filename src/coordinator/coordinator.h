// A coordinator's state. The network thread's lock protects what both threads use.
#pragma once

#include "coordinator/dispatch.h"
#include "coordinator/push_pull_messages.h"
#include "coordinator/network_thread.h"
#include "coordinator/task.h"
#include "strategy/remote_variables.h"

// A call on each worker, made by the network thread.
typedef struct {
	int function, capacity, n;
	chi_closure **closure;
	chi_error error;
} chi_call;

struct choir_coordinator {
	choir_strategy *strategy;
	choir_task *task;
	choir_coordinator_options o; // with defaults
	chi_job_model model;
	chi_dispatch dispatch;
	chi_network_thread network;
	chi_remote remote;
	bool made;
	bool (*awaited)(const struct choir_coordinator *c); // by the main thread, or NULL
	bool stale; // the servers may have newer values
	bool holds; // closures wait until the servers have the program's changes
	uint64_t versions; // of the model, when the servers had equal ones
	bool asks; // the network thread must send SNAPSHOT or RESTORE
	const chi_pack *restores;
	chi_call *call; // or NULL
	const chi_closure *fetches; // awaited by the program
};
