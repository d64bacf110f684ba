// Who is what in a job: tasks as TensorFlow names them (spec 2.17). Nothing here starts or reaches
// anybody; the transport is compared with it afterwards.
#pragma once

#include "cluster/cluster.h"

typedef struct {
	const char *source; // "TF_CONFIG"; NULL: nobody has said anything
	bool task_given;
	chi_task task;
	int index;
	int count[CHI_TASKS]; // tasks of each type
	int worker, workers; // of the cluster that the task belongs to
} chi_roles;

choir_status chi_roles_set_task(chi_roles *r, const char *type, int64_t index);
// Checks it all, and works out worker and workers.
choir_status chi_roles_settle(chi_roles *r);
// From the options or the environment, settled.
choir_status chi_roles_find(chi_roles *r, const choir_cluster_options *o);
const char *chi_task_name(chi_task task);
