// Messages as lists of parts.
#include "coordinator/large_message.h"

#include "base/process_memory.h"

enum { ALIGNMENT = 64 };

static size_t padding(size_t bytes)
{
	return -bytes & (ALIGNMENT - 1);
}

void chi_large_message_free(chi_large_message *m)
{
	chi_pack_free(&m->pack);
	chi_free(m->field);
	*m = (chi_large_message){ 0 };
}

size_t chi_large_message_bytes(const chi_large_message *m)
{
	return m->pack.bytes + m->field_bytes;
}

void chi_large_message_add(chi_large_message *m, const void *data, size_t bytes)
{
	static const char zeros[ALIGNMENT];
	chi_pack_raw(&m->pack, zeros, padding(chi_large_message_bytes(m)));
	if (m->pack.failed || !chi_grow(&m->field, &m->capacity, m->n + 1, sizeof *m->field)) {
		m->pack.failed = true;
		return;
	}
	m->field[m->n++] = (chi_large_field){ m->pack.bytes, data, bytes };
	m->field_bytes += bytes;
}

static const void *pack_at(const chi_pack *p, size_t at)
{
	return p->bytes == 0 ? NULL : p->data + at;
}

void chi_large_message_join(const chi_large_message *m, chi_pack *to)
{
	size_t at = 0;
	to->failed |= m->pack.failed ||
			!chi_grow(&to->data, &to->capacity, to->bytes + chi_large_message_bytes(m), 1);
	for (size_t i = 0; i < m->n; at = m->field[i++].at) {
		chi_pack_raw(to, pack_at(&m->pack, at), m->field[i].at - at);
		chi_pack_raw(to, m->field[i].data, m->field[i].bytes);
	}
	chi_pack_raw(to, pack_at(&m->pack, at), m->pack.bytes - at);
}

static void offer_part(chi_pack *to, const void *data, size_t bytes)
{
	chi_pack_u64(to, (uintptr_t) data);
	chi_pack_u64(to, bytes);
}

void chi_large_message_offer(const chi_large_message *m, chi_pack *to)
{
	size_t at = 0;
	to->failed |= m->pack.failed;
	chi_pack_u64(to, chi_large_message_bytes(m));
	chi_pack_u32(to, (uint32_t) (2 * m->n + 1));
	for (size_t i = 0; i < m->n; at = m->field[i++].at) {
		offer_part(to, pack_at(&m->pack, at), m->field[i].at - at);
		offer_part(to, m->field[i].data, m->field[i].bytes);
	}
	offer_part(to, pack_at(&m->pack, at), m->pack.bytes - at);
}

const void *chi_unpack_large(chi_unpack *u, size_t bytes)
{
	(void) chi_unpack_raw(u, padding(u->at));
	return chi_unpack_raw(u, bytes);
}

static choir_status take_parts(chi_unpack *u, uint32_t n, const chi_scratch *to, size_t bytes,
		chi_process_memory_part part[])
{
	size_t at = 0;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t from = chi_unpack_u64(u), size = chi_unpack_u64(u);
		u->failed |= size > bytes - at;
		if (u->failed)
			break;
		part[i] = (chi_process_memory_part){ to->memory + at, from, (size_t) size };
		at += (size_t) size;
	}
	u->failed |= at != bytes;
	return chi_unpack_end(u, "OFFER");
}

choir_status chi_large_message_fetch(
		chi_unpack *u, int64_t pid, size_t max, chi_scratch *to, size_t *bytes)
{
	const uint64_t all = chi_unpack_u64(u);
	const uint32_t n = chi_unpack_u32(u);
	if (u->failed || all > max || n > u->bytes)
		return choir_fail(CHOIR_CORRUPT, "message OFFER: %llu bytes in %u parts",
				(unsigned long long) all, (unsigned) n);
	*bytes = (size_t) all;
	chi_process_memory_part *part = chi_alloc_array(n, sizeof *part);
	if (part == NULL || !chi_scratch_reserve(to, *bytes)) {
		chi_free(part);
		return CHOIR_NO_MEMORY;
	}
	choir_status status = take_parts(u, n, to, *bytes, part);
	if (status == CHOIR_OK && !chi_process_memory_read(pid, part, n))
		status = choir_fail(
				CHOIR_PEER_LOST, "the memory of process %lld cannot be read", (long long) pid);
	chi_free(part);
	return status;
}
