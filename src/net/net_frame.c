// Headers of frames as bytes.
#include "net/net_frame.h"

#include "base/crc32c.h"

enum { MAGIC = 0xc401, CRC_AT = CHI_NET_HEADER - 4 };

void chi_net_frame_pack(const chi_net_frame *f, unsigned char header[CHI_NET_HEADER])
{
	chi_put_number(header, MAGIC, 2);
	chi_put_number(header + 2, CHI_NET_VERSION, 1);
	chi_put_number(header + 3, 0, 1);
	chi_put_number(header + 4, f->kind, 2);
	chi_put_number(header + 6, 0, 2);
	chi_put_number(header + 8, f->stream, 4);
	chi_put_number(header + 12, f->sequence, 8);
	chi_put_number(header + 20, f->bytes, 8);
	chi_put_number(header + CRC_AT, chi_crc32c(0, header, CRC_AT), 4);
}

choir_status chi_net_frame_unpack(
		const unsigned char header[CHI_NET_HEADER], uint64_t max, chi_net_frame *f)
{
	if (chi_get_number(header, 2) != MAGIC)
		return choir_fail(CHOIR_CORRUPT,
				"message: it begins with %02x %02x; %02x %02x, a message of Choir, is needed",
				header[0], header[1], MAGIC & 255, MAGIC >> 8);
	if (header[2] != CHI_NET_VERSION)
		return choir_fail(CHOIR_CORRUPT, "message: protocol version %d; %d is needed", header[2],
				CHI_NET_VERSION);
	if (chi_get_number(header + CRC_AT, 4) != chi_crc32c(0, header, CRC_AT) || header[3] != 0 ||
			chi_get_number(header + 6, 2) != 0)
		return choir_fail(CHOIR_CORRUPT, "message: its header is damaged");
	*f = (chi_net_frame){ .kind = (uint16_t) chi_get_number(header + 4, 2),
		.stream = (uint32_t) chi_get_number(header + 8, 4),
		.sequence = chi_get_number(header + 12, 8),
		.bytes = chi_get_number(header + 20, 8) };
	if (f->bytes > max)
		return choir_fail(CHOIR_CORRUPT, "message: %llu bytes; at most %llu are allowed here",
				(unsigned long long) f->bytes, (unsigned long long) max);
	return CHOIR_OK;
}
