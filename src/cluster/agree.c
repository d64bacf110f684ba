// What must be the same everywhere, compared by name: each worker gets the facts of all and finds
// the same first difference, so all refuse with the same words.
#include "base/alloc.h"
#include "base/size.h"
#include "base/text.h"
#include "cluster/cluster.h"

#include <stdio.h>
#include <string.h>

void chi_fact_set(chi_fact *fact, const char *name, const char *fmt, ...)
{
	memset(fact, 0, sizeof *fact); // compared as bytes, and sent
	snprintf(fact->name, sizeof fact->name, "%s", name);
	va_list args;
	va_start(args, fmt);
	const int length = chi_text_format(fact->value, sizeof fact->value, fmt, args);
	va_end(args);
	if (length < CHI_FACT_VALUE)
		return;
	// What does not fit counts, too.
	char *text = chi_alloc((size_t) length + 1);
	if (text == NULL) {
		memset(fact, 0, sizeof *fact);
		return;
	}
	va_start(args, fmt);
	chi_text_format(text, (size_t) length + 1, fmt, args);
	va_end(args);
	chi_text_fit(text, fact->value, sizeof fact->value);
	chi_free(text);
}

typedef struct {
	chi_fact fact[CHI_FACTS];
} facts_of_one;

static choir_status compare(const choir_cluster *c, const facts_of_one *all)
{
	char first[CHI_WORKER_NAME + 32], other[CHI_WORKER_NAME + 32];
	for (int i = 1; i < c->workers; i++)
		for (int k = 0; k < CHI_FACTS; k++) {
			const chi_fact *a = &all[0].fact[k], *b = &all[i].fact[k];
			if (memcmp(a, b, sizeof *a) == 0)
				continue;
			return choir_fail(CHOIR_STATE, "%s differs: %.*s is \"%.*s\", but \"%.*s\" at %s",
					chi_cluster_name(c, i, other), CHI_FACT_NAME - 1,
					a->name[0] != '\0' ? a->name : b->name, CHI_FACT_VALUE - 1, b->value,
					CHI_FACT_VALUE - 1, a->value, chi_cluster_name(c, 0, first));
		}
	return CHOIR_OK;
}

choir_status chi_cluster_agree(choir_cluster *c, const chi_fact facts[], int n)
{
	if (n < 0 || n > CHI_FACTS)
		return choir_fail(CHOIR_INTERNAL, "agree: %d facts, at most %d", n, CHI_FACTS);
	bool made = true;
	for (int i = 0; i < n; i++)
		made = made && facts[i].name[0] != '\0';
	facts_of_one *all = !made ? NULL : chi_alloc_array((size_t) c->workers + 1, sizeof *all);
	if (all == NULL)
		return chi_cluster_give_up(c);
	facts_of_one *own = all + c->workers;
	if (n > 0)
		memcpy(own->fact, facts, (size_t) n * sizeof facts[0]);
	choir_status status = choir_cluster_all_gather(c, own, sizeof *own, all);
	if (status == CHOIR_OK)
		status = compare(c, all);
	chi_free(all);
	return status;
}
