// Workers and the bytes between them: the object, messages with a fingerprint, and collectives of
// these. Nothing here knows what the bytes mean.
#pragma once

#include "base/atomic.h"
#include "base/instruction_set.h"
#include "base/status.h"
#include "base/lock.h"
#include "choir/extend/transport_table.h"

enum { CHI_WORKER_NAME = 96, CHI_TRANSPORT_TEXT = 160 };

typedef enum { CHI_TASK_CHIEF, CHI_TASK_WORKER, CHI_TASK_EVALUATOR, CHI_TASK_PS } chi_task;
enum { CHI_TASKS = 4 };

struct choir_cluster {
	choir_transport_table transport_table; // filled: no slot is missing
	void *self;
	int worker, workers;
	chi_task task;
	int task_index;
	double start_timeout, timeout; // seconds, negative: none
	char (*names)[CHI_WORKER_NAME]; // NULL until they are known
	char transport[CHI_TRANSPORT_TEXT];
	chi_mutex lock; // calls of the table
	bool one_thread; // may move bytes: the one that it was made on
	bool ended_by_other; // by the transport that another worker has ended it; under lock
	chi_atomic32 failed; // not zero: it is over, and why is final
	chi_error failure; // the first one
	const chi_error *cause; // while this worker says that it has failed: by what; under lock
	chi_atomic64 sequence; // of collectives
};

const choir_transport_table *chi_transport_find(const char *name); // NULL: CHOIR_NOT_FOUND
choir_transport_table chi_transport_filled(const choir_transport_table *transport); // with stubs
extern const choir_transport_table chi_single_worker_transport;

// Opens a transport and learns the names of the workers.
choir_cluster *chi_cluster_open(const choir_transport_table *transport, const void *argument,
		const choir_cluster_options *o);
// How long to wait for all workers; negative: no limit.
double chi_cluster_start_seconds(const choir_cluster_options *o);
// "worker 2 (node3, pid 4711)", into text.
const char *chi_cluster_name(const choir_cluster *c, int worker, char text[CHI_WORKER_NAME + 32]);
// The deadline of a wait that begins now, on the transport's clock.
double chi_cluster_deadline(const choir_cluster *c, double seconds);
// Ends the cluster with the failure that this thread has just recorded, and tells the others;
// returns its status. Only the first failure counts.
choir_status chi_cluster_give_up(choir_cluster *c);
// Sets the failure that this worker is telling the others (NULL: none any more). Until then it is
// the cluster's cause, whatever fails meanwhile. Returns the deadline of telling it.
double chi_cluster_failing(choir_cluster *c, const chi_error *why);
// The number of this worker's next collective. Collectives follow one another with one tag, and
// each begins with a message to at least the next worker and one from the one before: then two
// that differ cannot wait for each other in a circle.
uint64_t chi_cluster_next(choir_cluster *c);
// CHOIR_CANCELLED with the first cause if the cluster is over.
choir_status chi_cluster_check(choir_cluster *c);

// A setting that must be the same on all workers.
enum { CHI_SETTINGS = 16, CHI_SETTING_NAME = 24, CHI_SETTING_VALUE = 72 };
typedef struct {
	char name[CHI_SETTING_NAME], value[CHI_SETTING_VALUE];
} chi_setting;
// A longer value is cut, with a hash of all of it. A failed allocation fails in the check.
void chi_setting_set(chi_setting *setting, const char *name, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// Compares up to CHI_SETTINGS settings. CHOIR_STATE names the first worker that differs, the
// setting, and both values.
choir_status chi_cluster_check_consistency(choir_cluster *c, const chi_setting settings[], int n);
// The instruction set for all workers, of which this one has own: the same, or if lowest, the
// lowest of them. CHOIR_STATE: they differ; CHOIR_UNSUPPORTED: no set is on all of them. The text
// names the first worker that differs, and both sets.
choir_status chi_cluster_common_instruction_set(
		choir_cluster *c, const char *own, bool lowest, chi_instruction_set *set);
