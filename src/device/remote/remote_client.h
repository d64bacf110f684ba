// The program's side of a server of devices. Calls queue commands for a thread; only
// chi_remote_wait waits for the server. Threads: any; the lock guards all fields.
#pragma once

#include "base/serialization.h"
#include "base/lock.h"
#include "base/status.h"
#include "base/thread.h"
#include "choir/extend/device_table.h"
#include "device/remote/remote_protocol.h"

typedef struct {
	uint64_t number;
	void *to;
	size_t bytes;
} chi_remote_fetch;

typedef struct chi_remote_server chi_remote_server;

// From command `since` on, a stream runs after another's command.
enum { CHI_REMOTE_FOLLOWED = 16 };
typedef struct {
	uint32_t server, stream;
	uint64_t command, since;
} chi_remote_followed;

typedef struct chi_remote_stream {
	struct chi_remote_stream *next;
	chi_remote_server *server;
	uint32_t number;
	uint64_t queued, reached, asked; // asked: of the last SYNC
	uint64_t failed, told; // the first that failed, or 0; the last that a wait has reported
	chi_error failure;
	chi_remote_fetch *fetches;
	size_t first_fetch, fetch_count, fetch_capacity;
	chi_remote_followed followed[CHI_REMOTE_FOLLOWED]; // since 0: none
	unsigned oldest;
} chi_remote_stream;

typedef struct {
	char name[16];
	int cores;
	uint64_t memory, used;
} chi_remote_device;

// Memory from which a server on this host reads, until a command is done.
enum { CHI_REMOTE_LOANS = 32 };
typedef struct {
	unsigned char *memory; // CHI_REMOTE_PIECE; NULL: not yet made
	const chi_remote_stream *stream; // NULL: free
	uint64_t number;
} chi_remote_loan;

struct chi_remote_server {
	chi_remote_server *next;
	uint32_t number;
	char address[128];
	unsigned generation; // of the thread's process
	chi_connections *connections;
	chi_hello hello;
	chi_hub *hub;
	chi_peer *peer;
	chi_thread thread;
	chi_mutex lock;
	chi_cond changed;
	chi_pack outbox;
	size_t start;
	bool asleep, woken; // woken: since the thread has last taken commands
	bool awaited; // the outbox has a SYNC
	bool joined, stops;
	chi_error end;
	uint64_t in_flight; // bytes
	uint64_t next_address;
	uint32_t next_stream;
	chi_remote_stream *streams;
	int devices;
	chi_remote_device device[CHI_REMOTE_DEVICES];
	char library[64];
	bool library_checked;
	bool reads; // the server can read this process's memory
	chi_remote_loan loan[CHI_REMOTE_LOANS];
	bool knows[CHI_REMOTE_SERVERS];
};

// Waits until the server has joined; then it is never freed. NULL: CHOIR_NOT_FOUND (no listener),
// or a refusal.
chi_remote_server *chi_remote_server_new(const char *address, uint32_t number);

// Locks the server, unless it fails, and begins a command, whose body follows in r->outbox. s may
// be NULL. bytes: about the body's. Waits while the server has too much work.
choir_status chi_remote_begin(
		chi_remote_server *r, chi_remote_stream *s, uint32_t command, size_t bytes);
// Unlocks the server. CHOIR_NO_MEMORY: the command is not sent.
choir_status chi_remote_end(chi_remote_server *r, chi_remote_stream *s);
// Drops the command and unlocks the server.
void chi_remote_cancel(chi_remote_server *r);
void chi_remote_flush(chi_remote_server *r);
// CHI_REMOTE_PIECE bytes, the stream's until its command loan->number (set by the caller) is done.
// NULL: none, or the server cannot read it.
chi_remote_loan *chi_remote_lend(chi_remote_stream *s);
choir_status chi_remote_wait(chi_remote_stream *s, uint64_t number, double seconds);
uint64_t chi_remote_waits(void);
