// {"cluster": {"worker": ["host:port", ...], ...}, "task": {"type": "worker", "index": 0}}. Only
// coordinators and parameter servers use addresses. Other keys are ignored.
#include "cluster/tf_config.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"

#include <string.h>

typedef struct {
	chi_roles *roles;
	chi_text *devices; // gets each address; or NULL
	const char *outer, *inner; // the keys that are being read; or NULL
	chi_json json;
	chi_json_token token;
} reader;

static choir_status wrong(const reader *r, const char *what)
{
	const bool both = r->outer != NULL && r->inner != NULL, any = r->outer || r->inner;
	return choir_fail(CHOIR_INVALID, "%s: %s%s%s%s%sbyte %zu: %s", r->roles->source,
			any ? "\"" : "", r->outer ? r->outer : "", both ? "." : "", r->inner ? r->inner : "",
			any ? "\", " : "", r->json.at, what);
}

static choir_status next(reader *r)
{
	r->token = chi_json_next(&r->json);
	return r->token == CHI_JSON_WRONG ? wrong(r, r->json.error) : CHOIR_OK;
}

static choir_status expect(reader *r, chi_json_token token, const char *what)
{
	CHOIR_TRY(next(r));
	return r->token == token ? CHOIR_OK : wrong(r, what);
}

static choir_status skip_value(reader *r)
{
	const bool opens = r->token == CHI_JSON_OBJECT || r->token == CHI_JSON_ARRAY;
	const int depth = r->json.depth - 1;
	while (opens && r->json.depth > depth)
		CHOIR_TRY(next(r));
	return CHOIR_OK;
}

static void keep_address(const reader *from, chi_task task, int index, const char *address)
{
	chi_roles *r = from->roles;
	char *to = NULL;
	if (from->devices != NULL)
		chi_text_add(from->devices, "%sremote:%s", from->devices->length > 0 ? "," : "", address);
	if (task == CHI_TASK_CHIEF && index == 0)
		to = r->chief_address;
	else if (task == CHI_TASK_PS && index < CHI_PS_ADDRESSES)
		to = r->ps_address[index];
	if (to != NULL && strlen(address) < CHI_ADDRESS)
		memcpy(to, address, strlen(address) + 1);
}

static choir_status read_addresses(reader *r, chi_task task, int *count)
{
	CHOIR_TRY(next(r));
	if (r->token != CHI_JSON_ARRAY && r->token != CHI_JSON_OBJECT)
		return wrong(r, "a list of addresses needed");
	const bool list = r->token == CHI_JSON_ARRAY;
	*count = 0;
	for (;;) {
		CHOIR_TRY(next(r));
		if (r->token == CHI_JSON_ARRAY_END || r->token == CHI_JSON_OBJECT_END)
			return CHOIR_OK;
		if (!list)
			CHOIR_TRY(next(r));
		if (r->token != CHI_JSON_STRING)
			return wrong(r, "an address must be a text");
		keep_address(r, task, (*count)++, r->json.text);
	}
}

static choir_status check_jobs(const reader *r, const bool seen[CHI_TASKS])
{
	const char *job = NULL;
	for (int i = CHI_TASKS; i-- > 0;) {
		if (r->roles->count[i] > 0)
			return CHOIR_OK;
		if (seen[i])
			job = chi_task_name((chi_task) i);
	}
	return job == NULL ? CHOIR_OK
					   : choir_fail(CHOIR_INVALID,
								 "%s: the job \"%s\" has no addresses; at least one is needed",
								 r->roles->source, job);
}

static choir_status read_jobs(reader *r)
{
	bool seen[CHI_TASKS] = { false };
	for (;;) {
		r->inner = NULL;
		CHOIR_TRY(next(r));
		if (r->token == CHI_JSON_OBJECT_END)
			return check_jobs(r, seen);
		int task = 0;
		while (task < CHI_TASKS && strcmp(r->json.text, chi_task_name((chi_task) task)) != 0)
			task++;
		char shown[64];
		if (task == CHI_TASKS)
			return choir_fail(CHOIR_INVALID,
					"%s: the job \"%s\" is unknown; chief, worker, evaluator or ps needed",
					r->roles->source, chi_text_clean(r->json.text, shown, sizeof shown));
		r->inner = chi_task_name((chi_task) task);
		if (seen[task])
			return wrong(r, "a job is given twice");
		seen[task] = true;
		CHOIR_TRY(read_addresses(r, (chi_task) task, &r->roles->count[task]));
	}
}

static choir_status read_index(reader *r, int64_t *index)
{
	uint64_t number;
	CHOIR_TRY(next(r));
	if (r->token == CHI_JSON_STRING && chi_parse_int64(r->json.text, index))
		return CHOIR_OK;
	if (r->token != CHI_JSON_NUMBER || !chi_json_uint64(&r->json, &number) || number > INT64_MAX)
		return wrong(r, "the index must be a number of 0 or more");
	*index = (int64_t) number;
	return CHOIR_OK;
}

static choir_status read_task(reader *r)
{
	char type[64] = "";
	int64_t index = INT64_MIN;
	for (;;) {
		r->inner = NULL;
		CHOIR_TRY(next(r));
		if (r->token == CHI_JSON_OBJECT_END)
			break;
		if (strcmp(r->json.text, "type") == 0) {
			r->inner = "type";
			CHOIR_TRY(expect(r, CHI_JSON_STRING, "the type must be a text"));
			chi_text_clean(r->json.text, type, sizeof type);
		} else if (strcmp(r->json.text, "index") == 0) {
			r->inner = "index";
			CHOIR_TRY(read_index(r, &index));
		} else {
			CHOIR_TRY(next(r));
			CHOIR_TRY(skip_value(r));
		}
	}
	if (type[0] == '\0' && index == INT64_MIN)
		return CHOIR_OK;
	if (type[0] == '\0' || index == INT64_MIN)
		return wrong(r, "a task needs a type and an index");
	return chi_roles_set_task(r->roles, type, index);
}

static choir_status read_cluster(reader *from, const char *source, char *json, size_t bytes)
{
	*from->roles = (chi_roles){ .source = source };
	chi_json_open(&from->json, json, bytes);
	CHOIR_TRY(expect(from, CHI_JSON_OBJECT, "the cluster must be an object"));
	CHOIR_TRY(read_jobs(from));
	return expect(from, CHI_JSON_END, "text after the end");
}

choir_status chi_roles_read_cluster(chi_roles *r, const char *source, char *json, size_t bytes)
{
	return read_cluster(&(reader){ .roles = r }, source, json, bytes);
}

choir_status chi_cluster_spec_devices(const char *cluster_spec, char **devices)
{
	static const char source[] = "strategy: .cluster_spec";
	chi_roles roles;
	chi_text text = { 0 };
	char *copy = chi_strdup(cluster_spec);
	*devices = NULL;
	if (copy == NULL)
		return CHOIR_NO_MEMORY;
	choir_status status = read_cluster(
			&(reader){ .roles = &roles, .devices = &text }, source, copy, strlen(copy));
	if (status == CHOIR_OK && text.failed)
		status = CHOIR_NO_MEMORY;
	else if (status == CHOIR_OK && text.length == 0)
		status = choir_fail(CHOIR_INVALID, "%s has no address", source);
	if (status == CHOIR_OK && (*devices = chi_strdup(text.data)) == NULL)
		status = CHOIR_NO_MEMORY;
	chi_text_free(&text);
	chi_free(copy);
	return status;
}

choir_status chi_roles_read(chi_roles *r, const char *source, char *json, size_t bytes)
{
	*r = (chi_roles){ .source = source };
	reader from = { .roles = r };
	bool cluster = false, task = false;
	chi_json_open(&from.json, json, bytes);
	CHOIR_TRY(expect(&from, CHI_JSON_OBJECT, "an object needed"));
	for (;;) {
		from.outer = from.inner = NULL;
		CHOIR_TRY(next(&from));
		if (from.token == CHI_JSON_OBJECT_END)
			return expect(&from, CHI_JSON_END, "text after the end");
		bool *seen = strcmp(from.json.text, "cluster") == 0 ? &cluster
				: strcmp(from.json.text, "task") == 0		? &task
															: NULL;
		if (seen == NULL) {
			CHOIR_TRY(next(&from));
			CHOIR_TRY(skip_value(&from));
			continue;
		}
		from.outer = seen == &cluster ? "cluster" : "task";
		if (*seen)
			return wrong(&from, "a key is given twice");
		*seen = true;
		CHOIR_TRY(expect(&from, CHI_JSON_OBJECT, "an object needed"));
		CHOIR_TRY(seen == &cluster ? read_jobs(&from) : read_task(&from));
	}
}
