// Starts processes that start agents: the one launcher of Open MPI, MPICH or Slurm; else ssh for
// each worker, or nothing on this machine.
#include "supervisor/supervisor.h"

#include "base/alloc.h"
#include "base/descriptor_watch.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Seconds after SIGTERM: mpirun can need more than one to remove its files.
static const double KILL_AFTER = 3;

// The first that exists is taken.
static const struct {
	const char *mpi, *names[3];
} launchers[] = { { "openmpi", { "mpirun.openmpi", "mpirun", NULL } },
	{ "mpich", { "mpiexec.mpich", "mpiexec.hydra", "mpiexec" } } };
enum { MPIS = sizeof launchers / sizeof launchers[0] };

static bool is_mpi(const choir_supervisor *s)
{
	return strcmp(s->mpi, "none") != 0;
}

static bool in_slurm(void)
{
	const char *job = getenv("SLURM_JOB_ID");
	return job != NULL && job[0] != '\0' && getenv("SLURM_STEP_ID") == NULL;
}

static const char *installed(const char *mpi)
{
	char path[4096];
	for (int m = 0; m < MPIS; m++) {
		for (int i = 0; i < 3 && strcmp(launchers[m].mpi, mpi) == 0; i++) {
			const char *name = launchers[m].names[i];
			if (name != NULL && chi_process_find(name, path, sizeof path))
				return name;
		}
	}
	return NULL;
}

choir_status chi_job_choose(choir_supervisor *s)
{
	const char *asked = s->o.mpi;
	s->mpi = asked;
	if (s->o.servers > 0 && asked != NULL && strcmp(asked, "none") != 0)
		return choir_fail(CHOIR_INVALID,
				"supervisor: servers and the MPI \"%.40s\" given; a job with servers needs none",
				asked);
	if (asked == NULL && (s->o.workers == 1 || s->o.launcher != NULL || s->o.servers > 0))
		s->mpi = "none";
	for (int m = 0; m < MPIS && s->mpi == NULL; m++)
		if (in_slurm() || installed(launchers[m].mpi) != NULL)
			s->mpi = launchers[m].mpi;
	if (s->mpi == NULL)
		return choir_fail(CHOIR_NOT_FOUND,
				"supervisor: %d workers need an MPI, and no mpirun or mpiexec is installed; "
				"install Open "
				"MPI or MPICH, or give none as the MPI",
				s->o.workers);
	bool known = !is_mpi(s);
	for (int m = 0; m < MPIS; m++)
		known = known || strcmp(s->mpi, launchers[m].mpi) == 0;
	if (!known)
		return choir_fail(CHOIR_INVALID,
				"supervisor: the MPI \"%.40s\" is unknown; openmpi, mpich or none needed", s->mpi);
	if (s->o.launcher != NULL && s->o.launcher[strspn(s->o.launcher, " ")] == '\0')
		return choir_fail(CHOIR_INVALID,
				"supervisor: the launcher \"%.40s\" has no word; a command needed", s->o.launcher);
	if (!is_mpi(s) && s->o.launcher != NULL && s->o.hosts == NULL)
		return choir_fail(CHOIR_INVALID,
				"supervisor: a launcher is given, but workers without an MPI on this machine need "
				"none");
	if (is_mpi(s) && s->o.launcher == NULL && !in_slurm() && installed(s->mpi) == NULL)
		return choir_fail(CHOIR_NOT_FOUND, "supervisor: no launcher of %s is installed (%s, %s)",
				s->mpi, strcmp(s->mpi, "mpich") == 0 ? "mpiexec.mpich" : "mpirun.openmpi",
				strcmp(s->mpi, "mpich") == 0 ? "mpiexec.hydra" : "mpirun");
	return CHOIR_OK;
}

// Frees only the words that add_made has added.
typedef struct {
	const char **word;
	char **made;
	size_t n, capacity, makes, made_capacity;
	bool failed;
} words;

static void add(words *w, const char *word)
{
	if (word == NULL || !chi_grow(&w->word, &w->capacity, w->n + 2, sizeof *w->word)) {
		w->failed = true;
		return;
	}
	w->word[w->n++] = word;
	w->word[w->n] = NULL;
}

// Owns text.
static void add_made(words *w, char *text)
{
	if (text == NULL || !chi_grow(&w->made, &w->made_capacity, w->makes + 1, sizeof *w->made)) {
		chi_free(text);
		w->failed = true;
		return;
	}
	w->made[w->makes++] = text;
	add(w, text);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash == NULL ? path : slash + 1;
}

static void add_number(words *w, const char *option, double value)
{
	char text[32];
	snprintf(text, sizeof text, "%g", value);
	add(w, option);
	add_made(w, chi_strdup(text));
}

static void free_words(words *w)
{
	for (size_t i = 0; i < w->makes; i++)
		chi_free(w->made[i]);
	chi_free(w->made);
	chi_free(w->word);
}

// The user's command in place of the launcher, split at spaces.
static void add_launcher(words *w, const choir_supervisor *s, const char *standard)
{
	char *text = s->o.launcher == NULL ? NULL : chi_strdup(s->o.launcher);
	if (text == NULL) {
		w->failed = w->failed || s->o.launcher != NULL;
		add(w, standard);
		return;
	}
	char *rest = text;
	for (char *word; (word = strsep(&rest, " ")) != NULL;)
		if (word[0] != '\0')
			add_made(w, chi_strdup(word));
	chi_free(text);
}

static const char *address_of(const choir_supervisor *s, int worker)
{
	const char *name = chi_hosts_of(&s->hosts, worker),
			   *at = name == NULL ? NULL : strchr(name, '@');
	return at == NULL ? name : at + 1;
}

// Workers' tasks (choir/coordinator.h). Each attempt has its own port: the last may be in use for
// a while. It is below those that the system assigns.
static void add_task(words *w, const choir_supervisor *s, int attempt, int worker)
{
	enum { FIRST = 20000, PORTS = 12000 };
	char text[sizeof CHI_TASK_VARIABLE + CHI_JOB_PATH + CHI_HOST_NAME + 32];
	add(w, "env");
	if (!s->remote) {
		snprintf(text, sizeof text, CHI_TASK_VARIABLE "=%d@unix:%s" CHI_JOB_TASK_SOCKET,
				s->o.servers, s->path);
		add_made(w, chi_strdup(text));
		return;
	}
	const int port = FIRST + (int) ((chi_key_job(&s->key) + (uint64_t) attempt) % PORTS);
	snprintf(text, sizeof text, CHI_TASK_VARIABLE "=%d@%s:%d", s->o.servers, address_of(s, 0),
			port);
	add_made(w, chi_strdup(text));
	snprintf(text, sizeof text, CHI_TASK_HOST "=%s", address_of(s, worker));
	add_made(w, chi_strdup(text));
}

static void add_agent(words *w, const choir_supervisor *s, int attempt, int worker)
{
	add(w, s->agent);
	add(w, "run");
	add(w, "--agent");
	add(w, s->address);
	add_number(w, "--attempt", attempt);
	// The agent gives up before the supervisor starts the job again.
	add_number(w, "--lost-after", s->o.lost_after * 0.8);
	if (worker >= 0)
		add_number(w, "--worker", worker);
	add(w, "--");
	if (s->o.servers > 0)
		add_task(w, s, attempt, worker);
	for (int i = 0; s->program[i] != NULL; i++)
		add(w, s->program[i]);
}

static void add_mpi(words *w, const choir_supervisor *s, int workers)
{
	const bool openmpi = strcmp(s->mpi, "openmpi") == 0;
	chi_text hosts = { 0 };
	if (in_slurm() && s->o.launcher == NULL) {
		add(w, "srun");
		add(w, openmpi ? "--mpi=pmix" : "--mpi=pmi2");
		add_number(w, "-n", workers);
		return;
	}
	add_launcher(w, s, installed(s->mpi));
	if (openmpi)
		add(w, "--oversubscribe"); // the user has asked for this number of workers
	add_number(w, "-n", workers);
	if (s->hosts.n == 0)
		return;
	add(w, openmpi ? "--host" : "-hosts");
	chi_hosts_add_list(&s->hosts, workers, &hosts);
	add_made(w, hosts.failed ? NULL : hosts.data);
	if (openmpi && s->remote) {
		add(w, "-x"); // to other hosts
		add(w, CHI_JOB_KEY);
	}
}

// For the remote shell: 'it'\''s'.
static void quote(chi_text *t, const char *word)
{
	chi_text_add(t, " '");
	for (; *word != '\0'; word++)
		if (*word == '\'')
			chi_text_add(t, "'\\''");
		else
			chi_text_add_bytes(t, word, 1);
	chi_text_add(t, "'");
}

static void add_ssh(words *w, const choir_supervisor *s, const char *host, int attempt, int worker)
{
	char here[4096];
	words agent = { 0 };
	chi_text t = { 0 };
	add_launcher(w, s, "ssh");
	if (w->n > 0 && strcmp(base_name(w->word[0]), "ssh") == 0) {
		add(w, "-o");
		add(w, "BatchMode=yes"); // a question would wait for ever
		add(w, "-o");
		add(w, "ConnectTimeout=10");
	}
	add(w, host);
	add_agent(&agent, s, attempt, worker);
	chi_text_add(&t, "cd");
	quote(&t, getcwd(here, sizeof here) == NULL ? "." : here);
	chi_text_add(&t, " && exec");
	for (size_t i = 0; !agent.failed && i < agent.n; i++)
		quote(&t, agent.word[i]);
	w->failed = w->failed || agent.failed || t.failed;
	free_words(&agent);
	add_made(w, t.failed ? NULL : t.data);
}

// To ssh, whose remote command reads it.
static choir_status send_key(const choir_supervisor *s, int *in, int *in_end)
{
	char text[CHI_JOB_KEY_TEXT];
	CHOIR_TRY(chi_pipe_open(in, in_end));
	chi_job_key_text(&s->key, text);
	text[CHI_JOB_KEY_TEXT - 1] = '\n';
	const choir_status status = chi_pipe_write(*in_end, text, sizeof text);
	explicit_bzero(text, sizeof text);
	chi_pipe_close(in_end);
	return status;
}

static choir_status launch(
		choir_supervisor *s, const words *w, int attempt, int worker, const char *host)
{
	char key[sizeof CHI_JOB_KEY + CHI_JOB_KEY_TEXT + 1];
	const bool key_to_stdin = s->remote && !is_mpi(s);
	// Without a terminal, ssh would ask by a window.
	const char *const environment[] = { "SSH_ASKPASS_REQUIRE=never",
		s->remote && !key_to_stdin ? key : NULL, NULL };
	if (w->failed ||
			!chi_grow(&s->launched, &s->launch_capacity, s->launches + 1, sizeof *s->launched))
		return choir_fail(CHOIR_NO_MEMORY, "supervisor: a command line");
	chi_launched *l = &s->launched[s->launches];
	*l = (chi_launched){ .attempt = attempt, .end_by = HUGE_VAL, .out = -1 };
	l->worker = worker;
	l->is_agent = strcmp(w->word[0], s->agent) == 0;
	snprintf(l->name, sizeof l->name, "%s", base_name(w->word[0]));
	snprintf(l->host, sizeof l->host, "%s", host);
	if (s->remote) {
		const size_t at = (size_t) snprintf(key, sizeof key, "%s=", CHI_JOB_KEY);
		chi_job_key_text(&s->key, key + at);
	}
	int in = -1, in_end = -1, out_end = -1;
	choir_status status = chi_pipe_open(&l->out, &out_end);
	if (status == CHOIR_OK && key_to_stdin)
		status = send_key(s, &in, &in_end);
	if (status == CHOIR_OK)
		status = chi_process_start(&l->process,
				&(chi_process_options){ .arguments = w->word,
						.environment = environment,
						.in = in,
						.out = out_end,
						.err = out_end,
						.keep = -1,
						.with_parent = l->is_agent ? 0 : SIGTERM }); // mpirun removes files
	chi_pipe_close(&in);
	chi_pipe_close(&in_end);
	chi_pipe_close(&out_end);
	explicit_bzero(key, sizeof key);
	if (status == CHOIR_OK)
		s->launches++;
	else
		chi_pipe_close(&l->out);
	return status;
}

static choir_status start_all(choir_supervisor *s, int attempt, int workers)
{
	words w = { 0 };
	add_mpi(&w, s, workers);
	add_agent(&w, s, attempt, CHOIR_NONE);
	const choir_status status = launch(s, &w, attempt, CHOIR_NONE, "");
	free_words(&w);
	return status;
}

choir_status chi_job_start_worker(choir_supervisor *s, int attempt, int worker)
{
	words w = { 0 };
	const char *host = s->hosts.n == 0 ? NULL : chi_hosts_of(&s->hosts, worker);
	const bool here = host == NULL || host[0] == '\0';
	if (here)
		add_agent(&w, s, attempt, worker);
	else
		add_ssh(&w, s, host, attempt, worker);
	const choir_status status = launch(s, &w, attempt, worker, here ? "" : host);
	free_words(&w);
	return status;
}

choir_status chi_job_start(choir_supervisor *s, int attempt, int workers)
{
	if (is_mpi(s))
		return start_all(s, attempt, workers);
	for (int i = 0; i < workers; i++)
		CHOIR_TRY(chi_job_start_worker(s, attempt, i));
	return CHOIR_OK;
}

// The last line with a letter: launchers draw lines around their messages.
static void keep_last(chi_launched *l)
{
	for (const char *line = l->line.data; line[0] != '\0';) {
		const size_t n = strcspn(line, "\n");
		bool has_letter = false;
		for (size_t i = 0; i < n; i++)
			has_letter = has_letter || isalpha((unsigned char) line[i]);
		if (has_letter)
			snprintf(l->last, sizeof l->last, "%.*s", (int) n, line);
		line += n + (line[n] == '\n');
	}
}

// While an attempt is killed, output is noise. An endless one gets its turn.
static void read_output(choir_supervisor *s, chi_launched *l)
{
	enum { READS = 64 };
	char bytes[4096];
	size_t got = 1;
	bool ended = false;
	for (int i = 0; i < READS && l->out >= 0 && got > 0; i++) {
		if (chi_pipe_read(l->out, bytes, sizeof bytes, &got, &ended) != CHOIR_OK || ended) {
			chi_pipe_close(&l->out);
			got = 0;
		}
		if (got == 0 || l->end_by < HUGE_VAL)
			continue;
		chi_text_add_bytes(&l->line, bytes, got);
		if (l->line.data != NULL)
			keep_last(l);
		chi_job_lines(s, CHOIR_SUPERVISOR_LAUNCHER, CHOIR_NONE, &l->line, "", 0);
	}
}

static bool is_replaced(const choir_supervisor *s, const chi_launched *l)
{
	for (const chi_launched *later = l + 1; later < s->launched + s->launches; later++)
		if (later->attempt == l->attempt && later->worker == l->worker)
			return true;
	return false;
}

static void note_end(choir_supervisor *s, chi_launched *l, const chi_process_end *end, double now)
{
	char how[64], text[CHI_RESTART_POLICY_TEXT];
	read_output(s, l);
	chi_process_end_text(end, how, sizeof how);
	snprintf(text, sizeof text, "%s%s%s %s%s%.400s%s", l->is_agent ? "an agent" : l->name,
			l->host[0] != '\0' ? " to host " : "", l->host, how, l->last[0] != '\0' ? " (\"" : "",
			l->last, l->last[0] != '\0' ? "\")" : "");
	if (!chi_restart_policy_is_spare(s->policy, l->worker))
		chi_restart_policy_launcher_ended(s->policy, now, l->attempt, l->host, text);
	else if (!is_replaced(s, l))
		chi_restart_policy_spare_ended(s->policy, now, l->attempt, l->worker, text);
}

void chi_job_look_at_launchers(choir_supervisor *s, double now)
{
	for (size_t i = 0; i < s->launches; i++) {
		chi_launched *l = &s->launched[i];
		chi_process_end end;
		read_output(s, l);
		if (chi_process_has_ended(&l->process, &end)) {
			note_end(s, l, &end, now);
		} else if (l->process.pid != 0 && now >= l->end_by && !l->asked) {
			l->asked = true;
			l->end_by = now + KILL_AFTER;
			chi_process_signal(&l->process, SIGTERM);
		} else if (l->process.pid != 0 && now >= l->end_by) {
			char text[CHI_LAUNCHER_NAME + 64];
			snprintf(text, sizeof text, "%s (pid %ld) does not end; killed", l->name,
					l->process.pid);
			chi_job_report(s, CHOIR_SUPERVISOR_NOTE, CHOIR_NONE, text);
			l->end_by = DBL_MAX;
			chi_process_signal_group(&l->process, SIGKILL);
		}
	}
}

void chi_job_end_launchers(choir_supervisor *s, int attempt, double by)
{
	for (size_t i = 0; i < s->launches; i++)
		if (s->launched[i].attempt <= attempt && by < s->launched[i].end_by)
			s->launched[i].end_by = by;
}

bool chi_job_has_launchers(const choir_supervisor *s)
{
	for (size_t i = 0; i < s->launches; i++)
		if (s->launched[i].process.pid != 0)
			return true;
	return false;
}

void chi_job_kill_all(choir_supervisor *s)
{
	long own[CHI_MAX_HOSTS];
	int n = 0;
	for (size_t i = 0; i < s->launches && n < CHI_MAX_HOSTS; i++)
		if (s->launched[i].process.pid != 0)
			own[n++] = s->launched[i].process.pid;
	(void) chi_process_kill_descendants(NULL, 0);
	chi_process_reap_orphans(own, n);
}

void chi_job_free_launchers(choir_supervisor *s)
{
	for (size_t i = 0; i < s->launches; i++) {
		chi_pipe_close(&s->launched[i].out);
		chi_text_free(&s->launched[i].line);
	}
	chi_free(s->launched);
}
