// Sentences about a worker, for reports.
#include "supervisor/describe_worker.h"

#include <inttypes.h>
#include <stdio.h>

const char *chi_worker_name(const chi_worker *w, int number, char *out, size_t size)
{
	const chi_health_note *h = &w->report.health;
	char replicas[64] = "";
	if (h->replicas == 1)
		snprintf(replicas, sizeof replicas, ", replica %d", h->first_replica);
	else if (h->replicas > 1)
		snprintf(replicas, sizeof replicas, ", replicas %d to %d", h->first_replica,
				h->first_replica + h->replicas - 1);
	if (w->joined)
		snprintf(out, size, "worker %d (%s, pid %ld%s)", number, w->host, w->pid, replicas);
	else
		snprintf(out, size, "worker %d", number);
	return out;
}

const char *chi_worker_place(const chi_worker *w, char *out, size_t size)
{
	const chi_health_note *h = &w->report.health;
	size_t at = 0;
	char text[CHI_HEALTH_WHAT + 96];
	out[0] = '\0';
	if (h->steps > 0) {
		snprintf(text, sizeof text, "in step %" PRIu64, h->step);
		at = chi_text_append(out, size, at, text);
	} else {
		at = chi_text_append(out, size, at, "before its first step");
	}
	if (h->what[0] == '\0')
		return out;
	snprintf(text, sizeof text, ", %s %s (collective %" PRIu64 ")", h->waiting ? "in" : "after",
			h->what, h->sequence);
	at = chi_text_append(out, size, at, text);
	if (!h->waiting)
		return out;
	snprintf(text, sizeof text, ", waiting for worker %d", h->peer);
	chi_text_append(out, size, at, text);
	return out;
}

const char *chi_worker_state(const chi_worker *w)
{
	const chi_health_note *h = &w->report.health;
	if (w->finished || w->stopped)
		return w->finished ? "finished" : "stopped";
	if (w->ended)
		return "ended";
	if (!w->joined)
		return "not here yet";
	if (h->state == CHI_HEALTH_FAILED)
		return "failed";
	if (h->state == CHI_HEALTH_FINISHED)
		return "leaving";
	if (h->state == CHI_HEALTH_NEW)
		return "starting";
	return h->waiting ? "waiting" : "computing";
}

void chi_worker_add_json(const chi_worker *w, int number, chi_text *out)
{
	const chi_health_note *h = &w->report.health;
	chi_text_add(out, "\"worker\": %d, \"state\": \"%s\"", number, chi_worker_state(w));
	if (!w->joined)
		return;
	chi_text_add(out, ", \"host\": ");
	chi_text_add_json(out, w->host);
	chi_text_add(out, ", \"pid\": %ld, \"first_replica\": %d, \"replicas\": %d", w->pid,
			h->first_replica, h->replicas);
	if (h->steps > 0)
		chi_text_add(out, ", \"step\": %" PRIu64, h->step);
	if (h->saved > 0)
		chi_text_add(out, ", \"saved_step\": %" PRIu64, h->saved - 1);
	if (h->what[0] == '\0')
		return;
	chi_text_add(out, ", \"collective\": %" PRIu64 ", \"what\": ", h->sequence);
	chi_text_add_json(out, h->what);
	if (h->waiting)
		chi_text_add(out, ", \"waits_for\": %d", h->peer);
}

void chi_worker_describe(const chi_worker *w, int number, bool json, chi_text *out)
{
	char name[160], place[CHI_HEALTH_WHAT + 160], clean[4 * sizeof place];
	if (json) {
		chi_text_add(out, "{");
		chi_worker_add_json(w, number, out);
		chi_text_add(out, "}");
		return;
	}
	chi_text_add(
			out, "%s: %s", chi_worker_name(w, number, name, sizeof name), chi_worker_state(w));
	if (w->joined && !w->ended)
		chi_text_add(out, " %s",
				chi_text_clean(chi_worker_place(w, place, sizeof place), clean, sizeof clean));
	chi_text_add(out, "\n");
}
