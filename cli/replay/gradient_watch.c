// Records the losses and gradients of a replica while a replay computes them.
#include "replay/replay.h"

#include "number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// FNV-1a, 64 bits.
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
	const unsigned char *from = data;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ from[i]) * 0x100000001b3u;
	return hash;
}
static const uint64_t FIRST_HASH = 0xcbf29ce484222325u;

// Copies the elements, dense. The caller frees them.
static void *fetch(choir_tensor *t, size_t *bytes, int64_t *n)
{
	t = choir_to_dense(t);
	if (t == NULL)
		return NULL;
	*n = choir_shape_elements(choir_tensor_shape(t));
	*bytes = (size_t) *n * (choir_tensor_dtype(t) == CHOIR_F64 ? sizeof(double) : sizeof(float));
	void *data = malloc(*bytes + 1);
	if (data == NULL)
		choir_fail(CHOIR_NO_MEMORY, "replay: no memory for %zu bytes", *bytes);
	else if (choir_tensor_to_host(t, data, *bytes) != CHOIR_OK) {
		free(data);
		data = NULL;
	}
	return data;
}

void replay_inspect_losses(choir_replica *r, choir_tensor *losses, void *user)
{
	replay_record *record = user;
	size_t bytes;
	int64_t n;
	double sum = 0;
	if (choir_replica_id(r) != record->replica || losses == NULL)
		return;
	void *data = fetch(losses, &bytes, &n);
	if (data == NULL) {
		record->status = choir_error_status();
		return;
	}
	for (int64_t i = 0; i < n; i++)
		sum += number_at(choir_tensor_dtype(losses), data, i);
	record->examples = choir_replica_examples(r);
	record->global_examples = choir_replica_global_examples(r);
	record->loss = n == 0 ? (double) NAN : sum / (double) n;
	record->hash = hash_bytes(FIRST_HASH, data, bytes);
	free(data);
}

static replay_gradient *add(replay_record *record)
{
	if (record->n == record->capacity) {
		const int capacity = record->capacity == 0 ? 64 : 2 * record->capacity;
		replay_gradient *more = realloc(record->gradient, (size_t) capacity * sizeof *more);
		if (more == NULL) {
			record->status =
					choir_fail(CHOIR_NO_MEMORY, "replay: no memory for %d gradients", capacity);
			return NULL;
		}
		record->gradient = more;
		record->capacity = capacity;
	}
	return &record->gradient[record->n++];
}

void replay_inspect_gradient(
		choir_replica *r, choir_variable *v, choir_tensor *gradient, void *user)
{
	replay_record *record = user;
	size_t bytes;
	int64_t n;
	if (choir_replica_id(r) != record->replica || record->status != CHOIR_OK)
		return;
	void *data = fetch(gradient, &bytes, &n);
	replay_gradient *g = data == NULL ? NULL : add(record);
	if (g == NULL) {
		record->status = choir_error_status();
		free(data);
		return;
	}
	*g = (replay_gradient){ .name = choir_variable_name(v),
		.shape = *choir_variable_shape(v),
		.hash = hash_bytes(FIRST_HASH, data, bytes) };
	for (int64_t i = 0; i < n; i++) {
		const double x = number_at(choir_tensor_dtype(gradient), data, i);
		g->nonfinite += !isfinite(x);
		g->norm += isfinite(x) ? x * x : 0;
		g->largest = isfinite(x) ? fmax(g->largest, fabs(x)) : g->largest;
	}
	g->norm = sqrt(g->norm);
	record->hash = hash_bytes(record->hash, g->name, strlen(g->name));
	record->hash = hash_bytes(record->hash, data, bytes);
	free(data);
}

void replay_record_free(replay_record *record)
{
	free(record->gradient);
}
