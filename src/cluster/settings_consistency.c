// Settings that must be equal on all workers. Every worker gets all, so all fail alike. Kernels of
// different instruction sets add in different orders.
#include "base/alloc.h"
#include "base/text.h"
#include "cluster/cluster.h"

#include <stdio.h>
#include <string.h>

void chi_setting_set(chi_setting *setting, const char *name, const char *fmt, ...)
{
	memset(setting, 0, sizeof *setting); // sent and compared as bytes
	snprintf(setting->name, sizeof setting->name, "%s", name);
	va_list args;
	va_start(args, fmt);
	const int length = chi_text_format(setting->value, sizeof setting->value, fmt, args);
	va_end(args);
	if (length < CHI_SETTING_VALUE)
		return;
	char *text = chi_alloc((size_t) length + 1);
	if (text == NULL) {
		memset(setting, 0, sizeof *setting);
		return;
	}
	va_start(args, fmt);
	chi_text_format(text, (size_t) length + 1, fmt, args);
	va_end(args);
	chi_text_fit(text, setting->value, sizeof setting->value);
	chi_free(text);
}

typedef struct {
	chi_setting setting[CHI_SETTINGS];
} worker_settings;

static choir_status compare(const choir_cluster *c, const worker_settings *all)
{
	char first[CHI_WORKER_NAME + 32], other[CHI_WORKER_NAME + 32];
	for (int i = 1; i < c->workers; i++)
		for (int k = 0; k < CHI_SETTINGS; k++) {
			const chi_setting *a = &all[0].setting[k], *b = &all[i].setting[k];
			if (memcmp(a, b, sizeof *a) == 0)
				continue;
			return choir_fail(CHOIR_STATE,
					"%s differs: its %.*s is \"%.*s\", but \"%.*s\" "
					"on %s; all workers need the same",
					chi_cluster_name(c, i, other), CHI_SETTING_NAME - 1,
					a->name[0] != '\0' ? a->name : b->name, CHI_SETTING_VALUE - 1, b->value,
					CHI_SETTING_VALUE - 1, a->value, chi_cluster_name(c, 0, first));
		}
	return CHOIR_OK;
}

choir_status chi_cluster_check_consistency(choir_cluster *c, const chi_setting settings[], int n)
{
	if (n < 0 || n > CHI_SETTINGS)
		return choir_fail(CHOIR_INTERNAL, "consistency: %d settings, at most %d", n, CHI_SETTINGS);
	bool made = true;
	for (int i = 0; i < n; i++)
		made = made && settings[i].name[0] != '\0';
	worker_settings *all = !made ? NULL : chi_alloc_array((size_t) c->workers + 1, sizeof *all);
	if (all == NULL)
		return chi_cluster_give_up(c);
	worker_settings *own = all + c->workers;
	if (n > 0)
		memcpy(own->setting, settings, (size_t) n * sizeof settings[0]);
	choir_status status = choir_cluster_all_gather(c, own, sizeof *own, all);
	if (status == CHOIR_OK)
		status = compare(c, all);
	chi_free(all);
	return status;
}

typedef struct {
	char text[CHI_SETTING_VALUE];
} set_name;

static choir_status refuse(const choir_cluster *c, const set_name names[], int other, bool lowest)
{
	char first[CHI_WORKER_NAME + 32], second[CHI_WORKER_NAME + 32];
	chi_cluster_name(c, 0, first);
	chi_cluster_name(c, other, second);
	return choir_fail(lowest ? CHOIR_UNSUPPORTED : CHOIR_STATE,
			"%s differs: its instruction set is \"%.*s\", but \"%.*s\" on %s; %s", second,
			CHI_SETTING_VALUE - 1, names[other].text, CHI_SETTING_VALUE - 1, names[0].text, first,
			lowest ? "no set is common to all workers"
				   : "ask for the lowest (.lowest_instruction_set), or set CHOIR_INSTRUCTION_SET");
}

static choir_status find_lowest(
		const choir_cluster *c, const set_name names[], bool lowest, chi_instruction_set *set)
{
	chi_instruction_set first = CHI_INSTRUCTION_SET_BASE, one = CHI_INSTRUCTION_SET_BASE;
	// False: another kind of processor.
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
