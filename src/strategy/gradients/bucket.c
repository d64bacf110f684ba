// Gradients of many variables summed as one. Where the host cannot see the devices' memory, it
// waits for each collective, so the number of waits would grow with the number of variables. A
// lane lays what it has of all variables one after another, joins once, and finds the sums in the
// same order. Each element is added up as it would be alone: the bits are the same.
#include "strategy/gradients/pending.h"

#include "base/alloc.h"

enum { ALIGNED = 16 }; // elements

struct chi_bundle {
	chi_buffer *sum; // NULL: no copy is updated on this lane
	chi_buffer *host; // the same in host memory, for copies that lie there; NULL
	chi_buffer *pack[CHI_MAX_PARTIAL_SUMS];
	choir_part part[CHI_MAX_PARTIAL_SUMS];
	int parts;
};

// Whether a lane has the same nodes of the tree of item i as of the first.
static bool is_like_first(const chi_lane_items *l, size_t i)
{
	const chi_item *first = l->item[0], *item = l->item[i];
	bool same = item->collective.kind == CHOIR_ALL_REDUCE && item->fold.n == first->fold.n &&
			item->variable->dtype == first->variable->dtype;
	for (int k = 0; same && k < item->fold.n; k++)
		same = item->fold.node[k].lo == first->fold.node[k].lo &&
				item->fold.node[k].hi == first->fold.node[k].hi;
	return same;
}

static bool is_possible(const chi_instance *in)
{
	const choir_strategy *s = in->strategy;
	if (!in->keeps || s->process_group != NULL || in->n < 2)
		return false;
	for (int lane = 0; lane < s->lanes; lane++) {
		if (s->device[lane]->host_memory || in->lane[lane].n != in->n)
			return false;
		for (size_t i = 0; i < in->n; i++)
			if (in->shared[i].by_rows || in->shared[i].spread || in->shared[i].rows.n > 0 ||
					!is_like_first(&in->lane[lane], i))
				return false;
	}
	return true;
}

choir_status chi_bundle_prepare(chi_instance *in)
{
	const size_t lanes = (size_t) in->strategy->lanes;
	in->bundled = 0;
	if (!is_possible(in))
		return CHOIR_OK;
	if (in->bundle == NULL && (in->bundle = chi_alloc_array(lanes, sizeof *in->bundle)) == NULL)
		return choir_error_status();
	for (size_t i = 0; i < in->n; i++) {
		in->shared[i].offset = in->bundled;
		int64_t end = in->shared[i].variable->elements;
		end += in->bundled + ALIGNED - 1;
		in->bundled = end - end % ALIGNED;
	}
	return CHOIR_OK;
}

static size_t bytes_of(const chi_instance *in, int64_t elements)
{
	return (size_t) elements * chi_dtype_size(in->shared[0].variable->dtype);
}

choir_status chi_bundle_land(chi_instance *in, const chi_shared_item *item, chi_landing *l)
{
	chi_bundle *b = &in->bundle[l->lane];
	if (b->sum == NULL)
		b->sum = chi_buffer_new(in->strategy->device[l->lane], bytes_of(in, in->bundled));
	if (b->sum == NULL)
		return choir_error_status();
	chi_buffer_retain(l->sum = b->sum);
	l->data = (char *) b->sum->memory + bytes_of(in, item->offset);
	return CHOIR_OK;
}

choir_status chi_bundle_fetch(
		chi_instance *in, const chi_item *item, choir_device *host, const void **data)
{
	chi_bundle *b = &in->bundle[item->lane];
	const size_t bytes = bytes_of(in, in->bundled);
	if (b->host == NULL) {
		if ((b->host = chi_buffer_new(host, bytes)) == NULL)
			return choir_error_status();
		CHOIR_TRY(chi_stream_fetch(
				in->strategy->exchange[item->lane], b->host->memory, b->sum->memory, bytes));
	}
	*data = (const char *) b->host->memory + bytes_of(in, in->shared[item->index].offset);
	return CHOIR_OK;
}

// Queues the copies on the lane's stream.
static choir_status pack(chi_instance *in, int lane)
{
	chi_stream *stream = in->strategy->exchange[lane];
	chi_bundle *b = &in->bundle[lane];
	const chi_partial_sums *first = &in->lane[lane].item[0]->fold;
	for (b->parts = 0; b->parts < first->n; b->parts++) {
		const int k = b->parts;
		if ((b->pack[k] = chi_buffer_new(stream->device, bytes_of(in, in->bundled))) == NULL)
			return choir_error_status();
		b->part[k] = (choir_part){ first->node[k].lo, first->node[k].hi, b->pack[k]->memory };
		for (size_t i = 0; i < in->n; i++)
			CHOIR_TRY(chi_stream_copy(stream,
					(char *) b->pack[k]->memory + bytes_of(in, in->shared[i].offset),
					in->lane[lane].item[i]->fold.node[k].data,
					bytes_of(in, in->shared[i].variable->elements)));
	}
	return CHOIR_OK;
}

choir_status chi_bundle_join(chi_instance *in, int lane)
{
	choir_strategy *s = in->strategy;
	chi_bundle *b = &in->bundle[lane];
	chi_item *item = in->lane[lane].item[0];
	CHOIR_TRY(pack(in, lane));
	item->collective = (choir_collective){ .size = sizeof item->collective,
		.name = "gradients",
		.kind = CHOIR_ALL_REDUCE,
		.dtype = item->variable->dtype,
		.elements = in->bundled,
		.divisor = 1,
		.n = (size_t) b->parts,
		.parts = b->part,
		.stream = s->exchange[lane]->state,
		.result = b->sum == NULL ? NULL : b->sum->memory };
	return chi_communicator_join(&s->group, lane, &item->collective, &item->ticket);
}

void chi_bundle_forget(chi_instance *in)
{
	for (int lane = 0; in->bundle != NULL && lane < in->strategy->lanes; lane++) {
		chi_bundle *b = &in->bundle[lane];
		chi_buffer_release(b->sum);
		chi_buffer_release(b->host);
		for (int k = 0; k < CHI_MAX_PARTIAL_SUMS; k++) {
			chi_buffer_release(b->pack[k]);
			b->pack[k] = NULL;
		}
		b->sum = b->host = NULL;
		b->parts = 0;
	}
	in->bundled = 0;
}
