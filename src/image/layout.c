/* SPDX-License-Identifier: Apache-2.0 */
#include "image/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/inflate.h"
#include "image/jail.h"
#include "image/parcel.h"
#include "image/progress.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/scoped.h"

#define NESTED_MAX 4
#define PIECE_LEN  (256u << 10)

/* "amd64", as images call it. */
static const char *own_arch(void)
{
#if defined(__x86_64__)
	return "amd64";
#elif defined(__aarch64__)
	return "arm64";
#else
#error "name this machine as the OCI image-spec does"
#endif
}

static bool has_file(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

static bool has_any(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

enum layout_kind layout_look(int dir_fd)
{
	/* A root that has such a file by chance is still a root. */
	if (has_any(dir_fd, "bin") || has_any(dir_fd, "usr") || has_any(dir_fd, "etc"))
		return LAYOUT_NONE;
	if (has_file(dir_fd, "oci-layout") && has_file(dir_fd, "index.json"))
		return LAYOUT_OCI;
	if (has_file(dir_fd, "manifest.json"))
		return has_file(dir_fd, "version") ? LAYOUT_SKOPEO : LAYOUT_DOCKER;
	return LAYOUT_NONE;
}

/* A regular file beneath the folder; links within it may be, since docker's archives have them. */
static int open_file(const struct layout *layout, const char *path, struct err *err)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
	scoped_fd int fd = (int)syscall(SYS_openat2, layout->dir_fd, path, &how, sizeof(how));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, -errno, "open its file '%.200s': %m", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EBADMSG, "its '%.200s' is no regular file", path);
	return take_fd(&fd);
}

static int read_file(
	const struct layout *layout, const char *path, struct str *out, struct err *err)
{
	scoped_fd int fd = open_file(layout, path, err);
	int r = fd < 0 ? fd : fdio_read_all(fd, DOCUMENT_MAX, out);

	if (r == -EFBIG)
		return err_set(err, r, "its file '%.200s' is longer than %u MiB", path,
			DOCUMENT_MAX >> 20);
	return r < 0 && fd >= 0 ? err_set(err, r, "read its file '%.200s': %m", path) : r;
}

/* "sha256:HEX" as a path in the folder. */
static char *blob_path(const struct layout *layout, const char *digest)
{
	return mem_printf("%s%s", layout->kind == LAYOUT_OCI ? "blobs/sha256/" : "",
		digest + strlen("sha256:"));
}

static int check_digest(const char *got, const char *digest, struct err *err)
{
	if (strcmp(got, digest + strlen("sha256:")) == 0)
		return 0;
	return err_set(err, -EBADMSG,
		"its file for %.19s... is damaged or was replaced: it has the digest "
		"sha256:%.12s...",
		digest, got);
}

static int read_blob(const struct layout *layout, const char *digest, uint64_t size,
	struct str *out, struct err *err)
{
	scoped_mem char *path = blob_path(layout, digest);
	char got[DIGEST_HEX_SIZE];
	int r = read_file(layout, path, out, err);

	if (r < 0)
		return r;
	if (out->len != size)
		return err_set(err, -EBADMSG, "its file for %.19s... has not the length it should",
			digest);
	digest_of(out->p, out->len, got);
	return check_digest(got, digest, err);
}

/* What the child that reads a document gets; it has a copy of our memory. */
struct reading {
	enum document_kind kind;
	struct slice json;
	struct document_wish wish;
};

static int read_inside(void *ctx, struct str *report, struct err *err)
{
	const struct reading *reading = ctx;

	return document_read(reading->kind, reading->json, &reading->wish, report, err);
}

static int ask(const struct layout *layout, enum document_kind kind, const struct str *json,
	const char *tag, struct str *ret_parcels, struct err *err)
{
	static const char *const names[] = {[DOCUMENT_INDEX] = "read its index",
		[DOCUMENT_MANIFEST] = "read its manifest",
		[DOCUMENT_CONFIG] = "read its config",
		[DOCUMENT_DOCKER] = "read its manifest.json"};
	struct reading reading = {
		.kind = kind, .json = str_slice(json), .wish = {.tag = tag, .arch = own_arch()}};
	const struct jail jail = {.what = names[kind],
		.base = layout->jail_base,
		.root_fd = -1,
		.in_fd = -1,
		.out_fd = -1,
		.filter = &inflate_filter,
		.work = read_inside,
		.ctx = &reading};

	/* Heads come on top of what it holds itself. */
	return jail_ask(&jail, 4 * DOCUMENT_MAX, ret_parcels, err);
}

int layout_read_top(const struct layout *layout, struct str *out, struct err *err)
{
	const char *name = layout->kind == LAYOUT_OCI ? "index.json" : "manifest.json";
	char digest[DIGEST_HEX_SIZE];
	int r = read_file(layout, name, out, err);

	if (r < 0 || !layout->top)
		return r;
	digest_of(out->p ? out->p : "", out->len, digest);
	return strcmp(digest, layout->top) == 0
	               ? 0
	               : err_set(err, -EBADMSG, "its %s was changed while it was read", name);
}

/* The one entry of an index that was chosen. */
static int take_entry(struct slice parcels, char **ret_digest, uint64_t *ret_size, bool *ret_nested)
{
	unsigned long long size;
	struct slice digest, text;
	int type;

	if (parcel_next(&parcels, &type, &digest) != 1 || type != PARCEL_DIGEST ||
		!document_is_digest(digest) || parcel_next(&parcels, &type, &text) != 1 ||
		type != PARCEL_SIZE || parcel_count(text, &size) < 0)
		return -EBADMSG;
	*ret_nested = parcel_next(&parcels, &type, &text) == 1 && type == PARCEL_NESTED;
	*ret_digest = mem_copy(digest.p, digest.len);
	*ret_size = size;
	return 0;
}

/* Follows indexes down to the manifest; its bytes are in json then. */
static int find_manifest(const struct layout *layout, const char *tag, struct image *image,
	struct str *json, struct err *err)
{
	bool is_nested = true;
	int r = 0;

	for (int depth = 0; r == 0 && is_nested; depth++) {
		scoped_str struct str parcels = {0};
		uint64_t size = 0;

		if (depth == NESTED_MAX)
			return err_set(err, -ELOOP, "its index leads to others without end");
		r = ask(layout, DOCUMENT_INDEX, json, depth == 0 ? tag : NULL, &parcels, err);
		if (r < 0)
			return r;
		free(take(&image->digest));
		if (take_entry(str_slice(&parcels), &image->digest, &size, &is_nested) < 0)
			return err_set(err, -EBADMSG, "its index cannot be read");
		str_reset(json);
		r = read_blob(layout, image->digest, size, json, err);
	}
	return r;
}

static int find_oci(const struct layout *layout, const char *tag, struct image *image,
	struct str *parcels, struct err *err)
{
	scoped_str struct str json = {0};
	char digest[DIGEST_HEX_SIZE];
	int r = layout_read_top(layout, &json, err);

	if (r == 0 && layout->kind == LAYOUT_SKOPEO && tag)
		return err_set(err, -ENOENT,
			"it holds one image, which has no name: leave out what is behind the "
			"colon");
	if (r == 0 && layout->kind == LAYOUT_OCI)
		r = find_manifest(layout, tag, image, &json, err);
	if (r == 0 && layout->kind == LAYOUT_SKOPEO) {
		digest_of(json.p, json.len, digest);
		image->digest = mem_printf("sha256:%s", digest);
	}
	return r < 0 ? r : ask(layout, DOCUMENT_MANIFEST, &json, NULL, parcels, err);
}

static int find_docker(
	const struct layout *layout, const char *tag, struct str *parcels, struct err *err)
{
	scoped_str struct str json = {0};
	int r = layout_read_top(layout, &json, err);

	return r < 0 ? r : ask(layout, DOCUMENT_DOCKER, &json, tag, parcels, err);
}

/* An archive of docker has no manifest; its id is the digest of its config, as docker shows it. */
static int read_config(
	const struct layout *layout, struct image *image, struct str *json, struct err *err)
{
	char digest[DIGEST_HEX_SIZE];
	int r;

	if (layout->kind != LAYOUT_DOCKER)
		return document_is_digest(slice_of(image->config))
		               ? read_blob(layout, image->config, image->config_size, json, err)
		               : err_set(err, -EBADMSG, "the digest of its config is none");
	r = read_file(layout, image->config, json, err);
	if (r < 0)
		return r;
	digest_of(json->p ? json->p : "", json->len, digest);
	image->digest = mem_printf("sha256:%s", digest);
	return 0;
}

int layout_read_image(
	const struct layout *layout, const char *tag, struct image *image, struct err *err)
{
	scoped_str struct str manifest = {0}, config = {0}, parcels = {0};
	int r = layout->kind == LAYOUT_DOCKER ? find_docker(layout, tag, &manifest, err)
	                                      : find_oci(layout, tag, image, &manifest, err);

	if (r == 0)
		r = image_take_manifest(image, str_slice(&manifest), err);
	if (r == 0)
		r = read_config(layout, image, &config, err);
	if (r == 0)
		r = ask(layout, DOCUMENT_CONFIG, &config, NULL, &parcels, err);
	return r < 0 ? r : image_take_config(image, str_slice(&parcels), err);
}

/* No other bytes are read later than those hashed here, or the digest of the plain tar shows it. */
static int check_blob(int fd, const struct image_layer *layer, struct err *err)
{
	scoped_mem char *piece = mem_zero(1, PIECE_LEN);
	char got[DIGEST_HEX_SIZE];
	struct digest digest;
	uint64_t len = 0;
	ssize_t n = 0;

	digest_init(&digest);
	while (len <= layer->size && (n = read(fd, piece, PIECE_LEN)) > 0) {
		digest_add(&digest, piece, (size_t)n);
		len += (uint64_t)n;
		if (progress_is_stopped())
			return err_set(err, -EINTR, "stopped by a signal");
	}
	if (n < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, -errno, "read its layer: %m");
	if (len != layer->size)
		return err_set(err, -EBADMSG, "its layer %.19s... has not the length it should",
			layer->blob);
	digest_value_hex(&digest, got);
	return check_digest(got, layer->blob, err);
}

int layout_open_layer(
	const struct layout *layout, const struct image *image, size_t i, struct err *err)
{
	const struct image_layer *layer = &image->layers[i];
	scoped_mem char *path = NULL;
	scoped_fd int fd = -1;
	int r;

	if (layout->kind == LAYOUT_DOCKER)
		return open_file(layout, layer->blob, err);
	if (!document_is_digest(slice_of(layer->blob)))
		return err_set(err, -EBADMSG, "the digest of a layer is none");
	path = blob_path(layout, layer->blob);
	fd = open_file(layout, path, err);
	if (fd < 0)
		return fd;
	r = check_blob(fd, layer, err);
	return r < 0 ? r : take_fd(&fd);
}
