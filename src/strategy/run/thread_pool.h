// The threads of a device. They live as long as the strategy. An idle thread spins for a short
// time and then sleeps at its gate.
#pragma once

#include "base/team.h"
#include "base/thread.h"
#include "strategy/run/run.h"

// The gate that a thread polls and its task lie in one cache line of their own.
typedef struct chi_pool_thread {
	chi_thread thread;
	struct chi_thread_pool *pool;
	// The thread idle for longer than this one; for a busy thread, the next in its run's list.
	struct chi_pool_thread *next_idle;
	struct chi_pool_thread *later_idle; // the thread that became idle after this one
	struct chi_pool_thread *next;
	bool ended; // a non-local exit ended it: it gets no more tasks
	_Alignas(CHI_LINE) chi_gate gate; // its word changes when there is a task
	chi_run *run; // the task; NULL: call, or end the thread
	struct chi_pool_call *call; // the task, if it is not a device of a run
	int device;
} chi_pool_thread;

// Fields that threads read lie in other cache lines than fields that senders write.
struct chi_thread_pool {
	choir_strategy *strategy;
	bool spin;
	bool pin;
	int cores, device;
	chi_team *team; // the device's cores; NULL: one core
	_Alignas(CHI_LINE) chi_mutex lock;
	chi_pool_thread *idle, *longest_idle; // ends of the list: last and first to become idle
	chi_pool_thread *all;
	// In the first device's pool: total number of returns from chi_thread_pool_call_all's
	// functions.
	chi_gate returned;
};

// Puts a thread whose task is nearly done on the idle list. It may get its next task at once.
void chi_thread_pool_rest(chi_pool_thread *t);
void chi_thread_pool_rest_all(chi_pool_thread *busy); // a list by next_idle
