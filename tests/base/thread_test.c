// Threads leave the host's signals and the other threads' priorities alone.
#include "base/thread.h"
#include "base/gate.h"
#include "test.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
	chi_gate gate;
	sigset_t mask;
	char name[16];
} report;

static void look_around(void *arg)
{
	report *r = arg;
	pthread_sigmask(SIG_SETMASK, NULL, &r->mask);
	chi_gate_wait(&r->gate, 0, false, HUGE_VAL); // until the name is given
	pthread_getname_np(pthread_self(), r->name, sizeof(r->name));
}

TEST(test_signals_and_name)
{
	sigset_t before, after;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	report r = { 0 };
	chi_thread thread;
	assert_int_equal(chi_thread_start(&thread, "a name that is long", look_around, &r), CHOIR_OK);
	chi_gate_open(&r.gate, 1);
	chi_thread_join(&thread);
	chi_thread_join(&thread); // joined already: nothing
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_string_equal(r.name, "a name that is ");
	static const int hosts[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM, SIGPROF,
		SIGPIPE };
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		assert_true(sigismember(&r.mask, hosts[i]));
		assert_false(sigismember(&after, hosts[i]));
	}
	assert_false(sigismember(&r.mask, SIGSEGV));
	assert_false(sigismember(&r.mask, SIGFPE));
	for (int i = 1; i < 32; i++)
		assert_int_equal(sigismember(&before, i), sigismember(&after, i));
}

TEST(test_cannot_start)
{
	pthread_attr_t usual, absurd;
	assert_int_equal(pthread_getattr_default_np(&usual), 0);
	pthread_attr_init(&absurd);
	pthread_attr_setstacksize(&absurd, (size_t) 1 << 50); // more than there are addresses
	assert_int_equal(pthread_setattr_default_np(&absurd), 0);
	chi_thread thread;
	choir_status status = chi_thread_start(&thread, "huge", look_around, NULL);
	pthread_setattr_default_np(&usual);
	pthread_attr_destroy(&usual);
	pthread_attr_destroy(&absurd);
	assert_int_equal(status, CHOIR_IO);
	assert_int_equal(strncmp(choir_error(), "thread huge: cannot start: ", 27), 0);
	assert_true(strlen(choir_error()) > 27);
	chi_thread_join(&thread);
}

typedef struct {
	int before, after;
} niceness;

static void be_modest(void *arg)
{
	niceness *n = arg;
	n->before = getpriority(PRIO_PROCESS, 0);
	chi_thread_take_leftovers();
	n->after = getpriority(PRIO_PROCESS, 0);
}

// Only the thread that asks for it.
TEST(test_leftovers)
{
	niceness n = { 0 };
	chi_thread thread;
	const int own = getpriority(PRIO_PROCESS, 0);
	assert_int_equal(chi_thread_start(&thread, "modest", be_modest, &n), CHOIR_OK);
	chi_thread_join(&thread);
	assert_int_equal(n.before, own);
	assert_int_equal(n.after, 19);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), own);
}

TEST(test_fork_generation)
{
	unsigned here = chi_fork_generation();
	pid_t child = fork();
	if (child == 0)
		_exit(chi_fork_generation() == here ? 1 : 0);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(chi_fork_generation(), here);
}
