// Processes that this one starts, each in a process group of its own, and pipes to them. Threads:
// one at a time for each object, unless a function says otherwise.
#pragma once

#include "choir/status.h"

#include <stdbool.h>
#include <stddef.h>

// How a process has ended.
typedef struct {
	bool by_signal;
	int number; // exit status, or signal
	bool core; // the signal wrote a core file
} chi_process_end;
// Writes "killed by SIGKILL" or "exited with status 3".
const char *chi_process_end_text(const chi_process_end *end, char *out, size_t size);

typedef struct {
	long pid; // 0: none
	int watch; // a descriptor that is readable once the process has ended; -1: none
} chi_process;

typedef struct {
	const char *const *arguments; // ends in NULL; the first is searched for in PATH
	const char *const *environment; // "NAME=VALUE" besides the caller's, ends in NULL; or NULL
	int in, out, err; // descriptors for 0, 1 and 2; -1: /dev/null
	int keep; // a descriptor that the process inherits; -1: none
	bool dies_with_parent; // it is killed if the thread that starts it ends
} chi_process_options;

// Whether a program of this name is in PATH; path becomes where.
bool chi_process_find(const char *name, char *path, size_t size);
// Starts a process. CHOIR_NOT_FOUND: no such program. CHOIR_IO: the system has no process left.
choir_status chi_process_start(chi_process *p, const chi_process_options *o);
// Whether the process has ended. It then is no longer a process, and *end tells how it ended.
bool chi_process_has_ended(chi_process *p, chi_process_end *end);
void chi_process_signal(const chi_process *p, int number); // to the process alone
void chi_process_signal_group(const chi_process *p, int number);

// From now on this process becomes the parent of its descendants whose own parent ends.
void chi_process_adopt_orphans(void);
// Sends SIGKILL to all descendants of this process but those in except, and returns their number.
int chi_process_kill_descendants(const long except[], int n);
// Forgets descendants that have ended, except the started ones in except.
void chi_process_reap_orphans(const long except[], int n);
