/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/handover.h"
#include "util/aside.h"
#include "util/fdio.h"
#include "util/mem.h"
#include "util/path.h"
#include "util/program.h"

extern char **environ;

/* Where cloche-supervisor expects its descriptors: see its main.c. */
enum {
	CONTROL_AT = 3,
	SPEC_AT,
	SEAL_AT,
	LOCK_AT,
	SECRETS_AT,
	TRUST_AT,
	END_AT,
};
#define N_GIVEN       (END_AT - CONTROL_AT)

#define LOCK_TRIES    100
#define LOCK_PAUSE_NS 20000000

static int make_folder(const char *state_dir, const char *name, mode_t mode, struct err *err)
{
	scoped_mem char *path = mem_printf("%s%s%s", state_dir, *name ? "/" : "", name);

	if (mkdir(path, mode) == 0)
		return chmod(path, mode) < 0 ? -errno : 0; /* whatever the umask took */
	if (errno == EEXIST)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return err_set(err, -errno,
			"make '%s': %m: Cloche needs root on the host, so run it with sudo", path);
	return err_set(err, -errno, "make '%s': %m", path);
}

int launch_make_state(const char *state_dir, struct err *err)
{
	static const struct {
		const char *name;
		mode_t mode;
	} folders[] = {{"", 0711}, {"sandboxes", 0700}, {"changes", 0711},
		{"records", 0755}}; /* users look up their own by prefix, and `last` */
	scoped_mem char *above = mem_dup(state_dir);
	char *slash = strrchr(above, '/');
	int r = 0;

	if (slash && slash != above) {
		*slash = '\0';
		(void)path_make_all(above, 0755); /* what is missing shows in the next step */
	}
	for (size_t i = 0; r == 0 && i < sizeof(folders) / sizeof(folders[0]); i++)
		r = make_folder(state_dir, folders[i].name, folders[i].mode, err);
	return r;
}

/* Root's, change sets too: whoever may rename things in one chooses what apply writes as root. Users read what
 * changed in their record. */
static int make_own_folder(const char *state_dir, const char *kind, const char *id, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/%s/%s", state_dir, kind, id);

	return mkdir(path, 0700) < 0 ? err_set(err, -errno, "make '%s': %m", path) : 0;
}

/* Held from before the supervisor is there until it is gone: gc leaves a locked folder alone. */
static int take_lock(const char *state_dir, const char *id, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/sandboxes/%s/lock", state_dir, id);
	scoped_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, -errno, "lock '%s': %m", path);
	return take_fd(&fd);
}

/* Without making it: one that has no folder has nothing to lock. */
static int try_lock(const char *state_dir, const char *id)
{
	scoped_mem char *path = mem_printf("%s/sandboxes/%s/lock", state_dir, id);
	scoped_fd int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return fdio_is_at(fd, AT_FDCWD, path) ? take_fd(&fd) : -ENOENT;
}

static int spec_file(const struct spec *spec, struct err *err)
{
	scoped_fd int fd = memfd_create("spec", MFD_CLOEXEC);
	scoped_str struct str text = {0};
	int r;

	if (fd < 0)
		return err_set(err, -errno, "make a memory file: %m");
	spec_write(&text, spec);
	r = fdio_write_all(fd, text.p, text.len);
	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, r < 0 ? r : -errno, "write the spec: %m");
	return take_fd(&fd);
}

/* All of from[] lie behind END_AT, so that no dup2 lands on one that is still wanted. */
static int spawn(char *const argv[], int stdout_fd, const int from[N_GIVEN], pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	int r;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, stdout_fd < 0 ? 0 : stdout_fd, 1);
	/* A supervisor that held our stderr would keep a pipeline waiting after we are gone. */
	if (!getenv("CLOCHE_DEBUG"))
		posix_spawn_file_actions_adddup2(&actions, 0, 2);
	for (int i = 0; i < N_GIVEN; i++)
		if (from[i] >= 0)
			posix_spawn_file_actions_adddup2(&actions, from[i], CONTROL_AT + i);
	r = posix_spawn(ret_pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int above(int *fd)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, END_AT);

	if (high < 0)
		return -errno;
	close(*fd);
	*fd = high;
	return 0;
}

static int open_sockets(int control[2], int seal[2], struct err *err)
{
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, seal) < 0)
		return err_set(err, -errno, "make sockets: %m");
	r = above(&control[1]);
	if (r == 0)
		r = above(&seal[1]);
	return r < 0 ? err_set(err, r, "move a descriptor: %m") : 0;
}

struct start {
	const char *state_dir, *run_dir;
	const struct spec *spec;
	int lock;
	struct handover handover;
};

static int start_process(const struct start *start, struct launch *launch, struct err *err)
{
	scoped_str struct str program = {0};
	scoped_fd int spec_fd = -1, control = -1, seal = -1, control_far = -1, seal_far = -1;
	int pair[2] = {-1, -1}, seal_pair[2] = {-1, -1};
	int r = program_find("cloche-supervisor", &program, err);

	if (r == 0)
		r = open_sockets(pair, seal_pair, err);
	control = pair[0];
	control_far = pair[1];
	seal = seal_pair[0];
	seal_far = seal_pair[1];
	if (r == 0)
		r = spec_fd = spec_file(start->spec, err);
	if (r < 0 || (r = above(&spec_fd)) < 0)
		return r;
	r = spawn((char *[]){program.p, (char *)"run", launch->id, (char *)start->state_dir,
			  (char *)start->run_dir, NULL},
		-1,
		(int[N_GIVEN]){control_far, spec_fd, seal_far, start->lock,
			start->handover.secrets_fd, start->handover.trust_fd},
		&launch->pid);
	if (r < 0)
		return err_set(err, r, "start '%s': %m", program.p);
	launch->control_fd = take_fd(&control);
	launch->seal_fd = take_fd(&seal);
	return 0;
}

/* Makes the folders and takes the lock with all of them shared, so that nobody who holds them exclusively
 * (mend.c) meets one that is not locked yet. */
static int make_folders(const char *state_dir, const char *id, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/sandboxes", state_dir);
	scoped_fd int all = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (all < 0 || flock(all, LOCK_SH) < 0)
		return err_set(err, -errno, "lock '%s': %m", path);
	r = make_own_folder(state_dir, "sandboxes", id, err);
	if (r == 0)
		r = make_own_folder(state_dir, "changes", id, err);
	return r < 0 ? r : take_lock(state_dir, id, err);
}

static void remove_folders(const char *state_dir, const char *id)
{
	scoped_mem char *sandbox = mem_printf("%s/sandboxes/%s", state_dir, id);
	scoped_mem char *changes = mem_printf("%s/changes/%s", state_dir, id);
	scoped_mem char *trash = mem_printf("%s/trash", state_dir);
	scoped_mem char *name = mem_printf("%s.changes", id);

	/* What stays is gc's. */
	(void)aside_remove(trash, changes, name, NULL);
	(void)aside_remove(trash, sandbox, id, "lock");
}

/* The name is that of the folder that holds the tree. */
static void add_layer_name(struct str *out, const char *dir)
{
	const char *end = strrchr(dir, '/'), *start = end;

	while (start > dir && start[-1] != '/')
		start--;
	str_add(out, start, (size_t)(end - start));
	str_putc(out, '\n');
}

static int write_layers(
	const char *state_dir, const char *id, const struct spec *spec, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/sandboxes/%s/" LAUNCH_LAYERS, state_dir, id);
	scoped_str struct str text = {0};
	scoped_fd int fd = -1;
	int r;

	if (spec->n_lowers == 0)
		return 0;
	for (size_t i = 0; i < spec->n_lowers; i++)
		add_layer_name(&text, spec->lowers[i].dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : fdio_write_all(fd, text.p, text.len);
	return r < 0 ? err_set(err, r, "write '%s': %m", path) : 0;
}

/* launch->id is set; its folders are there, and locked. */
static int start_in(struct start *start, struct launch *launch, struct err *err)
{
	int r = above(&start->lock);

	if (r < 0)
		return err_set(err, r, "move a descriptor: %m");
	r = handover_open(&start->handover, &start->spec->network, END_AT, err);
	if (r == 0)
		r = start_process(start, launch, err);
	/* Where it fails the supervisor finds nothing in the pipe and says so in its answer. */
	if (r == 0)
		(void)handover_fill(&start->handover, launch->id, NULL);
	handover_done(&start->handover);
	return r;
}

int launch_start(const char *state_dir, const char *run_dir, const struct spec *spec,
	struct launch *ret_launch, struct err *err)
{
	struct launch launch = {.control_fd = -1, .seal_fd = -1};
	struct start start = {.state_dir = state_dir,
		.run_dir = run_dir,
		.spec = spec,
		.handover = HANDOVER_NONE};
	int r;

	id_new("sb", launch.id);
	r = start.lock = make_folders(state_dir, launch.id, err);
	if (r >= 0)
		r = write_layers(state_dir, launch.id, spec, err);
	if (r >= 0)
		r = start_in(&start, &launch, err);
	scoped_close(&start.lock);
	if (r < 0)
		remove_folders(state_dir, launch.id);
	else
		*ret_launch = launch;
	return r;
}

int launch_again(const char *state_dir, const char *run_dir, const char *id, int lock_fd,
	const struct spec *spec, struct launch *ret_launch, struct err *err)
{
	struct launch launch = {.control_fd = -1, .seal_fd = -1};
	struct start start = {.state_dir = state_dir,
		.run_dir = run_dir,
		.spec = spec,
		.lock = fcntl(lock_fd, F_DUPFD_CLOEXEC, END_AT),
		.handover = HANDOVER_NONE};
	int r;

	if (start.lock < 0)
		return err_set(err, -errno, "copy a descriptor: %m");
	(void)memccpy(launch.id, id, '\0', sizeof(launch.id) - 1);
	r = start_in(&start, &launch, err);
	scoped_close(&start.lock);
	if (r == 0)
		*ret_launch = launch;
	return r;
}

/* Those who look whether it is locked have it for a moment too. */
int launch_lock(const char *state_dir, const char *id, struct err *err)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
	int fd = -EBUSY;

	for (int i = 0; i < LOCK_TRIES && fd == -EBUSY; i++) {
		if (i > 0)
			(void)nanosleep(&pause, NULL);
		fd = try_lock(state_dir, id);
	}
	if (fd == -EBUSY)
		return err_set(err, fd, "another resume, fork or rm of it is at work: try again");
	return fd < 0 ? err_set(err, fd, "lock the folder of sandbox %s: %m", id) : fd;
}

#define HELPER_ARGS 8

int launch_helper(char *const args[], int seal_fd, int stdout_fd, pid_t *ret_pid, struct err *err)
{
	scoped_str struct str program = {0};
	scoped_fd int seal = seal_fd < 0 ? -1 : fcntl(seal_fd, F_DUPFD_CLOEXEC, END_AT);
	char *argv[HELPER_ARGS + 2] = {0};
	int r = program_find("cloche-supervisor", &program, err);

	if (r < 0)
		return r;
	argv[0] = program.p;
	for (size_t i = 0; i < HELPER_ARGS && args[i]; i++)
		argv[i + 1] = args[i];
	r = spawn(argv, stdout_fd, (int[N_GIVEN]){-1, -1, seal, -1, -1, -1}, ret_pid);
	return r < 0 ? err_set(err, r, "start '%s': %m", program.p) : 0;
}
