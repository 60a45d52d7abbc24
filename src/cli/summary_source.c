/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary_source.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cli/called_as.h"
#include "cli/records.h"
#include "manifest/change_set.h"
#include "manifest/changes.h"
#include "manifest/changes_json.h"
#include "util/fdio.h"
#include "util/mem.h"

#define CHANGES_MAX (64u << 20)

struct summary_source {
	struct reader *reader; /* meta and seal live in it */
	struct str changes, to_read, to_apply;
	char *id, *ref;
	struct summary *summary;
};

static void read_changes(const struct cli *cli, struct summary_source *source)
{
	scoped_str struct str path = {0};
	scoped_fd int fd = -1;

	records_dir(cli, source->id, &path);
	str_puts(&path, "/changes/end.json");
	fd = open(path.p, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fdio_read_all(fd, CHANGES_MAX, &source->changes) < 0)
		str_reset(&source->changes); /* the summary says that nobody compared */
}

static void count_cow(const struct changes_list *list, struct summary_facts *facts)
{
	scoped_str struct str json = {0};
	struct changes_counts_list counts;

	changes_json_write(&json, list);
	if (changes_json_read(str_slice(&json), &counts) < 0)
		return;
	facts->pending = 0;
	for (size_t i = 0; i < counts.n; i++) {
		const struct changes_counts *root = &counts.roots[i];

		if (!root->cow)
			continue;
		facts->pending += (int64_t)changes_json_total(root);
		facts->pending_git += (int64_t)root->skipped_git;
		facts->pending_modules += (int64_t)(root->skipped - root->skipped_git);
	}
	changes_json_counts_done(&counts);
}

/* What still waits for apply or discard; -1: all of it. The set is read again only where its journal says that
 * something was done to it. */
static void count_pending(const struct cli *cli, const char *id, struct summary_facts *facts)
{
	scoped_mem char *dir = mem_printf("%s/changes/%s", cli->state_dir, id);
	scoped_mem char *journal = mem_printf("%s/journal.jsonl", dir);
	scoped(change_set) struct change_set *set = NULL;
	struct changes_list list = {0};

	facts->pending = -1;
	if (access(dir, F_OK) < 0) {
		facts->pending = errno == ENOENT ? 0 : -1;
		return;
	}
	if (geteuid() != 0 || access(journal, F_OK) < 0 || change_set_open(dir, &set, NULL) < 0)
		return;
	if (changes_read_all(set, &list, NULL) == 0)
		count_cow(&list, facts);
	changes_list_done(&list);
}

static int add_events(struct summary_source *source, struct err *err)
{
	const struct event *ev;
	bool has_event = false;
	int r;

	while ((r = reader_next(source->reader, &ev, err)) > 0) {
		summary_add(source->summary, ev);
		has_event = true;
	}
	if (r == 0 && !has_event && reader_n_bad(source->reader))
		return err_set(err, -EBADMSG,
			"the record of %s cannot be read: its lines are no events (`cloche verify "
			"%s` says more)",
			source->id, source->id);
	return r;
}

int summary_source_open(const struct cli *cli, const char *id, const char *ref,
	struct summary_source **ret_source, struct err *err)
{
	scoped(summary_source) struct summary_source *source = new0(struct summary_source);
	struct summary_facts facts = {0};
	int r = records_open(cli, id, &source->reader, err);

	if (r < 0)
		return r;
	source->id = mem_dup(id);
	source->ref = mem_dup(ref);
	read_changes(cli, source);
	count_pending(cli, id, &facts);
	facts.id = source->id;
	facts.ref = source->ref;
	called_as_add(cli, false, &source->to_read);
	called_as_add(cli, true, &source->to_apply);
	facts.to_read = source->to_read.p;
	facts.to_apply = source->to_apply.p;
	facts.meta = reader_meta(source->reader);
	facts.seal = reader_seal(source->reader);
	facts.changes = str_slice(&source->changes);
	facts.is_cut = reader_is_cut(source->reader);
	source->summary = summary_new(&facts);
	r = add_events(source, err);
	if (r < 0)
		return r;
	*ret_source = take(&source);
	return 0;
}

void summary_source_free(struct summary_source *source)
{
	if (!source)
		return;
	summary_free(source->summary);
	reader_free(source->reader);
	str_done(&source->changes);
	str_done(&source->to_read);
	str_done(&source->to_apply);
	free(source->id);
	free(source->ref);
	free(source);
}

void summary_source_write(
	struct summary_source *source, enum summary_form form, bool color, struct str *out)
{
	struct view_style style = {.color = color};

	switch (form) {
	case SUMMARY_FORM_TEXT:
		summary_text(source->summary, &style, out);
		return;
	case SUMMARY_FORM_JSON:
		summary_json(source->summary, out);
		str_putc(out, '\n');
		return;
	case SUMMARY_FORM_MARKDOWN:
		summary_markdown(source->summary, out);
		return;
	}
}

unsigned summary_source_check(struct summary_source *source, unsigned conditions, struct str *names)
{
	return summary_check(source->summary, conditions, names);
}
