// Fields of protocol buffers against the encodings that the format's description gives.
#include "base/protobuf_writer.h"

#include "base/alloc.h"
#include "test.h"

#include <string.h>

static chi_text text;

static void assert_bytes(const char *expected, size_t bytes)
{
	assert_false(text.failed);
	assert_int_equal(text.length, bytes);
	assert_memory_equal(text.data, expected, bytes);
	text.length = 0;
}

TEST(test_varint)
{
	chi_protobuf_varint(&text, 0);
	assert_bytes("\0", 1);
	chi_protobuf_varint(&text, 150);
	assert_bytes("\x96\x01", 2);
	chi_protobuf_varint(&text, UINT64_MAX);
	assert_bytes("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
	assert_int_equal(chi_protobuf_varint_bytes(127), 1);
	assert_int_equal(chi_protobuf_varint_bytes(128), 2);
	assert_int_equal(chi_protobuf_varint_bytes(UINT64_MAX), 10);
	chi_text_free(&text);
}

TEST(test_fields)
{
	chi_protobuf_bytes(&text, 2, "testing", 7);
	assert_bytes("\x12\x07testing", 9);
	chi_protobuf_tag(&text, 1, CHI_WIRE_VARINT);
	assert_bytes("\x08", 1);
	chi_protobuf_tag(&text, 16, CHI_WIRE_32);
	assert_bytes("\x85\x01", 2);
	chi_protobuf_head(&text, 3, 300);
	assert_bytes("\x1a\xac\x02", 3);
	chi_protobuf_float(&text, 2, 1);
	assert_bytes("\x15\x00\x00\x80\x3f", 5);
	chi_protobuf_double(&text, 1, -2);
	assert_bytes("\x09\x00\x00\x00\x00\x00\x00\x00\xc0", 9);
	chi_text_free(&text);
}

TEST(test_no_memory)
{
	chi_alloc_fail(1, false);
	chi_protobuf_double(&text, 1, 1);
	chi_alloc_fail(0, false);
	assert_true(text.failed);
	chi_text_free(&text);
}
