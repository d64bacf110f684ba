// The chief broadcasts its options, each worker reports its first difference, and all fail with
// the same message. Workers with other options would sum gradients of different functions.
#include "compare_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_SIZE = 1 << 15, SHOWN = 200 };

// The first difference of a worker from the chief.
typedef struct {
	int32_t option; // index + 1; 0: none
	char value[SHOWN];
} difference;

static choir_status write_all(const command *c, char all[ALL_SIZE])
{
	size_t at = 0;
	memset(all, 0, ALL_SIZE);
	for (size_t i = 0; i < c->n; i++) {
		if (c->options[i].own)
			continue;
		const size_t length = options_value(&c->options[i], all + at, ALL_SIZE - at);
		if (length + 1 >= ALL_SIZE - at) // the last byte stays 0
			return choir_fail(CHOIR_INVALID,
					"%s: the options up to this one have more than "
					"%d bytes, the limit for several workers; needs shorter values",
					c->options[i].name, ALL_SIZE);
		at += length + 1;
	}
	return CHOIR_OK;
}

static void compare(const command *c, const char *own, const char *chiefs, difference *d)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->options[i].own)
			continue;
		if (strcmp(own, chiefs) != 0) {
			d->option = (int32_t) i + 1;
			snprintf(d->value, sizeof d->value, "%.*s", SHOWN - 1, own);
			return;
		}
		own += strlen(own) + 1;
		chiefs += strlen(chiefs) + 1;
	}
}

static const char *value_of(const command *c, const char *all, int32_t which)
{
	for (int32_t i = 0; i < which; i++)
		if (!c->options[i].own)
			all += strlen(all) + 1;
	return all;
}

static const char *shown(const char *value, char text[SHOWN + 3])
{
	if (value[0] == '\0')
		return "not given";
	snprintf(text, SHOWN + 3, "\"%.*s\"", SHOWN, value);
	return text;
}

static choir_status refuse(
		const command *c, const choir_cluster *workers, int w, difference *d, const char *chiefs)
{
	char theirs[SHOWN + 3], first[SHOWN + 3];
	d->value[SHOWN - 1] = '\0';
	return choir_fail(CHOIR_STATE, "worker %d (%s) differs: %s is %s, but %s at worker 0 (%s)", w,
			choir_cluster_worker_name(workers, w), c->options[d->option - 1].name,
			shown(d->value, theirs), shown(value_of(c, chiefs, d->option - 1), first),
			choir_cluster_worker_name(workers, 0));
}

choir_status options_check_equal(const command *c, choir_cluster *workers)
{
	static char own[ALL_SIZE], chiefs[ALL_SIZE];
	const int n = choir_cluster_workers(workers);
	if (n == 1)
		return CHOIR_OK;
	CHOIR_TRY(write_all(c, own));
	memcpy(chiefs, own, sizeof chiefs);
	CHOIR_TRY(choir_cluster_broadcast(workers, 0, chiefs, sizeof chiefs));
	difference mine = { .option = 0 }, *all = calloc((size_t) n, sizeof *all);
	if (all == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "no memory for the options of %d workers", n);
	compare(c, own, chiefs, &mine);
	choir_status status = choir_cluster_all_gather(workers, &mine, sizeof mine, all);
	for (int w = 1; status == CHOIR_OK && w < n; w++)
		if (all[w].option > 0 && (size_t) all[w].option <= c->n)
			status = refuse(c, workers, w, &all[w], chiefs);
	free(all);
	return status;
}
