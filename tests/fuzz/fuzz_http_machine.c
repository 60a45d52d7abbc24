/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 between two sides that say anything: in whole pieces and byte by byte, the same must be told.
 * Input: records of one byte (bit 0 the side, bit 1 its end, the rest how many bytes follow). */
#include <assert.h>
#include <stdint.h>

#include "../unit/http_drive.h"
#include "gateway/secrets.h"
#include "util/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct secrets *make_secrets(void)
{
	char *hosts[] = {mem_dup("a.test")};
	const struct spec_secret list = {.name = mem_dup("ONE"),
		.hosts = {hosts, 1},
		.value = mem_dup("sk-REALrealREAL"),
		.stand_in = mem_dup("sk-FAKEfakeFAKE"),
		.plain = true};
	struct secrets *set = NULL;

	assert(secrets_new(&list, 1, &set, NULL) == 0);
	free(list.name);
	free(list.value);
	free(list.stand_in);
	free(hosts[0]);
	return set;
}

static void play(const uint8_t *data, size_t size, size_t step, const struct secrets *set,
	struct http_drive *d)
{
	struct http_setup setup = {.name = "a.test",
		.address = "192.0.2.1",
		.port = 80,
		.body_limit = 100,
		.record_responses = true,
		.secrets = set,
		.hooks = &http_drive_hooks,
		.arg = d};

	*d = (struct http_drive){.step = step, .refuse_host = "denied.test"};
	http_machine_new(&setup, &d->machine);
	for (size_t at = 0; at < size;) {
		enum machine_side side = data[at] & 1 ? MACHINE_SERVER : MACHINE_CLIENT;
		size_t len = data[at] >> 2;
		bool ends = data[at++] & 2;

		len = len < size - at ? len : size - at;
		if (!d->eof[side])
			http_drive_send(
				d, side, (struct slice){.p = (const char *)data + at, .len = len});
		if (ends)
			http_drive_eof(d, side);
		at += len;
	}
}

static bool has(const struct str *text, const char *word)
{
	return text->len && memmem(text->p, text->len, word, strlen(word));
}

static bool begins_alike(const struct str *a, const struct str *b)
{
	size_t n = a->len < b->len ? a->len : b->len;

	return n == 0 || memcmp(a->p, b->p, n) == 0;
}

static bool is_plain(const struct str *log)
{
	return !has(log, "error=") && !has(log, "misuse");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct secrets *set;
	struct http_drive whole, bytes;

	if (!set)
		set = make_secrets();
	play(data, size, 1 << 20, set, &whole);
	play(data, size, 1, set, &bytes);
	/* What goes wrong in the middle is found after more or less of it, and may end what the other goes on with. */
	if (is_plain(&whole.log) && is_plain(&bytes.log))
		assert(begins_alike(&whole.log, &bytes.log));
	/* Only the server gets the value, unless it is what was put into the fuzzer. */
	if (!memmem(data, size, "REAL", 4))
		assert(!has(&whole.got[MACHINE_CLIENT], "REAL") && !has(&whole.log, "REAL"));
	http_drive_done(&whole);
	http_drive_done(&bytes);
	return 0;
}
