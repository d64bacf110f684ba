// Child processes, each in its own process group. Threads: one at a time for each object.
#pragma once

#include "choir/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
	bool by_signal;
	int number; // exit status, or signal
	bool core;
} chi_process_end;
// "killed by SIGKILL" or "exited with status 3".
const char *chi_process_end_text(const chi_process_end *end, char *out, size_t size);

typedef struct {
	long pid;
	int watch; // readable once the process has ended; -1: none
} chi_process;

typedef struct {
	const char *const *arguments; // ends in NULL; the first is looked for in PATH
	const char *const *environment; // added to the caller's; ends in NULL
	int in, out, err; // -1: /dev/null
	int keep; // inherited; -1: none
	int with_parent; // signal when the thread that starts it ends; 0: none
} chi_process_options;

bool chi_process_find(const char *name, char *path, size_t size);
// CHOIR_NOT_FOUND: no such program. CHOIR_IO: the system refuses.
choir_status chi_process_start(chi_process *p, const chi_process_options *o);
// True: *end tells how.
bool chi_process_has_ended(chi_process *p, chi_process_end *end);
void chi_process_signal(const chi_process *p, int number);
void chi_process_signal_group(const chi_process *p, int number);

void chi_process_adopt_orphans(void);
// Returns their number.
int chi_process_kill_descendants(const long except[], int n);
// Except the started ones in except.
void chi_process_reap_orphans(const long except[], int n);
