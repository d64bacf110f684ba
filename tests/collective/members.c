// The members of a group, for the suite of cross-device operations.
#include "collective/members.h"

#include "base/alloc.h"
#include "collective/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void party_open(party *p, const ops_subject *subject, int members, int replicas)
{
	memset(p, 0, sizeof *p);
	p->members = members;
	p->replicas = replicas;
	int first = 0;
	for (int i = 0; i < members; i++) {
		member *m = &p->member[i];
		m->device = p->device[i] = choir_device_find(subject->device[i]);
		assert_non_null(m->device);
		assert_non_null(m->stream = chi_stream_new(m->device));
		m->first = first;
		first = m->last = first + replicas / members + (i < replicas % members);
	}
	assert_int_equal(chi_communicator_open(&p->group, members, replicas, p->device, subject->ops),
			CHOIR_OK);
}

void party_close(party *p)
{
	party_drop(p);
	chi_communicator_close(&p->group);
	for (int i = 0; i < p->members; i++)
		chi_stream_free(p->member[i].stream);
}

static chi_buffer *put(member *m, const void *data, size_t bytes)
{
	chi_buffer *b = chi_buffer_new(m->device, bytes);
	assert_non_null(b);
	assert_int_equal(chi_stream_copy(m->stream, b->memory, data, bytes), CHOIR_OK);
	assert_int_equal(chi_stream_wait(m->stream), CHOIR_OK);
	return b;
}

static void bring_parts(party *p, member *m, size_t bytes)
{
	int nodes[2 * MAX_REPLICAS][2];
	const int n = oracle_nodes(p->replicas, m->first, m->last, nodes);
	void *sum = malloc(bytes + 1);
	for (int k = 0; k < n; k++) {
		oracle_sum(p->dtype, p->all, nodes[k][0], nodes[k][1], p->elements, sum);
		m->buffer[k] = put(m, sum, bytes);
		m->part[k] = (choir_partial_sum){ nodes[k][0], nodes[k][1], m->buffer[k]->memory };
	}
	free(sum);
	m->c.n = (size_t) n;
	m->c.partial_sums = m->part;
}

void party_bring(
		party *p, choir_collective_kind kind, choir_dtype dtype, int64_t elements, uint64_t seed)
{
	const size_t bytes = (size_t) elements * oracle_size(dtype);
	party_drop(p);
	p->dtype = dtype;
	p->elements = elements;
	p->all = malloc(bytes * (size_t) p->replicas + 1);
	p->expected = malloc(bytes + 1);
	oracle_fill(dtype, p->all, p->replicas, elements, seed);
	oracle_sum(dtype, p->all, 0, p->replicas, elements, p->expected);
	for (int i = 0; i < p->members; i++) {
		member *m = &p->member[i];
		m->result = chi_buffer_new(m->device, bytes);
		assert_non_null(m->result);
		m->c = (choir_collective){ .size = sizeof m->c,
			.sequence = seed,
			.name = "suite",
			.kind = kind,
			.dtype = dtype,
			.elements = elements,
			.divisor = 1,
			.stream = m->stream->state,
			.result = m->result->memory,
			.batch_bytes = seed % 2 == 0 ? 0 : (int64_t) 1 << 30 };
		bring_parts(p, m, bytes);
	}
}

void party_drop(party *p)
{
	for (int i = 0; i < p->members; i++) {
		member *m = &p->member[i];
		for (size_t k = 0; k < m->c.n; k++)
			chi_buffer_release(m->buffer[k]);
		chi_buffer_release(m->result);
		m->result = NULL;
		m->c.n = 0;
	}
	free(p->all);
	free(p->expected);
	p->all = p->expected = NULL;
}

choir_status party_meet(party *p)
{
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < p->members; i++)
		status = chi_communicator_join(&p->group, i, &p->member[i].c, &p->member[i].request);
	for (int i = 0; status == CHOIR_OK && i < p->members; i++)
		status = chi_communicator_wait(&p->group, i, p->member[i].request, 20);
	return status;
}

void party_check(const party *p, int index, const void *expected)
{
	const member *m = &p->member[index];
	const size_t bytes = (size_t) p->elements * oracle_size(p->dtype);
	char *got = malloc(bytes + 1);
	assert_int_equal(chi_stream_copy(m->stream, got, m->result->memory, bytes), CHOIR_OK);
	assert_int_equal(chi_stream_wait(m->stream), CHOIR_OK);
	assert_memory_equal(got, expected, bytes);
	free(got);
}
