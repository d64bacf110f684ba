/* The gate of src/base/atomic.c as Spin sees it: a word, a count of those that sleep or are about
   to, and the kernel's futex, which compares and puts to sleep in one step. Every statement is one
   access to memory that others share, in an order that all see (the source says where that is
   needed). Sleepers may wake for nothing SPURIOUS times: a number, for if they always might, no
   wake-up could be missed. Needs GATES, N processes that each know their number as me, and may be
   given a mutation, which Spin must refute. */

#ifndef SPURIOUS
#define SPURIOUS 1
#endif

byte word[GATES];
byte sleepers[GATES];
byte asleep[N]; /* at which gate, plus 1; 0: awake */
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

/* chi_gate_wait: until the word is no longer old. Spinning is only looking more often. */
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

/* chi_gate_wake, after the word was changed. */
inline gate_wake(g)
{
	if
		::sleepers[g] != 0->futex_wake(g)::sleepers[g] == 0->skip fi
}
