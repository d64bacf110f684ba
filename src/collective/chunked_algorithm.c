// Cuts a collective into chunks of CHI_CHUNK elements, or of a multiple if only few are allowed.
#include "collective/chunked_algorithm.h"

#include "collective/tree.h"

choir_status chi_algorithm_open(
		chi_algorithm *a, const choir_group *group, chi_chunk_fn *chunk, int max_chunks)
{
	a->group = group;
	a->do_chunk = chunk;
	a->max_chunks = max_chunks;
	return chi_rendezvous_open(&a->rendezvous, group->members);
}

void chi_algorithm_close(void *self)
{
	chi_rendezvous_close(&((chi_algorithm *) self)->rendezvous);
}

static int64_t length_of_chunks(const chi_algorithm *a, int64_t elements)
{
	const int64_t n = elements / CHI_CHUNK + (elements % CHI_CHUNK != 0);
	if (a->max_chunks == 0 || n == 0)
		return CHI_CHUNK;
	return (n / a->max_chunks + (n % a->max_chunks != 0)) * CHI_CHUNK;
}

choir_status chi_algorithm_join(
		void *self, int member, const choir_collective *c, uint64_t *request)
{
	chi_algorithm *a = self;
	const int64_t length = length_of_chunks(a, c->elements);
	const int64_t chunks = c->elements <= 0 ? 1 : (c->elements - 1) / length + 1;
	CHOIR_TRY(chi_rendezvous_record_event(&a->rendezvous, member, a->group->devices[member], c));
	return chi_rendezvous_join(&a->rendezvous, member, c, chunks, request);
}

choir_status chi_algorithm_wait(void *self, int member, uint64_t request, double seconds)
{
	chi_algorithm *a = self;
	return chi_rendezvous_wait(&a->rendezvous, member, request, seconds, a->do_chunk, self);
}

void chi_algorithm_abort(void *self)
{
	chi_rendezvous_abort(&((chi_algorithm *) self)->rendezvous);
}

void chi_algorithm_reset(void *self)
{
	chi_rendezvous_reset(&((chi_algorithm *) self)->rendezvous);
}

void chi_algorithm_chunk(const chi_algorithm *a, const choir_collective *c, int64_t index,
		int64_t *first, int64_t *count)
{
	const int64_t length = length_of_chunks(a, c->elements);
	*first = index * length;
	*count = c->elements - *first < length ? c->elements - *first : length;
}
