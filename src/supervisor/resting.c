/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/resting.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "control/rest.h"
#include "supervisor/seal_request.h"
#include "util/clock.h"
#include "util/mem.h"
#include "util/path.h"

int resting_find(struct supervisor *sup, struct err *err)
{
	int r = rest_read(sup->dir, &sup->before, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		sup->before = new0(struct rest); /* not a new one, whatever it is */
		return r;
	}
	if (sup->before->is_over || sup->before->is_wanted_gone)
		return err_set(err, -ESHUTDOWN, "it has ended for good");
	sup->first_network = take(&sup->before->first_network);
	sup->rested_ns = sup->before->guest_ns;
	return 0;
}

int resting_open_record(
	struct supervisor *sup, const struct record_config *config, int seal_fd, struct err *err)
{
	scoped_mem char *begun = mem_printf("%s/" REST_BEGUN, sup->dir);
	scoped_fd int fd = open(begun, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? err_set(err, -errno, "make '%s': %m", begun)
	               : record_resume(config, &sup->record, err);

	if (r < 0)
		return r;
	sup->next_row = (int64_t)record_n_rows(sup->record) + 1;
	/* Whoever finds it half-way from here on sees that its end is open. */
	r = seal_request(seal_fd, sup->record, sup->id, RECORD_OPEN);
	return r < 0 ? err_set(err, r, "have the record's head signed in '%s': %m", sup->state_dir)
	             : 0;
}

static int sync_folder(const char *path)
{
	scoped_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

void resting_settle(const char *dir)
{
	scoped_mem char *begun = mem_printf("%s/" REST_BEGUN, dir);

	(void)unlink(begun); /* what stays has gc look once more */
}

int resting_leave(struct supervisor *sup, struct err *err)
{
	scoped_mem char *path = mem_printf("%s/" REST_NAME, sup->dir);
	int r = unlink(path) < 0 ? -errno : sync_folder(sup->dir);

	if (r < 0)
		return err_set(err, r, "remove '%s': %m", path);
	resting_settle(sup->dir);
	return 0;
}

static int sync_files(const char *path)
{
	scoped_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || syncfs(fd) < 0 ? -errno : 0;
}

static int close_sandbox(struct supervisor *sup, bool keeps_range, struct err *err)
{
	scoped_mem char *sock = mem_printf("%s/control.sock", sup->dir);
	int r = keeps_range ? sandbox_keep_range(sup->sandbox) : 0;

	if (r < 0)
		return err_set(err, r, "keep its user ids: %m");
	sandbox_destroy(sup->sandbox, true);
	sandbox_free(take(&sup->sandbox));
	(void)unlink(sock); /* a name that nobody listens at would do no harm */
	return 0;
}

int resting_enter(struct supervisor *sup, bool is_over, struct err *err)
{
	struct rest rest = {.is_over = is_over,
		.id_base = sandbox_id_base(sup->sandbox),
		.first_network = sup->first_network,
		.spec = sup->spec};
	int64_t start_ns = sandbox_start_ns(sup->sandbox);
	int r;

	sandbox_keep_begin(sup->sandbox, sup->spec);
	recorder_flush(sup->recorder, true);
	r = close_sandbox(sup, !is_over, err);
	if (r < 0)
		return r;
	r = sync_files(sup->dir);
	if (r == 0)
		r = sync_files(sup->changes_dir);
	if (r < 0)
		return err_set(err, r, "write its files to the disk: %m");
	sup->rested_ns = rest.guest_ns = clock_mono_ns() - start_ns;
	return rest_write(sup->dir, &rest, err);
}
