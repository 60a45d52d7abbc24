/* SPDX-License-Identifier: Apache-2.0 */
#include "server/reindex.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "server/audit_index.h"
#include "server/index_record.h"
#include "server/lost_records.h"
#include "server/secret_box.h"
#include "server/walls.h"
#include "server/webhooks.h"
#include "util/fdio.h"
#include "util/id.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"

struct reindex {
	struct server server;
	int64_t records, failed;
	struct index_counts index;
	struct lost_counts lost;
	struct audit_counts audit;
};

/* ---- records ---- */

static bool is_not_ours(int r)
{
	return r == -ENOENT || r == -EACCES;
}

static int make_again(struct reindex *reindex, const char *id, struct err *err)
{
	scoped(index_record) struct index_record *record = NULL;
	struct index_wanted nothing = {0};
	struct index_counts counts;
	int r = index_record_open(&reindex->server, id, true, &record, err);

	if (r < 0)
		return is_not_ours(r) ? 0 : r;
	r = index_record_read(record, &nothing, err);
	counts = index_record_counts(record);
	reindex->index.rows += counts.rows;
	reindex->index.events += counts.events;
	reindex->index.samples += counts.samples;
	reindex->index.wrong += counts.wrong;
	reindex->records += r == 0;
	return r;
}

static int each_record(struct reindex *reindex, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/records", reindex->server.state_dir);
	DIR *dir = opendir(path);
	struct dirent *e;

	if (!dir)
		return err_set(err, -errno, "open '%s': %m", path);
	while ((e = readdir(dir))) {
		struct err why = {0};

		if (!id_is_valid("sb", e->d_name) || make_again(reindex, e->d_name, &why) >= 0)
			continue;
		reindex->failed++;
		log_warn("%s is not indexed: %s", e->d_name, why.msg);
	}
	closedir(dir);
	return 0;
}

/* ---- what came of it ---- */

static void write_json(const struct reindex *reindex, struct str *out)
{
	const struct {
		const char *key;
		int64_t n;
	} members[] = {
		{"records", reindex->records},
		{"rows", reindex->index.rows},
		{"lifecycle", reindex->index.events},
		{"samples", reindex->index.samples},
		{"wrong", reindex->index.wrong},
		{"audit", reindex->audit.changed},
		{"audit_aged_out", reindex->audit.old},
		{"keys_revoked", reindex->audit.revoked},
		{"forgotten", reindex->lost.forgotten},
		{"missing", reindex->lost.missing},
		{"failed", reindex->failed},
	};
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		jsonw_kint(&j, members[i].key, members[i].n);
	jsonw_object_end(&j);
	str_putc(out, '\n');
}

static void add_line(struct str *out, int64_t n, const char *one, const char *many)
{
	if (n > 0)
		str_printf(out, "%lld %s\n", (long long)n, n == 1 ? one : many);
}

static void write_text(const struct reindex *reindex, struct str *out)
{
	const struct index_counts *index = &reindex->index;

	str_printf(out, "%lld record%s read\n", (long long)reindex->records,
		reindex->records == 1 ? "" : "s");
	add_line(out, index->rows, "row of the exec log added", "rows of the exec log added");
	add_line(out, index->events, "lifecycle event added", "lifecycle events added");
	add_line(out, index->samples, "sample added", "samples added");
	add_line(out, index->wrong, "row removed that no record has so",
		"rows removed that no record has so");
	add_line(out, reindex->audit.changed, "row of the audit log added or put right",
		"rows of the audit log added or put right");
	add_line(out, reindex->audit.old, "line of the audit journal stays out: aged out",
		"lines of the audit journal stay out: aged out");
	add_line(out, reindex->audit.revoked, "key revoked again, as the journal says",
		"keys revoked again, as the journal says");
	add_line(out, reindex->lost.forgotten, "sandbox forgotten whose record was removed",
		"sandboxes forgotten whose records were removed");
	str_puts(out, "Names and limits of accounts, keys, webhooks and their deliveries, secrets, "
		      "network rules and proxies\nare in no record: of those there is what was in "
		      "the database before.\n");
}

static int tell(const struct reindex *reindex, const char *form, struct err *err)
{
	scoped_str struct str out = {0};

	if (strcmp(form, "quiet") == 0)
		return 0;
	if (strcmp(form, "json") == 0)
		write_json(reindex, &out);
	else
		write_text(reindex, &out);
	return fdio_write_all(1, out.p, out.len) < 0 ? err_set(err, -errno, "print: %m") : 0;
}

/* ---- as a whole ---- */

static int work(struct reindex *reindex, const char *place, struct err *err)
{
	struct server *server = &reindex->server;
	int r = secret_box_open(server->state_dir, &server->secrets, err);

	if (r == 0)
		r = walls_close(place ? place : "", err);
	if (r < 0)
		return r;
	server->webhooks = webhooks_new(server);
	r = each_record(reindex, err);
	if (r == 0)
		r = lost_records_sweep(server, &reindex->lost, err);
	if (r == 0)
		r = audit_index_mend(server, true, NULL, &reindex->audit, err);
	return r;
}

int reindex_run(const json_t *settings, int office, struct err *err)
{
	const char *form = json_string_value(json_object_get(settings, "reindex"));
	struct reindex reindex = {0};
	int r = server_prepare(&reindex.server, settings, office, err);

	if (r == 0)
		r = work(&reindex, json_string_value(json_object_get(settings, "database")), err);
	if (r == 0)
		r = tell(&reindex, form ? form : "text", err);
	if (r == 0 && reindex.failed > 0)
		r = err_set(err, -EIO, "%lld of the records could not be indexed",
			(long long)reindex.failed);
	webhooks_free(reindex.server.webhooks);
	store_free(reindex.server.store);
	secret_box_free(reindex.server.secrets);
	return r;
}
