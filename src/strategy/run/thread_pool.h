// The threads of a lane. They live as long as the strategy; one that has nothing to do spins a
// little and then sleeps at its gate.
#pragma once

#include "base/team.h"
#include "base/thread.h"
#include "strategy/run/run.h"

// What a worker polls and what it is sent lie in one line of the cache, and nothing else does.
typedef struct chi_worker {
	chi_thread thread;
	struct chi_crew *crew;
	struct chi_worker *next_idle; // the one that rested before; or the next that a run has sent
	struct chi_worker *later_idle; // the one that rested after
	struct chi_worker *next;
	bool gone; // its thread has ended before its time, and gets no jobs
	_Alignas(CHI_LINE) chi_gate gate; // its word moves when there is a job
	chi_run *run; // the job; NULL: end, or help
	struct chi_help *help; // the job, if it is no lane of a run
	int lane;
} chi_worker;

// What workers read lies apart from what those write who send them.
struct chi_crew {
	choir_strategy *strategy;
	bool spin;
	bool pin;
	int cores, lane;
	chi_team *team; // of the lane's cores; NULL: it has one
	_Alignas(CHI_LINE) chi_mutex lock;
	chi_worker *idle, *longest_idle; // the ends of a list: who rested last, and who first
	chi_worker *all;
	chi_gate helped; // of the first lane: how many have returned from chi_crew_all, in all
};

// Puts a worker whose job is nearly done on the idle list; it may get its next job at once.
void chi_crew_rest(chi_worker *w);
void chi_crew_rest_all(chi_worker *sent); // a list
