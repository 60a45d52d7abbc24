/* SPDX-License-Identifier: Apache-2.0 */
/* cloche-supervisor: not for people. Three ways to be called, all by Cloche's own programs:
 *
 *   cloche-supervisor run ID STATE RUN     one sandbox; descriptors below
 *   cloche-supervisor mend ID STATE RUN    what a dead one left; descriptor SEAL_FD
 *   cloche-supervisor probe STATE CWD      what this host can do, as JSON lines
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "netcatch/netcatch.h"
#include "observer/observer.h"
#include "observer/witness.h"
#include "sandbox/cgroup.h"
#include "sandbox/sandbox.h"
#include "supervisor/rights.h"
#include "supervisor/salvage.h"
#include "supervisor/supervisor.h"
#include "util/fdio.h"
#include "util/id.h"
#include "util/jsonw.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/program.h"

enum {
	CONTROL_FD = 3,
	SPEC_FD = 4,
	SEAL_FD = 5,    /* may be closed: no signer */
	LOCK_FD = 6,    /* of the sandbox's folder: held as long as this process lives */
	SECRETS_FD = 7, /* may be closed: no network */
	TRUST_FD = 8,   /* what the sandbox is to trust (launcher/authority.h); likewise */
	END_FD,
};

#define FD_LIMIT    65536
#define PROBES_MAX  64
#define FAILED      125
#define READER_NICE (-15)
#define FDS_AT_ONCE 512 /* descriptors of a sandbox with some execs */

static int open_init(struct err *err)
{
	scoped_str struct str path = {0};
	int r = program_find("cloche-init", &path, err);
	int fd;

	if (r < 0)
		return r;
	fd = open(path.p, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_set(err, -errno, "open '%s': %m", path.p) : fd;
}

static void host_json(struct str *out)
{
	struct jsonw j = jsonw_to(out);
	struct utsname host;

	uname(&host);
	jsonw_object(&j);
	jsonw_ktext(&j, "name", host.nodename);
	jsonw_ktext(&j, "kernel", host.release);
	jsonw_ktext(&j, "machine", host.machine);
	jsonw_object_end(&j);
}

/* Root inside enters this process's memory through the child that is ours for a moment, unless it is not
 * dumpable; and nothing of whoever started us is to be kept open. */
static void harden(void)
{
	struct rlimit files = {.rlim_cur = FD_LIMIT, .rlim_max = FD_LIMIT};

	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NAME, "cloche-super");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN); /* a terminal's keys are for the command: the cli passes them on */
	signal(SIGQUIT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit of our starter's is an error to tell */
	signal(SIGCHLD, SIG_DFL); /* ignored, it would lose the status of what we wait for */
	(void)setrlimit(RLIMIT_NOFILE,
		&files); /* fewer descriptors: fewer execs at once, said when it comes */
	setsid();
	umask(022);
}

/* On a busy host the reader of the ring must not wait behind what fills it. Not inherited by what runs inside. */
static void go_first(void)
{
	struct sched_param none = {0};

	if (sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none) == 0)
		(void)setpriority(PRIO_PROCESS, 0, READER_NICE); /* refused: as any other process */
}

/* What whoever started cloche had open (a pipe that others wait on) ends for us here. */
static void keep_only_ours(void)
{
	for (int fd = CONTROL_FD; fd < END_FD; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* a closed one is fine */
	(void)close_range(END_FD, ~0u, 0);            /* cannot fail with these */
}

static int if_open(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

static int run(const char *id, const char *state_dir, const char *run_dir)
{
	struct supervisor_config config = {.id = id,
		.state_dir = state_dir,
		.run_dir = run_dir,
		.control_fd = CONTROL_FD,
		.spec_fd = SPEC_FD};
	scoped_str struct str host = {0};
	struct err err;

	go_first();
	keep_only_ours();
	fdio_reserve(FDS_AT_ONCE);
	config.seal_fd = if_open(SEAL_FD);
	config.secrets_fd = if_open(SECRETS_FD);
	config.trust_fd = if_open(TRUST_FD);
	config.init_fd = open_init(&err);
	if (config.init_fd < 0) {
		log_warn("%s", err.msg);
		return FAILED;
	}
	host_json(&host);
	config.host_json = host.p;
	return supervisor_main(&config) < 0 ? FAILED : 0;
}

static int mend(const char *id, const char *state_dir, const char *run_dir)
{
	struct salvage_config config = {
		.id = id, .state_dir = state_dir, .run_dir = run_dir, .seal_fd = if_open(SEAL_FD)};
	struct err err;
	int r;

	keep_only_ours();
	r = rights_keep(RIGHTS_RUNNING, &err); /* it reads what others wrote */
	if (r == 0)
		r = salvage_sandbox(&config, &err);
	if (r == 0)
		return 0;
	if (r != -EBUSY)
		log_warn("%s", err.msg);
	return r == -EBUSY ? 1 : FAILED;
}

static void print_probe(const struct sandbox_probe *probe)
{
	scoped_str struct str line = {0};
	struct jsonw j = jsonw_to(&line);

	jsonw_object(&j);
	jsonw_ktext(&j, "what", probe->what);
	jsonw_kbool(&j, "ok", probe->ok);
	jsonw_kbool(&j, "required", probe->required);
	jsonw_ktext(&j, "detail", probe->detail);
	jsonw_object_end(&j);
	str_putc(&line, '\n');
	fwrite(line.p, 1, line.len, stdout);
}

static void probe_optional(const char *what, int r, const char *good, const struct err *err)
{
	struct sandbox_probe probe = {.what = what, .ok = r == 0, .required = false};

	snprintf(probe.detail, sizeof(probe.detail), "%.250s", r == 0 ? good : err->msg);
	print_probe(&probe);
}

static int try_hooks(struct err *err)
{
	scoped_mem char *name = mem_printf("probe-%d", (int)getpid());
	struct cgroup group;
	int r = cgroup_open(&group, name, &(struct cgroup_limits){0}, err);

	if (r == 0)
		r = netcatch_probe_hooks(group.fd, err);
	cgroup_remove(&group, 0);
	return r;
}

static void probe_network(void)
{
	struct err err, rules_err;
	bool programs = netcatch_probe(&err) == 0;
	int rules = netcatch_probe_rules(&rules_err);

	probe_optional("network (sk_lookup)", programs ? 0 : -EPERM,
		"whatever leaves a sandbox can be led to its gateway: done here", &err);
	probe_optional("network (nftables)", rules,
		programs ? "could take the place of sk_lookup"
			 : "takes the place of sk_lookup here; who connects is looked up "
			   "afterwards and may be missing in records, who listens is not seen",
		&rules_err);
	probe_optional("network (cgroup hooks)", try_hooks(&err),
		"whose a connection is can be told", &err);
}

static int probe(const char *state_dir, const char *cwd)
{
	struct sandbox_probe probes[PROBES_MAX];
	size_t n = sandbox_probe_host(state_dir, cwd, probes, PROBES_MAX);
	struct err err;

	for (size_t i = 0; i < n; i++)
		print_probe(&probes[i]);
	probe_optional("tracing (eBPF)", observer_probe(&err),
		"raw tracepoints with BTF can be attached", &err);
	probe_optional("mounts (fanotify)", witness_probe(&err),
		"opens and closes of mounted files have a witness", &err);
	probe_network();
	return 0;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";

	harden();
	if (strcmp(way, "run") == 0 && argc == 5 && id_is_valid("sb", argv[2]))
		return run(argv[2], argv[3], argv[4]);
	if (strcmp(way, "mend") == 0 && argc == 5 && id_is_valid("sb", argv[2]))
		return mend(argv[2], argv[3], argv[4]);
	if (strcmp(way, "probe") == 0 && argc == 4)
		return probe(argv[2], argv[3]);
	fputs("cloche-supervisor is started by cloche: see `cloche --help`\n", stderr);
	return 2;
}
