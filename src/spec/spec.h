/* SPDX-License-Identifier: Apache-2.0 */
/* What the user asked for: a sandbox, and execs in it. Plain data, filled by options, a file or the wire. */
#ifndef SPEC_SPEC_H
#define SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "spec/spec_network.h"
#include "util/err.h"
#include "util/scoped.h"
#include "util/slice.h"
#include "util/str.h"

enum spec_mount_mode {
	SPEC_MOUNT_RO,
	SPEC_MOUNT_RW,
	SPEC_MOUNT_COW,
};
const char *spec_mode_name(enum spec_mount_mode mode); /* "cow" */

struct spec_mount {
	char *host;  /* absolute, links resolved */
	char *guest; /* absolute, clean */
	enum spec_mount_mode mode;
	bool internal; /* ours (a PATH folder), not asked for by name */
	bool profile; /* an agent's own folder: what changes in it is counted, not listed, and never applied */
	char *folder_id; /* util/folder_id.h: of what was first mounted cow there; NULL: of what is there now */
};

#define SPEC_LOWERS_MAX    1024
#define SPEC_LOWERS_AT_MAX 128 /* at one place: so many an overlay joins */

/* A shared layer, complete and never written to: an unpacked layer of an image, what another sandbox left. Not an
 * option: the caller finds them out from an image's or another sandbox's name. */
struct spec_lower {
	char *guest; /* where it lies inside: "/", "/usr" over the host view, or the place of a cow mount */
	char *dir; /* absolute, links resolved */
	uint32_t
		base; /* the first of the 65,536 host ids that own its files; 0: as in a folder of the host */
};

enum spec_on_loss {
	SPEC_ON_LOSS_FREEZE,
	SPEC_ON_LOSS_STOP,
	SPEC_ON_LOSS_CONTINUE,
};
const char *spec_on_loss_name(enum spec_on_loss on_loss); /* "freeze" */

/* Trace sources, as bits. */
#define SPEC_NAME_MAX        256 /* bytes of a name; of a label, and of its value */

#define SPEC_TRACE_PROCESSES 1u
#define SPEC_TRACE_FILES     2u
#define SPEC_TRACE_OUTPUTS   4u
#define SPEC_TRACE_NETWORK   8u
#define SPEC_TRACE_MOUNTS    16u
#define SPEC_TRACE_ALL       31u

struct spec_pair {
	char *key, *value;
};

struct spec {
	char *name, *task, *account, *agent, *work_item;
	char *rootfs; /* NULL: the host view; else an absolute folder */
	char *image; /* the reference as it was asked for: lowers of "/" have nothing below them; NULL: none */
	/* What the caller found in the image: its manifest's digest, its variables (below all others), its labels as
	 * KEY=VALUE. Not options. */
	char *image_digest;
	struct spec_words image_env, image_labels;
	char *workdir; /* where a command starts that names no place and no folder is mounted; NULL: /workspace */
	char *user; /* as whom a command runs that names nobody, as struct spec_exec has it; NULL: root */
	struct spec_lower *lowers; /* of one place topmost first, above what is there otherwise */
	size_t n_lowers;
	char *forked_from; /* id of the sandbox whose files it began with; NULL: none */
	int64_t since_ns; /* wall clock from when on a change in a host folder is the host's; 0: from now on */
	struct spec_mount *mounts;
	size_t n_mounts;
	struct spec_network network;
	struct spec_words env;  /* K=V for every exec, below what it names itself */
	char *profile;          /* name of the agent profile that was used; NULL: none */
	struct spec_words hide; /* patterns, gitignore-like: a name, or a path below a mount */
	struct spec_pair *labels;
	size_t n_labels;
	int64_t memory_bytes; /* 0: no limit of its own, here and below */
	int64_t cpu_milli;    /* thousandths of a CPU */
	int64_t pids_max;
	int64_t disk_bytes;   /* of its layers and change sets together */
	unsigned trace;       /* SPEC_TRACE_*; 0: off */
	int64_t buffer_bytes; /* what the observer may hold in user space */
	enum spec_on_loss on_loss;
	bool record_raw; /* no redaction */
	bool durable;    /* --durability disk: sync exec starts and rows */
	bool keep;       /* the root's layer stays after removal */
	bool full;       /* what is mounted rw is read whole before the first command */
	uid_t owner_uid; /* who asked: SUDO_UID or the caller; owns record and change sets */
	gid_t owner_gid;
};

/* With the defaults of the docs: host view, the usual patterns hidden, no limits, trace off, 64 MiB buffer. */
struct spec *spec_new(void);
void spec_free(struct spec *spec);
SCOPED_TYPE(spec)

void spec_add_mount(struct spec *spec, const char *host, const char *guest,
	enum spec_mount_mode mode, bool internal);
void spec_add_lower(struct spec *spec, const char *guest, const char *dir, uint32_t base);
/* A label that is there already gets the new value. */
void spec_add_label(struct spec *spec, const char *key, const char *value);

/* The wire form, without what is hidden (spec_network.h). A key that is not known is refused. */
void spec_write(struct str *out, const struct spec *spec);
/* The form of meta.json: variables by name only, no stand-ins, a CA by its hash. */
void spec_write_record(struct str *out, const struct spec *spec);
int spec_read(struct slice json, struct spec **ret_spec, struct err *err);
/* A user's own file, onto a spec that holds other values: keys that are there replace, mounts and labels are added;
 * what only Cloche's programs tell each other (lowers, forked_from, since_ns, what an image holds) is refused. Where it fails, some
 * may be in already. */
int spec_apply(struct spec *spec, struct slice json, struct err *err);

/* Checks what can be known without making anything: mounts exist and are not doubled, the rootfs is one
 * (has bin or usr/bin), limits are sane, none shows what is Cloche's own (its state, and what it pins in run_dir).
 * One clear sentence. */
int spec_check(
	const struct spec *spec, const char *state_dir, const char *run_dir, struct err *err);

enum spec_exec_kind {
	SPEC_EXEC_ARGV,
	SPEC_EXEC_SHELL, /* command is given to /bin/sh -c */
};

struct spec_exec {
	struct spec_words argv; /* SPEC_EXEC_ARGV; bytes without NUL */
	char *command;          /* SPEC_EXEC_SHELL; NULL for argv */
	char *cwd;              /* NULL: the sandbox's default */
	struct spec_words env;  /* K=V on top of the clean environment */
	char *user; /* NULL: root inside; a name or uid, either with ":" and a group or gid behind */
	int64_t timeout_ms; /* 0: none */
	bool terminal;
	unsigned short rows, columns;
	bool has_stdin; /* else /dev/null */
	bool detach;
	char *source, *via, *actor; /* "agent", "cli", "uid:1000" */
	char *operation; /* of our own on the sandbox's files ("view"), which argv then tells for people; NULL: a command */
	char *detail; /* of an operation: a JSON object */
};

struct spec_exec *spec_exec_new(void);
void spec_exec_free(struct spec_exec *exec);
SCOPED_TYPE(spec_exec)
void spec_exec_write(struct str *out, const struct spec_exec *exec);
int spec_exec_read(struct slice json, struct spec_exec **ret_exec, struct err *err);
/* Fills in the sandbox's user where the exec names none, adds the sandbox's variables below those that it names, and the stand-ins of secrets above them: a value
 * that is a secret's does not get in by an exec's own variable of that name. */
void spec_exec_inherit(struct spec_exec *exec, const struct spec *spec);

#endif
