// The restart policy's facts about each worker, and sentences about it.
#pragma once

#include "supervisor/restart_policy.h"

typedef struct {
	bool joined, started, ended, gone;
	bool finished; // by its record, and its process exited with 0
	bool stopped; // as finished, but exited with CHI_EXIT_STOPPED
	char host[CHI_HOST_NAME];
	long pid;
	double heard; // its agent's last report
	chi_worker_report report;
	chi_process_end end;
	// Of a failed spare worker.
	bool lost;
	int losses, idle; // idle: the last ones, before a step
	double due; // of its restart
	char way[CHI_HEALTH_TEXT]; // "died: killed by SIGKILL"; "" if it was said
} chi_worker;

// "worker 2 (node3, pid 4711, replicas 4 to 5)".
const char *chi_worker_name(const chi_worker *w, int number, char *out, size_t size);
// "in step 1503, in all_reduce sum f32 [10] a/w (collective 90), waiting for worker 1".
const char *chi_worker_place(const chi_worker *w, char *out, size_t size);
// "opening a cluster", "training", "finished" and the like.
const char *chi_worker_state(const chi_worker *w);
// For choir status.
void chi_worker_describe(const chi_worker *w, int number, bool json, chi_text *out);
// "worker": 2, "host": ...
void chi_worker_add_json(const chi_worker *w, int number, chi_text *out);
