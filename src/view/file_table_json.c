/* SPDX-License-Identifier: Apache-2.0 */
#include "util/jsonw.h"
#include "view/file_table.h"

static void write_path(struct jsonw *j, const char *key, struct slice path)
{
	if (path.len)
		jsonw_kslice(j, key, path);
	else
		jsonw_knull(j, key);
}

static void write_entry(
	struct jsonw *j, const struct file_table *table, const struct file_entry *entry)
{
	jsonw_object(j);
	jsonw_kslice(j, "path", entry->path);
	jsonw_kbool(j, "read", entry->read);
	jsonw_kbool(j, "written", entry->written);
	jsonw_kbool(j, "created", entry->created);
	jsonw_kbool(j, "deleted", entry->deleted);
	write_path(j, "renamed_to", entry->renamed_to);
	write_path(j, "renamed_from", entry->renamed_from);
	jsonw_kbool(j, "replaced", entry->replaced);
	jsonw_kbool(j, "denied", entry->denied);
	jsonw_kbool(j, "mode_changed", entry->mode_changed);
	jsonw_kbool(j, "directory", entry->directory);
	if (entry->has_bytes) {
		jsonw_kint(j, "bytes_read", entry->bytes_read);
		jsonw_kint(j, "bytes_written", file_entry_written(entry));
	}
	if (entry->unresolved)
		jsonw_kbool(j, "path_unresolved", true);
	idset_write_who(j, &entry->processes, &entry->execs, file_table_execs(table));
	jsonw_object_end(j);
}

void file_table_json(struct file_table *table, struct str *out)
{
	size_t n = file_table_settle(table);
	struct jsonw j = jsonw_to(out);

	jsonw_array(&j);
	for (size_t i = 0; i < n; i++)
		write_entry(&j, table, file_table_get(table, i));
	jsonw_array_end(&j);
}
