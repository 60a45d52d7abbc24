/* SPDX-License-Identifier: Apache-2.0 */
/* After the special-purpose registries of RFC 6890 and what cloud hosts serve their own settings at. */
#include "proto/address_range.h"

#include <stddef.h>
#include <string.h>

#define V4(a, b, c, d) \
	{ \
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d \
	}
#define V6(a, b, c, d) \
	{ \
		(a) >> 8, (a)&255, (b) >> 8, (b)&255, (c) >> 8, (c)&255, (d) >> 8, (d)&255 \
	}
#define V4_BITS(bits) (96 + (bits))

static const char private[] = "a private address", loopback[] = "an address of the host itself",
		  shared[] = "an address of the provider's own network",
		  local[] = "a link-local address", metadata[] = "an address of metadata services",
		  multicast[] = "a multicast address", reserved[] = "a reserved address",
		  carrier[] = "an IPv6 form that carries an IPv4 address";

/* The first that fits. Documentation ranges (192.0.2.0/24 and their like) are not here: they lead nowhere. */
static const struct address_range ranges[] = {
	{V4(169, 254, 169, 254), V4_BITS(32), metadata, false, false},
	{V4(169, 254, 170, 2), V4_BITS(32), metadata, false, false},
	{V4(100, 100, 100, 200), V4_BITS(32), metadata, false, false},
	{V4(168, 63, 129, 16), V4_BITS(32), metadata, false, false},
	{V4(0, 0, 0, 0), V4_BITS(8), loopback, false, false},
	{V4(127, 0, 0, 0), V4_BITS(8), loopback, false, false},
	{V4(10, 0, 0, 0), V4_BITS(8), private, true, true},
	{V4(172, 16, 0, 0), V4_BITS(12), private, true, true},
	{V4(192, 168, 0, 0), V4_BITS(16), private, true, true},
	{V4(100, 64, 0, 0), V4_BITS(10), shared, true, true},
	{V4(169, 254, 0, 0), V4_BITS(16), local, false, false},
	{V4(192, 0, 0, 0), V4_BITS(24), reserved, false, false},
	{V4(192, 88, 99, 0), V4_BITS(24), reserved, false, false},
	{V4(198, 18, 0, 0), V4_BITS(15), reserved, false, false},
	{V4(224, 0, 0, 0), V4_BITS(4), multicast, false, false},
	{V4(240, 0, 0, 0), V4_BITS(4), reserved, false, false},
	{V6(0xfd00, 0x0ec2, 0, 0), 64, metadata, false, false},
	{V6(0xfd00, 0x00c1, 0, 0), 32, reserved, false, false}, /* our own synthetic ones */
	{V6(0xfc00, 0, 0, 0), 7, private, true, true},
	{V6(0xfe80, 0, 0, 0), 10, local, false, false},
	{V6(0xfec0, 0, 0, 0), 10, private, true, true},
	{V6(0xff00, 0, 0, 0), 8, multicast, false, false},
	{V6(0x0064, 0xff9b, 0, 0), 48, carrier, false, false},
	{V6(0x0064, 0xff9b, 1, 0), 48, carrier, false, false},
	{V6(0x2002, 0, 0, 0), 16, carrier, false, false},
	{V6(0x2001, 0, 0, 0), 32, carrier, false, false},
	{V6(0x0100, 0, 0, 0), 64, reserved, false, false},
	{V6(0x5f00, 0, 0, 0), 16, reserved, false, false},
};

/* ::/8 holds the unspecified address, loopback and old forms that carry IPv4: nothing public. */
static const struct address_range low = {.bits = 8, .what = reserved},
				  self = {.bits = 128, .what = loopback},
				  old = {.bits = 96, .what = carrier};

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, zeros[16];

static bool is_in(const struct address_range *range, const uint8_t address[16])
{
	unsigned whole = range->bits / 8, rest = range->bits % 8;

	if (memcmp(range->address, address, whole) != 0)
		return false;
	return rest == 0 || ((range->address[whole] ^ address[whole]) >> (8 - rest)) == 0;
}

const struct address_range *address_range_find(const uint8_t address[16])
{
	uint8_t inner[16];

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (is_in(&ranges[i], address))
			return &ranges[i];
	if (address[0] != 0 || memcmp(address, mapped, sizeof(mapped)) == 0)
		return NULL;
	if (memcmp(address, zeros, 15) == 0 && address[15] <= 1)
		return &self;
	return address_range_carried(address, inner) ? &old : &low;
}

static void inner_of(uint8_t ret_inner[16], const uint8_t *v4)
{
	memcpy(ret_inner, mapped, sizeof(mapped));
	memcpy(ret_inner + sizeof(mapped), v4, 4);
}

bool address_range_carried(const uint8_t address[16], uint8_t ret_inner[16])
{
	static const uint8_t siit[12] = {[8] = 0xff, [9] = 0xff};
	uint8_t client[4];

	if (address[0] == 0x20 && address[1] == 0x02) { /* 6to4 */
		inner_of(ret_inner, address + 2);
		return true;
	}
	if (memcmp(address, (const uint8_t[]){0x20, 0x01, 0, 0}, 4) == 0) { /* Teredo */
		for (size_t i = 0; i < 4; i++)
			client[i] = address[12 + i] ^ 0xff;
		inner_of(ret_inner, client);
		return true;
	}
	if (memcmp(address, (const uint8_t[]){0, 0x64, 0xff, 0x9b}, 4) == 0 || /* NAT64 */
		memcmp(address, siit, sizeof(siit)) == 0 ||
		(memcmp(address, zeros, 12) == 0 && memcmp(address + 12, zeros, 3) != 0)) {
		inner_of(ret_inner, address + 12);
		return true;
	}
	return false;
}
