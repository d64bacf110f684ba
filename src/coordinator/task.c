// Tasks: options or TF_CONFIG, the key, and the process's hello.
#include "coordinator/task.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/options.h"
#include "cluster/roles.h"
#include "coordinator/closure_message.h"
#include "coordinator/protocol.h"
#include "coordinator/serve_ps.h"
#include "coordinator/serve_worker.h"
#include "coordinator/task_key.h"
#include "strategy/context.h"
#include "supervisor/agent_message.h"
#include "supervisor/job_key.h"
#include "trace/health.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// TF_CONFIG's chief is the coordinator.
static choir_status take_roles(choir_task *t, const chi_roles *roles)
{
	const chi_roles r = *roles;
	if (r.task == CHI_TASK_EVALUATOR)
		return choir_fail(CHOIR_INVALID, "task: an evaluator; chief, worker or ps is needed");
	if (r.count[CHI_TASK_CHIEF] != 1)
		return choir_fail(CHOIR_INVALID, "task: %s has %d chief; 1 is needed", r.source,
				r.count[CHI_TASK_CHIEF]);
	snprintf(t->type, sizeof t->type, "%s",
			r.task == CHI_TASK_CHIEF ? "coordinator" : chi_task_name(r.task));
	snprintf(t->address, sizeof t->address, "%s", r.chief_address);
	if (r.task == CHI_TASK_PS && r.index < CHI_PS_ADDRESSES)
		snprintf(t->ps_address, sizeof t->ps_address, "%s", r.ps_address[r.index]);
	t->o.index = r.index;
	t->o.servers = r.count[CHI_TASK_PS];
	return CHOIR_OK;
}

static bool is(const choir_task *t, const char *type)
{
	return strcmp(t->type, type) == 0;
}

// choir run's, else the launcher's.
static int find_number(void)
{
	int64_t number;
	const char *own = getenv("CHOIR_WORKER");
	return own != NULL && chi_parse_int64(own, &number) && number >= 0 && number <= INT_MAX
			? (int) number
			: chi_launcher_rank();
}

static choir_status take_number(choir_task *t, int number)
{
	const char *own = getenv(CHI_TASK_HOST);
	char host[64] = "127.0.0.1";
	const int servers = t->o.servers;
	snprintf(t->type, sizeof t->type, "%s",
			number == 0					? "coordinator"
					: number <= servers ? "ps"
										: "worker");
	t->o.index = number == 0 ? 0 : number <= servers ? number - 1 : number - 1 - servers;
	if (!is(t, "ps"))
		return CHOIR_OK;
	const bool named = own != NULL && own[0] != '\0';
	const bool local = strncmp(t->address, "127.", 4) == 0;
	if (!named && !local && gethostname(host, sizeof host - 1) != 0)
		return choir_fail(CHOIR_IO, "task: this host has no name");
	const int n = strncmp(t->address, "unix:", 5) == 0
			? snprintf(t->ps_address, sizeof t->ps_address, "%s.ps%d", t->address, t->o.index)
			: snprintf(t->ps_address, sizeof t->ps_address, "%s:0", named ? own : host);
	return n < (int) sizeof t->ps_address
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID, CHI_TASK_VARIABLE ": the address is too long");
}

// SERVERS@ADDRESS
static choir_status take_variable(choir_task *t, const char *text)
{
	int64_t servers;
	char count[8];
	const char *at = strchr(text, '@');
	const size_t n = at == NULL ? sizeof count : (size_t) (at - text);
	snprintf(count, sizeof count, "%.*s", (int) (n < sizeof count ? n : 0), text);
	if (!chi_parse_int64(count, &servers) || servers < 1 || servers > CHI_SERVERS_MAX ||
			strlen(at + 1) >= sizeof t->address)
		return choir_fail(CHOIR_INVALID,
				CHI_TASK_VARIABLE
				": found \"%.60s\"; SERVERS@ADDRESS needed, with 1 to %d servers",
				text, CHI_SERVERS_MAX);
	const int number = find_number();
	if (number < 0)
		return choir_fail(CHOIR_INVALID,
				CHI_TASK_VARIABLE ": neither CHOIR_WORKER nor a launcher gives this process a "
								  "number; one of them needed");
	t->o.servers = (int) servers;
	snprintf(t->address, sizeof t->address, "%s", at + 1);
	return take_number(t, number);
}

static choir_status read_environment(choir_task *t)
{
	chi_roles r;
	const char *text = getenv(CHI_TASK_VARIABLE);
	CHOIR_TRY(
			chi_roles_find(&r, &(choir_cluster_options){ .size = sizeof(choir_cluster_options) }));
	if (r.source != NULL && r.task_given && r.count[CHI_TASK_PS] > 0)
		return take_roles(t, &r);
	if (text != NULL && text[0] != '\0')
		return take_variable(t, text);
	return choir_fail(CHOIR_NOT_FOUND,
			"task: no .type, no TF_CONFIG with a ps, and no " CHI_TASK_VARIABLE
			"; one of them needed");
}

static choir_status check(choir_task *t)
{
	choir_task_options *o = &t->o;
	if (!is(t, "coordinator") && !is(t, "worker") && !is(t, "ps"))
		return choir_fail(CHOIR_INVALID,
				"task: type \"%.40s\" is unknown; coordinator, worker or ps is needed", t->type);
	if (t->address[0] == '\0')
		return choir_fail(CHOIR_INVALID, "task: .address of the coordinator is missing");
	if (is(t, "ps") && t->ps_address[0] == '\0')
		return choir_fail(CHOIR_INVALID, "task: .ps_address of this ps is missing");
	if (is(t, "coordinator") && (o->servers < 1 || o->servers > CHI_SERVERS_MAX))
		return choir_fail(CHOIR_INVALID, "task: %d servers; 1 to %d are needed", o->servers,
				CHI_SERVERS_MAX);
	if (o->index < 0 || (is(t, "ps") && o->index >= CHI_SERVERS_MAX))
		return choir_fail(CHOIR_INVALID, "task: %s %d; 0 to %d is needed", t->type, o->index,
				CHI_SERVERS_MAX - 1);
	double *const times[] = { &o->start_timeout, &o->heartbeat, &o->lost_after };
	static const double standard[] = { 60, 0.5, 5 };
	for (int i = 0; i < 3; i++) {
		if (!(*times[i] >= 0 && *times[i] <= 1e6))
			return choir_fail(CHOIR_INVALID, "task: a time of %g s", *times[i]);
		*times[i] = *times[i] > 0 ? *times[i] : standard[i];
	}
	if (o->lost_after < 2 * o->heartbeat)
		return choir_fail(CHOIR_INVALID,
				"task: .lost_after is %g s, but .heartbeat %g s; at least twice as much is needed",
				o->lost_after, o->heartbeat);
	return CHOIR_OK;
}

static choir_status copy(char *to, size_t size, const char *from, const char *what)
{
	if (from != NULL && strlen(from) >= size)
		return choir_fail(CHOIR_INVALID, "task: %s of %zu bytes; less than %zu are needed", what,
				strlen(from), size);
	snprintf(to, size, "%s", from == NULL ? "" : from);
	return CHOIR_OK;
}

static choir_status open_task(choir_task *t, const choir_task_options *given)
{
	CHOIR_TRY(chi_options_take("task: the options'", &t->o, sizeof t->o, given));
	CHOIR_TRY(copy(t->address, sizeof t->address, t->o.address, ".address"));
	CHOIR_TRY(copy(t->ps_address, sizeof t->ps_address, t->o.ps_address, ".ps_address"));
	if (t->o.type == NULL)
		CHOIR_TRY(read_environment(t));
	else
		CHOIR_TRY(copy(t->type, sizeof t->type, t->o.type, ".type"));
	CHOIR_TRY(check(t));
	CHOIR_TRY(chi_task_find_key(t));
	const chi_key *key = t->key.size > 0 ? &t->key : NULL;
	t->connections = chi_connections_open(key, t->o.plain == CHOIR_ON);
	chi_key_clear(&t->key); // the connections have a copy
	return chi_made(t->connections);
}

choir_task *choir_task_new(const choir_task_options *o)
{
	choir_task *t = chi_alloc(sizeof *t);
	if (t != NULL && open_task(t, o) == CHOIR_OK)
		return t;
	choir_task_free(t);
	return NULL;
}

void choir_task_free(choir_task *t)
{
	if (t == NULL)
		return;
	chi_connections_free(t->connections);
	chi_free(t);
}

const char *choir_task_type(const choir_task *t)
{
	return t == NULL ? "" : t->type;
}

int choir_task_index(const choir_task *t)
{
	return t == NULL ? 0 : t->o.index;
}

choir_status chi_task_take_options(
		choir_task *t, const choir_coordinator_options *o, choir_coordinator_options *all)
{
	CHOIR_TRY(chi_options_take("coordinator: the options'", all, sizeof *all, o));
	if (all->functions == NULL || all->functions[0].name == NULL || all->build == NULL)
		return choir_fail(CHOIR_INVALID, "coordinator: .functions and .build are needed");
	t->functions = 0;
	for (const choir_function *f = all->functions; f->name != NULL; f++, t->functions++)
		if ((f->fn == NULL) == (f->dataset == NULL) || chi_task_find(all, f->name) != t->functions)
			return choir_fail(CHOIR_INVALID,
					"coordinator: function \"%.80s\" needs one of .fn and .dataset, and a name of "
					"its own",
					f->name);
	if (all->queue < 0 || all->attempts < 0 || (all->window < 0 && all->window != CHOIR_ZERO))
		return choir_fail(CHOIR_INVALID, "coordinator: .queue, .window or .attempts is negative");
	all->queue = all->queue > 0 ? all->queue : 262144;
	all->attempts = all->attempts > 0 ? all->attempts : 8;
	all->window = all->window == CHOIR_ZERO ? 0 : all->window > 0 ? all->window : 1;
	return CHOIR_OK;
}

int chi_task_find(const choir_coordinator_options *o, const char *name)
{
	for (int i = 0; name != NULL && o->functions[i].name != NULL; i++)
		if (strcmp(o->functions[i].name, name) == 0)
			return i;
	return CHOIR_NONE;
}

choir_status chi_task_introduce(
		choir_task *t, const choir_coordinator_options *o, uint64_t model_hash)
{
	uint64_t table = 0;
	const int index = strcmp(t->type, "ps") == 0 ? t->o.index : CHOIR_NONE;
	CHOIR_TRY(chi_hello_make(&t->hello, t->type, index, t->connections->job, o->program));
	for (const choir_function *f = o->functions; f->name != NULL; f++)
		table = chi_hash_mix(table ^ chi_hash_text(f->name)) + (f->fn != NULL);
	CHOIR_TRY(chi_hello_add(&t->hello, "function table", "%d functions, hash %016llx",
			t->functions, (unsigned long long) table));
	return chi_hello_add(&t->hello, "model", "hash %016llx", (unsigned long long) model_hash);
}

chi_hub_options chi_task_hub_options(const choir_task *t, size_t model_bytes)
{
	// Values with up to two slots, and arguments or results.
	return (chi_hub_options){ .heartbeat = t->o.heartbeat,
		.lost_after = t->o.lost_after,
		.max = 4 * (uint64_t) model_bytes + CHI_CLOSURE_MAX + (1 << 20) };
}

choir_status chi_task_build(choir_strategy *s, const choir_coordinator_options *o)
{
	choir_status status = CHOIR_INTERNAL;
	bool entered = false;
	CHOIR_SCOPE (s) {
		entered = true;
		status = o->build(s, o->user);
	}
	return entered ? status : choir_error_status();
}

static choir_status serve(
		choir_task *t, const choir_strategy_options *options, const choir_coordinator_options *all)
{
	choir_strategy *s = choir_parameter_server_strategy_new(options);
	CHOIR_TRY(chi_made(s));
	choir_status status = s->workers == 1
			? chi_task_build(s, all)
			: choir_fail(CHOIR_INVALID, "serve: .workers is %d; 0 or 1 is needed", s->workers);
	if (status == CHOIR_OK)
		status = is(t, "ps") ? chi_serve_ps(t, s, all) : chi_serve_worker(t, s, all);
	choir_strategy_free(s);
	return status;
}

choir_status choir_task_serve(
		choir_task *t, const choir_strategy_options *options, const choir_coordinator_options *o)
{
	choir_coordinator_options all;
	if (t == NULL)
		return choir_fail(CHOIR_INVALID, "serve: the task is NULL");
	if (is(t, "coordinator"))
		return choir_fail(
				CHOIR_STATE, "serve: this task is the coordinator (choir_coordinator_new)");
	CHOIR_TRY(chi_task_take_options(t, o, &all));
	chi_health_open();
	const choir_status status = serve(t, options, &all);
	if (status != CHOIR_OK)
		chi_health_fail(status, choir_error(), status == CHOIR_PEER_LOST);
	chi_health_close(status != CHOIR_OK);
	return status;
}
