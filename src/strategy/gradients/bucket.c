// Between devices with separate memory a collective costs events between streams, and some
// algorithms wait. So a device concatenates its partial sums for one collective.
#include "strategy/gradients/bucket.h"

#include "strategy/gradients/wire_precision.h"

enum { ALIGNED = 16 };

struct chi_bucket {
	chi_buffer *sum; // NULL: no copy is updated here
	chi_buffer *wire;
	chi_buffer *host;
	chi_buffer *pack[CHI_MAX_PARTIAL_SUMS];
	choir_partial_sum part[CHI_MAX_PARTIAL_SUMS];
	int parts;
};

static bool is_like_first(const chi_device_gradients *list, size_t i)
{
	const chi_device_gradient *first_gradient = list->gradient[0], *g = list->gradient[i];
	bool same = g->collective.kind == CHOIR_ALL_REDUCE &&
			g->partial_sums.n == first_gradient->partial_sums.n &&
			g->variable->dtype == first_gradient->variable->dtype;
	for (int k = 0; same && k < g->partial_sums.n; k++)
		same = g->partial_sums.node[k].lo == first_gradient->partial_sums.node[k].lo &&
				g->partial_sums.node[k].hi == first_gradient->partial_sums.node[k].hi;
	return same;
}

static bool is_possible(const chi_pending_update *u)
{
	const choir_strategy *s = u->strategy;
	if (s->process_group != NULL || u->n < 2)
		return false;
	for (int d = 0; d < s->devices; d++) {
		if (s->device[d]->host_memory || u->device[d].n != u->n)
			return false;
		for (size_t i = 0; i < u->n; i++)
			if (u->pending[i].is_sparse || u->pending[i].touches_all_rows ||
					u->pending[i].rows.n > 0 || !is_like_first(&u->device[d], i))
				return false;
	}
	return true;
}

choir_status chi_bucket_prepare(chi_pending_update *u)
{
	const size_t devices = (size_t) u->strategy->devices;
	if (!is_possible(u))
		return CHOIR_OK;
	if (u->bucket == NULL && (u->bucket = chi_alloc_array(devices, sizeof *u->bucket)) == NULL)
		return choir_error_status();
	for (size_t i = 0; i < u->n; i++) {
		u->pending[i].offset = u->bucket_elements;
		int64_t end = u->pending[i].variable->elements;
		end += u->bucket_elements + ALIGNED - 1;
		u->bucket_elements = end - end % ALIGNED;
	}
	return CHOIR_OK;
}

static size_t bytes_of(const chi_pending_update *u, int64_t elements)
{
	return (size_t) elements * chi_dtype_size(u->pending[0].variable->dtype);
}

static choir_dtype summed_as(const chi_pending_update *u)
{
	return u->device[0].gradient[0]->partial_sums.dtype;
}

static size_t summed_bytes(const chi_pending_update *u, int64_t elements)
{
	return (size_t) elements * chi_dtype_size(summed_as(u));
}

choir_status chi_bucket_give_memory(
		chi_pending_update *u, const chi_pending_variable *pv, chi_sum_buffer *sb)
{
	chi_bucket *b = &u->bucket[sb->device];
	if (b->sum == NULL)
		b->sum = chi_buffer_new(u->strategy->device[sb->device], bytes_of(u, u->bucket_elements));
	CHOIR_TRY(chi_made(b->sum));
	chi_buffer_retain(sb->sum = b->sum);
	sb->data = (char *) b->sum->memory + bytes_of(u, pv->offset);
	return CHOIR_OK;
}

choir_status chi_bucket_fetch(
		chi_pending_update *u, const chi_device_gradient *g, choir_device *host, const void **data)
{
	chi_bucket *b = &u->bucket[g->device];
	const size_t bytes = bytes_of(u, u->bucket_elements);
	if (b->host == NULL) {
		if ((b->host = chi_buffer_new(host, bytes)) == NULL)
			return choir_error_status();
		CHOIR_TRY(chi_stream_fetch(
				u->strategy->exchange[g->device], b->host->memory, b->sum->memory, bytes));
	}
	*data = (const char *) b->host->memory + bytes_of(u, u->pending[g->index].offset);
	return CHOIR_OK;
}

static choir_status pack(chi_pending_update *u, int d)
{
	chi_stream *stream = u->strategy->exchange[d];
	chi_bucket *b = &u->bucket[d];
	const chi_partial_sums *first = &u->device[d].gradient[0]->partial_sums;
	for (b->parts = 0; b->parts < first->n; b->parts++) {
		const int k = b->parts;
		b->pack[k] = chi_buffer_new(stream->device, summed_bytes(u, u->bucket_elements));
		CHOIR_TRY(chi_made(b->pack[k]));
		b->part[k] =
				(choir_partial_sum){ first->node[k].lo, first->node[k].hi, b->pack[k]->memory };
		for (size_t i = 0; i < u->n; i++)
			CHOIR_TRY(chi_stream_copy(stream,
					(char *) b->pack[k]->memory + summed_bytes(u, u->pending[i].offset),
					u->device[d].gradient[i]->partial_sums.node[k].data,
					summed_bytes(u, u->pending[i].variable->elements)));
	}
	return CHOIR_OK;
}

choir_status chi_bucket_join(chi_pending_update *u, int d)
{
	choir_strategy *s = u->strategy;
	chi_bucket *b = &u->bucket[d];
	chi_device_gradient *g = u->device[d].gradient[0];
	CHOIR_TRY(pack(u, d));
	const size_t bytes = summed_bytes(u, u->bucket_elements);
	const chi_stream *stream = s->exchange[d];
	if (b->sum != NULL && chi_wire_rounds(g) &&
			(b->wire = chi_buffer_new(stream->device, bytes)) == NULL)
		return choir_error_status();
	const chi_buffer *result = b->wire != NULL ? b->wire : b->sum;
	g->collective = (choir_collective){ .size = sizeof g->collective,
		.name = "gradients",
		.kind = CHOIR_ALL_REDUCE,
		.dtype = summed_as(u),
		.elements = u->bucket_elements,
		.divisor = 1,
		.n = (size_t) b->parts,
		.partial_sums = b->part,
		.stream = stream->state,
		.result = result == NULL ? NULL : result->memory,
		.in_stream = true };
	return chi_communicator_join(&s->communicator, d, &g->collective, &g->request);
}

choir_status chi_bucket_widen(chi_pending_update *u, int d)
{
	const chi_bucket *b = &u->bucket[d];
	return b->wire == NULL ? CHOIR_OK
						   : chi_wire_widen(u->device[d].gradient[0], u->strategy->exchange[d],
									 u->bucket_elements, b->wire->memory, b->sum->memory);
}

void chi_bucket_release(chi_pending_update *u)
{
	for (int d = 0; u->bucket != NULL && d < u->strategy->devices; d++) {
		chi_bucket *b = &u->bucket[d];
		chi_buffer_release(b->sum);
		chi_buffer_release(b->wire);
		chi_buffer_release(b->host);
		for (int k = 0; k < CHI_MAX_PARTIAL_SUMS; k++) {
			chi_buffer_release(b->pack[k]);
			b->pack[k] = NULL;
		}
		b->sum = b->wire = b->host = NULL;
		b->parts = 0;
	}
	u->bucket_elements = 0;
}
