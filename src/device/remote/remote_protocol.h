// Messages between a program and a server of devices (src/serve), or two servers.
//
// A frame has many commands: four fields of 32 bits (kind, stream, bytes of the body, zero) and a
// body. A stream's commands are numbered from 1 and run in order; others take effect on arrival.
// The program chooses addresses of memory, so no call waits for an answer: bit 63, the server's
// number in bits 48 to 62, and a count.
#pragma once

#include "net/hub.h"

#define CHI_REMOTE_ROLE "program"
#define CHI_REMOTE_SERVER_ROLE "device server"
#define CHI_REMOTE_PROTOCOL 4

enum {
	CHI_REMOTE_COMMANDS = CHI_NET_OWN,
	// Server to program, for each stream with progress: stream u32, number u64 of done commands,
	// number u64 of the first that failed (0: none), status u32, text.
	CHI_REMOTE_REACHED,
	// Server to program: stream u32, number u64 of the fetch, then the bytes.
	CHI_REMOTE_DATA,
	// Server to program: bytes u64 of commands done since the last CREDIT.
	CHI_REMOTE_CREDIT,
	// The answer to LEND: the server can read the program's memory.
	CHI_REMOTE_READS,
	// Server to server: token u64, incarnation u64 of the program, and a request.
	CHI_REMOTE_WRITE, // address u64, then the bytes
	CHI_REMOTE_READ, // address u64, bytes u64
	// stream u32, number u64. ANSWER: sender u64, with the streams' progress behind it.
	CHI_REMOTE_AWAIT,
	// Between servers of one host: where bytes are, to read them. At address sender u64 the sender
	// has the incarnation of the program's connection to the answering server, which proves the
	// right process. ANSWER: address u64 and bytes u64 of the allocation, memory u64, sender u64,
	// and, behind the incarnation there, releases u64: how often memory was freed.
	CHI_REMOTE_LOCATE, // address u64, bytes u64
	CHI_REMOTE_TAKE, // address u64, bytes u64, memory u64, sender u64
	// Server to server: token u64, status u32, text, then read bytes.
	CHI_REMOTE_ANSWER
};

enum {
	// Effective on arrival.
	CHI_COMMAND_OPEN = 1, // device u32
	CHI_COMMAND_CLOSE, // nothing; the stream is empty
	CHI_COMMAND_ALLOCATE, // device u32, address u64, bytes u64
	CHI_COMMAND_RELEASE, // address u64; after all earlier commands
	CHI_COMMAND_SYNC, // number u64 of the command for REACHED
	CHI_COMMAND_PEER, // server u32, incarnation u64, address text
	CHI_COMMAND_LEND, // address u64 of the program's copy of its incarnation
	// Queued on their stream.
	CHI_COMMAND_SEND, // address u64, then the bytes
	CHI_COMMAND_FETCH, // address u64, bytes u64
	CHI_COMMAND_MOVE, // to u64, from u64, bytes u64
	CHI_COMMAND_FILL, // address u64, bytes u64, byte u32
	CHI_COMMAND_KERNEL, // operation text, attributes bytes, inputs u32, inputs and out as buffers
	CHI_COMMAND_FOLLOW, // server u32, stream u32, number u64
	CHI_COMMAND_CLEAR, // later commands run again
	CHI_COMMAND_TAKE, // address u64, bytes u64, from u64: memory of the program
	CHI_COMMANDS
};

enum {
	CHI_COMMAND_HEADER = 16,
	CHI_REMOTE_PIECE = 1 << 20, // bytes of a SEND, FETCH, WRITE or READ
	CHI_REMOTE_FRAME = 4 << 20, // bytes of joined commands
	CHI_REMOTE_MAX = 16 << 20, // bytes of a frame
	CHI_REMOTE_WINDOW = 64 << 20, // bytes of commands in flight
	CHI_REMOTE_CREDIT_STEP = 4 << 20,
	CHI_REMOTE_DEVICES = 16,
	CHI_REMOTE_SERVERS = 256
};

static inline bool chi_remote_is_address(uint64_t address)
{
	return address >> 63 != 0;
}

static inline uint32_t chi_remote_server_of(uint64_t address)
{
	return (uint32_t) (address >> 48 & 0x7fff);
}

// The facts decide the bits. index: the server's in the program; CHOIR_NONE: a server's hello.
choir_status chi_remote_hello(chi_hello *h, const char *role, int index, uint64_t job);
