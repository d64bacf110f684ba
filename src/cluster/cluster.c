// The first failure is final: a late message could be mistaken for the expected one.
#include "cluster/cluster.h"

#include "trace/span_ring.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/dynamic_library.h"
#include "base/options.h"
#include "base/processors.h"
#include "choir/library.h"
#include "cluster/mpi_loader.h"
#include "cluster/roles.h"
#include "trace/health.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double START_SECONDS = 60, WAIT_SECONDS = 300;

static double seconds_or(double seconds, double otherwise)
{
	return seconds == 0 ? otherwise : seconds;
}

double chi_cluster_start_seconds(const choir_cluster_options *o)
{
	return seconds_or(o->start_timeout, START_SECONDS);
}

static void close_cluster(choir_cluster *c, double seconds)
{
	c->transport_table.close(c->self, seconds);
	chi_health_close(chi_atomic32_load(&c->failed) != 0 || c->names == NULL);
	chi_mutex_destroy(&c->lock);
	chi_free(c->self);
	chi_free(c->names);
	chi_free(c);
}

static choir_status open_transport(choir_cluster *c, const void *argument)
{
	chi_error_clear();
	const choir_status status = c->transport_table.open(c->self, argument);
	if (status != CHOIR_OK) {
		if (choir_error_status() != status)
			choir_fail(status, "it did not start (%s)", choir_status_name(status));
		return chi_error_prefix("%s", c->transport_table.name);
	}
	c->worker = c->transport_table.worker(c->self);
	c->workers = c->transport_table.workers(c->self);
	if (c->workers < 1 || c->worker < 0 || c->worker >= c->workers)
		return choir_fail(CHOIR_INVALID,
				"%s: the transport reports worker %d of %d; workers count from 0",
				c->transport_table.name, c->worker, c->workers);
	char text[CHI_TRANSPORT_TEXT - 24];
	c->transport_table.describe(c->self, text, sizeof text);
	snprintf(c->transport, sizeof c->transport, "%.16s: %s", c->transport_table.name, text);
	return CHOIR_OK;
}

typedef struct {
	char host[64];
	chi_processor_set processors;
	int64_t pid;
} worker_identity;

static bool share_processors(const worker_identity *a, const worker_identity *b)
{
	return strcmp(a->host, b->host) == 0 &&
			chi_processor_sets_overlap(&a->processors, &b->processors);
}

static choir_status take_identities(choir_cluster *c, worker_identity *all)
{
	c->names = chi_alloc_array((size_t) c->workers, sizeof *c->names);
	CHOIR_TRY(chi_made(c->names));
	for (int i = 0; i < c->workers; i++) {
		all[i].host[sizeof all[i].host - 1] = '\0';
		snprintf(c->names[i], CHI_WORKER_NAME, "%s, pid %" PRId64, all[i].host, all[i].pid);
		c->shares_processors |= i != c->worker && share_processors(&all[i], &all[c->worker]);
	}
	return CHOIR_OK;
}

// Also proves that all workers are there.
static choir_status exchange_identities(choir_cluster *c)
{
	worker_identity own = { .host = "?", .pid = getpid() };
	gethostname(own.host, sizeof own.host - 1);
	chi_processor_set_read(&own.processors);
	worker_identity *all = chi_alloc_array((size_t) c->workers, sizeof *all);
	CHOIR_TRY(chi_made(all));
	choir_status status = choir_cluster_all_gather(c, &own, sizeof own, all);
	if (status == CHOIR_OK)
		status = take_identities(c, all);
	chi_free(all);
	return status;
}

choir_cluster *chi_cluster_open(const choir_transport_table *transport, const void *argument,
		const choir_cluster_options *o)
{
	choir_cluster *c = chi_alloc(sizeof *c);
	if (c == NULL)
		return NULL;
	c->transport_table = chi_transport_filled(transport);
	c->start_timeout = chi_cluster_start_seconds(o);
	c->timeout = c->start_timeout;
	c->task = CHI_TASK_WORKER;
	c->self = chi_alloc(c->transport_table.self_size);
	if (c->self == NULL) {
		chi_free(c);
		return NULL;
	}
	chi_mutex_init(&c->lock, CHI_RANK_CLUSTER, "cluster");
	chi_health_open();
	if (open_transport(c, argument) != CHOIR_OK || exchange_identities(c) != CHOIR_OK) {
		chi_health_fail(choir_error_status(), choir_error(), false);
		if (chi_atomic32_load(&c->failed) == 0 && c->workers > 0)
			chi_cluster_give_up(c);
		close_cluster(c, 0);
		return NULL;
	}
	c->task_index = c->worker;
	c->timeout = seconds_or(o->timeout, WAIT_SECONDS);
	return c;
}

void choir_cluster_free(choir_cluster *c)
{
	if (c == NULL)
		return;
	close_cluster(c, chi_atomic32_load(&c->failed) != 0 ? 0 : c->timeout);
}

choir_status chi_cluster_take_options(const choir_cluster_options *o, choir_cluster_options *all)
{
	CHOIR_TRY(chi_options_take("cluster: the options'", all, sizeof *all, o));
	const double seconds[] = { all->timeout, all->start_timeout };
	for (int i = 0; i < 2; i++)
		if (!(seconds[i] >= 0) && seconds[i] != CHOIR_FOREVER)
			return choir_fail(CHOIR_INVALID,
					"cluster: a timeout of %g seconds given; 0 or more, or CHOIR_FOREVER, needed",
					seconds[i]);
	return CHOIR_OK;
}

static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return value == NULL ? "" : value;
}

static const char *kernels(void)
{
	const char *asked = setting("CHOIR_KERNELS");
	return asked[0] == '\0' ? "all" : asked;
}

static choir_status choose_instruction_set(choir_cluster *c, bool lowest)
{
	chi_instruction_set set;
	if (strcmp(kernels(), "plain") == 0)
		return CHOIR_OK;
	CHOIR_TRY(chi_cluster_common_instruction_set(c, choir_instruction_set(), lowest, &set));
	return chi_instruction_set_lower(set);
}

static choir_status check_consistency(choir_cluster *c, const choir_cluster_options *o)
{
	chi_setting settings[6];
	CHOIR_TRY(chi_instruction_set_check());
	chi_setting_set(&settings[0], "library version", "%d.%d.%d", choir_version() / 10000,
			choir_version() / 100 % 100, choir_version() % 100);
	chi_setting_set(&settings[1], "CHOIR_KERNELS", "%s", kernels());
	chi_setting_set(
			&settings[2], ".lowest_instruction_set", "%d", o->lowest_instruction_set == CHOIR_ON);
	chi_setting_set(&settings[3], "ONEDNN_MAX_CPU_ISA", "%s", setting("ONEDNN_MAX_CPU_ISA"));
	char file[CHI_SETTING_VALUE];
	chi_dynamic_library_fingerprint(file, sizeof file);
	chi_setting_set(&settings[4], "libchoir", "%s", file);
	chi_file_fingerprint("/proc/self/exe", file, sizeof file);
	chi_setting_set(&settings[5], "program", "%s", o->program != NULL ? o->program : file);
	CHOIR_TRY(chi_cluster_check_consistency(c, settings, 6));
	return choose_instruction_set(c, o->lowest_instruction_set == CHOIR_ON);
}

static choir_status check_roles(const choir_cluster *c, const chi_roles *r)
{
	if (r->source == NULL || (c->workers == r->workers && c->worker == r->worker))
		return CHOIR_OK;
	if (c->workers == r->workers)
		return choir_fail(CHOIR_INVALID,
				"%s makes this process worker %d, %s makes it worker %d; give tasks to processes "
				"in the order of their ranks",
				r->source, r->worker, c->transport, c->worker);
	char found[CHI_TRANSPORT_TEXT + 40] = "this process was started alone";
	if (strcmp(c->transport_table.name, chi_single_worker_transport.name) != 0)
		snprintf(found, sizeof found, "%s finds %d", c->transport, c->workers);
	return choir_fail(CHOIR_INVALID,
			"%s names %d worker%s, but %s; start the program with mpirun -n %d PROGRAM, or srun "
			"--mpi=pmix -n %d PROGRAM",
			r->source, r->workers, r->workers == 1 ? "" : "s", found, r->workers, r->workers);
}

choir_cluster *chi_cluster_settle(
		choir_cluster *c, const chi_roles *r, const choir_cluster_options *o)
{
	if (c == NULL)
		return NULL;
	choir_status status = check_roles(c, r);
	if (status == CHOIR_OK)
		status = check_consistency(c, o);
	if (status != CHOIR_OK) {
		chi_cluster_give_up(c);
		choir_cluster_free(c);
		return NULL;
	}
	if (r->task_given) {
		c->task = r->task;
		c->task_index = r->index;
	}
	return c;
}

choir_cluster *choir_cluster_new(const choir_cluster_options *given)
{
	choir_cluster_options o;
	chi_roles roles;
	chi_launcher launcher;
	if (chi_cluster_take_options(given, &o) != CHOIR_OK || chi_roles_find(&roles, &o) != CHOIR_OK)
		return NULL;
	if (roles.task_given && roles.task == CHI_TASK_PS)
		return chi_fail_null(CHOIR_UNSUPPORTED,
				"%s: this process is a ps, which belongs to a coordinator's job "
				"(choir/coordinator.h); workers in step have none",
				roles.source);
	const bool evaluator = roles.task_given && roles.task == CHI_TASK_EVALUATOR;
	const char *transport = evaluator ? "alone" : o.transport;
	if (transport == NULL || strcmp(transport, "mpi") == 0) {
		if (chi_launcher_find(&launcher) != CHOIR_OK)
			return NULL;
		if (transport != NULL || launcher.name != NULL)
			return chi_cluster_settle(chi_mpi_open(&o, &launcher, NULL, 0), &roles, &o);
		transport = "alone";
	}
	const choir_transport_table *transport_table = chi_transport_find(transport);
	if (transport_table == NULL)
		return NULL;
	return chi_cluster_settle(chi_cluster_open(transport_table, o.argument, &o), &roles, &o);
}

const char *chi_cluster_name(const choir_cluster *c, int worker, char text[CHI_WORKER_NAME + 32])
{
	const char *where = choir_cluster_worker_name(c, worker);
	snprintf(text, CHI_WORKER_NAME + 32, where[0] == '\0' ? "worker %d%s" : "worker %d (%s)",
			worker, where);
	return text;
}

double chi_cluster_deadline(const choir_cluster *c, double seconds)
{
	return seconds >= 0 ? c->transport_table.now(c->self) + seconds : HUGE_VAL;
}

choir_status chi_cluster_give_up(choir_cluster *c)
{
	chi_error why;
	chi_error_save(&why);
	chi_mutex_lock(&c->lock);
	if (chi_atomic32_load(&c->failed) == 0) {
		if (c->cause != NULL)
			why = *c->cause;
		c->failure = why;
		chi_health_fail(why.status, why.text, c->ended_by_other);
		chi_atomic32_store(&c->failed, 1);
		if (!c->ended_by_other)
			c->transport_table.abort(c->self, why.text);
	}
	chi_mutex_unlock(&c->lock);
	return chi_error_restore(&why);
}

double chi_cluster_failing(choir_cluster *c, const chi_error *why)
{
	static const double SECONDS = 10;
	chi_mutex_lock(&c->lock);
	c->cause = why;
	chi_mutex_unlock(&c->lock);
	return chi_cluster_deadline(c, c->timeout >= 0 && c->timeout < SECONDS ? c->timeout : SECONDS);
}

int32_t chi_cluster_last(choir_cluster *c)
{
	const uint32_t worker = chi_atomic32_load(&c->last);
	return worker == 0 ? CHI_LAST_UNKNOWN : chi_last_worker((int) worker - 1);
}

choir_status chi_cluster_check(choir_cluster *c)
{
	if (chi_atomic32_load(&c->failed) == 0)
		return CHOIR_OK;
	return choir_fail(CHOIR_CANCELLED, "the cluster has failed before: %s", c->failure.text);
}

void choir_cluster_abort(choir_cluster *c, const char *why)
{
	if (c == NULL)
		return;
	chi_error kept;
	chi_error_save(&kept);
	choir_fail(CHOIR_STATE, "%s", why == NULL || why[0] == '\0' ? "no reason was given" : why);
	chi_cluster_give_up(c);
	chi_error_restore(&kept);
}

int choir_cluster_worker(const choir_cluster *c)
{
	return c == NULL ? 0 : c->worker;
}

int choir_cluster_workers(const choir_cluster *c)
{
	return c == NULL ? 0 : c->workers;
}

const char *choir_cluster_worker_name(const choir_cluster *c, int i)
{
	return c == NULL || c->names == NULL || i < 0 || i >= c->workers ? "" : c->names[i];
}

const char *choir_cluster_transport(const choir_cluster *c)
{
	return c == NULL ? "" : c->transport;
}
