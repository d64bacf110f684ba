/* A Promela model of the gate of src/base/gate.c: a word, a count of the threads that sleep or
   are about to, and the kernel's futex, which compares and sleeps in one step. Every statement is
   one access to shared memory, sequentially consistent (the source says where this is needed).
   Sleepers may wake up spuriously SPURIOUS times; without this limit no wake-up could be missed.
   A model that includes this file has GATES gates and N processes, which know their number as me.
   A mutation, MUTATION_..., is an error that Spin must find. */

#ifndef SPURIOUS
#define SPURIOUS 1
#endif

byte word[GATES];
byte sleepers[GATES];
byte asleep[N]; /* number of the gate, plus 1; 0: awake */
byte spurious = SPURIOUS;

inline futex_wait(g, old)
{
	if
#ifdef MUTATION_KERNEL_DOES_NOT_COMPARE
		::asleep[me] = g +
				1
#else
		::atomic
		{
			word[g] == old->asleep[me] = g + 1
		}
	::atomic{ word[g] != old->skip }
#endif
				fi;
	if
		::asleep[me] == 0 ::atomic
		{
			asleep[me] != 0 && spurious > 0->spurious--;
			asleep[me] = 0
		}
	fi
}

inline futex_wake(g)
{
	d_step
	{
		i = 0;
		do
			::i < N &&asleep[i] == g + 1->asleep[i] = 0;
		i++
#ifdef MUTATION_WAKES_ONE
				;
		break
#endif
						::i < N &&asleep[i] !=
				g + 1->i++ ::i >= N->break od;
		i = 0
	}
}

/* chi_gate_wait: returns when the word is not old. Spinning only checks more often. */
inline gate_wait(g, old)
{
	do
		::word[g] != old->break ::word[g] ==
				old->
#ifndef MUTATION_SLEEPERS_UNCOUNTED
				sleepers[g]++;
#endif
	futex_wait(g, old);
#ifndef MUTATION_SLEEPERS_UNCOUNTED
	sleepers[g]--
#else
	skip
#endif
			od
}

/* chi_gate_wake, called after a change of the word. */
inline gate_wake(g)
{
	if
		::sleepers[g] != 0->futex_wake(g)::sleepers[g] == 0->skip fi
}
