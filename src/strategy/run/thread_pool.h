// The threads of a device. They live as long as the strategy; one that has nothing to do spins a
// little and then sleeps at its gate.
#pragma once

#include "base/team.h"
#include "base/thread.h"
#include "strategy/run/run.h"

// What a thread polls and what it is sent lie in one line of the cache, and nothing else does.
typedef struct chi_pool_thread {
	chi_thread thread;
	struct chi_thread_pool *pool;
	// The one that rested before; or the next that a run has sent.
	struct chi_pool_thread *next_idle;
	struct chi_pool_thread *later_idle; // the one that rested after
	struct chi_pool_thread *next;
	bool ended; // its thread has ended before its time, and gets no tasks
	_Alignas(CHI_LINE) chi_gate gate; // its word moves when there is a task
	chi_run *run; // the task; NULL: end, or help
	struct chi_pool_call *call; // the task, if it is no device of a run
	int device;
} chi_pool_thread;

// What threads read lies apart from what those write who send them.
struct chi_thread_pool {
	choir_strategy *strategy;
	bool spin;
	bool pin;
	int cores, device;
	chi_team *team; // of the device's cores; NULL: it has one
	_Alignas(CHI_LINE) chi_mutex lock;
	chi_pool_thread *idle, *longest_idle; // the ends of a list: who rested last, and who first
	chi_pool_thread *all;
	// Of the first device: how many have returned from chi_thread_pool_call_all, in all.
	chi_gate returned;
};

// Puts a thread whose task is nearly done on the idle list; it may get its next task at once.
void chi_thread_pool_rest(chi_pool_thread *t);
void chi_thread_pool_rest_all(chi_pool_thread *busy); // a list
