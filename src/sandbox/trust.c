/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/kmount.h"
#include "sandbox/over.h"
#include "sandbox/skel.h"
#include "sandbox/trust_java.h"
#include "sandbox/trust_p12.h"
#include "util/fdio.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/scoped.h"

#define SOURCE_MAX  4096
#define HASH_LEN    8
#define STORE_MAX   (8u << 20) /* of a bundle or keystore */
#define MAX_PLACES  16         /* bundles and keystores of one root */
#define MAX_JAVAS   32
#define PEM_COLUMNS 64
#define SIZE        "32m"

#define FOLDER      "etc/ssl/certs"
#define BUNDLE      "etc/ssl/certs/ca-certificates.crt"
#define HOOKS       "etc/ca-certificates/update.d"

/* Where distributions keep all roots in one file; many of these are links to another. */
static const char *const bundles[] = {BUNDLE, "etc/ssl/cert.pem", "etc/ssl/ca-bundle.pem",
	"etc/pki/tls/certs/ca-bundle.crt", "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"etc/ca-certificates/extracted/tls-ca-bundle.pem", "var/lib/ca-certificates/ca-bundle.pem"};
static const char *const keystores[] = {"etc/ssl/certs/java/cacerts", "etc/pki/java/cacerts",
	"etc/pki/ca-trust/extracted/java/cacerts"};
/* Each Java in these has one of its own, or a link to one above. */
static const char *const javas[] = {"usr/lib/jvm", "opt/java", "usr/local"};

/* From what these make the stores anew, where a program inside has them do it. */
static const char *const anchors[] = {"etc/pki/ca-trust/source/anchors"};
static const char hook[] =
	"#!/bin/sh\n"
	"# The bundle was made anew: the authority of this sandbox's gateway goes in again.\n"
	"cat " TRUST_FILE " >> /" BUNDLE "\n";

static const char *const bundle_variables[] = {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO",
	"NIX_SSL_CERT_FILE", "HTTPLIB2_CA_CERTS", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"};

struct job {
	struct trust *t;
	struct over over;
	char hash[HASH_LEN + 1];
	struct str source, pem;
	struct slice der;
	char *done[MAX_PLACES]; /* paths that were dealt with */
	size_t n_done;
};

static bool was_done(struct job *job, const char *place)
{
	for (size_t i = 0; i < job->n_done; i++)
		if (strcmp(job->done[i], place) == 0)
			return true;
	if (job->n_done == MAX_PLACES)
		return true;
	job->done[job->n_done++] = mem_dup(place);
	return false;
}

/* A store with ours added takes the place of the one below. -ENOENT where there is none that we know. */
static int put_store(struct job *job, const char *path,
	int (*copy)(const struct job *job, int from_fd, uint64_t size, int to_fd))
{
	scoped_fd int from = over_open(&job->over, path, O_RDONLY), to = -1;
	char place[OVER_PATH_LEN];
	struct stat st;
	int r;

	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode) ||
		st.st_size > (off_t)STORE_MAX || !over_find(&job->over, from, place))
		return -ENOENT;
	if (was_done(job, place))
		return 0;
	to = over_create(&job->over, place);
	if (to < 0)
		return to;
	r = copy(job, from, (uint64_t)st.st_size, to);
	if (r == -EINVAL && unlinkat(job->over.to, place, 0) == 0)
		return -ENOENT;
	return r < 0 ? r : over_copy_owner(&job->over, place, &st);
}

static void see_last(void *data, const char *p, size_t len)
{
	*(char *)data = p[len - 1];
}

static int copy_bundle(const struct job *job, int from_fd, uint64_t size, int to_fd)
{
	char last = '\n';
	int r = over_copy(from_fd, 0, size, to_fd, see_last, &last);

	if (r == 0 && last != '\n')
		r = fdio_write_all(to_fd, "\n", 1);
	return r < 0 ? r : fdio_write_all(to_fd, job->pem.p, job->pem.len);
}

static int copy_keystore(const struct job *job, int from_fd, uint64_t size, int to_fd)
{
	int r = trust_java_copy(from_fd, size, job->der, to_fd);

	return r == -EINVAL ? trust_p12_copy(from_fd, size, job->der, to_fd) : r;
}

/* The first one that is there is told to those who want a bundle's name. */
static int put_bundles(struct job *job)
{
	for (size_t i = 0; i < sizeof(bundles) / sizeof(bundles[0]); i++) {
		int r = put_store(job, bundles[i], copy_bundle);

		if (r == 0 && !job->t->bundle)
			job->t->bundle = mem_printf("/%s", bundles[i]);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	if (job->t->bundle)
		return 0;
	job->t->bundle = mem_dup("/" BUNDLE);
	return over_put(&job->over, BUNDLE, str_slice(&job->pem), 0644);
}

static int put_keystores_of(struct job *job, const char *folder)
{
	scoped_fd int fd = over_open(&job->over, folder, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0, n = 0;

	if (!dir)
		return 0;
	(void)take_fd(&fd); /* dir has it */
	while (r == 0 && n++ < MAX_JAVAS && (entry = readdir(dir))) {
		scoped_mem char *path =
			mem_printf("%s/%s/lib/security/cacerts", folder, entry->d_name);

		if (entry->d_name[0] != '.')
			r = put_store(job, path, copy_keystore);
		if (r == -ENOENT)
			r = 0;
	}
	(void)closedir(dir);
	return r;
}

static int put_keystores(struct job *job)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(keystores) / sizeof(keystores[0]); i++) {
		r = put_store(job, keystores[i], copy_keystore);
		if (r == -ENOENT)
			r = 0;
	}
	for (size_t i = 0; r == 0 && i < sizeof(javas) / sizeof(javas[0]); i++)
		r = put_keystores_of(job, javas[i]);
	return r;
}

/* The certificate alone, with its link, in the hashed folder wherever that lies. */
static int put_hashed(struct job *job)
{
	scoped_fd int fd = over_open(&job->over, FOLDER, O_RDONLY | O_DIRECTORY);
	char folder[OVER_PATH_LEN] = FOLDER;
	scoped_mem char *file = NULL, *link = NULL;
	int r;

	if (fd >= 0 && !over_find(&job->over, fd, folder))
		return -ENOTDIR;
	file = mem_printf("%s/%s", folder, strrchr(TRUST_FILE, '/') + 1);
	link = mem_printf("%s/%s.0", folder, job->hash);
	r = over_put(&job->over, file, str_slice(&job->pem), 0644);
	return r < 0 ? r : over_link(&job->over, link, strrchr(TRUST_FILE, '/') + 1);
}

static int put_for_updates(struct job *job)
{
	int r = over_put(&job->over, HOOKS "/cloche-sandbox", slice_of(hook), 0755);

	for (size_t i = 0; r == 0 && i < sizeof(anchors) / sizeof(anchors[0]); i++) {
		scoped_mem char *path = mem_printf("%s/cloche-sandbox.pem", anchors[i]);
		struct stat st;

		if (fstatat(job->over.root, anchors[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISDIR(st.st_mode))
			r = over_put(&job->over, path, str_slice(&job->pem), 0644);
	}
	return r;
}

static void write_pem(struct job *job)
{
	scoped_str struct str text = {0};

	jsonw_base64(&text, job->der.p, job->der.len);
	str_puts(&job->pem, "-----BEGIN CERTIFICATE-----\n");
	for (size_t at = 0; at < text.len; at += PEM_COLUMNS)
		str_printf(&job->pem, "%.*s\n", PEM_COLUMNS, text.p + at);
	str_puts(&job->pem, "-----END CERTIFICATE-----\n");
}

static int read_source(struct job *job, struct err *err)
{
	int r = fdio_read_all(job->t->source_fd, SOURCE_MAX, &job->source);

	if (r < 0 || job->source.len <= HASH_LEN)
		return err_set(err, r < 0 ? r : -EIO, "read the gateway's certificate: %s",
			r < 0 ? strerror(-r) : "whoever makes it did not");
	memcpy(job->hash, job->source.p, HASH_LEN);
	job->der = (struct slice){.p = job->source.p + HASH_LEN, .len = job->source.len - HASH_LEN};
	write_pem(job);
	return 0;
}

/* Large pages where the kernel gives them to small files (6.14): half the time. */
static int open_memory(uint32_t owner, struct err *err)
{
	char id[16];
	const struct kmount_option options[] = {{"huge", "within_size"}, {"mode", "0755"},
		{"uid", id}, {"gid", id}, {"size", SIZE}, {NULL, NULL}};
	uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	int fd;

	(void)snprintf(id, sizeof(id), "%u", owner);
	fd = kmount_new("tmpfs", options, attrs, NULL);
	return fd >= 0 ? fd : kmount_new("tmpfs", options + 1, attrs, err);
}

/* What is attached nowhere begins at "/" for the kernel's names. */
static int open_root(struct job *job)
{
	struct trust *t = job->t;

	if (t->root_fd >= 0) {
		job->over.root = take_fd(&t->root_fd);
		(void)snprintf(job->over.real, sizeof(job->over.real), "/");
		return 0;
	}
	job->over.root = open(t->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return job->over.root < 0 || !realpath(t->root, job->over.real) ? -errno : 0;
}

static int open_folders(struct job *job, struct err *err)
{
	struct trust *t = job->t;
	struct stat st;

	if (open_root(job) < 0 || fstat(job->over.root, &st) < 0)
		return err_set(err, -errno, "open '%s': %m", t->root ? t->root : "/");
	t->fd = open_memory(t->owner, err);
	if (t->fd < 0)
		return t->fd;
	job->over.to = openat(t->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (job->over.to < 0 || over_copy_owner(&job->over, ".", &st) < 0)
		return err_set(err, -errno, "open the folder of trusted certificates: %m");
	return 0;
}

static int put_resolver(struct job *job)
{
	return over_put(&job->over, "etc/resolv.conf", slice_of(SKEL_RESOLV_CONF), 0644);
}

static int make(struct job *job, struct err *err)
{
	static int (*const steps[])(struct job * job) = {
		put_bundles, put_hashed, put_keystores, put_for_updates, put_resolver};
	int r = open_folders(job, err);

	if (r == 0)
		r = read_source(job, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < sizeof(steps) / sizeof(steps[0]); i++) {
		r = steps[i](job);
		if (r == -ENOTDIR)
			r = 0; /* a root that has other things in these places goes without */
	}
	return r < 0 ? err_set(err, r, "put the gateway's certificate into the root: %m") : 0;
}

static void *run(void *arg)
{
	struct trust *t = arg;
	struct job job = {.t = t, .over = {.root = -1, .to = -1, .owner = t->owner}};

	t->r = make(&job, &t->err);
	for (size_t i = 0; i < job.n_done; i++)
		free(job.done[i]);
	str_done(&job.source);
	str_done(&job.pem);
	scoped_close(&job.over.root);
	scoped_close(&job.over.to);
	return NULL;
}

void trust_begin(struct trust *t, const struct trust_root *root, int source_fd)
{
	*t = TRUST_NONE;
	t->source_fd = source_fd;
	t->root_fd = root->fd;
	if (source_fd < 0)
		return;
	t->root = mem_dup(root->path);
	t->owner = root->owner;
	t->is_running = pthread_create(&t->thread, NULL, run, t) == 0;
	if (!t->is_running)
		run(t); /* not beside, then */
}

static void wait_for(struct trust *t)
{
	if (t->is_running)
		(void)pthread_join(t->thread, NULL);
	t->is_running = false;
}

int trust_finish(struct trust *t, struct err *err)
{
	wait_for(t);
	return t->r < 0 ? err_set(err, t->r, "%s", t->err.msg) : 0;
}

void trust_done(struct trust *t)
{
	wait_for(t);
	scoped_close(&t->source_fd);
	scoped_close(&t->root_fd);
	scoped_close(&t->fd);
	free(t->root);
	free(t->bundle);
	*t = TRUST_NONE;
}

void trust_add_env(const struct trust *t, struct spec_words *env)
{
	if (!t->bundle)
		return;
	for (size_t i = 0; i < sizeof(bundle_variables) / sizeof(bundle_variables[0]); i++) {
		scoped_mem char *pair = mem_printf("%s=%s", bundle_variables[i], t->bundle);

		spec_words_add(env, pair);
	}
	spec_words_add(env, "NODE_EXTRA_CA_CERTS=" TRUST_FILE);
	spec_words_add(env, "NODE_USE_SYSTEM_CA=1");
	spec_words_add(env, "DENO_TLS_CA_STORE=system,mozilla");
}
