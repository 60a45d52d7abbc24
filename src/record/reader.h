/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a record directory that nobody need trust: lengths and nesting are bounded, a cut last line is
 * reported, not fatal. Both journals come merged in seq order. */
#ifndef RECORD_READER_H
#define RECORD_READER_H

#include "event/event_json.h"
#include "util/err.h"
#include "util/scoped.h"

struct reader;

int reader_open(const char *dir, struct reader **ret_reader, struct err *err);
void reader_free(struct reader *reader);
SCOPED_TYPE(reader)

/* Before the first reader_next(): what it gives begins with this number. What comes before is not read, so it costs the same
 * however long the record is. */
int reader_skip_to(struct reader *reader, uint64_t seq, struct err *err);
/* Likewise: it gives the events of this exec, and those that tell of tracing (trace.*); of others only such as hold its id.
 * They are passed over without being taken apart, which is most of the work. exec is copied. */
void reader_only(struct reader *reader, struct slice exec);

/* The next event in seq order, good until the next call: 1; 0 at the end of what is there (a reader
 * of a live record may call again later and go on); negative where a journal cannot be read. Lines of
 * unknown kind are passed over. */
int reader_next(struct reader *reader, const struct event **ret_ev, struct err *err);
/* The line that event came from, as it stands in the journal. */
struct slice reader_line(const struct reader *reader);

/* meta.json and seal.json as text; empty where missing; the seal as it was when reader_next() last said 0. */
struct slice reader_meta(const struct reader *reader);
struct slice reader_seal(const struct reader *reader);
/* The bytes of a blob that an event names, at most max of them. -ENOENT: it is not there (any more); -EBADMSG: what is
 * there is not what the event names. */
int reader_blob(const struct reader *reader, struct slice sha256, size_t max, struct str *out);
/* What reader_next() passed over: lines that are no events of ours, nor hash lines and the like. */
uint64_t reader_n_bad(const struct reader *reader);
/* A writer holds the record. After reader_next() said 0: whether more may come. */
bool reader_is_live(const struct reader *reader);
bool reader_has_ended(const struct reader *reader);    /* a final seal is there */
bool reader_is_suspended(const struct reader *reader); /* closed for a while */
bool reader_is_cut(const struct reader *reader);       /* its end is marked as cut, or torn */

#endif
