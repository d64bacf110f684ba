/* Light sums (src/strategy/run/light.c): N replicas, each with a gate of its own whose word says
   how often it has come and read (two steps a sum) and whether all must stop. A replica comes,
   waits for all others, reads what they brought, says so, and waits until all have read; one of
   them may fail in between sums. Proved: nobody sleeps for ever, and who reads finds what was
   brought to this sum, not what its owner has put there since. */
#ifndef N
#define N 3
#endif
#ifndef SUMS
#define SUMS 2
#endif
#define GATES N
#include "gate.h"

#define STOPPED 1
#define STEP 2	/* of the count, behind the flag */
#define GONE 255

byte brought[N];
bit may_fail = 1;

inline say()
{
	atomic { word[me] = word[me] + STEP };	/* a loop of compare and exchange */
	gate_wake(me)
}

inline stop_all()
{
	k = 0;
	do
	:: k < N ->
		atomic { word[k] = word[k] | STOPPED };
		gate_wake(k);
		k++
	:: k == N -> break
	od
}

/* Sets cancelled if somebody has failed before k came. */
inline await(k)
{
	do
	:: seen = word[k];
		if
#ifdef MUTATION_NO_GENERATION
		:: (seen & STOPPED) == 0 && seen >= STEP -> break
#else
		:: (seen & STOPPED) == 0 && seen >= (2 * sum + 1) * STEP -> break
#endif
		:: (seen & STOPPED) != 0 -> cancelled = 1; break
		:: else -> gate_wait(k, seen)
		fi
	od
}

/* Waits until k, which has come, has read or given up. */
inline await_reader(k)
{
	do
	:: seen = word[k];
		if
		:: seen / STEP == 2 * sum + 1 -> gate_wait(k, seen)
		:: else -> break
		fi
	od
}

proctype replica(byte me)
{
	byte sum = 0, k, seen, i = 0;
	bit cancelled = 0;
	do
	:: sum == SUMS || cancelled -> break
	:: atomic { sum < SUMS && !cancelled && may_fail -> may_fail = 0 };
		stop_all();
		break
	:: sum < SUMS && !cancelled ->
		brought[me] = sum + 1;
		say();
		k = 0;
		do
		:: k < N && !cancelled && k != me -> await(k); k++
		:: k < N && !cancelled && k == me -> k++
		:: k == N || cancelled -> break
		od;
		k = 0;
		do
		:: k < N && !cancelled -> assert(brought[k] == sum + 1); k++
		:: k == N || cancelled -> break
		od;
		say();
		k = 0;
#ifndef MUTATION_LEAVES_AT_ONCE
		do
		:: k < N -> await_reader(k); k++
		:: k == N -> break
		od;
#endif
		brought[me] = GONE;
		sum++
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
