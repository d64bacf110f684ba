// A coordinator's state. What both threads use is protected by the post's lock.
#pragma once

#include "coordinator/dispatch.h"
#include "coordinator/push_pull_messages.h"
#include "coordinator/network_thread.h"
#include "coordinator/task.h"
#include "strategy/remote_variables.h"

// A call of a function on each worker, which the thread makes.
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
	chi_post post;
	chi_remote remote;
	bool made;
	bool (*awaited)(const struct choir_coordinator *c); // by the main thread; NULL: nothing
	bool stale; // the servers may have newer values
	uint64_t versions; // of the model, when the servers had the same
	bool asks; // the thread asks the servers: for their states, or to take restores
	const chi_pack *restores;
	chi_call *call; // NULL: none is asked for
	const chi_closure *fetches; // what the program waits for
};
