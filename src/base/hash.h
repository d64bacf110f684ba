// 64-bit hashes. Files contain them, so they must never change.
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t chi_hash_mix(uint64_t x); // a bijection
uint64_t chi_hash_text(const char *text);
uint64_t chi_hash_bytes(const void *bytes, size_t n);
