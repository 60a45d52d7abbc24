/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of all routes; each file api_<resource>.c has those of one. */
#ifndef SERVER_API_H
#define SERVER_API_H

#include "server/call.h"
#include "store/store.h"
#include "util/id.h"

int api_prometheus(struct call *call, struct err *err);
int api_health(struct call *call, struct err *err);
int api_openapi(struct call *call, struct err *err);

int api_keys_create(struct call *call, struct err *err);
int api_keys_list(struct call *call, struct err *err);
int api_keys_revoke(struct call *call, struct err *err);
int api_accounts_create(struct call *call, struct err *err);
int api_accounts_list(struct call *call, struct err *err);

int api_sandboxes_create(struct call *call, struct err *err);
int api_sandboxes_list(struct call *call, struct err *err);
int api_sandboxes_get(struct call *call, struct err *err);
int api_sandboxes_delete(struct call *call, struct err *err);
int api_records_delete(struct call *call, struct err *err);
int api_sandboxes_pause(struct call *call, struct err *err);
int api_sandboxes_wake(struct call *call, struct err *err);
int api_sandboxes_stop(struct call *call, struct err *err);
int api_sandboxes_suspend(struct call *call, struct err *err);
int api_sandboxes_resume(struct call *call, struct err *err);
int api_sandboxes_fork(struct call *call, struct err *err);

int api_exec_start(struct call *call, struct err *err);
int api_exec_get(struct call *call, struct err *err);
int api_exec_kill(struct call *call, struct err *err);
int api_exec_stdin(struct call *call, struct err *err);

int api_files_create(struct call *call, struct err *err);
int api_files_view(struct call *call, struct err *err);
int api_files_str_replace(struct call *call, struct err *err);
int api_files_ls(struct call *call, struct err *err);
int api_files_glob(struct call *call, struct err *err);
int api_files_grep(struct call *call, struct err *err);
int api_files_upload(struct call *call, struct err *err);
int api_files_download(struct call *call, struct err *err);
int api_files_watch(struct call *call, struct err *err);

int api_log_sandbox(struct call *call, struct err *err);
int api_log_account(struct call *call, struct err *err);
int api_lifecycle(struct call *call, struct err *err);
int api_metrics(struct call *call, struct err *err);
int api_audit(struct call *call, struct err *err);

int api_networks_rules_get(struct call *call, struct err *err);
int api_networks_rules_put(struct call *call, struct err *err);
int api_networks_defaults_get(struct call *call, struct err *err);
int api_networks_defaults_put(struct call *call, struct err *err);
int api_proxy_get(struct call *call, struct err *err);
int api_proxy_put(struct call *call, struct err *err);
int api_proxy_remove(struct call *call, struct err *err);
int api_proxy_of_sandbox_get(struct call *call, struct err *err);
int api_proxy_of_sandbox_put(struct call *call, struct err *err);
int api_proxy_of_sandbox_remove(struct call *call, struct err *err);

int api_secrets_create(struct call *call, struct err *err);
int api_secrets_list(struct call *call, struct err *err);
int api_secrets_remove(struct call *call, struct err *err);

int api_asks_account(struct call *call, struct err *err);
int api_asks_list(struct call *call, struct err *err);
int api_asks_answer(struct call *call, struct err *err);

int api_watch(struct call *call, struct err *err);

int api_webhooks_create(struct call *call, struct err *err);
int api_webhooks_list(struct call *call, struct err *err);
int api_webhooks_get(struct call *call, struct err *err);
int api_webhooks_delete(struct call *call, struct err *err);
int api_webhooks_deliveries(struct call *call, struct err *err);
int api_webhooks_redeliver(struct call *call, struct err *err);

int api_previews_create(struct call *call, struct err *err);
int api_previews_list(struct call *call, struct err *err);
int api_previews_get(struct call *call, struct err *err);
int api_previews_delete(struct call *call, struct err *err);
int api_previews_visibility(struct call *call, struct err *err);
int api_previews_token(struct call *call, struct err *err);

int api_blob(struct call *call, struct err *err);
int api_trace_events(struct call *call, struct err *err);
int api_trace_shape(struct call *call, struct err *err); /* named by the last part of the path */
int api_trace_clear(struct call *call, struct err *err);

int api_changes(struct call *call, struct err *err);
int api_diff(struct call *call, struct err *err);
int api_manifest(struct call *call, struct err *err);
int api_discard(struct call *call, struct err *err);
int api_report(struct call *call, struct err *err);

/* The path in the query, as `path` or for any bytes as `path_b64`: absolute. -EINVAL. */
int api_files_path(const struct call *call, struct str *path, struct err *err);

/* The id in the path, of a sandbox of the caller's account: borrowed. state (may be NULL) gets what the store knows of it.
 * -ENOENT with a sentence, also for another account's; -EREMOTE where it is another host's, with whom we share the database. */
int api_sandbox_id(struct call *call, const char **ret_id, char state[16], struct err *err);
/* The same for what is answered from the database alone: another host's, too. ret_is_here may be NULL. */
int api_sandbox_anywhere(
	struct call *call, const char **ret_id, bool *ret_is_here, struct err *err);
/* The row of a command that has ended, in the caller's account. -ENOENT: there is none, or it has not ended. */
int api_exec_row(
	struct call *call, const char *sandbox, const char *exec, struct str *out, struct err *err);

#endif
