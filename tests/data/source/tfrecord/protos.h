// Writes TFRecord files and Examples byte by byte, independently of the library, with a bitwise
// checksum.
#pragma once

#include <stddef.h>
#include <stdint.h>

// A growing buffer; the test frees data.
typedef struct {
	unsigned char *data;
	size_t n, capacity;
} bytes;

// Append to b.
void put(bytes *b, const void *data, size_t n);
void put_varint(bytes *b, uint64_t value);
void put_field(bytes *b, unsigned number, const bytes *content); // wire type 2; frees content
void put_number_field(bytes *b, unsigned number, uint64_t value); // wire type 0
void put_f32_field(bytes *b, unsigned number, float value); // wire type 5
uint32_t slow_masked_crc(const void *data, size_t n);
void put_record(bytes *b, const void *data, size_t n);
void put_record_of(bytes *b, bytes *content); // frees content

// Make features with packed lists.
bytes float_list(size_t n, const float values[]);
bytes int64_list(size_t n, const int64_t values[]);
bytes bytes_list(size_t n, const void *data, size_t each);
// Kinds of lists, by their field numbers.
enum { BYTES_LIST = 1, FLOAT_LIST = 2, INT64_LIST = 3 };
// Adds an entry to the map of features; frees list.
void put_entry(bytes *features, const char *name, unsigned kind, bytes *list);
bytes example(bytes *features); // frees features

// Compresses plain, if the build has zlib. windows: 15 is zlib's format, 31 gzip's.
bytes deflated(const bytes *plain, int windows);
void save_bytes(const char *path, const bytes *b);
