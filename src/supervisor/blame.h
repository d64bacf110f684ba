// Finds out which worker has failed.
#pragma once

#include "supervisor/restart_policy_state.h"

// Notes a failure (worker CHOIR_NONE: of no worker), which counts now or, if a cause may come, in
// a second.
chi_failure *chi_blame(chi_restart_policy *p, double now, chi_grade grade, int worker,
		const char *fmt, ...) CHOIR_PRINTF(5, 6);
void chi_blame_end(chi_restart_policy *p, double now, int worker);
void chi_blame_report(chi_restart_policy *p, double now, int worker);
void chi_blame_silence(chi_restart_policy *p, double now);
// Reports a long wait; a longer one fails the job.
void chi_blame_stall(chi_restart_policy *p, double now);
// Whether the same step has failed in the same way twice.
bool chi_blame_is_same(const chi_failure *a, const chi_failure *b);
void chi_blame_say(const chi_restart_policy *p, char *out, size_t size);
// The waiting workers: "0 1 3"; "": none.
const char *chi_blame_waiting(const chi_restart_policy *p, int except, char *out, size_t size);
