// Hashes of 64 bits, for fingerprints and for keys by name. They are stored in files, so they
// never change.
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t chi_hash_mix(uint64_t x); // one to one
uint64_t chi_hash_text(const char *text);
uint64_t chi_hash_bytes(const void *bytes, size_t n);
