// Servers as threads and as processes. They have a Unix socket each, so they need no key.
#include "serve/servers.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 160, KEPT = 32 };

static struct {
	char folder[64];
	choir_server *server[SERVERS];
	chi_thread thread[SERVERS];
	char kept[KEPT][2 * NAME];
	int next, forked;
} all;

static void run(void *server)
{
	if (choir_server_run(server) != CHOIR_OK)
		fail_msg("%s", choir_error());
}

static void make_folder(void)
{
	const char *tmp = getenv("TMPDIR");
	if (all.folder[0] != '\0')
		return;
	snprintf(all.folder, sizeof all.folder, "%s/serveXXXXXX", tmp == NULL ? "/tmp" : tmp);
	assert_non_null(mkdtemp(all.folder));
}

void servers_start(void)
{
	make_folder();
	for (int i = 0; i < SERVERS && all.server[i] == NULL; i++) {
		char address[NAME];
		snprintf(address, sizeof address, "unix:%s/%d", all.folder, i);
		all.server[i] = choir_server_new(
				CHOIR_OPTIONS(choir_server_options, .address = address, .devices = "cpu:0,cpu:1"));
		if (all.server[i] == NULL)
			fail_msg("%s", choir_error());
		assert_int_equal(chi_thread_start(&all.thread[i], "server", run, all.server[i]), CHOIR_OK);
	}
}

void servers_stop(void)
{
	for (int i = 0; i < SERVERS; i++) {
		choir_server_stop(all.server[i]);
		chi_thread_join(&all.thread[i]);
		choir_server_free(all.server[i]);
		all.server[i] = NULL;
	}
	for (int i = 0; i < all.forked; i++) { // killed processes leave their sockets
		char path[NAME];
		snprintf(path, sizeof path, "%s/forked%d", all.folder, i);
		unlink(path);
	}
	if (all.folder[0] != '\0')
		rmdir(all.folder);
	all.folder[0] = '\0';
}

const char *servers_device(int server, int device)
{
	char *name = all.kept[all.next++ % KEPT];
	snprintf(name, NAME, "remote:%s/cpu:%d", choir_server_address(all.server[server]), device);
	return name;
}

const char *servers_pair(int server, int device, int other_server, int other_device)
{
	char pair[2 * NAME];
	snprintf(pair, sizeof pair, "remote:%s/cpu:%d,remote:%s/cpu:%d",
			choir_server_address(all.server[server]), device,
			choir_server_address(all.server[other_server]), other_device);
	return strcpy(all.kept[all.next++ % KEPT], pair);
}

chi_stream *servers_stream(const char *device)
{
	choir_device *d = choir_device_find(device);
	chi_stream *s = d == NULL ? NULL : chi_stream_new(d);
	if (s == NULL)
		fail_msg("%s", choir_error());
	return s;
}

void *servers_allocate(const chi_stream *s, size_t bytes)
{
	void *memory;
	assert_int_equal(chi_device_allocate(s->device, bytes, &memory), CHOIR_OK);
	return memory;
}

static pid_t start(const char **address, uint64_t memory, uint64_t failing, double late)
{
	static char kept[100];
	char ready = 0;
	int ends[2];
	make_folder();
	snprintf(kept, sizeof kept, "unix:%s/forked%d", all.folder, all.forked++);
	*address = kept;
	assert_int_equal(pipe(ends), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		alarm(60); // also where the test has failed
		chi_thread_nap(late);
		choir_server *s = choir_server_new(CHOIR_OPTIONS(choir_server_options, .address = kept,
				.devices = "cpu:0,cpu:1", .memory = memory));
		if (s == NULL || write(ends[1], "r", 1) != 1)
			_exit(1);
		if (failing > 0)
			chi_alloc_fail(failing, false);
		_exit(choir_server_run(s) == CHOIR_OK ? 0 : 1);
	}
	close(ends[1]);
	if (late == 0)
		assert_int_equal(read(ends[0], &ready, 1), 1);
	close(ends[0]);
	return pid;
}

pid_t servers_fork(const char **address, uint64_t memory)
{
	return start(address, memory, 0, 0);
}

pid_t servers_fork_failing(const char **address, uint64_t n)
{
	return start(address, 0, n, 0);
}

pid_t servers_fork_late(const char **address)
{
	return start(address, 0, 0, 0.3);
}
