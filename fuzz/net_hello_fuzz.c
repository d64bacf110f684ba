// Fuzzes the handshake; the input is the payload of a HELLO or of a WELCOME, by its first byte. An
// accepted HELLO, written again, has the same bytes and makes a printable name. A listening end
// never accepts a hello with other facts.
#include "fuzz.h"

#include "net/handshake.h"

static choir_status send_none(
		void *self, uint64_t connection, const choir_connection_part parts[], int n, size_t *sent)
{
	(void) self, (void) connection;
	*sent = 0;
	for (int i = 0; i < n; i++)
		*sent += parts[i].bytes;
	return CHOIR_OK;
}

static void drop(void *self, uint64_t connection)
{
	(void) self, (void) connection;
}

static void check_hello(const uint8_t *data, size_t size)
{
	chi_hello h;
	chi_pack p = { 0 };
	char name[160];
	chi_unpack u = { .data = data, .bytes = size };
	if (chi_hello_unpack(&u, &h) != CHOIR_OK) {
		demand(choir_error_status() == CHOIR_CORRUPT, "refused with another status");
		return;
	}
	chi_hello_pack(&h, &p);
	demand(p.bytes == u.at && memcmp(p.data, data, p.bytes) == 0, "written again, it differs");
	chi_pack_free(&p);
	for (const char *c = chi_hello_name(&h, name, sizeof name); *c != '\0'; c++)
		demand((unsigned char) *c >= 32, "a control character in a name");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static chi_hello own;
	if (size == 0)
		return 0;
	if (own.facts == 0)
		demand(chi_hello_make(&own, "coordinator", 0, 7, "p") == CHOIR_OK, "no hello");
	chi_connections c = { .table = { .send = send_none, .drop = drop }, .self = &own };
	chi_link l;
	chi_handshake h;
	const bool dials = data[0] & 1;
	const chi_net_frame frame = { .kind = dials ? CHI_NET_WELCOME : CHI_NET_HELLO,
		.bytes = size - 1 };
	demand(chi_link_open(&l, &c, 1) == CHOIR_OK, "memory");
	demand(chi_handshake_begin(&h, &l, &own, dials) == CHOIR_OK, "no handshake");
	chi_error_clear();
	const choir_status status = chi_handshake_take(&h, &l, &frame, data + 1);
	demand((status == CHOIR_OK) == (h.state == (dials ? CHI_HANDSHAKE_DONE : CHI_HANDSHAKE_ASKED)),
			"the state differs from the status");
	if (status == CHOIR_OK)
		demand(h.peer.job == own.job && h.peer.facts == own.facts &&
						strcmp(h.peer.fact[1].value, "p") == 0,
				"other facts were accepted");
	else
		demand(choir_error()[0] != '\0', "refused without saying what");
	chi_link_close(&l);
	check_hello(data + 1, size - 1);
	return 0;
}
