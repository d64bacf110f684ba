// The campaign: so many schedules, in batches, each batch in a process of its own so that a seed
// means the same whatever was before it.
//
//   schedules COUNT        that many schedules; fails if one goes wrong
//   schedules COUNT find   fails if none of them goes wrong: for libraries with a planted bug
//   schedules batch N      that batch again, in this process (for a debugger)
//
// Even batches believe that they have eight processors, odd ones one.
#include "far/far.h"
#include "programs.h"
#include "scheduler.h"
#include "system.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MAX_JOBS = 64, SECONDS_A_BATCH = 60 };

// All batches add to it.
typedef struct {
	_Atomic uint64_t points, switches, fingerprint;
} totals;

static void run_batch(uint64_t number, totals *t)
{
	alarm(SECONDS_A_BATCH);
	setenv("CHOIR_KERNELS", "plain", 1);
	scheduled_machine(number % 2 == 0 ? 8 : 1);
	scheduler_begin();
	CHOIR_CHECK(far_register());
	programs_batch(number);
	const scheduler_trace all = scheduler_traced();
	t->points += all.points;
	t->switches += all.switches;
	t->fingerprint += all.hash;
}

static pid_t start_batch(uint64_t number, totals *t, bool quiet)
{
	fflush(NULL);
	const pid_t child = fork();
	if (child != 0)
		return child;
	if (quiet && freopen("/dev/null", "w", stderr) == NULL)
		_exit(2);
	run_batch(number, t);
	_exit(0);
}

typedef struct {
	pid_t child;
	uint64_t batch;
} job;

typedef struct {
	job jobs[MAX_JOBS];
	int max, running;
	uint64_t next, done, bad; // batches
} crew;

// False: the system does not give another process.
static bool start_next(crew *c, totals *t, bool quiet)
{
	int i = 0;
	while (c->jobs[i].child > 0)
		i++;
	c->jobs[i] = (job){ start_batch(c->next, t, quiet), c->next };
	c->next++;
	c->running++;
	return c->jobs[i].child > 0;
}

static bool await_one(crew *c, bool find)
{
	int status = 0, i = 0;
	const pid_t ended = wait(&status);
	while (i < c->max && c->jobs[i].child != ended)
		i++;
	if (i == c->max)
		return false;
	const unsigned long long batch = c->jobs[i].batch;
	if (status != 0)
		printf("batch %llu: %s %d\n", batch, WIFSIGNALED(status) ? "signal" : "status",
				WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	if (status != 0 && !find)
		printf("again: schedules batch %llu\n", batch);
	c->bad += status != 0;
	c->done++;
	c->jobs[i].child = 0;
	c->running--;
	return true;
}

static int campaign(uint64_t batches, bool find, totals *t)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	crew c = { .max = processors < 1 ? 1 : processors > MAX_JOBS ? MAX_JOBS : (int) processors };
	while (c.running > 0 || (c.next < batches && c.bad == 0)) {
		const bool more = c.running < c.max && c.next < batches && c.bad == 0;
		if (!(more ? start_next(&c, t, find) : await_one(&c, find)))
			return 2;
	}
	const double schedules = (double) c.done * PROGRAMS_A_BATCH;
	printf("%.0f schedules, each of %.0f points and %.0f switches, fingerprint %016llx: %s\n",
			schedules, (double) t->points / schedules, (double) t->switches / schedules,
			(unsigned long long) t->fingerprint,
			c.bad == 0 ? "nothing wrong" : "something is wrong");
	return (c.bad != 0) == find ? 0 : 1;
}

int main(int argc, char **argv)
{
	totals *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t == MAP_FAILED)
		return 2;
	if (argc == 3 && strcmp(argv[1], "batch") == 0) {
		run_batch(strtoull(argv[2], NULL, 10), t);
		return 0;
	}
	const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	if (count == 0) {
		fprintf(stderr, "usage: schedules COUNT [find] | schedules batch N\n");
		return 2;
	}
	const bool find = argc > 2 && strcmp(argv[2], "find") == 0;
	return campaign((count + PROGRAMS_A_BATCH - 1) / PROGRAMS_A_BATCH, find, t);
}
