// Fuzzes the reader of frames; the input is the stream of a connection. Its first two bytes say how
// it is cut. Accepted frames, written again, are the beginning of the stream, in any cut. A refused
// stream gives a message.
#include "fuzz.h"

#include "net/link.h"

typedef struct {
	const uint8_t *data;
	size_t size, at, piece;
} stream;

static choir_status receive(
		void *self, uint64_t connection, void *to, size_t capacity, size_t *received)
{
	stream *s = self;
	(void) connection;
	size_t bytes = s->size - s->at < capacity ? s->size - s->at : capacity;
	bytes = bytes < s->piece ? bytes : s->piece;
	*received = bytes;
	if (bytes == 0)
		return CHOIR_END;
	memcpy(to, s->data + s->at, bytes);
	s->at += bytes;
	return CHOIR_OK;
}

static void drop(void *self, uint64_t connection)
{
	(void) self, (void) connection;
}

// Reads all frames; returns the bytes that they have, and the status that ended it.
static choir_status read_all(
		const uint8_t *data, size_t size, size_t piece, uint64_t max, size_t *accepted)
{
	stream s = { .data = data, .size = size, .piece = piece };
	chi_connections c = { .table = { .receive = receive, .drop = drop }, .self = &s };
	chi_link l;
	choir_status status = chi_link_open(&l, &c, 1);
	demand(status == CHOIR_OK, "memory");
	l.max = max;
	*accepted = 0;
	chi_error_clear();
	while (status == CHOIR_OK) {
		const chi_net_frame *frame;
		const void *payload;
		status = chi_link_receive(&l, &frame, &payload);
		if (status != CHOIR_OK || frame == NULL)
			continue;
		unsigned char header[CHI_NET_HEADER];
		demand(frame->bytes <= max, "a payload larger than allowed");
		chi_net_frame_pack(frame, header);
		demand(size - *accepted >= sizeof header + frame->bytes, "more than the stream has");
		demand(memcmp(header, data + *accepted, sizeof header) == 0, "another header");
		*accepted += sizeof header;
		if (frame->bytes > 0)
			demand(memcmp(payload, data + *accepted, (size_t) frame->bytes) == 0, "other bytes");
		*accepted += (size_t) frame->bytes;
	}
	chi_link_close(&l);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	const size_t piece = 1 + data[0], max = (size_t) data[1] * 16;
	size_t once, again;
	fuzz_largest = 65536; // the link's buffer, and the largest payload
	const choir_status status = read_all(data + 2, size - 2, piece, max, &once);
	const choir_status whole = read_all(data + 2, size - 2, size, max, &again);
	fuzz_largest = 0;
	demand(status == whole && once == again, "the cut changes what is read");
	if (status == CHOIR_END) {
		demand(once == size - 2, "an end within a frame");
		return 0;
	}
	demand(status == CHOIR_CORRUPT || status == CHOIR_PEER_LOST, "another status");
	demand(choir_error()[0] != '\0', "refused without saying what");
	return 0;
}
