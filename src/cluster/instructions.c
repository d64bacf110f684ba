// Processors that differ. Kernels for another instruction set add up in another order, so a job
// has one set: that which all workers have, or the lowest of theirs, if that was asked for.
#include "base/alloc.h"
#include "cluster/cluster.h"

#include <stdio.h>
#include <string.h>

typedef struct {
	char text[CHI_SETTING_VALUE];
} set_name;

static choir_status refuse(const choir_cluster *c, const set_name names[], int other, bool lowest)
{
	char first[CHI_WORKER_NAME + 32], second[CHI_WORKER_NAME + 32];
	chi_cluster_name(c, 0, first);
	chi_cluster_name(c, other, second);
	return choir_fail(lowest ? CHOIR_UNSUPPORTED : CHOIR_STATE,
			"%s differs: its instruction set is \"%.*s\", but \"%.*s\" at %s: %s", second,
			CHI_SETTING_VALUE - 1, names[other].text, CHI_SETTING_VALUE - 1, names[0].text, first,
			lowest ? "there is none that all have"
				   : "ask for the lowest (.lowest_instruction_set), or set CHOIR_INSTRUCTION_SET");
}

static choir_status find_lowest(
		const choir_cluster *c, const set_name names[], bool lowest, chi_instruction_set *set)
{
	chi_instruction_set first = CHI_INSTRUCTION_SET_BASE, one = CHI_INSTRUCTION_SET_BASE;
	// Else it is another processor's.
	const bool known = chi_instruction_set_find(names[0].text, &first);
	*set = first;
	for (int i = 1; i < c->workers; i++) {
		const bool same = strcmp(names[i].text, names[0].text) == 0;
		if (!same && !(lowest && known && chi_instruction_set_find(names[i].text, &one)))
			return refuse(c, names, i, lowest);
		*set = !same && one < *set ? one : *set;
	}
	return CHOIR_OK;
}

choir_status chi_cluster_common_instruction_set(
		choir_cluster *c, const char *own, bool lowest, chi_instruction_set *set)
{
	set_name *names = chi_alloc_array((size_t) c->workers + 1, sizeof *names);
	if (names == NULL)
		return chi_cluster_give_up(c);
	set_name *mine = &names[c->workers];
	snprintf(mine->text, sizeof mine->text, "%s", own);
	choir_status status = choir_cluster_all_gather(c, mine, sizeof *mine, names);
	for (int i = 0; i < c->workers; i++)
		names[i].text[CHI_SETTING_VALUE - 1] = '\0';
	if (status == CHOIR_OK)
		status = find_lowest(c, names, lowest, set);
	chi_free(names);
	return status;
}
