// Fields as bytes, and back.
#include "base/serialization.h"

#include "base/alloc.h"

#include <string.h>

void chi_put_number(unsigned char *to, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[i] = (unsigned char) (value >> (8 * i));
}

uint64_t chi_get_number(const unsigned char *from, int bytes)
{
	uint64_t value = 0;
	for (int i = 0; i < bytes; i++)
		value |= (uint64_t) from[i] << (8 * i);
	return value;
}

void chi_pack_free(chi_pack *p)
{
	chi_free(p->data);
	*p = (chi_pack){ 0 };
}

void chi_pack_raw(chi_pack *p, const void *data, size_t bytes)
{
	if (p->failed || bytes == 0)
		return;
	if (bytes > SIZE_MAX - p->bytes || !chi_grow(&p->data, &p->capacity, p->bytes + bytes, 1)) {
		p->failed = true;
		return;
	}
	memcpy(p->data + p->bytes, data, bytes);
	p->bytes += bytes;
}

static void pack_number(chi_pack *p, uint64_t value, int bytes)
{
	unsigned char number[8];
	chi_put_number(number, value, bytes);
	chi_pack_raw(p, number, (size_t) bytes);
}

void chi_pack_u32(chi_pack *p, uint32_t value)
{
	pack_number(p, value, 4);
}

void chi_pack_u64(chi_pack *p, uint64_t value)
{
	pack_number(p, value, 8);
}

void chi_pack_f64(chi_pack *p, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	pack_number(p, bits, 8);
}

void chi_pack_bytes(chi_pack *p, const void *data, size_t bytes)
{
	chi_pack_u64(p, bytes);
	chi_pack_raw(p, data, bytes);
}

void chi_pack_text(chi_pack *p, const char *text)
{
	chi_pack_bytes(p, text, text == NULL ? 0 : strlen(text));
}

const void *chi_unpack_raw(chi_unpack *u, size_t bytes)
{
	if (u->failed || bytes > u->bytes - u->at) {
		u->failed = true;
		return NULL;
	}
	const unsigned char *from = u->data + u->at;
	u->at += bytes;
	return from;
}

static uint64_t unpack_number(chi_unpack *u, int bytes)
{
	const void *from = chi_unpack_raw(u, (size_t) bytes);
	return from == NULL ? 0 : chi_get_number(from, bytes);
}

uint32_t chi_unpack_u32(chi_unpack *u)
{
	return (uint32_t) unpack_number(u, 4);
}

uint64_t chi_unpack_u64(chi_unpack *u)
{
	return unpack_number(u, 8);
}

double chi_unpack_f64(chi_unpack *u)
{
	const uint64_t bits = unpack_number(u, 8);
	double value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

const void *chi_unpack_bytes(chi_unpack *u, size_t *bytes)
{
	const uint64_t count = chi_unpack_u64(u);
	const void *from = NULL;
	if (count > u->bytes)
		u->failed = true;
	else
		from = chi_unpack_raw(u, (size_t) count);
	*bytes = from == NULL ? 0 : (size_t) count;
	return from;
}

void chi_unpack_text(chi_unpack *u, char *out, size_t size)
{
	size_t bytes;
	const void *from = chi_unpack_bytes(u, &bytes);
	if (bytes >= size || (bytes > 0 && memchr(from, 0, bytes) != NULL))
		u->failed = true;
	else if (bytes > 0)
		memcpy(out, from, bytes);
	out[u->failed ? 0 : bytes] = '\0';
}

choir_status chi_unpack_end(const chi_unpack *u, const char *what)
{
	if (u->failed)
		return choir_fail(
				CHOIR_CORRUPT, "message %s: its %zu bytes do not hold its fields", what, u->bytes);
	if (u->at != u->bytes)
		return choir_fail(CHOIR_CORRUPT, "message %s: %zu bytes are left after its fields", what,
				u->bytes - u->at);
	return CHOIR_OK;
}
