// The members of a group with what each brings to a collective and gets from it, for the suite.
#pragma once

#include "collective/cross_device_ops.h"
#include "collective/ops_suite.h"
#include "tensor/buffer.h"

enum { MAX_MEMBERS = 4, MAX_REPLICAS = 16 };

typedef struct {
	choir_device *device;
	chi_stream *stream;
	int first, last; // its replicas
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
	void *all; // host: values of the replicas, one after the other
	void *expected; // host: their sum
} party;

// Opens a group of so many members; replicas are dealt as strategies do.
void party_open(party *p, const ops_subject *subject, int members, int replicas);
void party_close(party *p);
// Makes every member's parts, and a collective of kind with a result for each member.
void party_bring(
		party *p, choir_collective_kind kind, choir_dtype dtype, int64_t elements, uint64_t seed);
void party_drop(party *p); // what party_bring made
// One thread joins for all and waits for all: the first failure.
choir_status party_meet(party *p);
// Asserts that a member's result is what it should be.
void party_check(const party *p, int member, const void *expected);
