// Processes start with the descriptors and variables that they are given, end as they are told to,
// and leave nothing.
#include "base/process.h"

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/descriptor_watch.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const chi_process_options standard = { .in = -1, .out = -1, .err = -1, .keep = -1 };

static chi_process_end wait_for(chi_process *p)
{
	chi_process_end end = { 0 };
	const double until = chi_clock_deadline(20);
	while (!chi_process_has_ended(p, &end)) {
		assert_true(chi_clock_now() < until);
		chi_thread_nap(0.002);
	}
	assert_int_equal(p->pid, 0);
	assert_false(chi_process_has_ended(p, &end));
	return end;
}

static chi_process start(const char *script)
{
	const char *const words[] = { "sh", "-c", script, NULL };
	chi_process_options o = standard;
	chi_process p;
	o.arguments = words;
	assert_int_equal(chi_process_start(&p, &o), CHOIR_OK);
	return p;
}

static size_t read_all(int fd, char *to, size_t size)
{
	size_t at = 0, got = 0;
	bool ended = false;
	while (!ended) {
		assert_int_equal(chi_pipe_read(fd, to + at, size - 1 - at, &got, &ended), CHOIR_OK);
		at += got;
		if (got == 0)
			chi_thread_nap(0.001);
	}
	to[at] = '\0';
	return at;
}

TEST(the_end_is_told)
{
	char text[64];
	chi_process p = start("exit 3");
	chi_process_end end = wait_for(&p);
	assert_string_equal(chi_process_end_text(&end, text, sizeof text), "exited with status 3");
	p = start("kill -SEGV $$");
	end = wait_for(&p);
	assert_true(end.by_signal);
	assert_string_equal(chi_process_end_text(&end, text, sizeof text), "killed by SIGSEGV");
	end = (chi_process_end){ .by_signal = true, .number = 63 };
	assert_string_equal(chi_process_end_text(&end, text, sizeof text), "killed by signal 63");
}

TEST(descriptors_and_variables_arrive)
{
	char said[200];
	int out, out_end;
	const char *const words[] = { "sh", "-c", "echo $ONE-$HOME; cat; echo bad >&2", NULL };
	const char *const variables[] = { "ONE=1", "HOME=/nowhere", NULL };
	chi_process p;
	assert_int_equal(chi_pipe_open(&out, &out_end), CHOIR_OK);
	chi_process_options o = standard;
	o.arguments = words;
	o.environment = variables;
	o.out = o.err = out_end;
	assert_int_equal(chi_process_start(&p, &o), CHOIR_OK);
	chi_pipe_close(&out_end);
	read_all(out, said, sizeof said);
	assert_string_equal(said, "1-/nowhere\nbad\n");
	chi_pipe_close(&out);
	chi_pipe_close(&out);
	assert_int_equal(wait_for(&p).number, 0);
}

TEST(a_program_that_is_not_there_is_named)
{
	chi_process p;
	const char *const words[] = { "no-such-program", NULL };
	const char *const directory[] = { "/", NULL };
	char path[256];
	chi_process_options o = standard;
	o.arguments = words;
	assert_int_equal(chi_process_start(&p, &o), CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "no-such-program");
	const char *const script[] = { path, NULL };
	snprintf(path, sizeof path, "/tmp/choir_process_%ld", (long) getpid());
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs("#!/no/such/interpreter\n", f) >= 0 && fchmod(fileno(f), 0700) == 0);
	assert_int_equal(fclose(f), 0);
	o.arguments = script;
	assert_int_equal(chi_process_start(&p, &o), CHOIR_NOT_FOUND);
	assert_text_holds(choir_error(), "choir_process_*interpreter");
	assert_int_equal(unlink(path), 0);
	o.arguments = directory;
	assert_int_equal(chi_process_start(&p, &o), CHOIR_IO);
	assert_int_equal(p.pid, 0);
	chi_process_signal(&p, SIGKILL); // to nobody
	assert_false(chi_process_find("no-such-program", path, sizeof path));
	assert_true(chi_process_find("sh", path, sizeof path));
	assert_true(chi_process_find("/bin/sh", path, sizeof path));
	assert_false(chi_process_find("sh", path, 3));
	chi_alloc_fail(1, false);
	assert_int_equal(chi_process_start(&p, &o), CHOIR_NO_MEMORY);
	chi_alloc_fail(0, false);
}

TEST(signals_reach_the_process_or_its_group)
{
	chi_process p = start("sleep 1000");
	chi_process_signal(&p, SIGTERM);
	assert_int_equal(wait_for(&p).number, SIGTERM);
	p = start("sleep 1000 & wait");
	chi_process_signal_group(&p, SIGKILL);
	assert_int_equal(wait_for(&p).number, SIGKILL);
}

// Descendants in sessions of their own, whose parents have ended, are adopted.
TEST(no_descendant_is_left)
{
	const char *const words[] = { "sh", "-c",
		"setsid sh -c 'echo a; exec sleep 1000' &"
		"setsid sh -c 'sleep 1000 & echo b; exec sleep 1000' & exit 0",
		NULL };
	char said[8] = "";
	size_t at = 0, got = 0;
	bool ended = false;
	int out, out_end, killed = 0;
	chi_process p, other = start("exec sleep 1000");
	const long except[] = { other.pid };
	chi_process_options o = standard;
	chi_process_adopt_orphans();
	assert_int_equal(chi_pipe_open(&out, &out_end), CHOIR_OK);
	o.arguments = words;
	o.out = out_end;
	assert_int_equal(chi_process_start(&p, &o), CHOIR_OK);
	chi_pipe_close(&out_end);
	while (at < 4) { // until all three are there
		assert_int_equal(chi_pipe_read(out, said + at, 4 - at, &got, &ended), CHOIR_OK);
		at += got;
		chi_thread_nap(0.001);
	}
	assert_int_equal(wait_for(&p).number, 0);
	const double until = chi_clock_deadline(20);
	for (int now = 1; now > 0; chi_thread_nap(0.002)) {
		assert_true(chi_clock_now() < until);
		now = chi_process_kill_descendants(except, 1);
		chi_process_reap_orphans(except, 1);
		killed += now;
	}
	assert_true(killed >= 3);
	read_all(out, said, sizeof said); // nobody has it any more
	chi_pipe_close(&out);
	chi_process_end end;
	assert_false(chi_process_has_ended(&other, &end));
	assert_true(chi_process_kill_descendants(NULL, 0) >= 1);
	assert_int_equal(wait_for(&other).number, SIGKILL);
	assert_int_equal(chi_process_kill_descendants(NULL, 0), 0);
}

static void wake(void *user)
{
	chi_atomic32_add(user, 1);
}

static void need_wakes(chi_atomic32 *woken, uint32_t n)
{
	const double until = chi_clock_deadline(20);
	while (chi_atomic32_load(woken) < n) {
		assert_true(chi_clock_now() < until);
		chi_thread_nap(0.001);
	}
}

TEST(a_watch_wakes_once_for_each_turn)
{
	chi_atomic32 woken = { 0 };
	int out, out_end;
	size_t got;
	char byte;
	bool ended;
	chi_watch *w = chi_watch_new(wake, &woken);
	assert_non_null(w);
	assert_int_equal(chi_pipe_open(&out, &out_end), CHOIR_OK);
	const int fds[] = { -1, out };
	for (uint32_t turn = 1; turn < 300; turn++) {
		chi_watch_set(w, fds, 2);
		assert_int_equal(chi_pipe_write(out_end, "x", 1), CHOIR_OK);
		need_wakes(&woken, turn);
		assert_int_equal(chi_pipe_read(out, &byte, 1, &got, &ended), CHOIR_OK);
		assert_int_equal(got, 1);
	}
	chi_watch_set(w, fds, 2); // nothing comes, and the next turn still does
	chi_watch_set(w, fds, 2);
	assert_int_equal(chi_pipe_write(out_end, "x", 1), CHOIR_OK);
	need_wakes(&woken, 300);
	chi_thread_nap(0.02);
	assert_int_equal(chi_atomic32_load(&woken), 300);
	chi_pipe_close(&out_end);
	chi_watch_set(w, fds, 2); // an end counts, too
	need_wakes(&woken, 301);
	chi_watch_set(w, NULL, 0);
	chi_watch_free(w);
	chi_watch_free(NULL);
	chi_pipe_close(&out);
	chi_alloc_fail(1, false);
	assert_null(chi_watch_new(wake, &woken));
	chi_alloc_fail(0, false);
}

TEST(a_process_ends_a_watch)
{
	chi_atomic32 woken = { 0 };
	chi_watch *w = chi_watch_new(wake, &woken);
	chi_process p = start("exec sleep 1000");
	if (p.watch >= 0) { // the kernel has no such descriptor in some containers
		chi_watch_set(w, &p.watch, 1);
		chi_process_signal(&p, SIGKILL);
		need_wakes(&woken, 1);
	}
	chi_process_signal(&p, SIGKILL);
	chi_watch_free(w);
	wait_for(&p);
}
