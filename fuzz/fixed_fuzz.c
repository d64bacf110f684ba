// Fuzzes records of fixed length. The first byte of the input is the size of the header. The rest
// is a file of records: big-endian numbers in a range, a bool, an ignored byte, and an image with
// channels first. Independent code reads each record again, byte by byte. The source must refuse
// files of a wrong size, and return the same values up to the first number out of range.
#include "fuzz.h"

#include "choir/source.h"
#include "data/data.h"

enum { BLOCKS = 512 << 10, LIMIT = 1000, PIXELS = 4, CHANNELS = 3, RECORD = 8 + 1 + 1 + 12 };

static const choir_field fields[] = {
	{ .name = "n", .dtype = CHOIR_I32, .shape = { 1, { 2 } }, .big_endian = true, .limit = LIMIT },
	{ .name = "b", .dtype = CHOIR_BOOL },
	{ .dtype = CHOIR_U8 },
	{ .name = "image",
			.dtype = CHOIR_U8,
			.shape = { 3, { 2, 2, CHANNELS } },
			.channels_first = true },
};

// Reads the record at p; returns whether it is valid.
static int record_at(const uint8_t *p, int32_t n[2], uint8_t *b, uint8_t image[PIXELS * CHANNELS])
{
	for (int i = 0; i < 2; i++) {
		const uint32_t v = (uint32_t) p[4 * i] << 24 | (uint32_t) p[4 * i + 1] << 16 |
				(uint32_t) p[4 * i + 2] << 8 | p[4 * i + 3];
		if (v >= LIMIT)
			return 0;
		n[i] = (int32_t) v;
	}
	*b = p[8];
	for (int k = 0; k < PIXELS; k++)
		for (int c = 0; c < CHANNELS; c++)
			image[k * CHANNELS + c] = p[10 + c * PIXELS + k];
	return p[8] < 2;
}

static void read_pass(choir_dataset *d, const uint8_t *p, size_t records)
{
	int32_t n[2], needed_n[2];
	uint8_t b, needed_b, image[PIXELS * CHANNELS], needed[PIXELS * CHANNELS];
	chi_element e = { .column = { n, &b, image }, .capacity = 1 };
	for (size_t i = 0; i < records; i++, p += RECORD) {
		const int good = record_at(p, needed_n, &needed_b, needed);
		const choir_status status = chi_dataset_next(d, &e);
		demand(status == (good ? CHOIR_OK : CHOIR_CORRUPT),
				"good or not, the source says otherwise");
		if (!good)
			return;
		demand(memcmp(n, needed_n, sizeof n) == 0 && b == needed_b &&
						memcmp(image, needed, sizeof image) == 0,
				"other values");
	}
	demand(chi_dataset_next(d, &e) == CHOIR_END, "more records than there are");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	const size_t header = data[0] % 32, bytes = size - 1;
	const int fits = bytes >= header && (bytes - header) % RECORD == 0;
	fuzz_largest = BLOCKS;
	choir_dataset *d = choir_fixed_length_record_dataset_new(fuzz_file(data + 1, bytes),
			sizeof fields / sizeof fields[0], fields,
			CHOIR_OPTIONS(choir_fixed_options, .header = (int64_t) header));
	demand((d != NULL) == fits, d ? "took a bad file" : "refused a good file");
	for (int pass = 0; pass < 2 && d; pass++) {
		read_pass(d, data + 1 + header, (bytes - header) / RECORD);
		chi_dataset_rewind(d);
	}
	choir_dataset_free(d);
	fuzz_largest = 0;
	return 0;
}
