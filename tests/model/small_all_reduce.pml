/* Light sums (src/strategy/run/small_all_reduce.c): N replicas, each with a gate of its own whose word counts
   the sums that it has come to, behind two flags: all must stop, and it has returned. A replica
   shows what it brings in one of two places, in turn, says that it has come, waits for all others
   and reads what they brought. Nobody waits until others have read: a place is given back when all
   have come to the next sum. One replica may fail in between sums, and one may return too early.
   Proved: nobody sleeps for ever, and who reads finds what was brought to this sum, neither what
   its owner brought to another nor memory that was given back. */
#ifndef N
#define N 3
#endif
#ifndef SUMS
#define SUMS 3
#endif
#define GATES N
#include "gate.h"

#define STOPPED 1
#define RETURNED 2
#define STEP 4	/* of the count, behind the flags */
#define GONE 255
#ifdef MUTATION_ONE_PLACE
#define PLACE(sum) 0
#else
#define PLACE(sum) ((sum) % 2)
#endif

typedef places { byte brought[2] };
places shown[N];
bit may_fail = 1, may_leave = 1;

inline say(what)
{
	word[me] = word[me] + what;	/* one addition */
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

/* Sets cancelled if k will never come; whoever finds that it has left stops all. */
inline await(k)
{
	do
	:: seen = word[k];
		if
#ifdef MUTATION_NO_GENERATION
		:: (seen & STOPPED) == 0 && seen / STEP >= 1 -> break
#else
		:: (seen & STOPPED) == 0 && seen / STEP >= sum + 1 -> break
#endif
		:: (seen & STOPPED) != 0 -> cancelled = 1; break
		:: (seen & STOPPED) == 0 && seen / STEP < sum + 1 && (seen & RETURNED) != 0 ->
			cancelled = 1;
			stop_all();
			break
		:: else -> gate_wait(k, seen)
		fi
	od
}

inline read_all()
{
	k = 0;
	do
	:: k < N -> assert(shown[k].brought[PLACE(sum)] == sum + 1); k++
	:: k == N -> break
	od
}

proctype replica(byte me)
{
	byte sum = 0, other, k, seen, i = 0;
	bit cancelled = 0;
	do
	:: sum == SUMS || cancelled -> break
	:: atomic { sum < SUMS && !cancelled && may_fail -> may_fail = 0 };
		cancelled = 1;
		stop_all();
		break
	:: atomic { sum < SUMS && !cancelled && may_leave -> may_leave = 0 };
		break
	:: sum < SUMS && !cancelled ->
		shown[me].brought[PLACE(sum)] = sum + 1;
		say(STEP);
		other = 0;
		do
		:: other < N && !cancelled && other != me -> await(other); other++
		:: other < N && !cancelled && other == me -> other++
		:: other == N || cancelled -> break
		od;
		if
		:: cancelled -> break
		:: else -> read_all()
		fi;
#ifdef MUTATION_GIVES_BACK_AT_ONCE
		shown[me].brought[PLACE(sum)] = GONE;
#else
#ifndef MUTATION_ONE_PLACE
		shown[me].brought[PLACE(sum + 1)] = GONE;
#endif
#endif
		sum++
	od;
#ifndef MUTATION_LEAVES_SILENTLY
	if
	:: !cancelled -> say(RETURNED)
	:: else
	fi
#endif
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
