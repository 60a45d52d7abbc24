/* SPDX-License-Identifier: Apache-2.0 */
#include "server/route.h"

#include <errno.h>
#include <string.h>

#include "server/api.h"

#define SB "/v1/sandboxes/{id}"
#define WH "/v1/webhooks/{webhook}"
#define PV "/v1/previews/{preview}"

const struct route route_table[] = {
	{"GET", "/metrics", RIGHT_OPERATOR, api_prometheus},
	{"GET", "/health", RIGHT_ANYONE, api_health},
	{"GET", "/v1/health", RIGHT_ANYONE, api_health},
	{"GET", "/openapi.json", RIGHT_ANYONE, api_openapi},

	{"POST", "/v1/sandboxes", RIGHT_WORK, api_sandboxes_create, .has_body = true,
		.is_creating = true, .is_slow = true},
	{"GET", "/v1/sandboxes", RIGHT_READ, api_sandboxes_list, .has_query = true},
	{"GET", SB, RIGHT_READ, api_sandboxes_get},
	{"DELETE", SB, RIGHT_WORK, api_sandboxes_delete, .is_slow = true},
	{"DELETE", "/v1/records/{id}", RIGHT_ADMIN, api_records_delete, .is_slow = true},
	{"POST", SB "/pause", RIGHT_WORK, api_sandboxes_pause},
	{"POST", SB "/wake", RIGHT_WORK, api_sandboxes_wake},
	{"POST", SB "/stop", RIGHT_WORK, api_sandboxes_stop, .is_slow = true},
	{"POST", SB "/suspend", RIGHT_WORK, api_sandboxes_suspend, .is_slow = true},
	{"POST", SB "/resume", RIGHT_WORK, api_sandboxes_resume, .is_slow = true},

	{"POST", SB "/exec", RIGHT_WORK, api_exec_start, .has_body = true, .is_creating = true},
	{"GET", SB "/exec/{exec}", RIGHT_READ, api_exec_get},
	{"POST", SB "/exec/{exec}/kill", RIGHT_WORK, api_exec_kill},
	{"POST", SB "/exec/{exec}/stdin", RIGHT_WORK, api_exec_stdin, .has_body = true,
		.is_creating = true},

	{"POST", SB "/fork", RIGHT_WORK, api_sandboxes_fork, .is_creating = true, .is_slow = true},

	{"GET", SB "/trace/events", RIGHT_READ, api_trace_events, .has_query = true,
		.is_slow = true},
	{"GET", SB "/trace/processes", RIGHT_READ, api_trace_shape, .has_query = true,
		.is_slow = true},
	{"GET", SB "/trace/files", RIGHT_READ, api_trace_shape, .has_query = true, .is_slow = true},
	{"GET", SB "/trace/network", RIGHT_READ, api_trace_shape, .has_query = true,
		.is_slow = true},
	{"GET", SB "/trace/commands", RIGHT_READ, api_trace_shape, .has_query = true,
		.is_slow = true},
	{"GET", SB "/trace/timeline", RIGHT_READ, api_trace_shape, .has_query = true,
		.is_slow = true},
	{"DELETE", SB "/trace", RIGHT_WORK, api_trace_clear, .is_from_outside = true},

	{"GET", SB "/changes", RIGHT_READ, api_changes, .is_slow = true},
	{"GET", SB "/diff", RIGHT_READ, api_diff, .has_query = true, .is_slow = true},
	{"POST", SB "/manifests", RIGHT_READ, api_manifest, .has_body = true, .is_slow = true},
	{"POST", SB "/discard", RIGHT_WORK, api_discard, .has_body = true, .is_slow = true},
	{"GET", SB "/report", RIGHT_READ, api_report, .has_query = true, .is_slow = true},

	{"POST", SB "/files/create", RIGHT_WORK, api_files_create, .has_body = true,
		.is_creating = true},
	{"POST", SB "/files/view", RIGHT_WORK, api_files_view, .has_body = true},
	{"POST", SB "/files/str_replace", RIGHT_WORK, api_files_str_replace, .has_body = true,
		.is_creating = true},
	{"POST", SB "/files/ls", RIGHT_WORK, api_files_ls, .has_body = true},
	{"POST", SB "/files/glob", RIGHT_WORK, api_files_glob, .has_body = true},
	{"POST", SB "/files/grep", RIGHT_WORK, api_files_grep, .has_body = true},
	{"GET", SB "/files/content", RIGHT_WORK, api_files_download, .has_query = true},
	{"GET", SB "/files/watch", RIGHT_WORK, api_files_watch, .has_query = true},
	{"PUT", SB "/files/content", RIGHT_WORK, api_files_upload, .has_query = true,
		.is_upload = true},

	{"GET", SB "/log", RIGHT_READ, api_log_sandbox, .has_query = true},
	{"GET", "/v1/log", RIGHT_READ, api_log_account, .has_query = true},
	{"GET", SB "/watch", RIGHT_READ, api_watch, .has_query = true},
	{"GET", SB "/blobs/{sha256}", RIGHT_READ, api_blob, .is_slow = true},
	{"GET", SB "/lifecycle", RIGHT_READ, api_lifecycle, .has_query = true},
	{"GET", SB "/metrics", RIGHT_READ, api_metrics, .has_query = true},

	{"GET", SB "/network-rules", RIGHT_READ, api_networks_rules_get},
	{"PUT", SB "/network-rules", RIGHT_WORK, api_networks_rules_put, .has_body = true,
		.is_slow = true, .is_from_outside = true},
	{"GET", SB "/networks/upstream-proxy", RIGHT_READ, api_proxy_of_sandbox_get},
	{"PUT", SB "/networks/upstream-proxy", RIGHT_WORK, api_proxy_of_sandbox_put,
		.has_body = true, .is_slow = true, .is_from_outside = true},
	{"DELETE", SB "/networks/upstream-proxy", RIGHT_WORK, api_proxy_of_sandbox_remove,
		.is_slow = true, .is_from_outside = true},
	{"GET", "/v1/asks", RIGHT_READ, api_asks_account, .is_slow = true},
	{"GET", SB "/asks", RIGHT_READ, api_asks_list},
	{"POST", SB "/asks", RIGHT_WORK, api_asks_answer, .has_body = true,
		.is_from_outside = true},
	{"GET", "/v1/network-rules", RIGHT_READ, api_networks_defaults_get},
	{"PUT", "/v1/network-rules", RIGHT_ADMIN, api_networks_defaults_put, .has_body = true},
	{"GET", "/v1/networks/upstream-proxy", RIGHT_READ, api_proxy_get},
	{"PUT", "/v1/networks/upstream-proxy", RIGHT_ADMIN, api_proxy_put, .has_body = true},
	{"DELETE", "/v1/networks/upstream-proxy", RIGHT_ADMIN, api_proxy_remove},
	{"POST", "/v1/secrets", RIGHT_ADMIN, api_secrets_create, .has_body = true},
	{"GET", "/v1/secrets", RIGHT_READ, api_secrets_list, .has_query = true},
	{"DELETE", "/v1/secrets/{name}", RIGHT_ADMIN, api_secrets_remove},

	{"POST", "/v1/webhooks", RIGHT_ADMIN, api_webhooks_create, .has_body = true},
	{"GET", "/v1/webhooks", RIGHT_ADMIN, api_webhooks_list, .has_query = true},
	{"GET", WH, RIGHT_ADMIN, api_webhooks_get},
	{"DELETE", WH, RIGHT_ADMIN, api_webhooks_delete},
	{"GET", WH "/deliveries", RIGHT_ADMIN, api_webhooks_deliveries, .has_query = true},
	{"POST", WH "/deliveries/{delivery}/redeliver", RIGHT_ADMIN, api_webhooks_redeliver},

	{"POST", "/v1/previews", RIGHT_WORK, api_previews_create, .has_body = true,
		.is_creating = true},
	{"GET", "/v1/previews", RIGHT_READ, api_previews_list, .has_query = true},
	{"GET", PV, RIGHT_READ, api_previews_get},
	{"DELETE", PV, RIGHT_WORK, api_previews_delete},
	{"PUT", PV "/visibility", RIGHT_WORK, api_previews_visibility, .has_body = true},
	{"POST", PV "/token", RIGHT_WORK, api_previews_token},

	{"GET", "/v1/audit", RIGHT_ADMIN, api_audit, .has_query = true},
	{"POST", "/v1/api-keys", RIGHT_ADMIN, api_keys_create, .has_body = true},
	{"GET", "/v1/api-keys", RIGHT_ADMIN, api_keys_list, .has_query = true},
	{"DELETE", "/v1/api-keys/{key}", RIGHT_ADMIN, api_keys_revoke},
	{"POST", "/v1/accounts", RIGHT_OPERATOR, api_accounts_create, .has_body = true},
	{"GET", "/v1/accounts", RIGHT_OPERATOR, api_accounts_list, .has_query = true},
};
const size_t route_n = sizeof(route_table) / sizeof(route_table[0]);

/* The next part of a path, without its slash. False at the end. */
static bool next_part(struct slice *rest, struct slice *ret)
{
	const char *slash;

	if (rest->len == 0 || rest->p[0] != '/')
		return false;
	slash = memchr(rest->p + 1, '/', rest->len - 1);
	ret->p = rest->p + 1;
	ret->len = slash ? (size_t)(slash - ret->p) : rest->len - 1;
	rest->p = ret->p + ret->len;
	rest->len -= ret->len + 1;
	return true;
}

static bool matches(const char *pattern, struct slice path, struct slice params[CALL_PARAMS_MAX])
{
	struct slice want = slice_of(pattern), a, b;
	size_t n = 0;

	for (;;) {
		bool has_a = next_part(&want, &a), has_b = next_part(&path, &b);

		if (!has_a || !has_b)
			return has_a == has_b && path.len == 0;
		if (a.len > 1 && a.p[0] == '{' && b.len > 0 && n < CALL_PARAMS_MAX)
			params[n++] = b;
		else if (!slice_eq(a, b))
			return false;
	}
}

int route_find(struct slice method, struct slice path, const struct route **ret,
	struct slice ret_params[CALL_PARAMS_MAX], struct str *allow)
{
	bool is_head = slice_is(method, "HEAD");

	for (size_t i = 0; i < route_n; i++) {
		const struct route *route = &route_table[i];
		struct slice params[CALL_PARAMS_MAX] = {{0}};

		if (!matches(route->path, path, params))
			continue;
		if (slice_is(method, route->method) ||
			(is_head && strcmp(route->method, "GET") == 0)) {
			memcpy(ret_params, params, sizeof(params));
			*ret = route;
			return 0;
		}
		str_puts(allow, allow->len > 0 ? ", " : "");
		str_puts(allow, route->method);
	}
	return allow->len > 0 ? -EOPNOTSUPP : -ENOENT;
}

bool route_allows(const struct route *route, const struct caller *caller)
{
	switch (route->right) {
	case RIGHT_ANYONE:
		return true;
	case RIGHT_READ:
		return caller->role >= ROLE_AUDITOR;
	case RIGHT_WORK:
		return caller->role >= ROLE_MEMBER;
	case RIGHT_ADMIN:
		return caller->role >= ROLE_ADMIN;
	case RIGHT_OPERATOR:
		return caller->is_operator;
	}
	return false;
}
