// TensorFlow's tasks (spec 2.17). choir_cluster_new compares them with the transport.
#pragma once

#include "cluster/cluster.h"

enum { CHI_ADDRESS = 128, CHI_PS_ADDRESSES = 16 };

typedef struct chi_roles {
	const char *source;
	bool task_given;
	chi_task task;
	int index;
	int count[CHI_TASKS];
	int worker, workers;
	// "": not given, or too long
	char chief_address[CHI_ADDRESS], ps_address[CHI_PS_ADDRESSES][CHI_ADDRESS];
} chi_roles;

choir_status chi_roles_set_task(chi_roles *r, const char *type, int64_t index);
choir_status chi_roles_settle(chi_roles *r);
// By the options or the environment.
choir_status chi_roles_find(chi_roles *r, const choir_cluster_options *o);
const char *chi_task_name(chi_task task);
