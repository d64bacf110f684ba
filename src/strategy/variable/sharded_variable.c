// A sharded variable is joined by recorded operations, so gradients flow to the shards.
#include "strategy/variable/sharded_variable.h"

#include "strategy/context.h"
#include "strategy/remote_variables.h"
#include "value/shard_rows.h"

#include <string.h>

int choir_variable_shards(const choir_variable *v)
{
	return v == NULL ? 0 : v->shards;
}

choir_variable *choir_variable_shard(choir_variable *v, int index)
{
	return v == NULL || index < 0 || index >= v->shards ? NULL : v->shard[index];
}

choir_variable *choir_variable_shard_parent(choir_variable *v)
{
	return v == NULL ? NULL : v->parent;
}

bool chi_shards_hold(choir_variable *parent, choir_frame *f, bool *held)
{
	choir_strategy *s = parent->strategy, *owner = s->owner;
	*held = owner->remote != NULL && !owner->remote_held && chi_atomic32_load(&s->running) == 0 &&
			f->context_kind != CHI_IN_UPDATE;
	if (*held && chi_remote_refresh(s) != CHOIR_OK) {
		chi_frame_record_error(f);
		return false;
	}
	if (*held)
		owner->remote_held = true;
	return true;
}

void chi_shards_release(choir_variable *parent, bool held)
{
	if (held)
		parent->strategy->owner->remote_held = false;
}

choir_tensor **chi_shards_read_each(choir_variable *parent, choir_frame *f)
{
	choir_tensor **read = chi_arena_alloc(&f->arena, (size_t) parent->shards * sizeof *read);
	if (read == NULL)
		return chi_frame_record_null(f);
	bool held, made = chi_shards_hold(parent, f, &held);
	for (int i = 0; made && i < parent->shards; i++)
		made = (read[i] = choir_variable_read(parent->shard[i], f)) != NULL;
	chi_shards_release(parent, held);
	return made ? read : NULL;
}

static choir_tensor *read_whole(choir_variable *parent, choir_frame *f)
{
	for (int i = 0; i < parent->shards; i++)
		if (chi_remote_fetch(parent->shard[i], 0, NULL) != CHOIR_OK)
			return chi_frame_record_null(f);
	const uint64_t version = chi_atomic64_load(&parent->source.version);
	choir_tensor **rows = chi_shards_read_each(parent, f);
	choir_tensor *t = rows == NULL ? NULL : chi_shards_join_rows(parent->shards, rows);
	if (t == NULL)
		return NULL;
	t->source = &parent->source;
	t->version = version;
	return t;
}

choir_tensor *chi_shards_read(choir_variable *parent, choir_frame *f)
{
	bool held;
	choir_tensor *t = chi_shards_hold(parent, f, &held) ? read_whole(parent, f) : NULL;
	chi_shards_release(parent, held);
	return t;
}

// The first (rows mod shards) have one more.
static int shard_of(const choir_variable *parent, int64_t row)
{
	const int64_t min = parent->shape.dim[0] / parent->shards;
	const int64_t larger = parent->shape.dim[0] % parent->shards;
	return (int) (row < larger * (min + 1) ? row / (min + 1) : (row - larger) / min);
}

choir_status chi_shards_deal(choir_frame *f, const choir_variable *parent, int64_t n,
		const int64_t rows[], chi_dealt_rows *d)
{
	const size_t shards = (size_t) parent->shards;
	int64_t *next = chi_arena_alloc(&f->arena, (shards + 1) * sizeof *next);
	*d = (chi_dealt_rows){ .n = n,
		.first = chi_arena_alloc(&f->arena, (shards + 1) * sizeof(int64_t)),
		.place = chi_arena_alloc(&f->arena, (size_t) (n + 1) * sizeof(int64_t)),
		.row = chi_arena_alloc(&f->arena, (size_t) (n + 1) * sizeof(int64_t)) };
	if (next == NULL || d->first == NULL || d->place == NULL || d->row == NULL)
		return chi_frame_record_error(f);
	memset(d->first, 0, (shards + 1) * sizeof *d->first);
	for (int64_t i = 0; i < n; i++)
		d->first[shard_of(parent, rows[i]) + 1]++;
	for (size_t k = 0; k < shards; k++) {
		d->first[k + 1] += d->first[k];
		next[k] = d->first[k];
	}
	for (int64_t i = 0; i < n; i++) {
		const int k = shard_of(parent, rows[i]);
		d->place[next[k]] = i;
		d->row[next[k]++] = rows[i] - parent->shard[k]->first_row;
	}
	return CHOIR_OK;
}
