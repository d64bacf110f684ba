// Cross-device operations between GPUs of one process, as two ways share them: over memory that
// GPUs show each other (peer.cu), and by NCCL (nccl.cu). The last member to join a collective
// queues all of its work.
#pragma once

#include "launch.h"
#include "library.h"

#include <condition_variable>

namespace choir_cuda
{

enum { MAX_PARTS = 128, MAX_MEMBERS = 64, SLOTS = 256, SHARE = 8192 };

// A collective in progress.
struct slot {
	const choir_collective *c[MAX_MEMBERS]; // until the member's wait returns
	stream *from[MAX_MEMBERS];
	cudaEvent_t joined[MAX_MEMBERS], done[MAX_MEMBERS];
	bool works[MAX_MEMBERS]; // done was recorded
	int arrived, left;
	bool launched, telling, told;
	choir_status status;
	std::string text;
};

struct cross;
typedef choir_status queue_fn(cross *x, slot *s);

// The self of a table.
struct cross {
	const choir_group *group;
	device *d[MAX_MEMBERS];
	stream *own[MAX_MEMBERS]; // a stream of the table for each member
	void *scratch[MAX_MEMBERS]; // for sums that no member wants, and for others' parts
	size_t scratch_bytes[MAX_MEMBERS];
	queue_fn *queue_sum, *queue_broadcast;
	ncclComm_t comm[MAX_MEMBERS]; // NULL without NCCL
	std::mutex lock; // of the rest
	std::condition_variable changed;
	bool aborted;
	uint64_t next[MAX_MEMBERS];
	slot slots[SLOTS];
};

inline cross *cross_of(void *self)
{
	return *(cross **) self;
}

// The canonical tree as a program for a machine with a stack: a step k >= 0 pushes part k, and -1
// adds the two on top.
struct tree {
	using reads_only = void;
	const void *part[MAX_PARTS];
	int steps;
	signed char step[2 * MAX_PARTS];
};

// All partial sums of a collective, in the order of replicas. Each owner makes a share of the sum.
struct sum_plan {
	std::vector<choir_partial_sum> parts;
	std::vector<int> member; // of each part
	std::vector<int> owners; // members
	tree t;
	int64_t share; // elements
	size_t size; // of an element
	bool nobody; // wants the sum; member 0 makes it in scratch memory
};

// collective.cu. find_members: false if a member is no GPU, or there are too many.
bool find_members(const choir_group *group, device *d[MAX_MEMBERS]);
choir_status open_cross(
		void *self, const choir_group *group, queue_fn *queue_sum, queue_fn *queue_broadcast);
void close_cross(void *self);
choir_cross_device_ops_table cross_slots(); // all but name, score and open

// tree.cu
choir_status make_plan(const cross *x, const slot *s, sum_plan *p);
// The number of elements in the share of owner k, and the first one.
int64_t share_of(const sum_plan *p, const choir_collective *c, size_t k, int64_t *first);
tree tree_at(const sum_plan *p, int64_t first); // with parts from this element on
choir_status queue_tree(
		stream *s, choir_dtype dtype, const tree &t, void *out, int64_t count, double divisor);

// peer.cu
choir_status await_member(cross *x, slot *s, int waiting, int joined);
choir_status record_done(cross *x, slot *s, int owner);
choir_status keep_scratch(cross *x, int member, size_t bytes);
choir_status copy_by(cross *x, int member, void *to, const void *from, size_t bytes);

} // namespace choir_cuda
