/* SPDX-License-Identifier: Apache-2.0 */
/* Order matters: descriptors first, then ids, which the parent gives; with them the root is attached and entered;
 * then limits and rights go, the filter comes, and only then the first foreign byte is read. */
#include "image/jail_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/parcel.h"
#include "sandbox/caps.h"
#include "sandbox/kmount.h"
#include "util/fdio.h"

/* Where its descriptors are. */
enum {
	AT_IN,
	AT_OUT,
	AT_NULL,
	AT_REPORT,
	AT_GO,
	AT_ROOT,
	AT_END,
};

#define MEMORY_MAX (UINT64_C(1) << 30) /* windows of long ranges take 128 MiB and more */
#define FILES_MAX  64
#define EXIT_BAD   1

#define BIT(cap)   (UINT64_C(1) << (cap))
static const uint64_t owner_rights = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
                                     BIT(CAP_FSETID) | BIT(CAP_SETFCAP);

static int arrange(const struct jail *jail, int go_fd, int report_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int from[AT_END] = {jail->in_fd < 0 ? null : jail->in_fd,
		jail->out_fd < 0 ? null : jail->out_fd, null, report_fd, go_fd, jail->root_fd};

	/* Out of the way first, so that none is overwritten. */
	for (int i = 0; i < AT_END; i++) {
		if (from[i] >= 0)
			from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, AT_END);
		if (from[i] < 0 && i != AT_ROOT)
			return -errno;
	}
	(void)close(AT_ROOT); /* may be an end of our own pipes, which then would not break */
	for (int i = 0; i < AT_END; i++)
		if (from[i] >= 0 && dup2(from[i], i) < 0)
			return -errno;
	return close_range(AT_END, ~0U, 0) < 0 ? -errno : 0;
}

static int become_root(void)
{
	char go;

	if (fdio_read_full(AT_GO, &go, 1) != 1)
		return -ESRCH; /* the parent is gone, or could not give us ids */
	if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
		syscall(SYS_setresuid, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int die_with_parent(void)
{
	struct pollfd go = {.fd = AT_REPORT, .events = 0};

	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	/* Nobody reads the report any more: it died before we asked for the signal. */
	return poll(&go, 1, 0) > 0 && go.revents & POLLERR ? -ESRCH : 0;
}

static int enter_root(const struct jail *jail, struct err *err)
{
	static const struct kmount_option none[] = {{NULL, NULL}};
	int fd = jail->root_fd < 0 ? kmount_new("tmpfs", none, MOUNT_ATTR_RDONLY, err) : AT_ROOT;
	int r;

	if (fd < 0)
		return fd;
	r = kmount_attach(fd, AT_FDCWD, "/");
	if (r < 0 || fchdir(fd) < 0)
		return err_set(err, r < 0 ? r : -errno, "attach its root: %m");
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_set(err, -errno, "enter its root: %m");
	return close_range(AT_GO, ~0U, 0) < 0 ? err_set(err, -errno, "close descriptors: %m") : 0;
}

static int limit(int what, uint64_t value)
{
	struct rlimit most = {.rlim_cur = value, .rlim_max = value};

	return setrlimit((__rlimit_resource_t)what, &most) < 0 ? -errno : 0;
}

static int set_limits(const struct jail *jail)
{
	int r = 0;

#if !defined(__SANITIZE_ADDRESS__) /* which takes all addresses for itself */
	r = limit(RLIMIT_AS, MEMORY_MAX);
#endif
	if (r == 0)
		r = limit(RLIMIT_FSIZE, jail->file_max);
	if (r == 0)
		r = limit(RLIMIT_NOFILE, FILES_MAX);
	return r < 0 ? r : limit(RLIMIT_CORE, 0);
}

static int drop_rights(const struct jail *jail)
{
	int r = jail->may_give_away ? caps_keep(owner_rights) : caps_drop_all();

	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? r : callfilter_set(jail->filter);
}

static int confine(const struct jail *jail, struct err *err)
{
	int r = become_root();

	if (r == 0)
		r = die_with_parent();
	if (r < 0)
		return err_set(err, r, "confine the child: %m");
	r = enter_root(jail, err);
	if (r < 0)
		return r;
	(void)umask(0);
	r = set_limits(jail);
	if (r == 0)
		r = drop_rights(jail);
	return r < 0 ? err_set(err, r, "confine the child: %m") : 0;
}

static void reset_signals(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, fallback = {.sa_handler = SIG_DFL};

	/* The parent handles what a terminal sends, and ends us; what we write to may have gone. */
	(void)sigaction(SIGINT, &ignore, NULL);
	(void)sigaction(SIGHUP, &ignore, NULL);
	(void)sigaction(SIGTERM, &fallback, NULL);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigaction(SIGXFSZ, &ignore, NULL); /* EFBIG says the same */
}

void jail_inside_run(const struct jail *jail, int go_fd, int report_fd)
{
	struct str report = {0};
	struct err err = {0};
	int r = arrange(jail, go_fd, report_fd);

	reset_signals();
	if (r < 0)
		_exit(EXIT_BAD);
	r = confine(jail, &err);
	if (r == 0)
		r = jail->work(jail->ctx, &report, &err);
	if (r < 0) {
		struct str text = {0};

		str_reset(&report);
		str_printf(&text, "%d %s", -r, err.msg);
		parcel_add(&report, PARCEL_FAILED, str_slice(&text));
	}
	r = fdio_write_all(AT_REPORT, report.p, report.len);
	_exit(r < 0 ? EXIT_BAD : 0);
}
