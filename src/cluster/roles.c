// The tasks of a cluster: worker 0 is the chief, or acts as one. An evaluator is the chief of its
// own job. Parameter servers are in no job.
#include "cluster/roles.h"

#include "base/alloc.h"
#include "cluster/launcher.h"
#include "cluster/tf_config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *chi_task_name(chi_task task)
{
	static const char *const names[CHI_TASKS] = { [CHI_TASK_CHIEF] = "chief",
		[CHI_TASK_WORKER] = "worker",
		[CHI_TASK_EVALUATOR] = "evaluator",
		[CHI_TASK_PS] = "ps" };
	return names[task];
}

choir_status chi_roles_set_task(chi_roles *r, const char *type, int64_t index)
{
	int task = 0;
	while (task < CHI_TASKS && strcmp(type, chi_task_name((chi_task) task)) != 0)
		task++;
	if (task == CHI_TASKS)
		return choir_fail(CHOIR_INVALID,
				"%s: the task type \"%.60s\" is unknown; chief, worker, evaluator or ps needed",
				r->source, type);
	if (index < 0 || index > INT32_MAX)
		return choir_fail(CHOIR_INVALID, "%s: task %s %" PRId64 "; an index of 0 or more needed",
				r->source, type, index);
	r->task = (chi_task) task;
	r->index = (int) index;
	r->task_given = true;
	return CHOIR_OK;
}

static choir_status check_counts(const chi_roles *r)
{
	static const chi_task alone[] = { CHI_TASK_CHIEF, CHI_TASK_EVALUATOR };
	for (size_t i = 0; i < 2; i++)
		if (r->count[alone[i]] > 1)
			return choir_fail(CHOIR_INVALID, "%s: %d tasks of type %s, at most 1 possible",
					r->source, r->count[alone[i]], chi_task_name(alone[i]));
	return CHOIR_OK;
}

static choir_status check_task(const chi_roles *r)
{
	const int count = r->count[r->task];
	const char *name = chi_task_name(r->task);
	// An evaluator need not be in the cluster.
	if (r->task == CHI_TASK_EVALUATOR && count == 0 && r->index == 0)
		return CHOIR_OK;
	if (count == 0)
		return choir_fail(CHOIR_INVALID, "%s: this is task %s %d, but the cluster has no %s",
				r->source, name, r->index, name);
	if (r->index >= count)
		return choir_fail(CHOIR_INVALID,
				"%s: this is task %s %d, but the cluster has only %d, counted from 0", r->source,
				name, r->index, count);
	return CHOIR_OK;
}

choir_status chi_roles_settle(chi_roles *r)
{
	bool any = false;
	for (int i = 0; i < CHI_TASKS; i++)
		any |= r->count[i] > 0;
	// Cloud services give a job's only process a task without a cluster.
	if (!any && r->index == 0 && (r->task == CHI_TASK_CHIEF || r->task == CHI_TASK_WORKER))
		r->task_given = false;
	if (!any && (!r->task_given || r->task == CHI_TASK_EVALUATOR)) {
		*r = (chi_roles){ .source = r->task_given ? r->source : NULL,
			.task_given = r->task_given,
			.task = r->task_given ? r->task : CHI_TASK_WORKER,
			.workers = 1 };
		return CHOIR_OK;
	}
	CHOIR_TRY(check_counts(r));
	if (!r->task_given)
		return choir_fail(CHOIR_INVALID,
				"%s: the task of this process is missing; its type and index are needed",
				r->source);
	CHOIR_TRY(check_task(r));
	const int chiefs = r->count[CHI_TASK_CHIEF];
	const bool own_job = r->task == CHI_TASK_EVALUATOR || r->task == CHI_TASK_PS;
	r->workers = own_job ? 1 : chiefs + r->count[CHI_TASK_WORKER];
	r->worker = own_job || r->task == CHI_TASK_CHIEF ? 0 : r->index + chiefs;
	return CHOIR_OK;
}

static choir_status read_text(chi_roles *r, const char *source, const char *text,
		choir_status (*reader)(chi_roles *, const char *, char *, size_t))
{
	char *copy = chi_strdup(text);
	CHOIR_TRY(chi_made(copy));
	const choir_status status = reader(r, source, copy, strlen(copy));
	chi_free(copy);
	return status;
}

static choir_status by_hand(chi_roles *r, const choir_cluster_options *o)
{
	CHOIR_TRY(read_text(r, "cluster_spec", o->cluster_spec, chi_roles_read_cluster));
	if (o->task_type != NULL)
		CHOIR_TRY(chi_roles_set_task(r, o->task_type, o->task_index));
	return chi_roles_settle(r);
}

// torchrun's variables only number the workers.
static choir_status from_numbers(chi_roles *r)
{
	bool there;
	int index = 0, count = 1;
	*r = (chi_roles){ .task = CHI_TASK_WORKER, .workers = 1 };
	if (getenv("LOCAL_RANK") == NULL)
		return CHOIR_OK;
	CHOIR_TRY(chi_launcher_pair("RANK", "WORLD_SIZE", &there, &index, &count));
	if (!there)
		return CHOIR_OK;
	r->source = "torchrun's RANK and WORLD_SIZE";
	r->task_given = true;
	r->index = r->worker = index;
	r->count[CHI_TASK_WORKER] = r->workers = count;
	return CHOIR_OK;
}

choir_status chi_roles_find(chi_roles *r, const choir_cluster_options *o)
{
	if (o->cluster_spec != NULL)
		return by_hand(r, o);
	if (o->task_type != NULL)
		return choir_fail(CHOIR_INVALID,
				"task_type \"%.60s\" given without cluster_spec; both needed", o->task_type);
	const char *config = getenv("TF_CONFIG");
	if (config == NULL || config[0] == '\0')
		return from_numbers(r);
	CHOIR_TRY(read_text(r, "TF_CONFIG", config, chi_roles_read));
	CHOIR_TRY(chi_roles_settle(r));
	return r->source == NULL ? from_numbers(r) : CHOIR_OK;
}

bool choir_cluster_is_chief(const choir_cluster *c)
{
	return c != NULL && c->worker == 0;
}

const char *choir_cluster_task_type(const choir_cluster *c)
{
	return c == NULL ? "" : chi_task_name(c->task);
}

int choir_cluster_task_index(const choir_cluster *c)
{
	return c == NULL ? 0 : c->task_index;
}
