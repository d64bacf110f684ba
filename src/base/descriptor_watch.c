// A byte in a pipe ends the thread's poll.
#include "base/descriptor_watch.h"

#include "base/alloc.h"
#include "base/gate.h"
#include "base/text.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <unistd.h>

choir_status chi_pipe_open(int *read_end, int *write_end)
{
	char text[96];
	int ends[2];
	*read_end = *write_end = -1;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return choir_fail(CHOIR_IO, "pipe: %s", chi_text_errno(errno, text, sizeof text));
	(void) fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*read_end = ends[0];
	*write_end = ends[1];
	return CHOIR_OK;
}

void chi_pipe_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

choir_status chi_pipe_write(int fd, const void *from, size_t bytes)
{
	return write(fd, from, bytes) == (ssize_t) bytes ? CHOIR_OK
													 : choir_fail(CHOIR_IO, "pipe: it is full");
}

choir_status chi_pipe_read(int fd, void *to, size_t bytes, size_t *got, bool *ended)
{
	char text[96];
	*got = 0;
	*ended = false;
	const ssize_t n = read(fd, to, bytes);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return CHOIR_OK;
	if (n < 0)
		return choir_fail(CHOIR_IO, "pipe: %s", chi_text_errno(errno, text, sizeof text));
	*got = (size_t) n;
	*ended = n == 0;
	return CHOIR_OK;
}

// The thread polls only while armed.
struct chi_watch {
	chi_thread thread;
	void (*wake)(void *user);
	void *user;
	int interrupt[2];
	chi_gate armed; // odd: the thread polls
	chi_gate idle; // 1: the thread does not look at fds
	chi_atomic32 ends;
	int n;
	struct pollfd fds[CHI_WATCHED + 1];
};

static void drain(int fd)
{
	char bytes[64];
	while (read(fd, bytes, sizeof bytes) > 0)
		;
}

static void watch(void *arg)
{
	chi_watch *w = arg;
	while (chi_atomic32_load(&w->ends) == 0) {
		const uint32_t turn = chi_atomic32_load(&w->armed.word);
		if (turn % 2 == 0) {
			chi_gate_open(&w->idle, 1);
			(void) chi_gate_wait(&w->armed, turn, false, HUGE_VAL);
			continue;
		}
		(void) poll(w->fds, (nfds_t) w->n + 1, -1);
		const bool stopped = w->fds[0].revents != 0;
		if (stopped)
			drain(w->interrupt[0]);
		if (chi_atomic32_change(&w->armed.word, turn, turn + 1) && !stopped)
			w->wake(w->user);
	}
	chi_gate_open(&w->idle, 1);
}

chi_watch *chi_watch_new(void (*wake)(void *user), void *user)
{
	chi_watch *w = chi_alloc(sizeof *w);
	if (w == NULL)
		return NULL;
	w->wake = wake;
	w->user = user;
	if (chi_pipe_open(&w->interrupt[0], &w->interrupt[1]) != CHOIR_OK) {
		chi_free(w);
		return NULL;
	}
	(void) fcntl(w->interrupt[1], F_SETFL, O_NONBLOCK);
	w->fds[0] = (struct pollfd){ .fd = w->interrupt[0], .events = POLLIN };
	if (chi_thread_start(&w->thread, "choir watch", watch, w) != CHOIR_OK) {
		chi_pipe_close(&w->interrupt[0]);
		chi_pipe_close(&w->interrupt[1]);
		chi_free(w);
		return NULL;
	}
	return w;
}

// Afterwards the thread does not look at descriptors.
static void disarm(chi_watch *w)
{
	const uint32_t turn = chi_atomic32_load(&w->armed.word);
	if (turn % 2 == 1 && write(w->interrupt[1], "", 1) < 0 && errno != EAGAIN)
		return;
	while (chi_atomic32_load(&w->idle.word) == 0)
		(void) chi_gate_wait(&w->idle, 0, false, HUGE_VAL);
	drain(w->interrupt[0]); // the poll may have ended before the byte
}

void chi_watch_set(chi_watch *w, const int fds[], int n)
{
	disarm(w);
	w->n = 0;
	for (int i = 0; i < n && w->n < CHI_WATCHED; i++)
		if (fds[i] >= 0)
			w->fds[++w->n] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	chi_atomic32_store(&w->idle.word, 0);
	chi_atomic32_add(&w->armed.word, 1);
	chi_gate_wake(&w->armed);
}

void chi_watch_free(chi_watch *w)
{
	if (w == NULL)
		return;
	disarm(w);
	chi_atomic32_store(&w->ends, 1);
	chi_atomic32_add(&w->armed.word, 2);
	chi_gate_wake(&w->armed);
	chi_thread_join(&w->thread);
	chi_pipe_close(&w->interrupt[0]);
	chi_pipe_close(&w->interrupt[1]);
	chi_free(w);
}
