// Fuzzes the reader of compressed files; the input is a gzip file, or a zlib file if its first
// byte says so. zlib itself decompresses it again as a whole, member by member. The reader must
// return exactly those bytes for reads of any size, and accept exactly the complete files.
#include "fuzz.h"

#include "data/source/reader.h"

#include <zlib.h>

enum { MAX = 1 << 22, BLOCKS = 96 << 10 };
static uint8_t expected[MAX], found[MAX];

// Decompresses with zlib: n bytes; whole: the file is complete. Returns 0 if the result is too
// large.
static int unpack(const uint8_t *data, size_t size, int window_bits, size_t *n, int *whole)
{
	z_stream z = { .next_in = (uint8_t *) (uintptr_t) data, .avail_in = (unsigned) size };
	int result = inflateInit2(&z, window_bits);
	demand(result == Z_OK, "zlib does not start");
	*n = 0;
	do {
		z.next_out = expected + *n;
		z.avail_out = (unsigned) (MAX - *n);
		result = inflate(&z, Z_FINISH);
		*n = MAX - z.avail_out;
		if (result == Z_STREAM_END && z.avail_in > 0)
			inflateReset(&z); // begins the next member
	} while (result == Z_STREAM_END && z.avail_in > 0);
	*whole = result == Z_STREAM_END;
	const int fits = z.avail_out > 0;
	inflateEnd(&z);
	return fits;
}

// Reads the file in pieces and compares it with zlib's result. over: skips every second piece.
static void read_pieces(chi_reader *r, size_t piece, int over, size_t n, int whole)
{
	size_t at = 0, got = piece;
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && got == piece; i++, at += got) {
		demand(at + piece <= MAX, "there is more than zlib gave");
		const int passes = over && i % 2;
		status = chi_reader_read(r, passes ? NULL : found + at, piece, &got);
		demand(got <= piece, "more than was asked for");
		if (passes)
			memcpy(found + at, expected + at, got);
	}
	demand(at <= n && memcmp(found, expected, at) == 0, "other bytes than zlib's");
	demand((status == CHOIR_OK) == (whole != 0), "whole or not, zlib says otherwise");
	demand(status != CHOIR_OK || at == n, "fewer bytes than zlib's");
	demand(status == CHOIR_OK || choir_error()[0] != '\0', "a failure without a word");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	const int zlib = data[0] == 0x78;
	size_t n;
	int whole;
	if (!unpack(data, size, zlib ? 15 : 31, &n, &whole))
		return 0;
	fuzz_largest = BLOCKS; // decompressed data go to the caller's memory
	chi_reader *r = chi_reader_open_as(
			fuzz_file(data, size), zlib ? CHOIR_COMPRESSION_ZLIB : CHOIR_COMPRESSION_GZIP);
	demand(r != NULL, "not opened");
	for (size_t piece = 7; piece < 100000; piece *= 17)
		for (int over = 0; over < 2; over++) {
			read_pieces(r, piece, over, n, whole);
			demand(chi_reader_rewind(r) == CHOIR_OK, "not rewound");
		}
	chi_reader_close(r);
	fuzz_largest = 0;
	return 0;
}
