/* N replicas meet ROUNDS times at one gate: the last to come opens it. Proved: nobody sleeps for
   ever (an end in which a process has not ended is an error of its own), and who goes on does so
   in its own round, neither before it was complete nor after another was. */
#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 3
#endif
#define GATES 1
#include "gate.h"

byte arrived;

proctype replica(byte me)
{
	byte round = 0, old, mine, i = 0;
	do
	:: round == ROUNDS -> break
	:: round < ROUNDS ->
		old = word[0];
		atomic { arrived++; mine = arrived };
		if
		:: mine == N ->
			arrived = 0;
#ifdef MUTATION_LOOKS_BEFORE_IT_WRITES
			if
			:: sleepers[0] != 0 -> word[0]++; futex_wake(0)
			:: sleepers[0] == 0 -> word[0]++
			fi
#else
			word[0]++;
			gate_wake(0)
#endif
		:: mine < N ->
#ifdef MUTATION_WAITS_FOR_ANY_GENERATION
			if
			:: word[0] != 0
			:: word[0] == 0 -> gate_wait(0, 0)
			fi
#else
			gate_wait(0, old)
#endif
		fi;
		round++;
		assert(word[0] == round)
	od
}

init {
	byte n = 0;
	atomic {
		do
		:: n < N -> run replica(n); n++
		:: n == N -> break
		od
	}
}
