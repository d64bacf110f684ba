// One pass over the JSON text.
#include "strategy/cluster_spec.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"

#include <string.h>

// An object of lists of texts: a job is a key, and its addresses are the texts.
static choir_status read_jobs(chi_json *j, chi_text *to)
{
	bool valid = chi_json_next(j) == CHI_JSON_OBJECT;
	chi_json_token token = CHI_JSON_END;
	while (valid && (token = chi_json_next(j)) == CHI_JSON_KEY) {
		valid = chi_json_next(j) == CHI_JSON_ARRAY;
		while (valid && (token = chi_json_next(j)) == CHI_JSON_STRING)
			chi_text_add(to, "%sremote:%s", to->length > 0 ? "," : "", j->text);
		valid = valid && token == CHI_JSON_ARRAY_END;
	}
	valid = valid && token == CHI_JSON_OBJECT_END && chi_json_next(j) == CHI_JSON_END;
	if (!valid)
		return choir_fail(CHOIR_INVALID,
				"strategy: .cluster_spec: byte %zu: %s; JSON such as {\"worker\": "
				"[\"node1:7000\"]} is needed",
				j->at, j->error != NULL ? j->error : "something else");
	if (to->length == 0)
		return choir_fail(CHOIR_INVALID, "strategy: .cluster_spec has no address");
	return CHOIR_OK;
}

choir_status chi_cluster_spec_devices(const char *cluster_spec, char **devices)
{
	char *copy = chi_strdup(cluster_spec);
	*devices = NULL;
	if (copy == NULL)
		return CHOIR_NO_MEMORY;
	chi_json j;
	chi_text text = { 0 };
	chi_json_open(&j, copy, strlen(copy));
	choir_status status = read_jobs(&j, &text);
	if (status == CHOIR_OK && text.failed)
		status = CHOIR_NO_MEMORY;
	*devices = status == CHOIR_OK ? chi_strdup(text.data) : NULL;
	if (status == CHOIR_OK && *devices == NULL)
		status = CHOIR_NO_MEMORY;
	chi_text_free(&text);
	chi_free(copy);
	return status;
}
