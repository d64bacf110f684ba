// Workers, messages with fingerprints, and collectives of bytes.
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
	choir_transport_table transport_table; // all slots set
	void *self;
	int worker, workers;
	chi_task task;
	int task_index;
	double start_timeout, timeout; // negative: no limit
	char (*names)[CHI_WORKER_NAME];
	bool shares_processors; // with another worker of this host
	char transport[CHI_TRANSPORT_TEXT];
	chi_mutex lock;
	bool one_thread; // only the creating thread may call
	bool ended_by_other;
	chi_atomic32 failed; // not 0: ended
	chi_error failure;
	// The failure being sent; under lock.
	const chi_error *cause;
	chi_atomic64 sequence;
	chi_atomic32 last; // 1 + the worker awaited last, for traces
};

int32_t chi_cluster_last(choir_cluster *c);

const choir_transport_table *chi_transport_find(const char *name);
// With stubs in missing slots.
choir_transport_table chi_transport_filled(const choir_transport_table *transport);
extern const choir_transport_table chi_single_worker_transport;

choir_cluster *chi_cluster_open(const choir_transport_table *transport, const void *argument,
		const choir_cluster_options *o);
// Checks them; *all has the defaults.
choir_status chi_cluster_take_options(const choir_cluster_options *o, choir_cluster_options *all);
struct chi_roles;
// Compares the workers' settings, and takes the role. NULL gives NULL.
choir_cluster *chi_cluster_settle(
		choir_cluster *c, const struct chi_roles *r, const choir_cluster_options *o);
// Negative: no limit.
double chi_cluster_start_seconds(const choir_cluster_options *o);
// "worker 2 (node3, pid 4711)".
const char *chi_cluster_name(const choir_cluster *c, int worker, char text[CHI_WORKER_NAME + 32]);
double chi_cluster_deadline(const choir_cluster *c, double seconds);
// Sends this thread's last failure; only the first counts.
choir_status chi_cluster_give_up(choir_cluster *c);
// why is the cause while it is being sent (NULL: sent). Returns the deadline.
double chi_cluster_failing(choir_cluster *c, const chi_error *why);
// Collectives share one tag, in order.
uint64_t chi_cluster_next(choir_cluster *c);
// CHOIR_CANCELLED, with the first cause.
choir_status chi_cluster_check(choir_cluster *c);

enum { CHI_SETTINGS = 16, CHI_SETTING_NAME = 24, CHI_SETTING_VALUE = 72 };
typedef struct {
	char name[CHI_SETTING_NAME], value[CHI_SETTING_VALUE];
} chi_setting;
// Truncates a long value, with a hash.
void chi_setting_set(chi_setting *setting, const char *name, const char *fmt, ...)
		CHOIR_PRINTF(3, 4);
// CHOIR_STATE names the first differing worker, the setting and both values.
choir_status chi_cluster_check_consistency(choir_cluster *c, const chi_setting settings[], int n);
// The workers' common set or, if lowest, the lowest. CHOIR_STATE: they differ. CHOIR_UNSUPPORTED:
// nothing in common.
choir_status chi_cluster_common_instruction_set(
		choir_cluster *c, const char *own, bool lowest, chi_instruction_set *set);
