// One program on a server of devices. The network thread takes commands from frames. Each stream
// is a thread that runs its commands in order. The lock guards shared fields.
#pragma once

#include "base/atomic.h"
#include "base/lock.h"
#include "base/status.h"
#include "base/team.h"
#include "base/thread.h"
#include "device/device.h"
#include "device/remote/remote_protocol.h"

typedef struct chi_session chi_session;

// Freed after its last command.
typedef struct {
	unsigned char *data;
	size_t bytes, users;
} chi_served_frame;

// Another process's memory. The incarnation at the address tells it from a later process of its
// number.
typedef struct {
	int64_t pid; // 0: it cannot be read
	uint64_t address, incarnation;
} chi_served_reading;

// Servers of this host read it after the memory. Equal releases: no memory has moved. Progress of
// stream n, at n % CHI_SERVED_PROGRESS: n << CHI_SERVED_COUNT, and its done commands unless one
// has failed.
enum { CHI_SERVED_PROGRESS = 64, CHI_SERVED_COUNT = 40 };
typedef struct {
	uint64_t incarnation;
	chi_atomic64 releases;
	chi_atomic64 progress[CHI_SERVED_PROGRESS];
} chi_served_proof;

// Of an allocation of another server.
typedef struct {
	uint64_t address, bytes, memory, proof, releases;
} chi_served_location;

// Freed when all streams have passed this task.
typedef struct {
	uint64_t address;
	size_t users;
} chi_served_release;

// To another server, awaited by a stream's thread.
typedef struct chi_served_request {
	struct chi_served_request *next;
	chi_cond *changed; // the stream's
	uint64_t token;
	uint32_t server;
	bool done;
	chi_error error;
	void *to; // for bytes that are read; or NULL
	size_t bytes;
	unsigned char proof[8]; // for the answer of an AWAIT
} chi_served_request;

typedef struct chi_served_task {
	struct chi_served_task *next;
	chi_served_frame *frame; // NULL: a release
	chi_served_release *release;
	uint32_t command;
	const unsigned char *body;
	size_t bytes;
	chi_served_request *request; // of a FOLLOW of another server's stream; NULL: not asked
} chi_served_task;

// Another server's wait for a stream.
typedef struct chi_served_waiter {
	struct chi_served_waiter *next;
	chi_peer *peer;
	uint64_t token, number;
	uint32_t stream;
} chi_served_waiter;

typedef struct chi_served_stream {
	struct chi_served_stream *next;
	chi_session *session;
	uint32_t number;
	chi_stream *local;
	chi_team *team;
	chi_thread thread;
	chi_cond changed; // for the thread: a task, an answer, or the awaited command
	uint32_t after; // the stream of this server that the thread waits for, or 0
	uint64_t until;
	chi_served_task *first, **last;
	uint64_t queued, finished, asked, told; // told: the program knows that these are finished
	uint64_t failed; // the first failed command since the last CLEAR, or 0
	chi_error failure;
	chi_served_waiter *waiters;
	bool closing, done;
} chi_served_stream;

// The program's memory, in ascending order of addresses.
typedef struct {
	uint64_t address;
	size_t bytes;
	void *memory;
	choir_device *device;
} chi_served_memory;

// From a stream's thread to the network thread.
typedef struct chi_served_message {
	struct chi_served_message *next;
	chi_peer *peer; // NULL: to server
	uint32_t server;
	uint16_t kind;
	chi_pack pack;
} chi_served_message;

enum { CHI_SERVED_LOCATIONS = 16 };

typedef struct chi_served_peer {
	struct chi_served_peer *next;
	uint32_t number;
	uint64_t incarnation; // of the program's connection there
	char address[128];
	chi_peer *peer; // NULL: not dialled, or lost
	bool joined;
	// With the lock:
	int64_t pid; // 0: memory cannot be read
	uint64_t proof; // its address; 0: not known
	chi_served_location location[CHI_SERVED_LOCATIONS]; // the last ones; bytes 0: none
	unsigned located;
	chi_served_message *first, **last; // kept until it has joined
} chi_served_peer;

struct chi_session {
	chi_hub *hub;
	chi_peer *program;
	uint64_t incarnation;
	chi_served_proof proof;
	chi_served_reading lender; // the program
	uint32_t number; // of this server, in addresses
	int devices, cores;
	choir_device *const *device;
	chi_mutex lock;
	bool ending, broken; // broken: an awaited message is missing
	bool serving; // the network thread has the lock, and sends messages afterwards
	chi_served_stream *streams, *closed;
	uint32_t opened; // the last stream's number
	chi_served_waiter *early; // for later streams
	chi_served_memory *memory;
	size_t memory_count, memory_capacity;
	uint64_t credit; // bytes of done frames, not yet reported
	chi_served_message *first, **last;
	chi_served_request *requests;
	uint64_t tokens;
	chi_served_peer *others; // the network thread's
};

chi_session *chi_session_new(
		chi_hub *hub, chi_peer *program, int devices, choir_device *const device[], int cores);
void chi_session_free(chi_session *s); // waits for running commands
// A frame of commands; takes over data. A failure ends the session.
choir_status chi_session_take(chi_session *s, unsigned char *data, size_t bytes);
// With the lock. NULL: a failure.
void *chi_session_find(chi_session *s, uint64_t address, size_t bytes, choir_device **device);
const chi_served_memory *chi_session_find_allocation(
		const chi_session *s, uint64_t address, size_t bytes);
// Takes the pack. With the lock.
choir_status chi_session_post(
		chi_session *s, chi_peer *peer, uint32_t server, uint16_t kind, chi_pack *pack);
// Sends the messages, on the network thread. CHOIR_NO_MEMORY: one could not be made.
choir_status chi_session_send(chi_session *s);
