// Name patterns and options.
#include "train/optimizer/optimizer.h"

#include "base/alloc.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

static choir_status refuse(const choir_optimizer *o, size_t index, const char *option,
		double value, const char *needed)
{
	return choir_fail(CHOIR_INVALID, "optimizer %s: group %zu: %s is %g; %s", o->kind->name, index,
			option, value, needed);
}

static choir_status resolve(const choir_optimizer *o, size_t index,
		const choir_parameter_group *given, chi_parameter_group *g)
{
	g->rate = given->learning_rate_multiplier == 0			? 1
			: given->learning_rate_multiplier == CHOIR_ZERO ? 0
															: given->learning_rate_multiplier;
	if (!(g->rate >= 0 && isfinite(g->rate)))
		return refuse(o, index, "learning_rate_multiplier", given->learning_rate_multiplier,
				"a factor of 0 or more is needed (0: 1, CHOIR_ZERO: 0)");
	if (!o->kind->decay && given->weight_decay != 0)
		return refuse(o, index, "weight_decay", given->weight_decay,
				"this kind of optimizer has no such option");
	g->decay = given->weight_decay == 0			? o->options.weight_decay
			: given->weight_decay == CHOIR_ZERO ? 0
												: given->weight_decay;
	if (!(g->decay >= 0 && isfinite(g->decay)))
		return refuse(o, index, "weight_decay", given->weight_decay,
				"a number of 0 or more is needed (0: the optimizer's, CHOIR_ZERO: 0)");
	return CHOIR_OK;
}

static choir_status copy_names(
		const choir_optimizer *o, size_t index, const char *names, chi_parameter_group *g)
{
	if (names == NULL || names[0] == '\0')
		return choir_fail(CHOIR_INVALID,
				"optimizer %s: group %zu: has no names; patterns of variables' names are needed",
				o->kind->name, index);
	g->names = chi_strdup(names);
	CHOIR_TRY(chi_made(g->names));
	g->patterns = 1;
	for (char *c = g->names; *c != '\0'; c++)
		if (*c == ',') {
			*c = '\0';
			g->patterns++;
		}
	return CHOIR_OK;
}

choir_status chi_groups_make(choir_optimizer *o, const choir_optimizer_options *given)
{
	const size_t n = given->n_groups;
	if (n == 0)
		return CHOIR_OK;
	if (given->groups == NULL)
		return choir_fail(
				CHOIR_INVALID, "optimizer %s: the array of %zu groups is NULL", o->kind->name, n);
	o->group = chi_alloc_array(n, sizeof *o->group);
	CHOIR_TRY(chi_made(o->group));
	o->groups = n;
	const size_t size = given->groups->size;
	if (size < sizeof(size_t) + sizeof(char *) || size > sizeof(choir_parameter_group))
		return choir_fail(CHOIR_INVALID, "optimizer %s: group 0: its size is %zu, not %zu",
				o->kind->name, size, sizeof(choir_parameter_group));
	for (size_t i = 0; i < n; i++) {
		choir_parameter_group g = { .size = sizeof g };
		memcpy(&g, (const char *) given->groups + i * size, size);
		CHOIR_TRY(copy_names(o, i, g.names, &o->group[i]));
		CHOIR_TRY(resolve(o, i, &g, &o->group[i]));
	}
	return CHOIR_OK;
}

const chi_parameter_group *chi_groups_find(const choir_optimizer *o, const char *name)
{
	for (size_t i = 0; i < o->groups; i++) {
		const char *pattern = o->group[i].names;
		for (size_t k = 0; k < o->group[i].patterns; k++, pattern += strlen(pattern) + 1)
			if (fnmatch(pattern, name, 0) == 0)
				return &o->group[i];
	}
	return NULL;
}

static bool names_one(choir_strategy *s, const char *pattern)
{
	chi_mutex_lock(&s->lock);
	const choir_variable *v = s->variables;
	while (v != NULL && (v->slot || v->parent != NULL || fnmatch(pattern, v->name, 0) != 0))
		v = v->next;
	chi_mutex_unlock(&s->lock);
	return v != NULL;
}

// Each pattern that freezes names a variable: a typing error would train it.
choir_status chi_groups_check(choir_optimizer *o)
{
	for (size_t i = 0; i < o->groups; i++) {
		const chi_parameter_group *g = &o->group[i];
		const char *pattern = g->names, *unknown = NULL;
		size_t known = 0;
		for (size_t k = 0; k < g->patterns; k++, pattern += strlen(pattern) + 1) {
			const bool found = names_one(o->strategy, pattern);
			known += found;
			unknown = found || unknown != NULL ? unknown : pattern;
		}
		if (unknown != NULL && (known == 0 || g->rate == 0))
			return choir_fail(CHOIR_NOT_FOUND,
					"optimizer %s: group %zu: \"%s\" matches no variable; patterns like "
					"\"dense/*\" or \"*/bias\" are needed",
					o->kind->name, i, unknown);
	}
	chi_atomic32_store(&o->groups_known, 1);
	return CHOIR_OK;
}

void chi_groups_free(choir_optimizer *o)
{
	for (size_t i = 0; i < o->groups; i++)
		chi_free(o->group[i].names);
	chi_free(o->group);
}
