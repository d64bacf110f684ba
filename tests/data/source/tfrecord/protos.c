// Bytes of TFRecord files.
#include "data/source/tfrecord/protos.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef CHI_HAS_ZLIB
#include <zlib.h>
#endif

void put(bytes *b, const void *data, size_t n)
{
	while (b->n + n > b->capacity) {
		b->capacity = 2 * b->capacity + 64;
		b->data = realloc(b->data, b->capacity);
		assert_non_null(b->data);
	}
	if (n)
		memcpy(b->data + b->n, data, n);
	b->n += n;
}

void put_varint(bytes *b, uint64_t value)
{
	unsigned char byte;
	do {
		byte = (unsigned char) (value % 128 + (value >= 128 ? 128 : 0));
		put(b, &byte, 1);
		value /= 128;
	} while (byte >= 128);
}

void put_field(bytes *b, unsigned number, const bytes *content)
{
	put_varint(b, number * 8 + 2);
	put_varint(b, content->n);
	put(b, content->data, content->n);
	free(content->data);
}

void put_number_field(bytes *b, unsigned number, uint64_t value)
{
	put_varint(b, number * 8);
	put_varint(b, value);
}

static void put_little(bytes *b, uint64_t value, int n)
{
	for (int i = 0; i < n; i++)
		put(b, &(unsigned char){ (unsigned char) (value >> 8 * i & 255) }, 1);
}

static uint32_t bits_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

void put_f32_field(bytes *b, unsigned number, float value)
{
	put_varint(b, number * 8 + 5);
	put_little(b, bits_of(value), 4);
}

uint32_t slow_masked_crc(const void *data, size_t n)
{
	const unsigned char *p = data;
	uint32_t crc = 0xffffffff;
	for (size_t i = 0; i < 8 * n; i++) {
		const uint32_t bit = (crc ^ (uint32_t) p[i / 8] >> i % 8) & 1;
		crc = crc >> 1 ^ (bit ? 0x82f63b78 : 0);
	}
	crc = ~crc;
	return (uint32_t) (((uint64_t) (crc / 32768) + (uint64_t) crc * 131072 + 0xa282ead8) &
			0xffffffff);
}

void put_record(bytes *b, const void *data, size_t n)
{
	const size_t at = b->n;
	put_little(b, n, 8);
	put_little(b, slow_masked_crc(b->data + at, 8), 4);
	put(b, data, n);
	put_little(b, slow_masked_crc(data, n), 4);
}

void put_record_of(bytes *b, bytes *content)
{
	put_record(b, content->data, content->n);
	free(content->data);
}

bytes float_list(size_t n, const float values[])
{
	bytes packed = { NULL, 0, 0 }, list = { NULL, 0, 0 };
	for (size_t i = 0; i < n; i++)
		put_little(&packed, bits_of(values[i]), 4);
	put_field(&list, 1, &packed);
	return list;
}

bytes int64_list(size_t n, const int64_t values[])
{
	bytes packed = { NULL, 0, 0 }, list = { NULL, 0, 0 };
	for (size_t i = 0; i < n; i++)
		put_varint(&packed, (uint64_t) values[i]);
	put_field(&list, 1, &packed);
	return list;
}

bytes bytes_list(size_t n, const void *data, size_t each)
{
	bytes list = { NULL, 0, 0 };
	for (size_t i = 0; i < n; i++) {
		bytes value = { NULL, 0, 0 };
		put(&value, (const char *) data + i * each, each);
		put_field(&list, 1, &value);
	}
	return list;
}

void put_entry(bytes *features, const char *name, unsigned kind, bytes *list)
{
	bytes feature = { NULL, 0, 0 }, key = { NULL, 0, 0 }, entry = { NULL, 0, 0 };
	put_field(&feature, kind, list);
	put(&key, name, strlen(name));
	put_field(&entry, 1, &key);
	put_field(&entry, 2, &feature);
	put_field(features, 1, &entry);
}

bytes example(bytes *features)
{
	bytes b = { NULL, 0, 0 };
	put_field(&b, 1, features);
	return b;
}

bytes deflated(const bytes *plain, int windows)
{
	bytes b = { NULL, 0, 0 };
#ifdef CHI_HAS_ZLIB
	z_stream z = { .next_in = plain->data, .avail_in = (uInt) plain->n };
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, windows, 8, Z_DEFAULT_STRATEGY), Z_OK);
	b.capacity = plain->n + 1024;
	b.data = malloc(b.capacity);
	assert_non_null(b.data);
	z.next_out = b.data;
	z.avail_out = (uInt) b.capacity;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	b.n = b.capacity - z.avail_out;
	deflateEnd(&z);
#else
	put(&b, plain->data, plain->n);
	(void) windows;
#endif
	return b;
}

void save_bytes(const char *path, const bytes *b)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	if (b->n)
		assert_int_equal(fwrite(b->data, 1, b->n, f), b->n);
	assert_int_equal(fclose(f), 0);
}
