// Signals are for the host's threads; those of faults reach its crash handler.
#include "base/thread.h"
#include "base/gate.h"
#include "base/clock.h"
#include "base/fpenv.h"
#include "base/text.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static void *run_thread(void *arg)
{
	const chi_thread *t = arg;
	chi_fpenv inherited;
	chi_fpenv_enter(&inherited);
	(void) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setname_np(pthread_self(), t->name);
	t->fn(t->arg);
	return NULL;
}

static void block_signals(sigset_t *before)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
	sigset_t blocked;
	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&blocked, own[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, before);
}

choir_status chi_thread_start(chi_thread *t, const char *name, void (*fn)(void *arg), void *arg)
{
	t->fn = fn;
	t->arg = arg;
	t->started = false;
	snprintf(t->name, sizeof(t->name), "%s", name);
	sigset_t before;
	block_signals(&before);
	pthread_t id;
	int refused = pthread_create(&id, NULL, run_thread, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (refused) {
		char text[128];
		return choir_fail(CHOIR_IO, "thread %s: cannot start: %s", name,
				chi_text_errno(refused, text, sizeof(text)));
	}
	t->id = id;
	t->started = true;
	return CHOIR_OK;
}

void chi_thread_stand_back(void)
{
#ifdef SCHED_BATCH
	const struct sched_param none = { 0 };
	(void) pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
#endif
}

void chi_thread_take_leftovers(void)
{
	chi_thread_stand_back();
#ifdef __linux__
	(void) setpriority(PRIO_PROCESS, 0, 19);
#endif
}

void chi_thread_own_name(char out[CHI_THREAD_NAME])
{
	if (pthread_getname_np(pthread_self(), out, CHI_THREAD_NAME) != 0)
		out[0] = '\0';
}

void chi_thread_call(void (*fn)(void *arg), void (*left)(void *arg), void *arg)
{
	pthread_cleanup_push(left, arg);
	fn(arg);
	pthread_cleanup_pop(0);
}

void chi_thread_detach(chi_thread *t)
{
	pthread_detach(t->id);
	t->started = false;
}

void chi_thread_join(chi_thread *t)
{
	if (!t->started)
		return;
	pthread_join(t->id, NULL);
	t->started = false;
}

void chi_thread_yield(void)
{
	sched_yield();
}

void chi_thread_nap(double seconds)
{
	chi_atomic32 nobody_wakes = { 0 };
	const double deadline = chi_clock_deadline(seconds);
	while (chi_clock_now() < deadline && chi_futex_wait(&nobody_wakes, 0, deadline))
		;
}

static chi_atomic32 forks;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
	chi_atomic32_add(&forks, 1);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

unsigned chi_fork_generation(void)
{
	pthread_once(&forks_once, watch_forks);
	return chi_atomic32_load(&forks);
}
