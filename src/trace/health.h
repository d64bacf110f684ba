// This process's state, for its supervisor (choir run): a page shared with the agent, by the
// descriptor in CHOIR_RUN. So the agent knows step and collective even of a killed process. A
// thread counts heartbeats. Threads: any.
#pragma once

#include "base/atomic.h"
#include "choir/status.h"

#include <stddef.h>

enum { CHI_HEALTH_WHAT = 96, CHI_HEALTH_TEXT = 512, CHI_HEALTH_KEY = 32 };
#define CHI_HEALTH_VARIABLE "CHOIR_RUN"
#define CHI_HEALTH_MAGIC UINT64_C(0x63686f6972680002) // with the layout's version
static const double CHI_HEALTH_BEAT = 0.1; // seconds

typedef enum {
	CHI_HEALTH_NEW,
	CHI_HEALTH_OPEN,
	CHI_HEALTH_FAILED,
	CHI_HEALTH_FINISHED // all clusters were freed without a failure
} chi_health_state;

// Only the agent writes magic and the key.
typedef struct {
	uint64_t magic;
	unsigned char key[CHI_HEALTH_KEY]; // of the job, or zeros
	chi_atomic32 state;
	chi_atomic32 pid;
	chi_atomic32 beats;
	chi_atomic32 waiting; // threads that wait for another worker
	chi_atomic32 peer; // awaited by the last of them
	chi_atomic32 first_replica, replicas;
	chi_atomic32 version; // of sequence and what; odd: being written
	chi_atomic64 step, steps; // running; begun by this process
	chi_atomic64 saved; // 1 + the newest checkpoint's; 0: none
	chi_atomic64 since; // monotonic nanoseconds when waiting or step changed
	chi_atomic64 sequence;
	chi_atomic64 what[CHI_HEALTH_WHAT / 8];
	// Written once, before state becomes FAILED. by_other: another worker failed first.
	chi_atomic32 status, by_other;
	char text[CHI_HEALTH_TEXT];
} chi_health;

typedef struct {
	chi_health_state state;
	long pid;
	uint32_t beats;
	bool waiting, by_other;
	int peer, first_replica, replicas;
	uint64_t step, steps, saved, sequence;
	double since;
	char what[CHI_HEALTH_WHAT];
	choir_status status;
	char text[CHI_HEALTH_TEXT];
} chi_health_note;
void chi_health_read(const chi_health *page, chi_health_note *note);

// NULL: no supervisor. Only health.c writes it.
extern __attribute__((visibility("hidden"))) chi_health *chi_health_page;

// For each cluster. Logs an invalid CHOIR_RUN.
void chi_health_open(void);
void chi_health_close(bool failed);
void chi_health_fail(choir_status status, const char *text, bool by_other);

// The key of a job on several hosts. False: no such job.
bool chi_health_key(unsigned char key[CHI_HEALTH_KEY]);

void chi_health_write_step(uint64_t step, int first_replica, int replicas);
void chi_health_write_wait(uint64_t sequence, const char *what, int peer);
void chi_health_end_wait(void);

static inline bool chi_health_on(void)
{
	return __builtin_expect(chi_health_page != NULL, 0);
}

static inline void chi_health_step(uint64_t step, int first_replica, int replicas)
{
	if (chi_health_on())
		chi_health_write_step(step, first_replica, replicas);
}

// A checkpoint of this step exists.
static inline void chi_health_saved(uint64_t step)
{
	if (chi_health_on())
		chi_atomic64_store(&chi_health_page->saved, step + 1);
}
