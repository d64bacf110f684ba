// choir run: starts the workers of a job, watches them and starts them again (choir/supervisor.h).
// With --agent it is the agent of one worker.
#include "command_options.h"
#include "commands.h"
#include "output.h"
#include "run/line_queue.h"
#include "stop_signals.h"

#include <choir/choir.h>
#include <choir/supervisor.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORDS = 4096, PATH = 4096, OUTSIDE = 128 };

static struct {
	int64_t workers, restarts, min_workers, attempt, worker, servers;
	const char *hosts, *mpi, *launcher, *address, *events, *agent;
	double lost_after, start_timeout, stall, stop_timeout;
	bool quiet, json;
} given = { .workers = 1, .worker = CHOIR_NONE };
static const char *const mpis[] = { "openmpi", "mpich", "none", NULL };

static const option options[] = {
	{ "-n", "W", OPTION_INTEGER, &given.workers, .help = "number of workers (1)",
			.alias = "--workers", .min = 1, .max = 4096 },
	{ "--servers", "P", OPTION_INTEGER, &given.servers,
			.help = "number of parameter servers: the first of the W processes\n"
					"is the coordinator, the next P are servers (no coordinator)",
			.min = 1, .max = 16 },
	{ "--hosts", "LIST", OPTION_TEXT, &given.hosts,
			.help = "hosts as in a,b:2 (at most 2 workers on b), or a file with\n"
					"one host per line (this machine)" },
	{ "--restarts", "K", OPTION_INTEGER, &given.restarts,
			.help = "start the job again after up to K failures (0)", .min = 0, .max = 1000000 },
	{ "--min", "N", OPTION_INTEGER, &given.min_workers,
			.help = "smallest number of workers for a restart after hosts\nwere lost (W)",
			.min = 1, .max = 4096 },
	{ "--mpi", "MPI", OPTION_CHOICE, &given.mpi,
			.help = "MPI that connects the workers: openmpi, mpich or none (none\n"
					"for one worker, else the first that is installed)",
			.choices = mpis },
	{ "--lost-after", "S", OPTION_NUMBER, &given.lost_after,
			.help = "seconds without a heartbeat until a worker is lost (5)" },
	{ "--start-timeout", "S", OPTION_NUMBER, &given.start_timeout,
			.help = "seconds until all workers have started (60)" },
	{ "--stall", "S", OPTION_NUMBER, &given.stall,
			.help = "seconds that workers may wait for another worker; 0: only\n"
					"the program's own limits (0)",
			.zero = true },
	{ "--stop-timeout", "S", OPTION_NUMBER, &given.stop_timeout,
			.help = "seconds that workers have to save after a signal (30)" },
	{ "--launcher", "COMMAND", OPTION_TEXT, &given.launcher,
			.help = "command in place of mpirun, mpiexec or ssh" },
	{ "--address", "HOST", OPTION_TEXT, &given.address,
			.help = "address of this machine for other hosts (its name)" },
	{ "--events", "FILE", OPTION_TEXT, &given.events,
			.help = "write the job's events as JSON, one object per line" },
	{ "--json", NULL, OPTION_FLAG, &given.json,
			.help = "print events and the workers' lines as JSON, one object\nper line" },
	{ "--quiet", NULL, OPTION_FLAG, &given.quiet,
			.help = "hide the progress and the output of launchers" },
	{ "--agent", "ADDRESS", OPTION_TEXT, &given.agent,
			.help = "run as the agent of one worker (choir run starts agents)" },
	{ "--attempt", "N", OPTION_INTEGER, &given.attempt, .help = "number of the agent's attempt",
			.min = 1, .max = 1000000 },
	{ "--worker", "I", OPTION_INTEGER, &given.worker,
			.help = "number of the agent's worker (the launcher's rank)", .min = 0, .max = 4095 },
};
static const command self = {
	.name = "choir run",
	.operands = "[options] -- PROGRAM [ARGUMENTS]",
	.max_operands = MAX_WORDS,
	.about = "Runs a program as several workers and starts them again after failures.\n\n"
			 "It prints each line of a worker with the worker's number in front. If a worker\n"
			 "fails, it prints the worker's step and collective. A restarted program continues\n"
			 "from its last checkpoint, if it saves checkpoints. The job succeeds if each worker\n"
			 "leaves its cluster without a failure and exits with status 0. choir status shows a\n"
			 "running job. SIGTERM, SIGINT and SIGHUP ask the workers to save and stop; a second\n"
			 "signal kills them.\n\n"
			 "Exit status: 0 success; 75 stopped by a signal, after the workers have saved;\n"
			 "128 + N stopped by signal N, before the workers have saved; 1 failure; 2 wrong use.",
	.examples = { "choir run -n 4 --restarts 3 -- choir train --data digits --checkpoint run",
			"choir run -n 4 --hosts a:2,b:2 --mpi openmpi -- ./program" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

// A handler may only set a word, so each mode has its own.
static choir_supervisor *volatile running;
static volatile int agent_signal;

static void stop_job(int number)
{
	choir_supervisor_stop(running, number);
}

static void stop_program(int number)
{
	agent_signal = number;
}

static void catch_signals(void (*handler)(int number))
{
	catch_stop_signals(handler, SA_RESTART);
	(void) signal(SIGPIPE, SIG_IGN); // a closed output is an error of output_whole
}

static FILE *events;

static void print_json(choir_supervisor_kind kind, int worker, const char *line)
{
	static const char *const names[] = { [CHOIR_SUPERVISOR_OUTPUT] = "output",
		[CHOIR_SUPERVISOR_ERROR] = "error",
		[CHOIR_SUPERVISOR_LAUNCHER] = "launcher",
		[CHOIR_SUPERVISOR_NOTE] = "note",
		[CHOIR_SUPERVISOR_PROGRESS] = "progress" };
	if (kind == CHOIR_SUPERVISOR_EVENT) {
		puts(line);
	} else {
		json_begin_event(names[kind]);
		if (worker >= 0)
			json_integer("worker", worker);
		json_text("text", line);
		json_end();
	}
	fflush(stdout);
}

static void print_line(choir_supervisor_kind kind, int worker, const char *line, void *user)
{
	(void) user;
	if (kind == CHOIR_SUPERVISOR_EVENT && events != NULL)
		fprintf(events, "%s\n", line);
	if (given.json)
		print_json(kind, worker, line);
	if (given.json || kind == CHOIR_SUPERVISOR_EVENT)
		return;
	if (given.quiet && (kind == CHOIR_SUPERVISOR_LAUNCHER || kind == CHOIR_SUPERVISOR_PROGRESS))
		return;
	if (kind == CHOIR_SUPERVISOR_PROGRESS) {
		progress("%s", line);
		return;
	}
	progress_clear();
	fflush(stdout);
	FILE *to = kind == CHOIR_SUPERVISOR_OUTPUT ? stdout : stderr;
	if (kind == CHOIR_SUPERVISOR_NOTE)
		fprintf(to, "choir run: %s\n", line);
	else if (kind == CHOIR_SUPERVISOR_LAUNCHER)
		fprintf(to, "[launcher] %s\n", line);
	else
		fprintf(to, "[%d] %s\n", worker, line);
	fflush(to);
}

static choir_status open_events(void)
{
	if (given.events == NULL)
		return CHOIR_OK;
	events = fopen(given.events, "we");
	if (events == NULL)
		return choir_fail(CHOIR_IO, "--events %s: %s", given.events, strerror(errno));
	setvbuf(events, NULL, _IOLBF, BUFSIZ);
	return CHOIR_OK;
}

static bool close_events(void)
{
	if (events == NULL)
		return true;
	const bool whole = !ferror(events) && fclose(events) == 0;
	if (!whole)
		choir_fail(CHOIR_IO, "--events %s: write failed; the file is incomplete", given.events);
	return whole;
}

static int run_agent(const char *const *program)
{
	catch_signals(stop_program);
	const choir_status status = choir_agent_run(CHOIR_OPTIONS(choir_agent_options,
			.address = given.agent, .attempt = (int) given.attempt, .worker = (int) given.worker,
			.lost_after = given.lost_after, .program = program, .signal = &agent_signal));
	return status == CHOIR_OK ? EXIT_OK : failed(&self);
}

static int exit_code(choir_status status)
{
	const int number = choir_supervisor_unsaved(running);
	if (status == CHOIR_OK)
		return EXIT_OK;
	if (status == CHOIR_CANCELLED)
		return number == 0 ? EXIT_STOPPED : OUTSIDE + number;
	return EXIT_FAILED;
}

// A signal that comes later has nothing to stop.
static void end_supervisor(void)
{
	choir_supervisor *s = running;
	running = NULL;
	choir_supervisor_free(s);
}

static int run_job(const char *const *program)
{
	static char own[PATH];
	const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
	if (length <= 0) {
		choir_fail(CHOIR_IO, "/proc/self/exe: %s", strerror(errno));
		return failed(&self);
	}
	running = choir_supervisor_new(CHOIR_OPTIONS(choir_supervisor_options,
			.workers = (int) given.workers, .min_workers = (int) given.min_workers,
			.restarts = (int) given.restarts, .hosts = given.hosts, .mpi = given.mpi,
			.program = program, .agent = own, .launcher = given.launcher, .address = given.address,
			.lost_after = given.lost_after, .start_timeout = given.start_timeout,
			.stall = given.stall, .stop_timeout = given.stop_timeout, .report = line_queue_add,
			.servers = (int) given.servers));
	if (running == NULL || open_events() != CHOIR_OK) {
		choir_supervisor_free(running);
		return failed(&self);
	}
	(void) line_queue_begin(print_line);
	catch_signals(stop_job);
	int code = exit_code(choir_supervisor_run(running));
	end_supervisor();
	catch_signals(SIG_DFL); // the reader of the last lines may pause
	line_queue_end();
	progress_clear();
	if (!close_events()) {
		(void) failed(&self);
		code = code == EXIT_OK ? EXIT_FAILED : code;
	}
	return code;
}

int run_main(int argc, char **argv)
{
	static const char *program[MAX_WORDS + 1];
	options_read(&self, argc, argv, program);
	if (given.min_workers > given.workers)
		return wrong_use(&self, "--min %lld: wrong value; needs at most -n %lld",
				(long long) given.min_workers, (long long) given.workers);
	return given.agent != NULL ? run_agent(program) : run_job(program);
}
