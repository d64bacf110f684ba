// The frame of a record, worked out by hand from the checksum of its data.
#include "base/tfrecord_framing.h"
#include "test.h"

#include <string.h>

TEST(test_frame)
{
	unsigned char header[CHI_RECORD_HEADER], footer[CHI_RECORD_FOOTER];
	// A record of three bytes "abc": CRC-32C of them is 0x364b3fb7, turned right by 15 and moved
	// on by 0xa282ead8.
	chi_record_frame("abc", 3, header, footer);
	assert_memory_equal(header, "\x03\0\0\0\0\0\0\0", 8);
	const uint32_t crc = 0x364b3fb7u, expected = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
	for (int i = 0; i < 4; i++)
		assert_int_equal(footer[i], (expected >> 8 * i) & 255);
	// Nothing is a record as well.
	chi_record_frame(NULL, 0, header, footer);
	assert_memory_equal(header, "\0\0\0\0\0\0\0\0", 8);
	assert_memory_equal(footer, "\xd8\xea\x82\xa2", 4);
}
