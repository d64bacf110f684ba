// The members of a group, with their parts and results of a collective, for the conformance suite.
#pragma once

#include "collective/cross_device_ops.h"
#include "collective/ops_suite.h"
#include "tensor/buffer.h"

enum { MAX_MEMBERS = 4, MAX_REPLICAS = 16 };

typedef struct {
	choir_device *device;
	chi_stream *stream;
	int first, last; // its replicas: first .. last - 1
	choir_partial_sum part[2 * MAX_REPLICAS];
	chi_buffer *buffer[2 * MAX_REPLICAS];
	chi_buffer *result;
	choir_collective c;
	uint64_t request;
} member;

typedef struct {
	int members, replicas;
	choir_device *device[MAX_MEMBERS];
	member member[MAX_MEMBERS];
	chi_communicator group;
	choir_dtype dtype;
	int64_t elements;
	void *all; // host: values of the replicas, concatenated
	void *expected; // host: their sum
} party;

// Opens a group; replicas are distributed over members as strategies do.
void party_open(party *p, const ops_subject *subject, int members, int replicas);
void party_close(party *p);
// Makes the parts of every member, and a collective of kind with a result for each.
void party_bring(
		party *p, choir_collective_kind kind, choir_dtype dtype, int64_t elements, uint64_t seed);
void party_drop(party *p); // frees what party_bring made
// Joins and waits for all members on one thread; returns the first failure.
choir_status party_meet(party *p);
// Asserts that a member's result is as expected.
void party_check(const party *p, int member, const void *expected);
