// A fork's child only makes system calls, since other threads may hold any lock. It reports
// failures by a pipe that closes when its program begins.
#include "base/process.h"

#include "base/alloc.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

const char *chi_process_end_text(const chi_process_end *end, char *out, size_t size)
{
	const char *name = end->by_signal ? sigabbrev_np(end->number) : NULL;
	if (name != NULL)
		snprintf(out, size, "killed by SIG%s", name);
	else if (end->by_signal)
		snprintf(out, size, "killed by signal %d", end->number);
	else
		snprintf(out, size, "exited with status %d", end->number);
	return out;
}

bool chi_process_find(const char *name, char *path, size_t size)
{
	const char *next = strchr(name, '/') != NULL ? "" : getenv("PATH");
	for (const char *directory = next; directory != NULL; directory = next) {
		const size_t length = strcspn(directory, ":");
		next = directory[length] == ':' ? directory + length + 1 : NULL;
		const int n = snprintf(
				path, size, "%.*s%s%s", (int) length, directory, length > 0 ? "/" : "", name);
		if (n > 0 && (size_t) n < size && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static bool move_descriptor(int from, int to)
{
	const int fd = from >= 0 ? from : open("/dev/null", O_RDWR);
	return fd >= 0 && (fd == to ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, to) == to);
}

// In the child. Signals act as in a new program.
static void become(const chi_process_options *o, char **environment, long parent)
{
	struct sigaction standard = { .sa_handler = SIG_DFL };
	sigset_t none;
	sigemptyset(&standard.sa_mask);
	for (int i = 1; i < NSIG; i++)
		(void) sigaction(i, &standard, NULL);
	sigemptyset(&none);
	(void) sigprocmask(SIG_SETMASK, &none, NULL);
	(void) setsid(); // detaches from the terminal
	if (o->with_parent != 0) {
		(void) prctl(PR_SET_PDEATHSIG, o->with_parent);
		if (getppid() != parent)
			return;
	}
	if (!move_descriptor(o->in, 0) || !move_descriptor(o->out, 1) || !move_descriptor(o->err, 2))
		return;
	if (o->keep >= 0 && fcntl(o->keep, F_SETFD, 0) != 0)
		return;
	execvpe(o->arguments[0], (char *const *) (uintptr_t) o->arguments, environment);
}

static char **join_environment(const char *const *more)
{
	size_t n = 0, added = 0;
	while (environ != NULL && environ[n] != NULL)
		n++;
	while (more != NULL && more[added] != NULL)
		added++;
	char **all = chi_alloc_array(n + added + 1, sizeof *all);
	size_t at = 0;
	for (size_t i = 0; all != NULL && i < n; i++) {
		bool replaced = false;
		for (size_t k = 0; k < added && !replaced; k++)
			replaced = strncmp(environ[i], more[k], strcspn(more[k], "=") + 1) == 0;
		if (!replaced)
			all[at++] = environ[i];
	}
	for (size_t k = 0; all != NULL && k < added; k++)
		all[at++] = (char *) (uintptr_t) more[k];
	return all;
}

// The child replaces descriptors 0 to 2: others must be above.
static choir_status start(chi_process *p, const chi_process_options *o, char **environment)
{
	char text[96];
	int report[2], refused = 0;
	if (pipe2(report, O_CLOEXEC) != 0)
		return choir_fail(CHOIR_IO, "start: a pipe: %s", chi_text_errno(errno, text, sizeof text));
	const long parent = (long) getpid();
	const pid_t pid = fork();
	if (pid == 0) {
		become(o, environment, parent);
		refused = errno == 0 ? EIO : errno;
		const ssize_t written = write(report[1], &refused, sizeof refused);
		_exit(written == (ssize_t) sizeof refused ? 126 : 127);
	}
	const int no_process = errno;
	close(report[1]);
	ssize_t got = -1;
	while (pid > 0 && (got = read(report[0], &refused, sizeof refused)) < 0 && errno == EINTR)
		;
	close(report[0]);
	if (pid < 0)
		return choir_fail(CHOIR_IO, "start %s: %s", o->arguments[0],
				chi_text_errno(no_process, text, sizeof text));
	if (got > 0) {
		char path[4096];
		(void) waitpid(pid, NULL, 0);
		if (refused == ENOENT && chi_process_find(o->arguments[0], path, sizeof path))
			return choir_fail(CHOIR_NOT_FOUND,
					"start %s: the file is there, but not the interpreter in its first line, or "
					"its "
					"dynamic loader",
					path);
		return choir_fail(refused == ENOENT ? CHOIR_NOT_FOUND : CHOIR_IO, "start %s: %s",
				o->arguments[0], chi_text_errno(refused, text, sizeof text));
	}
	p->pid = (long) pid;
	p->watch = (int) syscall(SYS_pidfd_open, pid, 0);
	return CHOIR_OK;
}

choir_status chi_process_start(chi_process *p, const chi_process_options *o)
{
	*p = (chi_process){ .watch = -1 };
	char **environment = join_environment(o->environment);
	if (environment == NULL)
		return CHOIR_NO_MEMORY;
	const choir_status status = start(p, o, environment);
	chi_free(environment);
	return status;
}

static bool take_end(long pid, chi_process_end *end)
{
	int status = 0;
	pid_t found;
	while ((found = waitpid((pid_t) pid, &status, WNOHANG)) < 0 && errno == EINTR)
		;
	if (found == 0)
		return false;
	*end = (chi_process_end){ .number = -1 };
	if (found > 0 && WIFEXITED(status))
		end->number = WEXITSTATUS(status);
	if (found > 0 && WIFSIGNALED(status))
		*end = (chi_process_end){ true, WTERMSIG(status), WCOREDUMP(status) };
	return true; // also if the host has taken the end
}

bool chi_process_has_ended(chi_process *p, chi_process_end *end)
{
	if (p->pid == 0 || !take_end(p->pid, end))
		return false;
	p->pid = 0;
	if (p->watch >= 0)
		close(p->watch);
	p->watch = -1;
	return true;
}

void chi_process_signal(const chi_process *p, int number)
{
	if (p->pid > 0)
		(void) kill((pid_t) p->pid, number);
}

void chi_process_signal_group(const chi_process *p, int number)
{
	if (p->pid > 0)
		(void) kill((pid_t) -p->pid, number);
}

void chi_process_adopt_orphans(void)
{
	(void) prctl(PR_SET_CHILD_SUBREAPER, 1);
}

// "1234 (name with) spaces) S 1 ..." in /proc/PID/stat. 0: no such process.
static long parent_of(long pid, char *state)
{
	char path[64], line[512];
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t got = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
	if (fd >= 0)
		close(fd);
	if (got <= 0)
		return 0;
	line[got] = '\0';
	const char *end = strrchr(line, ')');
	long parent = 0;
	return end != NULL && sscanf(end + 1, " %c %ld", state, &parent) == 2 ? parent : 0;
}

static bool is_among(long pid, const long list[], int n)
{
	for (int i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

static bool is_descendant(long pid, const long except[], int n)
{
	const long own = (long) getpid();
	char state = '\0';
	for (int depth = 0; depth < 64 && pid > 1; depth++) {
		if (is_among(pid, except, n))
			return false;
		pid = parent_of(pid, &state);
		if (pid == own)
			return true;
	}
	return false;
}

// May miss a new process, so the caller repeats it.
int chi_process_kill_descendants(const long except[], int n)
{
	DIR *all = opendir("/proc");
	int killed = 0;
	for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
		int64_t pid;
		char state = '\0';
		if (!chi_parse_int64(e->d_name, &pid) || pid <= 1 || parent_of((long) pid, &state) == 0 ||
				state == 'Z' || !is_descendant((long) pid, except, n))
			continue;
		killed += kill((pid_t) pid, SIGKILL) == 0;
	}
	if (all != NULL)
		closedir(all);
	return killed;
}

void chi_process_reap_orphans(const long except[], int n)
{
	siginfo_t info = { 0 };
	// An excepted one that comes first hides others.
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0) {
		if (is_among((long) info.si_pid, except, n))
			return;
		(void) waitpid(info.si_pid, NULL, WNOHANG);
		info.si_pid = 0;
	}
}
