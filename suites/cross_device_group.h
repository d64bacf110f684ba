// The members of a group with their partial sums and results, for the suite of cross-device
// operations.
#pragma once

#include "suite.h"

enum { CHI_MEMBERS = 4, CHI_REPLICAS = 16 };

typedef struct {
	choir_device *device;
	void *stream;
	int first, last; // its replicas: first .. last - 1
	choir_partial_sum part[2 * CHI_REPLICAS];
	choir_collective c;
	void *result; // memory, also if the collective wants no result
	uint64_t request;
} chi_member;

typedef struct {
	const choir_suite_options *o;
	const choir_cross_device_ops_table *t;
	choir_device *cpu;
	int most; // members that the options name
	choir_device *device[CHI_MEMBERS];
	choir_group group;
	void *self; // of the table; NULL: closed
	chi_member member[CHI_MEMBERS];
	choir_dtype dtype;
	int64_t elements;
	size_t bytes; // of a partial sum and of a result
	unsigned char *all; // host: the values of the replicas, one after another
	unsigned char *expected; // host: their sum
} chi_group;

// Finds the devices. CHOIR_INVALID: more than CHI_MEMBERS.
choir_status chi_group_find(chi_group *g, const choir_suite_options *o);
// Opens the table for a group, with the replicas distributed as strategies do.
choir_status chi_group_open(chi_group *g, int members, int replicas);
void chi_group_close(chi_group *g); // may be closed
bool chi_group_is_on_host(const chi_group *g);
// Makes random partial sums of every member, and a collective with a result for each.
choir_status chi_group_bring(chi_group *g, choir_collective_kind kind, choir_dtype dtype,
		int64_t elements, uint64_t seed);
void chi_group_drop(chi_group *g); // frees what chi_group_bring made
choir_status chi_group_divide(chi_group *g, double by); // the expected sum
// Joins and waits for all members on one thread; returns the first failure.
choir_status chi_group_meet(chi_group *g);
// Compares a member's result, or those of all members, with what is expected.
choir_status chi_group_check(const chi_group *g, int member, const void *expected);
choir_status chi_group_check_all(const chi_group *g);
