/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on a sandbox's files. Paths are the sandbox's own: nothing here, nor anywhere else outside, looks one up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/api.h"
#include "server/file_run.h"
#include "server/launcher_ask.h"
#include "spec/spec.h"
#include "util/digest.h"
#include "util/jsonw.h"
#include "util/mem.h"

#define PATH_LEN        4095
#define PATTERN_MAX     1000
#define VIEW_DEFAULT    (256 << 10)
#define VIEW_MAX        (1 << 20)
#define RESULTS_DEFAULT 1000
#define RESULTS_MAX     10000
#define MODE_MAX        0777
#define TIMEOUT_MS      40000 /* the program inside ends itself before */
#define TRANSFER_MS     (3700 * 1000)

/* A request in the making; what its slices point at. */
struct file_call {
	struct call *call;
	struct files_wire_request request;
	struct str path, pattern, only, old_text, new_text;
	struct file_ask *ask;
};

static void file_call_done(struct file_call *f)
{
	str_done(&f->path);
	str_done(&f->pattern);
	str_done(&f->only);
	str_done(&f->old_text);
	str_done(&f->new_text);
	file_ask_free(f->ask);
}

/* ---- what was asked for ---- */

static int read_query_path(const struct call *call, struct str *path, struct err *err)
{
	const char *text = call_query(call, "path"), *b64 = call_query(call, "path_b64");

	return call_decode("path", text ? slice_of(text) : (struct slice){0},
		b64 ? slice_of(b64) : (struct slice){0}, path, err);
}

static int check_path(const struct str *path, struct err *err)
{
	if (path->len == 0 || path->p[0] != '/')
		return err_set(err, -EINVAL,
			"'path': want a path inside the sandbox that begins with '/'");
	if (path->len > PATH_LEN || memchr(path->p, '\0', path->len))
		return err_set(err, -EINVAL, "'path': at most %d bytes, without NUL", PATH_LEN);
	return 0;
}

int api_files_path(const struct call *call, struct str *path, struct err *err)
{
	int r = read_query_path(call, path, err);

	return r < 0 ? r : check_path(path, err);
}

/* otherwise: NULL where it has to be named. */
static int read_path(struct file_call *f, const char *otherwise, struct err *err)
{
	int r = f->call->body ? call_bytes(f->call, "path", &f->path, err)
	                      : read_query_path(f->call, &f->path, err);

	if (r == 0 && otherwise)
		str_puts(&f->path, otherwise);
	if (r >= 0)
		r = check_path(&f->path, err);
	f->request.path = str_slice(&f->path);
	return r < 0 ? r : 0;
}

static int read_pattern(
	struct file_call *f, const char *key, struct str *out, bool is_needed, struct err *err)
{
	int r = call_bytes(f->call, key, out, err);

	if (r >= 0 && is_needed && out->len == 0)
		return err_set(err, -EINVAL, "'%s': want a pattern", key);
	if (r >= 0 && (out->len > PATTERN_MAX || (out->len > 0 && memchr(out->p, '\0', out->len))))
		return err_set(
			err, -EINVAL, "'%s': at most %d bytes, without NUL", key, PATTERN_MAX);
	return r < 0 ? r : 0;
}

/* As chmod(1) has it. */
static int read_mode(const char *text, int64_t *ret, struct err *err)
{
	char *end;
	unsigned long v;

	if (!text)
		return 0;
	v = strtoul(text, &end, 8);
	if (text[0] < '0' || text[0] > '7' || *end || v > MODE_MAX)
		return err_set(
			err, -EINVAL, "'mode': want octal digits up to 0777, such as \"0644\"");
	*ret = (int64_t)v;
	return 0;
}

static int read_query_flag(const struct call *call, const char *key, bool *ret, struct err *err)
{
	const char *text = call_query(call, key);

	if (text && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return err_set(err, -EINVAL, "parameter '%s': want true or false", key);
	*ret = text ? strcmp(text, "true") == 0 : *ret;
	return 0;
}

/* ---- on its way ---- */

static void add_content_detail(struct jsonw *j, struct slice content)
{
	char sha256[DIGEST_HEX_SIZE];

	digest_of(content.p ? content.p : "", content.len, sha256);
	jsonw_kint(j, "bytes", (int64_t)content.len);
	jsonw_ktext(j, "sha256", sha256);
}

/* What the log tells of it: what was asked for, never the content. */
static void write_detail(struct str *out, const struct file_call *f, struct slice content)
{
	const struct files_wire_request *request = &f->request;
	struct jsonw j = jsonw_to(out);

	jsonw_object(&j);
	jsonw_kslice(&j, "path", request->path);
	if (request->pattern.len > 0)
		jsonw_kslice(&j, "pattern", request->pattern);
	if (request->only.len > 0)
		jsonw_kslice(&j, "glob", request->only);
	if (request->first_line > 0)
		jsonw_kint(&j, "first_line", request->first_line);
	if (request->last_line > 0)
		jsonw_kint(&j, "last_line", request->last_line);
	if (request->op == FILES_WIRE_REPLACE) {
		jsonw_kint(&j, "old_bytes", (int64_t)request->old_text.len);
		jsonw_kint(&j, "new_bytes", (int64_t)request->new_text.len);
	}
	if (request->op == FILES_WIRE_CREATE || request->op == FILES_WIRE_UPLOAD)
		add_content_detail(&j, content);
	jsonw_object_end(&j);
}

static void write_spec(struct file_call *f, struct slice content)
{
	scoped(spec_exec) struct spec_exec *exec = spec_exec_new();
	const struct files_wire_request *request = &f->request;
	struct slice what = request->pattern.len > 0 ? request->pattern : request->path;
	scoped_mem char *shown = mem_copy(what.p, what.len);
	bool is_transfer = request->op == FILES_WIRE_UPLOAD || request->op == FILES_WIRE_DOWNLOAD;
	scoped_str struct str detail = {0};

	write_detail(&detail, f, content);
	exec->operation = mem_dup(files_wire_name(request->op));
	exec->detail = str_take(&detail);
	spec_words_add(&exec->argv, exec->operation);
	spec_words_add(&exec->argv, shown);
	exec->cwd = mem_dup("/");
	exec->has_stdin = true;
	exec->timeout_ms = is_transfer ? TRANSFER_MS : TIMEOUT_MS;
	exec->source = mem_dup("agent");
	exec->via = mem_dup("api");
	exec->actor = mem_dup(f->call->caller.actor);
	spec_exec_write(&f->ask->spec, exec);
}

/* The request is whole: to the supervisor with it. */
static int send_off(struct file_call *f, struct err *err)
{
	struct file_ask *ask = f->ask;
	struct slice content =
		ask->has_body ? exchange_body(f->call->exchange) : str_slice(&ask->own);
	const char *id = NULL;
	int r = api_sandbox_id(f->call, &id, NULL, err);

	if (r == 0)
		r = ask->fd = launcher_ask_connect(f->call->server, id, err);
	if (r < 0)
		return r;
	memcpy(ask->sandbox, id, ID_SIZE);
	f->request.content_len = (int64_t)content.len;
	files_wire_write(&ask->head, &f->request);
	write_spec(f, content);
	ask->is_download = f->request.op == FILES_WIRE_DOWNLOAD;
	f->call->state = take(&f->ask);
	f->call->then = file_run;
	return 0;
}

/* The sandbox is looked for first: who may not know of it learns nothing else. */
static int run(struct call *call, enum files_wire_op op,
	int (*read)(struct file_call *f, struct err *err), struct err *err)
{
	struct file_call f = {.call = call, .request = {.op = op, .mode = -1}};
	const char *id = NULL;
	int r = api_sandbox_id(call, &id, NULL, err);

	f.ask = new0(struct file_ask);
	f.ask->fd = -1;
	if (r == 0)
		r = read(&f, err);
	if (r == 0)
		r = send_off(&f, err);
	file_call_done(&f);
	return r;
}

/* ---- the operations ---- */

static int read_create(struct file_call *f, struct err *err)
{
	static const char *const names[] = {
		"path", "path_b64", "content", "content_b64", "overwrite", "parents", "mode", NULL};
	const char *mode = NULL;
	int r = call_check_body(f->call, names, err);

	if (r == 0)
		r = read_path(f, NULL, err);
	if (r == 0)
		r = call_bytes(f->call, "content", &f->ask->own, err);
	if (r >= 0)
		r = call_bool(f->call, "overwrite", &f->request.overwrite, err);
	if (r == 0)
		r = call_bool(f->call, "parents", &f->request.parents, err);
	if (r == 0)
		r = call_text(f->call, "mode", &mode, err);
	return r < 0 ? r : read_mode(mode, &f->request.mode, err);
}

static int read_view(struct file_call *f, struct err *err)
{
	static const char *const names[] = {
		"path", "path_b64", "first_line", "last_line", "max_bytes", NULL};
	struct files_wire_request *request = &f->request;
	int r = call_check_body(f->call, names, err);

	if (r == 0)
		r = read_path(f, NULL, err);
	if (r == 0)
		r = call_int(f->call, "first_line", 1, INT32_MAX, 0, &request->first_line, err);
	if (r == 0)
		r = call_int(f->call, "last_line", 1, INT32_MAX, 0, &request->last_line, err);
	if (r == 0)
		r = call_int(f->call, "max_bytes", 1, VIEW_MAX, VIEW_DEFAULT, &request->limit, err);
	if (r == 0 && request->last_line && request->last_line < request->first_line)
		r = err_set(err, -EINVAL, "'last_line' is before 'first_line'");
	return r;
}

static int read_replace(struct file_call *f, struct err *err)
{
	static const char *const names[] = {
		"path", "path_b64", "old", "old_b64", "new", "new_b64", NULL};
	int r = call_check_body(f->call, names, err);

	if (r == 0)
		r = read_path(f, NULL, err);
	if (r == 0)
		r = call_bytes(f->call, "old", &f->old_text, err);
	if (r >= 0 && f->old_text.len == 0)
		return err_set(err, -EINVAL, "'old': want the text to replace");
	if (r >= 0)
		r = call_bytes(f->call, "new", &f->new_text, err);
	if (r == 0)
		return err_set(
			err, -EINVAL, "'new': want the text to put there, which may be empty");
	f->request.old_text = str_slice(&f->old_text);
	f->request.new_text = str_slice(&f->new_text);
	return r < 0 ? r : 0;
}

static int read_limit(struct file_call *f, struct err *err)
{
	return call_int(f->call, "limit", 1, RESULTS_MAX, RESULTS_DEFAULT, &f->request.limit, err);
}

static int read_ls(struct file_call *f, struct err *err)
{
	static const char *const names[] = {"path", "path_b64", "limit", NULL};
	int r = call_check_body(f->call, names, err);

	if (r == 0)
		r = read_path(f, NULL, err);
	return r < 0 ? r : read_limit(f, err);
}

static int read_glob(struct file_call *f, struct err *err)
{
	static const char *const names[] = {
		"path", "path_b64", "pattern", "pattern_b64", "limit", NULL};
	int r = call_check_body(f->call, names, err);

	if (r == 0)
		r = read_path(f, "/", err);
	if (r == 0)
		r = read_pattern(f, "pattern", &f->pattern, true, err);
	f->request.pattern = str_slice(&f->pattern);
	return r < 0 ? r : read_limit(f, err);
}

static int read_grep(struct file_call *f, struct err *err)
{
	static const char *const names[] = {"path", "path_b64", "pattern", "pattern_b64", "glob",
		"glob_b64", "limit", "literal", "ignore_case", NULL};
	int r = call_check_body(f->call, names, err);

	if (r == 0)
		r = read_path(f, "/", err);
	if (r == 0)
		r = read_pattern(f, "pattern", &f->pattern, true, err);
	if (r == 0)
		r = read_pattern(f, "glob", &f->only, false, err);
	if (r == 0)
		r = call_bool(f->call, "literal", &f->request.literal, err);
	if (r == 0)
		r = call_bool(f->call, "ignore_case", &f->request.ignore_case, err);
	f->request.pattern = str_slice(&f->pattern);
	f->request.only = str_slice(&f->only);
	return r < 0 ? r : read_limit(f, err);
}

static int read_upload(struct file_call *f, struct err *err)
{
	static const char *const names[] = {
		"path", "path_b64", "overwrite", "parents", "mode", NULL};
	int r = call_check_query(f->call, names, err);

	f->ask->has_body = f->request.overwrite = true;
	if (r == 0)
		r = read_path(f, NULL, err);
	if (r == 0)
		r = read_query_flag(f->call, "overwrite", &f->request.overwrite, err);
	if (r == 0)
		r = read_query_flag(f->call, "parents", &f->request.parents, err);
	return r < 0 ? r : read_mode(call_query(f->call, "mode"), &f->request.mode, err);
}

static int read_download(struct file_call *f, struct err *err)
{
	static const char *const names[] = {"path", "path_b64", NULL};
	int r = call_check_query(f->call, names, err);

	if (r == 0 && slice_is(exchange_head(f->call->exchange)->method, "HEAD")) {
		f->call->status = 405;
		f->call->code = "method_not_allowed";
		r = err_set(err, -EINVAL, "a file is read with GET; `ls` tells its size");
	}
	return r < 0 ? r : read_path(f, NULL, err);
}

int api_files_create(struct call *call, struct err *err)
{
	return run(call, FILES_WIRE_CREATE, read_create, err);
}

int api_files_view(struct call *call, struct err *err)
{
	return run(call, FILES_WIRE_VIEW, read_view, err);
}

int api_files_str_replace(struct call *call, struct err *err)
{
	return run(call, FILES_WIRE_REPLACE, read_replace, err);
}

int api_files_ls(struct call *call, struct err *err)
{
	return run(call, FILES_WIRE_LS, read_ls, err);
}

int api_files_glob(struct call *call, struct err *err)
{
	return run(call, FILES_WIRE_GLOB, read_glob, err);
}

int api_files_grep(struct call *call, struct err *err)
{
	return run(call, FILES_WIRE_GREP, read_grep, err);
}

int api_files_upload(struct call *call, struct err *err)
{
	return run(call, FILES_WIRE_UPLOAD, read_upload, err);
}

int api_files_download(struct call *call, struct err *err)
{
	return run(call, FILES_WIRE_DOWNLOAD, read_download, err);
}
