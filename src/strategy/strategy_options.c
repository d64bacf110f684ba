// Options of strategies, and of calls, which override them.
#include "strategy/strategy_options.h"

#include "base/options.h"
#include "cluster/tf_config.h"
#include "strategy/device_placement.h"
#include "strategy/strategy_precision.h"

#include <string.h>

enum { MAX_REPLICAS = 1 << 20 };

static choir_status check_workers(const choir_strategy_table *t, const choir_strategy_options *o)
{
	if ((o->workers != 0 || o->locked_updates != CHOIR_DEFAULT) &&
			!(t->features & CHOIR_FEATURE_WORKERS))
		return choir_fail(CHOIR_INVALID,
				"strategy: \"%s\" has no workers of its own; "
				".workers and .locked_updates must not be set",
				t->name);
	if (o->workers < 0 || o->workers > CHI_MAX_DEVICES)
		return choir_fail(CHOIR_INVALID, "strategy: .workers is %d; 1 to %d are possible",
				o->workers, CHI_MAX_DEVICES);
	if (o->replicas > 0 && o->replicas < o->workers)
		return choir_fail(CHOIR_INVALID,
				"strategy: there are %d replica%s for %d workers; each worker needs one",
				o->replicas, o->replicas == 1 ? "" : "s", o->workers);
	return CHOIR_OK;
}

static choir_status check_cluster(const choir_strategy_table *t, const choir_strategy_options *o)
{
	if (o->cluster == NULL)
		return CHOIR_OK;
	if (!(t->features & CHOIR_FEATURE_CLUSTER))
		return choir_fail(CHOIR_INVALID,
				"strategy: \"%s\" runs in one process, but "
				".cluster is set; use \"multi_worker_mirrored\"",
				t->name);
	const int workers = choir_cluster_workers(o->cluster);
	if (o->replicas > 0 && o->replicas < workers)
		return choir_fail(CHOIR_INVALID,
				"strategy: there are %d replica%s for %d "
				"workers of the cluster; each worker needs one",
				o->replicas, o->replicas == 1 ? "" : "s", workers);
	return CHOIR_OK;
}

static choir_status check_partition(const choir_strategy_table *t, const choir_strategy_options *o)
{
	const bool partitioned = o->partition != CHOIR_PARTITION_NONE;
	if ((partitioned || o->partition_size != 0 || o->max_shards != 0) &&
			!(t->features & CHOIR_FEATURE_SHARDS))
		return choir_fail(CHOIR_INVALID,
				"strategy: \"%s\" has no shards; .partition, "
				".partition_size and .max_shards must not be set",
				t->name);
	if ((unsigned) o->partition > CHOIR_PARTITION_MAX_SIZE)
		return choir_fail(CHOIR_INVALID,
				"strategy: .partition is %d; NONE, FIXED, MIN_SIZE or MAX_SIZE is needed",
				(int) o->partition);
	if (o->max_shards < 0 || (o->max_shards > 0 && !partitioned) ||
			(o->max_shards == 0 && o->partition == CHOIR_PARTITION_FIXED))
		return choir_fail(CHOIR_INVALID,
				"strategy: .max_shards is %d; FIXED needs 1 or more, "
				"MIN_SIZE and MAX_SIZE 0 or more, no .partition 0",
				o->max_shards);
	const bool by_size = partitioned && o->partition != CHOIR_PARTITION_FIXED;
	if (o->partition_size < 0 || (o->partition_size > 0 && !by_size) ||
			(o->partition_size == 0 && o->partition == CHOIR_PARTITION_MAX_SIZE))
		return choir_fail(CHOIR_INVALID,
				"strategy: .partition_size is %lld bytes; MAX_SIZE "
				"needs 1 or more, MIN_SIZE 0 or more, others 0",
				(long long) o->partition_size);
	return CHOIR_OK;
}

static choir_status check_options(const choir_strategy_table *t, const choir_strategy_options *o)
{
	if (o->replicas < 0 || o->replicas > MAX_REPLICAS)
		return choir_fail(CHOIR_INVALID, "strategy: .replicas is %d; 1 to %d are possible",
				o->replicas, MAX_REPLICAS);
	if (t->max_replicas > 0 && o->replicas > t->max_replicas)
		return choir_fail(CHOIR_INVALID,
				"strategy: \"%s\" has at most %d replica; .replicas is %d", t->name,
				t->max_replicas, o->replicas);
	if (!(o->timeout >= 0) && o->timeout != CHOIR_FOREVER)
		return choir_fail(CHOIR_INVALID,
				"strategy: .timeout is %g seconds; 0 or more, or CHOIR_FOREVER, is needed",
				o->timeout);
	if (o->cores_per_device < 0)
		return choir_fail(CHOIR_INVALID, "strategy: .cores_per_device is %d; 0 or more is needed",
				o->cores_per_device);
	if (o->parameter_devices != NULL && !(t->features & CHOIR_FEATURE_PARAMETER_DEVICES))
		return choir_fail(CHOIR_INVALID,
				"strategy: \"%s\" has no parameter devices "
				"of its own; .parameter_devices is \"%s\"",
				t->name, o->parameter_devices);
	if (o->compare_steps < CHOIR_NONE)
		return choir_fail(CHOIR_INVALID,
				"strategy: .compare_steps is %lld; 0 or more, or CHOIR_NONE, is needed",
				(long long) o->compare_steps);
	if ((unsigned) o->overlap > CHOIR_OFF)
		return choir_fail(CHOIR_INVALID,
				"strategy: .overlap is %d; CHOIR_ON or CHOIR_OFF is needed", (int) o->overlap);
	if (o->wire != CHOIR_F32 && o->wire != CHOIR_F16 && o->wire != CHOIR_BF16)
		return choir_fail(CHOIR_INVALID,
				"strategy: .wire is %s; CHOIR_F32, CHOIR_F16 or CHOIR_BF16 is needed",
				choir_dtype_name(o->wire));
	CHOIR_TRY(chi_strategy_check_precision(o));
	CHOIR_TRY(check_workers(t, o));
	CHOIR_TRY(check_cluster(t, o));
	return check_partition(t, o);
}

static choir_status check_communication(
		const choir_communication_options *o, choir_communication_options *all)
{
	CHOIR_TRY(chi_options_take("communication: the options'", all, sizeof *all, o));
	if (all->bytes_per_pack < 0 || all->num_packs < 0)
		return choir_fail(CHOIR_INVALID, "communication: .%s is %lld; 0 or more is needed",
				all->num_packs < 0 ? "num_packs" : "bytes_per_pack",
				(long long) (all->num_packs < 0 ? all->num_packs : all->bytes_per_pack));
	if (all->bytes_per_pack > 0 && all->num_packs > 0)
		return choir_fail(CHOIR_INVALID,
				"communication: .bytes_per_pack is %lld and "
				".num_packs is %lld; set only one of them",
				(long long) all->bytes_per_pack, (long long) all->num_packs);
	if (!(all->timeout >= 0) && all->timeout != CHOIR_FOREVER)
		return choir_fail(CHOIR_INVALID,
				"communication: .timeout is %g seconds; 0 or more, or CHOIR_FOREVER, is needed",
				all->timeout);
	if ((unsigned) all->slices > CHOIR_SLICES_SMALLEST)
		return choir_fail(CHOIR_INVALID,
				"communication: .slices is %d; CONCATENATED, MERGED or SMALLEST is needed",
				(int) all->slices);
	return CHOIR_OK;
}

static choir_status copy_communication(choir_strategy *s, choir_strategy_options *o)
{
	CHOIR_TRY(check_communication(o->communication, &s->communication));
	const char *algorithm = s->communication.implementation;
	if (algorithm != NULL && o->cross_device_ops != NULL)
		return choir_fail(CHOIR_INVALID,
				"strategy: cross_device_ops \"%s\" and the communication's "
				"implementation \"%s\" mean the same; set only one of them",
				o->cross_device_ops, algorithm);
	if (algorithm != NULL && strcmp(algorithm, "auto") != 0)
		o->cross_device_ops = algorithm;
	s->communication.implementation = NULL;
	o->communication = o->communication == NULL ? NULL : &s->communication;
	return CHOIR_OK;
}

static choir_status copy_text(const char **text)
{
	if (*text != NULL)
		*text = chi_strdup(*text);
	return chi_made(*text);
}

static choir_status use_cluster_spec(choir_strategy *s, const choir_strategy_options *o)
{
	char *devices;
	if (o->devices != NULL)
		return choir_fail(CHOIR_INVALID,
				"strategy: .devices is \"%.80s\", and .cluster_spec is given; one of them needed",
				o->devices);
	CHOIR_TRY(chi_cluster_spec_devices(o->cluster_spec, &devices));
	s->options.devices = devices;
	return CHOIR_OK;
}

choir_status chi_strategy_options_copy(choir_strategy *s, const choir_strategy_options *o)
{
	choir_strategy_options all = *o;
	CHOIR_TRY(check_options(&s->table, &all));
	if (s->table.max_replicas == 1)
		all.replicas = 1;
	CHOIR_TRY(copy_communication(s, &all));
	s->options = all;
	s->timeout = all.timeout == 0 ? 60 : all.timeout;
	const char **texts[] = { &s->options.devices, &s->options.cross_device_ops,
		&s->options.parameter_devices };
	choir_status status = CHOIR_OK;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (*texts[i] == NULL)
			continue;
		else if (status != CHOIR_OK || (status = copy_text(texts[i])) != CHOIR_OK)
			*texts[i] = NULL; // the caller owns the string
	s->options.cluster_spec = NULL;
	if (status == CHOIR_OK && o->cluster_spec != NULL)
		status = use_cluster_spec(s, o);
	return status;
}

static chi_communicator *find_communicator(choir_strategy *s, const char *name)
{
	if (name == NULL || strcmp(name, "auto") == 0 ||
			strcmp(name, s->communicator.table->name) == 0)
		return &s->communicator;
	for (chi_more_communicators *g = s->more_communicators; g != NULL; g = g->next)
		if (strcmp(name, g->communicator.table->name) == 0)
			return &g->communicator;
	if (s->process_group != NULL) // workers have one algorithm
		return chi_communicator_check_name(name) == CHOIR_OK ? &s->communicator : NULL;
	chi_more_communicators *g = chi_alloc(sizeof *g);
	if (g == NULL)
		return NULL;
	if (chi_communicator_open(&g->communicator, s->devices, s->replicas, s->device, name) !=
			CHOIR_OK) {
		chi_communicator_close(&g->communicator);
		chi_free(g);
		return NULL;
	}
	g->next = s->more_communicators;
	s->more_communicators = g;
	return &g->communicator;
}

choir_status chi_communication_resolve(
		choir_strategy *s, const choir_communication_options *o, chi_communication *communication)
{
	choir_communication_options call;
	CHOIR_TRY(check_communication(o, &call));
	const choir_communication_options *own = &s->communication;
	const bool packs = call.bytes_per_pack != 0 || call.num_packs != 0;
	communication->bytes_per_pack = packs ? call.bytes_per_pack : own->bytes_per_pack;
	communication->num_packs = packs ? call.num_packs : own->num_packs;
	communication->timeout = call.timeout != 0 ? call.timeout
			: own->timeout != 0				   ? own->timeout
											   : s->timeout;
	communication->slices = call.slices != CHOIR_SLICES_CONCATENATED ? call.slices : own->slices;
	communication->communicator = find_communicator(s, call.implementation);
	return chi_made(communication->communicator);
}

bool choir_strategy_require_static_shapes(const choir_strategy *s)
{
	(void) s;
	return false;
}
