// Shards of a variable. Reads, writes and checks of the parent go to each shard.
#include "value/shard_rows.h"

#include "choir/op.h"
#include "op/op.h"

void chi_shard_join(choir_variable *parent, int index, choir_variable *v, int64_t first_row)
{
	v->parent = parent;
	v->shard_index = index;
	v->first_row = first_row;
	parent->shard[index] = v;
	parent->shards = index + 1;
}

int64_t chi_shard_first(const choir_variable *shard)
{
	return shard->first_row * (shard->elements / shard->shape.dim[0]);
}

choir_tensor *chi_shard_rows(const choir_variable *shard, choir_tensor *t)
{
	return t->is_number ? t : chi_tensor_rows(t->frame, t, shard->first_row, shard->shape.dim[0]);
}

// Each round joins as many as one operation takes.
choir_tensor *chi_shards_join_rows(int64_t n, choir_tensor *rows[])
{
	while (n > 1) {
		int64_t made = 0;
		for (int64_t i = 0; i < n; i += CHI_MAX_INPUTS) {
			const int64_t count = n - i < CHI_MAX_INPUTS ? n - i : CHI_MAX_INPUTS;
			choir_tensor *t = count == 1 ? rows[i] : choir_concat((size_t) count, rows + i, 0);
			if (t == NULL)
				return NULL;
			rows[made++] = t;
		}
		n = made;
	}
	return rows[0];
}

choir_tensor *chi_shards_view(choir_variable *parent, choir_frame *f)
{
	choir_tensor **rows = chi_arena_alloc(&f->arena, (size_t) parent->shards * sizeof *rows);
	if (rows == NULL)
		return chi_frame_record_null(f);
	for (int i = 0; i < parent->shards; i++)
		if ((rows[i] = chi_variable_view(parent->shard[i], 0, f)) == NULL)
			return NULL;
	return chi_shards_join_rows(parent->shards, rows);
}

choir_status chi_shards_from_host(choir_variable *parent, const void *from)
{
	const size_t size = chi_dtype_size(parent->dtype);
	for (int i = 0; i < parent->shards; i++) {
		choir_variable *v = parent->shard[i];
		const choir_status status = chi_variable_from_host(
				v, (const char *) from + (size_t) chi_shard_first(v) * size);
		if (status != CHOIR_OK) {
			chi_variable_undefine(parent); // some rows are new, others old
			return status;
		}
	}
	return CHOIR_OK;
}

choir_status chi_shards_to_host(choir_variable *parent, void *to)
{
	const size_t size = chi_dtype_size(parent->dtype);
	for (int i = 0; i < parent->shards; i++) {
		choir_variable *v = parent->shard[i];
		CHOIR_TRY(chi_variable_to_host(v, 0, (char *) to + (size_t) chi_shard_first(v) * size));
	}
	return CHOIR_OK;
}
