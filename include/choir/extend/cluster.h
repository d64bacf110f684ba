// The table of a transport between workers: who is here, and bytes from one to another. This is
// all that a way to reach other processes needs to be; sums, broadcasts, barriers, fingerprints,
// roles and time-outs are Choir's own and the same over every transport.
//
// A worker has a number from 0 to workers - 1. A message goes from one worker to another with a
// tag; messages of the same sender, receiver and tag arrive in the order in which they were sent,
// others in any order. A receive takes the next message of its worker and tag, which may be
// shorter than its room, never longer. Sends and receives are begun and give a ticket; test drives
// progress and says whether the ticket's is done. Until then its memory is lent: nobody writes to
// what is sent or touches what is received into.
//
// When a worker is lost, or stops by abort, the calls of the others fail with a text that names
// it, as far as the transport can know: CHOIR_CANCELLED after an abort, CHOIR_PEER_LOST if it is
// gone. Where it cannot know, Choir's deadlines end the waiting.
//
// Threads: the core allocates self (self_size bytes, zeroed) and makes calls one at a time, from
// any of its threads, with a lock held: a slot must not call Choir, but for choir_fail. Slots
// marked (any) are called by several threads at a time and without a lock. A slot that fails
// leaves a text by choir_fail.
#pragma once

#include "../cluster.h"

CHOIR_C_BEGIN

// Tags are 0 to CHOIR_CLUSTER_TAGS - 1.
#define CHOIR_CLUSTER_TAGS 16384

// Missing slots (NULL): those that move bytes fail with CHOIR_UNSUPPORTED, workers is 1 and worker
// 0, now is the system's monotonic clock, pause spins at first, then yields, then sleeps; the
// rest does nothing.
typedef struct choir_cluster_table {
	size_t size; // of this struct
	uint32_t version; // CHOIR_TABLE_VERSION
	const char *name; // what choir_cluster_options.transport takes; lives as long as the program
	size_t self_size; // bytes
	// Comes up. argument is that of choir_cluster_options.
	choir_status (*open)(void *self, const void *argument);
	// Once, also after an open that failed. Tells the others that this worker leaves, and waits at
	// most so many seconds (negative: for ever) for what the transport must do together.
	void (*close)(void *self, double seconds);
	int (*worker)(const void *self); // (any) 0 .. workers - 1
	int (*workers)(const void *self); // (any) at least 1
	// (any) What it is, with versions, in one line: "Open MPI 4.1.4, MPI_THREAD_MULTIPLE".
	void (*describe)(const void *self, char *text, size_t size);
	// Begin. Any number of bytes, 0 too.
	choir_status (*send)(
			void *self, int to, int tag, const void *data, size_t bytes, uint64_t *ticket);
	choir_status (*receive)(
			void *self, int from, int tag, void *data, size_t capacity, uint64_t *ticket);
	// Never blocks. When it is *done, the ticket is gone, and *bytes is the size of the message.
	// A failure leaves the ticket as it is.
	choir_status (*test)(void *self, uint64_t ticket, bool *done, size_t *bytes);
	// Gives up a ticket whose message will not come. Its memory is not lent any more, but for a
	// send whose other end is reading it right now.
	void (*drop)(void *self, uint64_t ticket);
	// Tells all workers, as well as it can without waiting, that this one stops, and why: their
	// tests fail from now on.
	void (*abort)(void *self, const char *why);
	double (*now)(void *self); // (any) seconds of the clock of deadlines
	// (any) Called by one that waits, and has looked turn times already: returns when something
	// may have changed, at the latest when now is until.
	void (*pause)(void *self, int turn, double until);
	// Messages of up to so many bytes leave without their receiver's help. A few of them are
	// sent in place of one that is larger. 0: not known.
	size_t eager;
} choir_cluster_table;

// Makes a transport known to choir_cluster_new. The table is copied; its name is not.
// CHOIR_INVALID: a size or version that cannot be, no name, a name that is known already, or more
// than 16. Threads: one, before the first cluster.
CHOIR_MUST_CHECK choir_status choir_register_cluster(const choir_cluster_table *table);

CHOIR_C_END
