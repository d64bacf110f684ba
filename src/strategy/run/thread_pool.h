// A device's threads live as long as the strategy. An idle one spins briefly, then sleeps.
#pragma once

#include "base/team.h"
#include "base/thread.h"
#include "strategy/run/run.h"

typedef struct chi_pool_thread {
	chi_thread thread;
	struct chi_thread_pool *pool;
	struct chi_pool_thread *next_idle; // idle for longer; in a run's list, the next
	struct chi_pool_thread *later_idle;
	struct chi_pool_thread *next;
	bool ended; // by a non-local exit
	_Alignas(CHI_LINE) chi_gate gate;
	chi_run *run; // NULL: call, or end the thread
	struct chi_pool_call *call;
	int device;
} chi_pool_thread;

struct chi_thread_pool {
	choir_strategy *strategy;
	bool spin;
	bool pin;
	int cores, device;
	chi_team *team;
	_Alignas(CHI_LINE) chi_mutex lock;
	chi_pool_thread *idle, *longest_idle;
	chi_pool_thread *all;
	// Threads that have completed chi_thread_pool_call_all.
	chi_gate returned;
};

void chi_thread_pool_rest(chi_pool_thread *t);
void chi_thread_pool_rest_all(chi_pool_thread *busy);
