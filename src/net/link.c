// Frames over a connection. Small frames are joined to one send. A large frame is sent in place,
// and only the unsent rest is copied.
#include "net/link.h"

#include "base/alloc.h"
#include "base/size.h"

#include <string.h>

enum { IN = 16384, PARTS = 8, JOIN = 4096, OUT = 65536 };

choir_status chi_link_open(chi_link *l, chi_connections *connections, uint64_t connection)
{
	*l = (chi_link){
		.connections = connections, .connection = connection, .max = CHI_NET_HANDSHAKE_MAX
	};
	l->in = chi_alloc(IN);
	if (l->in != NULL)
		return CHOIR_OK;
	chi_link_close(l);
	return CHOIR_NO_MEMORY;
}

void chi_link_close(chi_link *l)
{
	if (l->connection != 0)
		l->connections->table.drop(l->connections->self, l->connection);
	chi_free(l->payload);
	chi_free(l->in);
	chi_free(l->out);
	*l = (chi_link){ 0 };
}

static choir_status send_parts(
		chi_link *l, const choir_connection_part parts[], int n, size_t *sent)
{
	*sent = 0;
	return l->connections->table.send(l->connections->self, l->connection, parts, n, sent);
}

choir_status chi_link_flush(chi_link *l)
{
	while (l->out_at < l->out_bytes) {
		const choir_connection_part rest = { l->out + l->out_at, l->out_bytes - l->out_at };
		size_t sent;
		CHOIR_TRY(send_parts(l, &rest, 1, &sent));
		if (sent == 0)
			return CHOIR_OK;
		l->out_at += sent;
	}
	l->out_at = l->out_bytes = 0;
	return CHOIR_OK;
}

size_t chi_link_waiting(const chi_link *l)
{
	return l->out_bytes - l->out_at;
}

// Copies all but the first skip bytes, which were sent.
static choir_status keep(chi_link *l, const choir_connection_part parts[], int n, size_t skip)
{
	size_t need = l->out_bytes - l->out_at;
	for (int i = 0; i < n; i++)
		if (!chi_size_add(need, parts[i].bytes, &need))
			return choir_fail(CHOIR_NO_MEMORY, "a message of more bytes than memory has");
	if (l->out_at > 0 && need > l->out_capacity / 2) {
		memmove(l->out, l->out + l->out_at, l->out_bytes - l->out_at);
		l->out_bytes -= l->out_at;
		l->out_at = 0;
	}
	if (!chi_grow(&l->out, &l->out_capacity, l->out_at + need, 1))
		return CHOIR_NO_MEMORY;
	for (int i = 0; i < n; i++) {
		const size_t less = skip < parts[i].bytes ? skip : parts[i].bytes;
		skip -= less;
		if (parts[i].bytes > less)
			memcpy(l->out + l->out_bytes, (const char *) parts[i].data + less,
					parts[i].bytes - less);
		l->out_bytes += parts[i].bytes - less;
	}
	return CHOIR_OK;
}

choir_status chi_link_send(
		chi_link *l, uint16_t kind, uint32_t stream, const choir_connection_part parts[], int n)
{
	unsigned char header[CHI_NET_HEADER];
	choir_connection_part all[PARTS + 1] = { { header, sizeof header } };
	chi_net_frame f = { .kind = kind, .stream = stream, .sequence = l->sent };
	if (n > PARTS)
		return choir_fail(CHOIR_INTERNAL, "a message of %d parts", n);
	for (int i = 0; i < n; i++) {
		f.bytes += parts[i].bytes;
		all[i + 1] = parts[i];
	}
	chi_net_frame_pack(&f, header);
	size_t sent = 0;
	if (f.bytes > JOIN) {
		CHOIR_TRY(chi_link_flush(l));
		if (chi_link_waiting(l) == 0)
			CHOIR_TRY(send_parts(l, all, n + 1, &sent));
	}
	CHOIR_TRY(keep(l, all, n + 1, sent));
	l->sent++;
	return chi_link_waiting(l) > OUT ? chi_link_flush(l) : CHOIR_OK;
}

choir_status chi_link_send_pack(chi_link *l, uint16_t kind, uint32_t stream, const chi_pack *p)
{
	const choir_connection_part part = { p->data, p->bytes };
	return p->failed ? CHOIR_NO_MEMORY : chi_link_send(l, kind, stream, &part, p->bytes > 0);
}

static choir_status receive(chi_link *l, void *to, size_t capacity, size_t *got)
{
	*got = 0;
	const choir_status status =
			l->connections->table.receive(l->connections->self, l->connection, to, capacity, got);
	if (status == CHOIR_END && l->header_bytes > 0)
		return choir_fail(CHOIR_PEER_LOST, "the connection ended within a message");
	return status;
}

// *moved: up to need bytes; 0: none have arrived. Large payloads are received in place.
static choir_status take(chi_link *l, unsigned char *to, size_t need, size_t *moved)
{
	*moved = 0;
	if (l->in_at == l->in_bytes) {
		if (need >= IN)
			return receive(l, to, need, moved);
		l->in_at = l->in_bytes = 0;
		CHOIR_TRY(receive(l, l->in, IN, &l->in_bytes));
	}
	const size_t here = l->in_bytes - l->in_at;
	*moved = need < here ? need : here;
	if (*moved > 0)
		memcpy(to, l->in + l->in_at, *moved);
	l->in_at += *moved;
	return CHOIR_OK;
}

static choir_status begin_payload(chi_link *l)
{
	CHOIR_TRY(chi_net_frame_unpack(l->header, l->max, &l->frame));
	if (l->frame.sequence != l->received)
		return choir_fail(CHOIR_CORRUPT, "message: number %llu; number %llu is next",
				(unsigned long long) l->frame.sequence, (unsigned long long) l->received);
	const bool grown = chi_grow(&l->payload, &l->payload_capacity, (size_t) l->frame.bytes, 1);
	return grown ? CHOIR_OK : CHOIR_NO_MEMORY;
}

void *chi_link_take(chi_link *l)
{
	void *payload = l->payload;
	l->payload = NULL;
	l->payload_capacity = 0;
	return payload;
}

choir_status chi_link_receive(chi_link *l, const chi_net_frame **frame, const void **payload)
{
	*frame = NULL;
	if (l->whole) {
		l->whole = false;
		l->header_bytes = l->payload_bytes = 0;
	}
	for (size_t moved; l->header_bytes < CHI_NET_HEADER;) {
		CHOIR_TRY(take(l, l->header + l->header_bytes, CHI_NET_HEADER - l->header_bytes, &moved));
		if (moved == 0)
			return CHOIR_OK;
		l->header_bytes += moved;
		if (l->header_bytes == CHI_NET_HEADER)
			CHOIR_TRY(begin_payload(l));
	}
	for (size_t moved; l->payload_bytes < l->frame.bytes;) {
		CHOIR_TRY(take(l, l->payload + l->payload_bytes,
				(size_t) l->frame.bytes - l->payload_bytes, &moved));
		if (moved == 0)
			return CHOIR_OK;
		l->payload_bytes += moved;
	}
	l->whole = true;
	l->received++;
	*frame = &l->frame;
	*payload = l->payload;
	return CHOIR_OK;
}
