/* SPDX-License-Identifier: Apache-2.0 */
/* Two tables, both bounded, both with the entry that was used last in front: places, by address, each with the names
 * that led there; and stands, by name and by number, where the number is the low part of the synthetic address. What
 * is asked from inside can push out only what was learned for the same sandbox. */
#include "gateway/names.h"

#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/mem.h"

/* Below a power of two by a good part: a map that is exactly full is put in order at each change. */
#define PLACES_MAX 12000
#define KNOWN_MAX  24000 /* names of all places together */
#define STANDS_MAX 12000

#define SECOND_NS  1000000000LL
#define KEEP_MIN_S 3600
#define KEEP_MAX_S 86400

#define NUMBER_MIN 1u
#define NUMBER_MAX 131070u /* 198.19.255.254 */

static const uint8_t v4_prefix[16] = {[10] = 0xff, 0xff, 198, 18};
static const uint8_t v6_prefix[16] = {0xfd, 0x00, 0x00, 0xc1};

/* First in what is listed. */
struct link {
	struct link *prev, *next;
};

struct known {
	char *host;
	int64_t until_ns;
};

struct place {
	struct link link;
	uint8_t address[16];
	struct known known[NAMES_PER_ADDRESS]; /* heard last first */
	size_t n_known;
};

struct stand {
	struct link link;
	char *host;
	unsigned long long number;
};

struct names {
	struct map *places;  /* by address */
	struct map *stands;  /* by name */
	struct map *numbers; /* the same by number */
	struct link
		used_place; /* a ring: next is the one used last, prev the one used longest ago */
	struct link used_stand;
	size_t n_known;
	unsigned long long last_number;
};

static void unlist(struct link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
}

static void list_first(struct link *ring, struct link *link)
{
	link->prev = ring;
	link->next = ring->next;
	ring->next->prev = link;
	ring->next = link;
}

static void use(struct link *ring, struct link *link)
{
	unlist(link);
	list_first(ring, link);
}

struct names *names_new(void)
{
	struct names *names = new0(struct names);

	names->places = map_new();
	names->stands = map_new();
	names->numbers = map_new();
	names->used_place = (struct link){&names->used_place, &names->used_place};
	names->used_stand = (struct link){&names->used_stand, &names->used_stand};
	return names;
}

static struct slice key_of(const uint8_t address[16])
{
	return (struct slice){.p = (const char *)address, .len = 16};
}

static void forget_known(struct names *names, struct place *place, size_t i)
{
	free(place->known[i].host);
	place->n_known--;
	names->n_known--;
	memmove(&place->known[i], &place->known[i + 1],
		(place->n_known - i) * sizeof(place->known[0]));
}

static void forget_place(struct names *names, struct place *place)
{
	while (place->n_known > 0)
		forget_known(names, place, place->n_known - 1);
	unlist(&place->link);
	map_remove(names->places, key_of(place->address));
	free(place);
}

static void forget_stand(struct names *names, struct stand *stand)
{
	unlist(&stand->link);
	map_remove(names->stands, slice_of(stand->host));
	map_remove(names->numbers, map_int_key(&stand->number));
	free(stand->host);
	free(stand);
}

void names_free(struct names *names)
{
	if (!names)
		return;
	while (names->used_place.next != &names->used_place)
		forget_place(names, (struct place *)names->used_place.next);
	while (names->used_stand.next != &names->used_stand)
		forget_stand(names, (struct stand *)names->used_stand.next);
	map_free(names->places);
	map_free(names->stands);
	map_free(names->numbers);
	free(names);
}

/* Makes room for one name more, of a place that is not the one used longest ago. */
static void make_room(struct names *names)
{
	while (names->n_known >= KNOWN_MAX)
		forget_place(names, (struct place *)names->used_place.prev);
}

static struct place *get_place(struct names *names, const uint8_t address[16])
{
	struct place *place = map_find(names->places, key_of(address));

	if (place) {
		use(&names->used_place, &place->link);
		return place;
	}
	if (map_len(names->places) >= PLACES_MAX)
		forget_place(names, (struct place *)names->used_place.prev);
	place = new0(struct place);
	memcpy(place->address, address, sizeof(place->address));
	*map_slot(names->places, key_of(address)) = place;
	list_first(&names->used_place, &place->link);
	return place;
}

static size_t find_known(const struct place *place, const char *host)
{
	size_t i = 0;

	while (i < place->n_known && strcmp(place->known[i].host, host) != 0)
		i++;
	return i;
}

void names_learn(struct names *names, const char *host, const uint8_t address[16], uint32_t ttl_s,
	int64_t now_ns)
{
	int64_t keep_s = ttl_s < KEEP_MIN_S ? KEEP_MIN_S : ttl_s > KEEP_MAX_S ? KEEP_MAX_S : ttl_s;
	struct known known = {.until_ns = now_ns + keep_s * SECOND_NS};
	struct place *place;
	size_t i;

	if (names_is_synthetic(address))
		return;
	known.host = mem_dup(host); /* before anything is let go of: host may be one of ours */
	place = get_place(names, address);
	i = find_known(place, known.host);
	if (i < place->n_known) {
		if (place->known[i].until_ns > known.until_ns)
			known.until_ns = place->known[i].until_ns;
		forget_known(names, place, i);
	}
	if (place->n_known == NAMES_PER_ADDRESS)
		forget_known(names, place, place->n_known - 1);
	make_room(names);
	memmove(&place->known[1], &place->known[0], place->n_known * sizeof(place->known[0]));
	place->known[0] = known;
	place->n_known++;
	names->n_known++;
}

static unsigned long long number_of(const uint8_t address[16])
{
	return (unsigned long long)(address[13] & 1) << 16 | (unsigned long long)address[14] << 8 |
	       address[15];
}

static void number_to(unsigned long long number, bool is_v6, uint8_t ret[16])
{
	memcpy(ret, is_v6 ? v6_prefix : v4_prefix, 16);
	ret[13] = (uint8_t)(ret[13] | number >> 16);
	ret[14] = (uint8_t)(number >> 8);
	ret[15] = (uint8_t)number;
}

bool names_is_synthetic(const uint8_t address[16])
{
	if (memcmp(address, v6_prefix, 4) == 0)
		return true;
	return memcmp(address, v4_prefix, 13) == 0 && (address[13] & ~1) == v4_prefix[13];
}

static const char *find_stand(struct names *names, const uint8_t address[16])
{
	unsigned long long number = number_of(address);
	struct stand *stand = map_find(names->numbers, map_int_key(&number));
	uint8_t own[16];

	if (!stand)
		return NULL;
	/* In fd00:c1::/32 lie more addresses than there are numbers. */
	number_to(number, address[0] == v6_prefix[0], own);
	if (memcmp(own, address, sizeof(own)) != 0)
		return NULL;
	use(&names->used_stand, &stand->link);
	return stand->host;
}

const char *names_find(struct names *names, const uint8_t address[16], size_t i, int64_t now_ns)
{
	struct place *place;

	if (names_is_synthetic(address))
		return i == 0 ? find_stand(names, address) : NULL;
	place = map_find(names->places, key_of(address));
	if (!place)
		return NULL;
	use(&names->used_place, &place->link);
	for (size_t k = 0; k < place->n_known; k++)
		if (place->known[k].until_ns > now_ns && i-- == 0)
			return place->known[k].host;
	return NULL;
}

static unsigned long long next_number(struct names *names)
{
	do {
		if (++names->last_number > NUMBER_MAX)
			names->last_number = NUMBER_MIN;
	} while (map_find(names->numbers, map_int_key(&names->last_number)));
	return names->last_number;
}

void names_synthetic(struct names *names, const char *host, bool is_v6, uint8_t ret[16])
{
	struct stand *stand = map_find(names->stands, slice_of(host));

	if (stand) {
		use(&names->used_stand, &stand->link);
	} else {
		stand = new0(struct stand);
		stand->host = mem_dup(host);
		if (map_len(names->stands) >= STANDS_MAX)
			forget_stand(names, (struct stand *)names->used_stand.prev);
		stand->number = next_number(names);
		*map_slot(names->stands, slice_of(stand->host)) = stand;
		*map_slot(names->numbers, map_int_key(&stand->number)) = stand;
		list_first(&names->used_stand, &stand->link);
	}
	number_to(stand->number, is_v6, ret);
}
