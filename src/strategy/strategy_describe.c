// What a program may ask a strategy.
#include "strategy/strategy.h"

int choir_strategy_replicas(const choir_strategy *s)
{
	return s == NULL ? 0 : s->in_sync;
}

int choir_strategy_local_replicas(const choir_strategy *s)
{
	return s == NULL ? 0 : s->replicas;
}

int choir_strategy_first_replica(const choir_strategy *s)
{
	return s == NULL ? 0 : s->replica_offset;
}

const char *choir_strategy_name(const choir_strategy *s)
{
	return s == NULL ? "" : s->kind;
}

const char *choir_strategy_cross_device_ops(const choir_strategy *s)
{
	return s == NULL ? "" : s->communicator.table->name;
}

int choir_strategy_worker_devices(const choir_strategy *s)
{
	return s == NULL ? 0 : s->devices;
}

choir_device *choir_strategy_worker_device(const choir_strategy *s, int index)
{
	return s == NULL || index < 0 || index >= s->devices ? NULL : s->device[index];
}

int choir_strategy_worker_device_index(const choir_strategy *s, const choir_device *d)
{
	for (int i = 0; s != NULL && i < s->devices; i++)
		if (s->device[i] == d)
			return i;
	return CHOIR_NONE;
}

int choir_strategy_parameter_devices(const choir_strategy *s)
{
	return s == NULL ? 0 : s->parameters;
}

choir_device *choir_strategy_parameter_device(const choir_strategy *s, int index)
{
	return s == NULL || index < 0 || index >= s->parameters ? NULL : s->parameter[index];
}

bool choir_strategy_require_static_shapes(const choir_strategy *s)
{
	(void) s;
	return false;
}

bool choir_strategy_is_chief(const choir_strategy *s)
{
	return s != NULL && (s->options.cluster == NULL || choir_cluster_is_chief(s->options.cluster));
}

choir_cluster *choir_strategy_cluster(const choir_strategy *s)
{
	return s == NULL ? NULL : s->options.cluster;
}

bool choir_strategy_variable_created_in_scope(const choir_strategy *s, const choir_variable *v)
{
	return s != NULL && v != NULL && chi_strategy_has(s, v);
}
