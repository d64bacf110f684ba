// A host program with a life of its own: signal handlers and a timer that goes off all the time,
// an affinity, a busy thread, standard output of its own. It trains in the middle of that, and
// afterwards everything must be as it was, and no thread of Choir's may ever take a signal of
// the host's.
#include <choir/choir.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { CELLS = 96, FIELDS = 5, MAX_SIGNALS = 65, STEPS = 400 };

static atomic_int alarms;
static atomic_int worker_id;
static atomic_bool stop;
static atomic_ulong rounds;

static void on_alarm(int signal)
{
	(void) signal;
	atomic_fetch_add(&alarms, 1);
}

static void *own_work(void *arg)
{
	(void) arg;
	atomic_store(&worker_id, gettid());
	while (!atomic_load(&stop)) {
		atomic_fetch_add(&rounds, 1);
		usleep(200);
	}
	return NULL;
}

static void demand(int good, const char *what)
{
	if (good)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

static int threads(void)
{
	int n = 0;
	DIR *tasks = opendir("/proc/self/task");
	demand(tasks != NULL, "reading the list of threads");
	for (struct dirent *e; (e = readdir(tasks)) != NULL;)
		n += e->d_name[0] != '.';
	closedir(tasks);
	return n;
}

// A thread that blocks a signal is never given one that was sent to the process.
static void check_blocks(const char *thread)
{
	char path[64], line[256];
	unsigned long long blocked = 0;
	snprintf(path, sizeof path, "/proc/self/task/%.16s/status", thread);
	FILE *f = fopen(path, "r");
	demand(f != NULL, "reading the state of a thread");
	while (fgets(line, sizeof line, f) != NULL)
		sscanf(line, "SigBlk: %llx", &blocked);
	fclose(f);
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM,
		SIGCHLD, SIGPIPE };
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		demand((int) (blocked >> (signals[i] - 1) & 1),
				"a thread of Choir's can be given the host's signals");
}

// All threads but the host's two; how many there are.
static int check_choirs_threads(void)
{
	int n = 0;
	DIR *tasks = opendir("/proc/self/task");
	demand(tasks != NULL, "reading the list of threads");
	for (struct dirent *e; (e = readdir(tasks)) != NULL;) {
		const int id = atoi(e->d_name);
		if (id == 0 || id == getpid() || id == atomic_load(&worker_id))
			continue;
		check_blocks(e->d_name);
		n++;
	}
	closedir(tasks);
	return n;
}

struct host {
	struct sigaction handler[MAX_SIGNALS];
	sigset_t mask;
	cpu_set_t cpus;
	char directory[512];
	int threads;
};

static void look(struct host *h)
{
	memset(h, 0, sizeof *h);
	for (int i = 1; i < MAX_SIGNALS; i++)
		sigaction(i, NULL, &h->handler[i]);
	pthread_sigmask(SIG_SETMASK, NULL, &h->mask);
	demand(sched_getaffinity(0, sizeof h->cpus, &h->cpus) == 0, "reading the affinity");
	demand(getcwd(h->directory, sizeof h->directory) != NULL, "reading the directory");
	h->threads = threads();
}

static void compare(const struct host *a, const struct host *b)
{
	for (int i = 1; i < MAX_SIGNALS; i++) {
		demand(a->handler[i].sa_handler == b->handler[i].sa_handler, "a handler was changed");
		demand(a->handler[i].sa_flags == b->handler[i].sa_flags,
				"flags of a handler were changed");
		demand(sigismember(&a->mask, i) == sigismember(&b->mask, i),
				"the signal mask was changed");
	}
	demand(CPU_EQUAL(&a->cpus, &b->cpus), "the affinity was changed");
	demand(strcmp(a->directory, b->directory) == 0, "the directory was changed");
}

struct surrogate {
	choir_layer *net;
	choir_optimizer *sgd;
};

static choir_status learn(choir_replica *r, void *user)
{
	struct surrogate *m = (struct surrogate *) user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *y = choir_layer_apply(m->net, choir_replica_arg(r, "state"));
	choir_tensor *loss = choir_replica_average_loss(
			r, choir_mean_squared_error(choir_replica_arg(r, "source"), y));
	choir_replica_return(r, "loss", loss);
	return choir_optimizer_minimize(m->sgd, loss, tape);
}

static double train(choir_strategy *s, struct surrogate *m)
{
	static float state[CELLS][FIELDS], source[CELLS][1];
	choir_values *batch = choir_values_new(s), *result = NULL;
	double loss = 0;
	CHOIR_CHECK_NEW(batch);
	for (int step = 0; step < STEPS; step++) {
		for (int c = 0; c < CELLS; c++) {
			source[c][0] = 0;
			for (int i = 0; i < FIELDS; i++) {
				state[c][i] = (float) ((c * 31 + step * 7 + i * 13) % 17) / 17;
				source[c][0] += (float) (i - 2) * state[c][i] / 4;
			}
		}
		choir_values_clear(batch);
		choir_frame *f = choir_values_frame(batch);
		CHOIR_CHECK(choir_values_split(
				batch, "state", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(CELLS, FIELDS), state)));
		CHOIR_CHECK(choir_values_split(
				batch, "source", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(CELLS, 1), source)));
		CHOIR_CHECK(choir_strategy_run(s, learn, m, batch, &result));
		loss = choir_tensor_number(choir_strategy_reduce(
				s, CHOIR_SUM, choir_values_find(result, "loss"), CHOIR_NO_AXIS));
	}
	choir_values_free(result);
	choir_values_free(batch);
	return loss;
}

static void start_host(pthread_t *worker)
{
	cpu_set_t cpus, first;
	demand(sched_getaffinity(0, sizeof cpus, &cpus) == 0, "reading the affinity");
	CPU_ZERO(&first);
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&first) == 0; i++)
		if (CPU_ISSET(i, &cpus))
			CPU_SET(i, &first);
	demand(pthread_create(worker, NULL, own_work, NULL) == 0, "starting the host's thread");
	while (atomic_load(&worker_id) == 0)
		usleep(100);
	demand(sched_setaffinity(0, sizeof first, &first) == 0, "setting the host's affinity");
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = on_alarm; // no SA_RESTART: system calls are interrupted
	demand(sigaction(SIGALRM, &action, NULL) == 0, "installing the host's handler");
	const struct itimerval often = { { 0, 500 }, { 0, 500 } };
	demand(setitimer(ITIMER_REAL, &often, NULL) == 0, "starting the host's timer");
}

int main(void)
{
	struct host before, after;
	pthread_t worker;
	start_host(&worker);
	look(&before);
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .replicas = 4, .devices = "cpu:0,cpu:1"));
	struct surrogate m = { NULL, NULL };
	CHOIR_SCOPE (s) {
		m.net = choir_dense_new("net", FIELDS, 1, CHOIR_LINEAR);
		m.sgd = choir_optimizer_new(
				CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.3));
	}
	CHOIR_CHECK_NEW(m.sgd);
	const unsigned long rounds_before = atomic_load(&rounds);
	const double loss = train(s, &m);
	demand(check_choirs_threads() > 0, "Choir has no thread: this test looks at nothing");
	demand(atomic_load(&rounds) > rounds_before, "the host's thread did not get on");
	choir_strategy_free(s);
	look(&after);
	compare(&before, &after);
	// A thread that was joined may be in the list for a moment yet.
	for (int i = 0; i < 20000 && after.threads != before.threads; i++) {
		usleep(1000);
		after.threads = threads();
	}
	demand(after.threads == before.threads, "threads are left");
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &never, NULL);
	atomic_store(&stop, true);
	pthread_join(worker, NULL);
	demand(atomic_load(&alarms) > 0, "no alarm came: this test looks at nothing");
	demand(loss >= 0 && loss < 1e-3, "nothing was learnt");
	printf("as it was\n");
	return 0;
}
