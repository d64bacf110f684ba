// Fuzzes the reader of TFRecord files. The first byte of the input chooses how the rest becomes a
// file: unchanged; or as records with valid checksums, plain or compressed by gzip or zlib, with
// one byte changed afterwards. A record has two bytes of length; after 0xffff follow eight bytes
// of a length that may be wrong.
//
// Independent code reads a plain file again, with a bitwise checksum and 128-bit sums. The reader
// must return exactly those records and then an end or an error. For a compressed file it must
// return all records, or the first ones and an error.
#include "fuzz.h"

#include "choir/source.h"
#include "data/data.h"

#include <zlib.h>

enum { MAX = 16384, COLUMN = 600, BLOCKS = 300 * 1024 };

typedef struct {
	size_t n;
	uint8_t bytes[MAX];
} file;

static void put(file *f, const void *data, size_t n)
{
	demand(n <= MAX - f->n, "the fuzzer's file is full");
	memcpy(f->bytes + f->n, data, n);
	f->n += n;
}

static uint32_t slow_masked_crc(const uint8_t *p, size_t n)
{
	uint32_t crc = 0xffffffff;
	for (size_t i = 0; i < 8 * n; i++) {
		const uint32_t bit = (crc ^ (uint32_t) p[i / 8] >> i % 8) & 1;
		crc = crc >> 1 ^ (bit ? 0x82f63b78 : 0);
	}
	crc = ~crc;
	return (uint32_t) ((wide) (crc >> 15 | crc << 17) + 0xa282ead8);
}

static void put_crc(file *f, const uint8_t *p, size_t n)
{
	const uint32_t crc = slow_masked_crc(p, n);
	put(f,
			(uint8_t[]){ (uint8_t) crc, (uint8_t) (crc >> 8), (uint8_t) (crc >> 16),
					(uint8_t) (crc >> 24) },
			4);
}

static void make_records(file *f, const uint8_t *data, size_t size)
{
	while (size >= 2 && f->n + size + 32 < MAX) {
		uint8_t length[8] = { data[0], data[1] };
		size_t n = data[0] | (size_t) data[1] << 8;
		data += 2;
		size -= 2;
		if (n == 0xffff && size >= 8) {
			memcpy(length, data, 8);
			data += 8;
			size -= 8;
			n = length[0];
		}
		if (n > size) {
			n = size;
			length[0] = (uint8_t) n;
			length[1] = (uint8_t) (n >> 8);
		}
		put(f, length, 8);
		put_crc(f, length, 8);
		put(f, data, n);
		put_crc(f, data, n);
		data += n;
		size -= n;
	}
}

static void compress_file(file *f, int windows)
{
	static uint8_t out[MAX];
	z_stream z = { .next_in = f->bytes, .avail_in = (uInt) f->n };
	demand(deflateInit2(&z, 6, Z_DEFLATED, windows, 8, Z_DEFAULT_STRATEGY) == Z_OK, "no zlib");
	z.next_out = out;
	z.avail_out = MAX;
	demand(deflate(&z, Z_FINISH) == Z_STREAM_END, "it does not fit");
	f->n = MAX - z.avail_out;
	memcpy(f->bytes, out, f->n);
	deflateEnd(&z);
}

// Returns the data of the record at *at and moves *at to its end; NULL: there is no valid record.
static const uint8_t *good_record(const file *f, size_t *at, size_t *bytes)
{
	const uint8_t *p = f->bytes + *at;
	wide length = 0, end;
	if (f->n - *at < 12)
		return NULL;
	for (int i = 7; i >= 0; i--)
		length = length << 8 | p[i];
	end = (wide) *at + 12 + length + 4;
	if (end > f->n)
		return NULL;
	*bytes = (size_t) length;
	file expected = { 0, { 0 } };
	put_crc(&expected, p, 8);
	put_crc(&expected, p + 12, *bytes);
	if (memcmp(p + 8, expected.bytes, 4) != 0 ||
			memcmp(p + 12 + length, expected.bytes + 4, 4) != 0)
		return NULL;
	*at = (size_t) end;
	return p + 12;
}

static choir_dataset *open_file(const file *f, choir_compression compression, int skip)
{
	const choir_feature x = {
		.name = "x", .dtype = CHOIR_U8, .shape = { 1, { COLUMN } }, .pad = true
	};
	choir_dataset *d = choir_tfrecord_dataset_new(fuzz_file(f->bytes, f->n),
			CHOIR_OPTIONS(choir_tfrecord_options, .compression = compression, .raw = true, .n = 1,
					.features = &x,
					.wrong = skip ? CHOIR_BAD_RECORD_SKIP : CHOIR_BAD_RECORD_ERROR));
	demand(d != NULL, "the options were refused");
	return d;
}

// Reads a pass and compares it with the records of good. exact: all of them must be there, up to
// the first invalid one.
static void read_pass(choir_dataset *d, const file *good, int exact)
{
	static uint8_t row[COLUMN];
	chi_element e = { .column = { row }, .capacity = 1 };
	size_t at = 0, bytes = 0, records = 0;
	choir_status status;
	chi_error_clear();
	while ((status = chi_dataset_next(d, &e)) == CHOIR_OK) {
		const uint8_t *expected = good_record(good, &at, &bytes);
		demand(expected != NULL, "a record that is not there");
		demand(bytes <= COLUMN && memcmp(expected, row, bytes) == 0, "a record of other data");
		for (size_t i = bytes; i < COLUMN; i++)
			demand(row[i] == 0, "a record that is not filled up with zeros");
		records++;
	}
	demand(status == CHOIR_END || choir_error()[0] != '\0', "failed without a word");
	const uint8_t *more = good_record(good, &at, &bytes);
	if (exact)
		demand(more == NULL || bytes > COLUMN, "a good record was left out");
	demand(status != CHOIR_END || (more == NULL && at == good->n), "an end in the middle");
	demand(!exact || status == CHOIR_END || more != NULL || at < good->n,
			"an error behind the end");
}

static void read_skipping(const file *f)
{
	static uint8_t row[COLUMN];
	chi_element e = { .column = { row }, .capacity = 1 };
	choir_dataset *d = open_file(f, CHOIR_COMPRESSION_AUTO, 1);
	int64_t n = 0;
	choir_status status;
	while ((status = chi_dataset_next(d, &e)) == CHOIR_OK)
		n++;
	demand(status == CHOIR_END, "skipping came to no end");
	demand(n + choir_dataset_skipped(d) <= (int64_t) f->n * 1100 / 16 + 1, "too many records");
	choir_dataset_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static file f, good;
	if (size < 4)
		return 0;
	const int mode = data[0] % 5; // unchanged, plain, changed, gzip, zlib
	const size_t place = data[1] | (size_t) data[2] << 8;
	f.n = 0;
	if (mode == 0)
		put(&f, data + 1, size - 1);
	else
		make_records(&f, data + 4, size - 4);
	good = f;
	if (mode > 2)
		compress_file(&f, mode == 3 ? 31 : 15);
	if (mode > 1 && f.n > 0)
		f.bytes[place % f.n] ^= data[3];
	if (mode == 2)
		good = f;
	fuzz_largest = BLOCKS; // larger than every file here
	// The compression of a plain file is set, because its first bytes may look compressed.
	choir_dataset *d =
			open_file(&f, mode > 2 ? CHOIR_COMPRESSION_AUTO : CHOIR_COMPRESSION_NONE, 0);
	for (int i = 0; i < 2; i++) {
		if (mode <= 2 || data[3] == 0 || f.n == 0)
			read_pass(d, &good, 1);
		else
			read_pass(d, &good, 0);
		chi_dataset_rewind(d);
	}
	choir_dataset_free(d);
	read_skipping(&f);
	fuzz_largest = 0;
	return 0;
}
