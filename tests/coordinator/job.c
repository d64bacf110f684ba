// Processes of a job.
#include "coordinator/job.h"

#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void job_open(job *j, int servers, bool tcp)
{
	static int jobs;
	strcpy(j->folder, "/tmp/choir_job_XXXXXX");
	assert_non_null(mkdtemp(j->folder));
	j->servers = servers;
	snprintf(j->key, sizeof j->key, "%s/key", j->folder);
	assert_int_equal(choir_task_make_key(j->key), CHOIR_OK);
	if (tcp)
		snprintf(j->address, sizeof j->address, "127.0.0.1:%d",
				20000 + (getpid() * 13 + jobs++) % 12000);
	else
		snprintf(j->address, sizeof j->address, "unix:%s/c", j->folder);
}

choir_task *job_task(const job *j, const char *type, int index)
{
	char ps[128];
	if (j->address[0] == 'u')
		snprintf(ps, sizeof ps, "unix:%s/ps%d", j->folder, index);
	else
		snprintf(ps, sizeof ps, "127.0.0.1:0");
	return choir_task_new(CHOIR_OPTIONS(choir_task_options, .type = type, .index = index,
			.address = j->address, .ps_address = ps, .servers = j->servers, .key_file = j->key,
			.start_timeout = j->patience > 0 ? j->patience : 8, .heartbeat = 0.1,
			.lost_after = j->lost_after));
}

// In the child.
static int serve(const job *j, const char *type, int index, const char *other)
{
	choir_coordinator_options o = *j->options;
	o.program = other != NULL ? other : o.program;
	choir_task *t = job_task(j, type, index);
	const choir_status status =
			t == NULL ? choir_error_status() : choir_task_serve(t, j->strategy, &o);
	if (status != CHOIR_OK && getenv("CHOIR_TEST_SHOW") != NULL)
		fprintf(stderr, "%s %d: %s\n", type, index, choir_error());
	choir_task_free(t);
	return (int) status;
}

int job_start(job *j, const char *type, int index, const char *other)
{
	assert_true(j->n < JOB_PROCESSES);
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(60);
		_exit(serve(j, type, index, other));
	}
	j->pid[j->n] = pid;
	return j->n++;
}

int job_wait(job *j, int process)
{
	int status;
	for (int i = 0; i < 1000; i++) {
		const pid_t pid = waitpid(j->pid[process], &status, WNOHANG);
		if (pid == j->pid[process]) {
			j->pid[process] = 0;
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		}
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	fail_msg("process %d goes on", process);
	return -1;
}

void job_wait_for_all(job *j)
{
	for (int i = 0; i < j->n; i++)
		if (j->pid[i] != 0)
			assert_int_equal(job_wait(j, i), CHOIR_OK);
}

choir_status job_schedule(choir_strategy *s, choir_coordinator *c, const char *name, double number,
		choir_remote_value **value)
{
	choir_values *args = choir_values_new(s);
	assert_int_equal(
			choir_values_set(args, "number",
					choir_tensor_as_value(choir_number(choir_values_frame(args), number))),
			CHOIR_OK);
	const choir_status status = choir_coordinator_schedule(c, name, args, value);
	choir_values_free(args);
	return status;
}

void job_coordinate(const job *j, choir_task **task, choir_strategy **s, choir_coordinator **c)
{
	*task = job_task(j, "coordinator", 0);
	assert_non_null(*task);
	*s = choir_parameter_server_strategy_new(j->strategy);
	*c = choir_coordinator_new(*s, *task, j->options);
	if (*c == NULL)
		fail_msg("%s", choir_error());
}

void job_close(job *j)
{
	char path[128];
	for (int i = 0; i < j->n; i++)
		if (j->pid[i] != 0) {
			kill(j->pid[i], SIGKILL);
			waitpid(j->pid[i], NULL, 0);
		}
	unlink(j->key);
	snprintf(path, sizeof path, "%s/c", j->folder);
	unlink(path);
	for (int i = 0; i < j->servers; i++) {
		snprintf(path, sizeof path, "%s/ps%d", j->folder, i);
		unlink(path);
	}
	assert_int_equal(rmdir(j->folder), 0);
}

void job_end(job *j, choir_task *task, choir_strategy *s, choir_coordinator *c)
{
	choir_coordinator_free(c);
	job_wait_for_all(j);
	choir_strategy_free(s);
	choir_task_free(task);
	job_close(j);
}
