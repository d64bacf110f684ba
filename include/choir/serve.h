// A server offers this machine's devices to a program in another process or on another machine,
// which names them "remote:HOST:PORT/cpu:0" in choir_strategy_options.devices. The command `choir
// serve` is such a server.
//
// A server works for one program at a time. It refuses another key, and another version, compiler,
// instruction set or kernel library, whose results would have other bits. A program may use all
// memory that the server offers, but can run only this library's kernels. When the program ends or
// is lost, the server frees its memory.
#pragma once

#include "device.h"

CHOIR_C_BEGIN

typedef struct choir_server choir_server;

// The options of a server.
typedef struct {
	size_t size;
	// Where the server listens: "127.0.0.1:7000", "host:7000" or "unix:PATH". Port 0: the system
	// chooses a port.
	const char *address;
	// At most 16 names of devices, separated by commas. NULL: all GPUs, else one CPU device for
	// each core.
	const char *devices;
	// A file with the job's key (`choir key`), which only its owner may read, for TCP. NULL: the
	// environment variable CHOIR_KEY_FILE, if set.
	const char *key_file;
	int cores; // threads for each stream of a device; 0: 1
	// Bytes of each device for the program; 0: all. CPU devices share the host's memory.
	uint64_t memory;
} choir_server_options;

// Makes a server that listens. CHOIR_STATE: the address is in use. CHOIR_INVALID also: a TCP
// address without a key. CHOIR_UNSUPPORTED: TCP in a build without OpenSSL.
choir_server *choir_server_new(const choir_server_options *o);
// The address at which the server listens, with its port.
const char *choir_server_address(const choir_server *s);
// Serves programs until choir_server_stop. Then tells the present program, and frees its memory.
CHOIR_MUST_CHECK choir_status choir_server_run(choir_server *s);
// Makes choir_server_run return. Threads: any, and signal handlers.
void choir_server_stop(choir_server *s);
void choir_server_free(choir_server *s); // after choir_server_run has returned

CHOIR_C_END
