// Little-endian fields of messages. A reader checks sizes, and gives zeros after its first
// failure.
#pragma once

#include "choir/status.h"

#include <stddef.h>
#include <stdint.h>

// The low bytes, at most 8.
void chi_put_number(unsigned char *to, uint64_t value, int bytes);
uint64_t chi_get_number(const unsigned char *from, int bytes);

typedef struct {
	unsigned char *data;
	size_t bytes, capacity;
	bool failed;
} chi_pack;
void chi_pack_free(chi_pack *p);
void chi_pack_u32(chi_pack *p, uint32_t value);
void chi_pack_u64(chi_pack *p, uint64_t value);
void chi_pack_f64(chi_pack *p, double value);
void chi_pack_text(chi_pack *p, const char *text); // NULL counts as ""
void chi_pack_bytes(chi_pack *p, const void *data, size_t bytes); // with their number
void chi_pack_raw(chi_pack *p, const void *data, size_t bytes); // without

// failed: they ended too early, or a text contains a zero byte.
typedef struct {
	const unsigned char *data;
	size_t bytes, at;
	bool failed;
} chi_unpack;
uint32_t chi_unpack_u32(chi_unpack *u);
uint64_t chi_unpack_u64(chi_unpack *u);
double chi_unpack_f64(chi_unpack *u);
// Takes less than size bytes; longer texts fail.
void chi_unpack_text(chi_unpack *u, char *out, size_t size);
// Points into the bytes; NULL after a failure.
const void *chi_unpack_bytes(chi_unpack *u, size_t *bytes);
const void *chi_unpack_raw(chi_unpack *u, size_t bytes);
// CHOIR_CORRUPT, with the message's name: it failed, or bytes are left.
choir_status chi_unpack_end(const chi_unpack *u, const char *what);
