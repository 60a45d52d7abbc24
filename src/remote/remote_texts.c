/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/remote_texts.h"

#include <errno.h>

#include "manifest/manifest_lines.h"
#include "remote/request.h"
#include "remote/safe_text.h"
#include "util/mem.h"

/* JSON goes out as it came, once it is known to be some: it is the same text that the program makes on a host. */
static int add_json(
	const struct link *link, const struct str *text, struct str *out, struct err *err)
{
	json_t *root = json_loadb(text->p ? text->p : "", text->len, JSON_ALLOW_NUL, NULL);

	json_decref(root);
	if (!root)
		return err_set(
			err, -EIO, "the summary that %s has is no JSON", link->address.shown);
	str_add(out, text->p, text->len);
	str_putc(out, '\n');
	return 0;
}

int remote_texts_summary(const struct cli *cli, const char *id, enum summary_form form, bool color,
	struct str *out, struct err *err)
{
	static const char *const types[] = {
		[SUMMARY_FORM_TEXT] = "text/plain",
		[SUMMARY_FORM_JSON] = "application/json",
		[SUMMARY_FORM_MARKDOWN] = "text/markdown",
	};
	scoped_mem char *path = mem_printf("/v1/sandboxes/%s/report?color=%s", id,
		color && form == SUMMARY_FORM_TEXT ? "true" : "false");
	scoped_str struct str text = {0};
	int r = request_text(
		link_of(cli), &(struct ask){.path = path, .accept = types[form]}, &text, err);

	if (r < 0)
		return r;
	if (form == SUMMARY_FORM_JSON)
		return add_json(link_of(cli), &text, out, err);
	safe_text_add(out, str_slice(&text), color && form == SUMMARY_FORM_TEXT);
	if (form == SUMMARY_FORM_MARKDOWN)
		str_putc(out, '\n');
	return 0;
}

static int take_manifest(
	const struct str *text, struct tree *ret_tree, char **ret_root, struct err *err)
{
	struct manifest_list list = {0};
	int r = manifest_lines_read((struct slice){text->p ? text->p : "", text->len}, &list, err);

	if (r == 0 && (list.n != 1 || !list.items[0].root))
		r = err_set(err, -EBADMSG, "want the list of one folder");
	if (r == 0) {
		*ret_tree = list.items[0].tree;
		list.items[0].tree = (struct tree){0};
		*ret_root = take(&list.items[0].root);
	}
	manifest_list_done(&list);
	return r < 0 ? err_wrap(err, r, "the manifest that the server made") : 0;
}

int remote_texts_tree(const struct cli *cli, const char *id, const char *root, bool all,
	struct tree *ret_tree, char **ret_root, struct err *err)
{
	scoped_mem char *path = mem_printf("/v1/sandboxes/%s/manifests", id), *body = NULL;
	scoped_str struct str text = {0};
	json_t *asked = json_object();
	int r;

	if (root)
		json_object_set_new(asked, "roots", json_pack("[s]", root));
	if (all)
		json_object_set_new(asked, "all", json_true());
	body = json_dumps(asked, JSON_COMPACT);
	json_decref(asked);
	r = request_text(link_of(cli),
		&(struct ask){.method = "POST",
			.path = path,
			.accept = "application/jsonl",
			.body = slice_of(body)},
		&text, err);
	return r < 0 ? r : take_manifest(&text, ret_tree, ret_root, err);
}
