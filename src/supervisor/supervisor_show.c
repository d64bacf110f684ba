// Asks this user's running supervisor for its job's state.
#include "supervisor/agent_message.h"

#include "base/directory.h"
#include "supervisor/supervisor.h"

#include <stdio.h>
#include <string.h>

static const double SECONDS = 3; // until the answer

typedef struct {
	bool joined, whole, json;
	choir_status status; // the connection's end
	chi_peer *peer;
	chi_text text;
} question;

static void joined(void *user, chi_peer *peer)
{
	question *q = user;
	chi_pack p = { 0 };
	q->joined = true;
	chi_pack_u32(&p, q->json);
	(void) chi_peer_send_pack(peer, CHI_STATUS_ASK, 0, &p);
	chi_pack_free(&p);
}

static choir_status frame(void *user, chi_peer *peer, const chi_net_frame *f, const void *payload)
{
	question *q = user;
	(void) peer;
	if (f->kind == CHI_STATUS_TEXT && f->bytes > 0)
		chi_text_add_bytes(&q->text, payload, (size_t) f->bytes);
	q->whole = q->whole || (f->kind == CHI_STATUS_TEXT && f->bytes == 0);
	return CHOIR_OK;
}

static void lost(void *user, chi_peer *peer, choir_status status)
{
	question *q = user;
	(void) peer;
	q->peer = NULL;
	q->status = status == CHOIR_OK || status == CHOIR_END ? CHOIR_PEER_LOST : status;
}

static choir_status ask_hub(question *q, chi_hub *hub, const char *address)
{
	q->peer = chi_hub_dial(hub, address, NULL);
	CHOIR_TRY(chi_made(q->peer));
	const double until = chi_hub_now(hub) + SECONDS;
	while (q->peer != NULL && !q->whole && chi_hub_now(hub) < until)
		CHOIR_TRY(chi_hub_step(hub, until));
	if (q->whole)
		return q->text.failed ? CHOIR_NO_MEMORY : CHOIR_OK;
	return q->peer == NULL
			? q->status
			: choir_fail(CHOIR_TIMEOUT, "supervisor: the supervisor does not answer");
}

static choir_status ask(question *q, const char *path)
{
	char address[CHI_JOB_ADDRESS];
	chi_hello hello;
	chi_connections *connections = chi_connections_open(NULL, false);
	CHOIR_TRY(chi_made(connections));
	choir_status status = chi_hello_make(&hello, "status", 0, 0, CHI_JOB_PROTOCOL);
	const chi_hub_owner owner = { q, NULL, joined, frame, lost };
	chi_hub *hub = status != CHOIR_OK
			? NULL
			: chi_hub_new(connections, &hello, &owner, &(chi_hub_options){ 0 });
	snprintf(address, sizeof address, "unix:%s", path);
	if (hub != NULL)
		status = ask_hub(q, hub, address);
	else if (status == CHOIR_OK)
		status = CHOIR_NO_MEMORY;
	chi_hub_free(hub);
	chi_connections_free(connections);
	return status;
}

static void report(question *q, const char *job, choir_supervisor_fn *fn, void *user)
{
	char *rest = q->text.data, head[CHI_JOB_PATH + 16];
	if (!q->json) {
		snprintf(head, sizeof head, "job %.64s", job);
		fn(CHOIR_SUPERVISOR_NOTE, CHOIR_NONE, head, user);
	}
	for (char *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL;)
		if (line[0] != '\0')
			fn(q->json ? CHOIR_SUPERVISOR_EVENT : CHOIR_SUPERVISOR_NOTE, CHOIR_NONE, line, user);
}

static choir_status list_jobs(const char *directory, chi_glob *jobs)
{
	chi_directory *d = chi_directory_open(directory);
	const choir_status status = d == NULL ? choir_error_status() : chi_directory_list(d, jobs);
	chi_directory_close(d);
	return status;
}

// Nobody listens at a killed supervisor's socket. A stopped one is a job.
static choir_status find_one(const char *directory, char *name, size_t size)
{
	char path[2 * CHI_JOB_PATH];
	chi_glob jobs = { 0 };
	chi_text several = { 0 };
	int found = 0;
	choir_status status = list_jobs(directory, &jobs);
	for (size_t i = 0; status == CHOIR_OK && i < jobs.n; i++) {
		question q = { 0 };
		if (strstr(jobs.path[i], CHI_JOB_TASK_SOCKET) != NULL)
			continue;
		snprintf(path, sizeof path, "%s/%.64s", directory, jobs.path[i]);
		const choir_status answer = ask(&q, path);
		if (answer == CHOIR_OK || answer == CHOIR_TIMEOUT) {
			found++;
			snprintf(name, size, "%.64s", jobs.path[i]);
			chi_text_add(&several, "%s%.64s", found > 1 ? ", " : "", jobs.path[i]);
		}
		chi_text_free(&q.text);
	}
	if (status == CHOIR_OK && found == 0)
		status = choir_fail(
				CHOIR_NOT_FOUND, "supervisor: no job of this user runs on this machine");
	else if (status == CHOIR_OK && found > 1)
		status = choir_fail(CHOIR_INVALID, "supervisor: found the jobs %s; one of them needed",
				several.failed ? "of several supervisors" : several.data);
	chi_text_free(&several);
	chi_glob_free(&jobs);
	return status;
}

choir_status choir_supervisor_show(const char *job, bool json, choir_supervisor_fn *fn, void *user)
{
	char directory[CHI_JOB_PATH], path[2 * CHI_JOB_PATH], name[CHI_JOB_PATH];
	if (fn == NULL)
		return choir_fail(CHOIR_INVALID, "supervisor: the function is NULL");
	CHOIR_TRY(chi_job_directory(directory, sizeof directory));
	if (job == NULL)
		CHOIR_TRY(find_one(directory, name, sizeof name));
	else
		snprintf(name, sizeof name, "%.64s", job);
	if (strchr(name, '/') != NULL)
		return choir_fail(CHOIR_INVALID, "supervisor: \"%s\" is not the name of a job", name);
	question q = { .json = json };
	snprintf(path, sizeof path, "%s/%s", directory, name);
	choir_status status = ask(&q, path);
	if (status == CHOIR_NOT_FOUND)
		status = choir_fail(CHOIR_NOT_FOUND,
				"supervisor: no job \"%s\" of this user runs on this machine", name);
	else if (status == CHOIR_TIMEOUT)
		status = choir_fail(CHOIR_TIMEOUT,
				"supervisor: job %s does not answer; its choir run is stopped or very busy", name);
	if (status == CHOIR_OK)
		report(&q, name, fn, user);
	chi_text_free(&q.text);
	return status;
}
