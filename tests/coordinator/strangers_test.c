// Strangers at every port: who connects and leaves, says nothing, sends half a frame or random
// bytes gets nothing, and all go on.
#include "choir/device.h"
#include "choir/serve.h"

#include "coordinator/coordinator.h"
#include "coordinator/job.h"
#include "supervisor/supervisor.h"
#include "test.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SILENT = 24, TEXT = 128, BLOCK = 1 << 18, ALL = 10 << 20 }; // SILENT: more than a hub takes

// ---- Strangers

static int dial(const char *address)
{
	struct sockaddr_un path = { .sun_family = AF_UNIX };
	struct sockaddr_in host = { .sin_family = AF_INET };
	const bool local = strncmp(address, "unix:", 5) == 0;
	const struct timeval limit = { .tv_sec = 10 };
	if (local) {
		snprintf(path.sun_path, sizeof path.sun_path, "%s", address + 5);
	} else {
		host.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		host.sin_port = htons((uint16_t) atoi(strrchr(address, ':') + 1));
	}
	const int fd = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	const struct sockaddr *to =
			local ? (const struct sockaddr *) &path : (const struct sockaddr *) &host;
	if (connect(fd, to, local ? sizeof path : sizeof host) != 0)
		fail_msg("%s: nobody listens", address);
	return fd;
}

static void send_random(const char *address)
{
	static uint32_t words[BLOCK / 4];
	uint32_t state = 7;
	for (size_t i = 0; i < BLOCK / 4; i++)
		words[i] = state = state * 1664525u + 1013904223u;
	for (size_t sent = 0; sent < ALL;) {
		const int fd = dial(address);
		for (ssize_t once = 1; once > 0 && sent < ALL; sent += BLOCK)
			once = send(fd, words, BLOCK, MSG_NOSIGNAL); // the other end may hang up
		close(fd);
	}
}

static void annoy(const char *address)
{
	static const unsigned char half[] = { 0x01, 0xc4, 1, 0, 1, 0, 0, 0 }; // of a frame's header
	int silent[SILENT];
	for (int i = 0; i < SILENT; i++)
		close(dial(address));
	for (int i = 0; i < SILENT; i++)
		silent[i] = dial(address);
	for (int i = 0; i < SILENT; i++) {
		if (i % 2 == 0)
			(void) !send(silent[i], half, sizeof half, MSG_NOSIGNAL);
		close(silent[i]);
	}
	send_random(address);
}

// ---- Processes

static choir_status nothing(choir_closure *c, void *user)
{
	(void) c, (void) user;
	return CHOIR_OK;
}

static choir_status build(choir_strategy *s, void *user)
{
	(void) s, (void) user;
	return CHOIR_OK;
}

// Runs fn in a process and gives the text that it writes.
static pid_t start(void (*fn)(const job *j, int out), const job *j, char text[TEXT])
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(60);
		fn(j, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	memset(text, 0, TEXT);
	assert_true(read(ends[0], text, TEXT - 1) > 0);
	close(ends[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void serve_devices(const job *j, int out)
{
	choir_server *s = choir_server_new(CHOIR_OPTIONS(choir_server_options,
			.address = "127.0.0.1:0", .devices = "cpu:0", .key_file = j->key));
	if (s == NULL || write(out, choir_server_address(s), strlen(choir_server_address(s))) < 1)
		_exit(1);
	_exit(choir_server_run(s) == CHOIR_OK ? 0 : 1);
}

// Waits for agents that never come. Writes its address and its job, with a space between.
static void supervise(const job *j, int out)
{
	char launcher[TEXT], text[TEXT];
	static const char *const program[] = { "true", NULL };
	snprintf(launcher, sizeof launcher, "%s/launcher", j->folder);
	choir_supervisor *s = choir_supervisor_new(CHOIR_OPTIONS(choir_supervisor_options,
			.program = program, .agent = "true", .hosts = "a,b", .address = "127.0.0.1",
			.workers = 2, .mpi = "none", .launcher = launcher));
	if (s == NULL)
		_exit(1);
	const int n = snprintf(text, sizeof text, "%s %s", s->address, choir_supervisor_job(s));
	if (write(out, text, (size_t) n) != n)
		_exit(1);
	(void) !choir_supervisor_run(s);
}

static void make_launcher(const job *j, char path[TEXT])
{
	snprintf(path, TEXT, "%s/launcher", j->folder);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("#!/bin/sh\nexec sleep 4\n", f);
	fclose(f);
	assert_int_equal(chmod(path, 0700), 0);
}

static void count_lines(choir_supervisor_kind kind, int worker, const char *line, void *user)
{
	(void) kind, (void) worker, (void) line;
	++*(int *) user;
}

// spec: 2.16
TEST(strangers_at_every_port_change_nothing)
{
	static const choir_function functions[] = { { "nothing", nothing, NULL },
		{ NULL, NULL, NULL } };
	const choir_coordinator_options options = {
		.size = sizeof options, .functions = functions, .build = build, .program = "strangers"
	};
	char devices[TEXT], supervised[TEXT], launcher[TEXT], name[2 * TEXT];
	job j = { .options = &options };
	job_open(&j, 1, true);
	make_launcher(&j, launcher);
	job_start(&j, "ps", 0, NULL);
	job_start(&j, "worker", 0, NULL);
	const pid_t server = start(serve_devices, &j, devices);
	const pid_t supervisor = start(supervise, &j, supervised);
	char *number = strchr(supervised, ' ');
	*number++ = '\0';
	choir_task *task = job_task(&j, "coordinator", 0);
	choir_strategy *s = choir_parameter_server_strategy_new(NULL);
	choir_coordinator *c = choir_coordinator_new(s, task, &options);
	if (c == NULL)
		fail_msg("%s", choir_error());
	annoy(j.address);
	annoy(c->dispatch.server[0]->handshake.peer.address);
	annoy(devices);
	annoy(supervised);
	// Members go on, and others can join.
	assert_int_equal(choir_coordinator_schedule(c, "nothing", NULL, NULL), CHOIR_OK);
	assert_int_equal(choir_coordinator_join(c), CHOIR_OK);
	job_start(&j, "worker", 0, NULL);
	for (int i = 0; choir_coordinator_workers(c) < 2 && i < 5000; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(choir_coordinator_workers(c), 2);
	setenv("CHOIR_KEY_FILE", j.key, 1);
	snprintf(name, sizeof name, "remote:%s/cpu:0", devices);
	if (choir_device_find(name) == NULL)
		fail_msg("%s", choir_error());
	int lines = 0;
	assert_int_equal(choir_supervisor_show(number, false, count_lines, &lines), CHOIR_OK);
	assert_true(lines > 0);
	choir_coordinator_free(c);
	for (int i = 0; i < j.n; i++)
		assert_int_equal(job_wait(&j, i), CHOIR_OK);
	choir_strategy_free(s);
	choir_task_free(task);
	end(server);
	end(supervisor);
	unlink(launcher);
	job_close(&j);
}
