/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record_feed.h"

#include <stdlib.h>

#include "cli/records.h"
#include "util/mem.h"

struct record_feed {
	struct feed feed;
	const struct cli *cli;
	char id[ID_SIZE];
	struct reader *reader;
};

static int next(
	struct feed *feed, const struct event **ret_ev, struct slice *ret_line, struct err *err)
{
	struct record_feed *f = (struct record_feed *)feed;
	int r = reader_next(f->reader, ret_ev, err);

	if (r == 1)
		*ret_line = reader_line(f->reader);
	return r;
}

static int rewind_feed(struct feed *feed, struct err *err)
{
	struct record_feed *f = (struct record_feed *)feed;

	reader_free(take(&f->reader));
	return records_open(f->cli, f->id, &f->reader, err);
}

static bool is_live(const struct feed *feed)
{
	return reader_is_live(((const struct record_feed *)feed)->reader);
}

static int blob(struct feed *feed, struct slice sha256, size_t max, struct str *out)
{
	return reader_blob(((struct record_feed *)feed)->reader, sha256, max, out);
}

static uint64_t n_bad(const struct feed *feed)
{
	return reader_n_bad(((const struct record_feed *)feed)->reader);
}

static void free_feed(struct feed *feed)
{
	struct record_feed *f = (struct record_feed *)feed;

	reader_free(f->reader);
	free(f);
}

static const struct feed_kind kind = {
	.next = next,
	.rewind = rewind_feed,
	.is_live = is_live,
	.blob = blob,
	.n_bad = n_bad,
	.free = free_feed,
};

int record_feed_open(const struct cli *cli, const char *id, struct feed **ret_feed, struct err *err)
{
	struct record_feed *f = new0(struct record_feed);
	int r = records_open(cli, id, &f->reader, err);

	if (r < 0) {
		free(f);
		return r;
	}
	f->feed.kind = &kind;
	f->cli = cli;
	memcpy(f->id, id, ID_SIZE);
	*ret_feed = &f->feed;
	return 0;
}
