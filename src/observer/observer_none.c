/* SPDX-License-Identifier: Apache-2.0 */
/* A build without BPF: nothing can be observed, and everything says so. */
#include "observer/observer.h"

#include <errno.h>

int observer_probe(struct err *err)
{
	return err_set(
		err, -ENOSYS, "this build has no kernel observer (made with -Dbpf=disabled)");
}

int observer_open(
	const struct observer_config *config, struct observer **ret_observer, struct err *err)
{
	witness_free(config->witness);
	return observer_probe(err);
}

void observer_free(struct observer *observer)
{
}

int observer_add_cgroup(struct observer *observer, uint64_t cgroup_id, const char *exec_id,
	bool internal, struct err *err)
{
	return observer_probe(err);
}

void observer_remove_cgroup(struct observer *observer, uint64_t cgroup_id)
{
}

int observer_fd(const struct observer *observer)
{
	return -1;
}

int observer_drain(struct observer *observer, size_t max_records)
{
	return 0;
}

void observer_end(struct observer *observer)
{
}

bool observer_arm(struct observer *observer)
{
	return false;
}

int observer_wait_ms(const struct observer *observer)
{
	return -1;
}

bool observer_is_held(const struct observer *observer)
{
	return false;
}

int observer_drain_exit(struct observer *observer, int deadline_ms)
{
	return 0;
}

void observer_get_counts(const struct observer *observer, struct observer_counts *ret_counts)
{
	*ret_counts = (struct observer_counts){0};
}

int observer_salvage(const char *pin_dir, const char *id, struct event_sink *sink, struct err *err)
{
	return 0;
}
