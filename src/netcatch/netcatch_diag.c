/* SPDX-License-Identifier: Apache-2.0 */
/* linux/inet_diag.h, proc(5), cgroups(7). */
#include "netcatch/netcatch_diag.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fdio.h"
#include "util/scoped.h"
#include "util/str.h"

#define ANSWER_MAX 4096
#define PROCS_MAX  (1u << 20)
#define FILE_MAX   8192
#define LOOKS_MAX  32768 /* at open files, for one question, some 50 ms: the gateway waits */
#define BESIDE     4
#define PATH_LEN   64
#define LINK_LEN   64

struct found {
	uint64_t inode, group;
	bool has_group;
};

int netcatch_diag_socket(void)
{
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	return sock < 0 ? -errno : sock;
}

/* ---- the socket ---- */

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 what;
};

static bool is_ip4(const uint8_t address[16])
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(address, mapped, sizeof(mapped)) == 0;
}

static void set_address(__be32 to[4], const uint8_t address[16], bool is_ip4)
{
	memcpy(to, address + (is_ip4 ? 12 : 0), is_ip4 ? 4 : 16);
}

/* Exactly one: the kernel looks it up as it would for a packet. For datagrams both ends change places, "for historical
 * reasons". */
static void build(const struct netcatch_key *key, struct question *ret)
{
	bool ip4 = is_ip4(key->dst), is_udp = key->protocol == IPPROTO_UDP;
	struct inet_diag_sockid *id = &ret->what.id;

	*ret = (struct question){.head = {.nlmsg_len = sizeof(*ret),
					 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
					 .nlmsg_flags = NLM_F_REQUEST},
		.what = {.sdiag_family = ip4 ? AF_INET : AF_INET6,
			.sdiag_protocol = (__u8)key->protocol,
			.idiag_states = ~0u,
			.id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};
	set_address(id->idiag_src, is_udp ? key->dst : key->src, ip4);
	set_address(id->idiag_dst, is_udp ? key->src : key->dst, ip4);
	id->idiag_sport = htons(is_udp ? key->dport : key->sport);
	id->idiag_dport = htons(is_udp ? key->sport : key->dport);
}

static void read_attributes(const char *p, size_t left, struct found *found)
{
	while (left >= NLA_HDRLEN) {
		const struct nlattr *attr = (const struct nlattr *)p;
		size_t len = NLA_ALIGN(attr->nla_len);

		if (attr->nla_len < NLA_HDRLEN || attr->nla_len > left)
			return;
		if (attr->nla_type == INET_DIAG_CGROUP_ID &&
			attr->nla_len == NLA_HDRLEN + sizeof(found->group)) {
			memcpy(&found->group, p + NLA_HDRLEN, sizeof(found->group));
			found->has_group = true;
		}
		if (len >= left)
			return;
		p += len;
		left -= len;
	}
}

/* Of what sent from that port, and not of a listener that would have got an answer. */
static bool read_answer(
	const struct netcatch_key *key, const char *p, size_t len, struct found *ret)
{
	const struct nlmsghdr *head = (const struct nlmsghdr *)p;
	const struct inet_diag_msg *m = (const struct inet_diag_msg *)NLMSG_DATA(head);

	if (len < NLMSG_LENGTH(sizeof(*m)) || head->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
		head->nlmsg_len > len || ntohs(m->id.idiag_sport) != key->sport)
		return false;
	if (key->protocol == IPPROTO_TCP && ntohs(m->id.idiag_dport) != key->dport)
		return false;
	*ret = (struct found){.inode = m->idiag_inode};
	read_attributes(p + NLMSG_ALIGN(NLMSG_LENGTH(sizeof(*m))),
		head->nlmsg_len - NLMSG_ALIGN(NLMSG_LENGTH(sizeof(*m))), ret);
	return ret->inode != 0;
}

static bool find_socket(int sock, const struct netcatch_key *key, struct found *ret)
{
	_Alignas(uint64_t) char answer[ANSWER_MAX];
	struct question question;
	ssize_t len;

	build(key, &question);
	if (send(sock, &question, sizeof(question), 0) < 0)
		return false;
	len = recv(sock, answer, sizeof(answer), MSG_DONTWAIT); /* it has answered by then */
	return len > 0 && read_answer(key, answer, (size_t)len, ret);
}

/* ---- who has it ---- */

static bool is_it(uint32_t pid, int fd, uint64_t inode)
{
	char path[PATH_LEN], link[LINK_LEN], want[LINK_LEN];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%u/fd/%d", pid, fd);
	(void)snprintf(want, sizeof(want), "socket:[%llu]", (unsigned long long)inode);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = '\0';
	return strcmp(link, want) == 0;
}

/* Who opens many has them one after the other. */
static bool is_beside_last(struct netcatch_diag *diag, uint64_t inode)
{
	for (int i = 0; diag->pid && i <= BESIDE; i++)
		if (is_it(diag->pid, diag->fd + i, inode)) {
			diag->fd += i;
			return true;
		}
	return false;
}

static bool is_of_process(struct netcatch_diag *diag, uint32_t pid, uint64_t inode, unsigned *looks)
{
	char path[PATH_LEN];
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	++*looks;
	(void)snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	dir = opendir(path);
	while (dir && !found && *looks < LOOKS_MAX && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (entry->d_name[0] == '.')
			continue;
		++*looks;
		found = is_it(pid, fd, inode);
		if (found) {
			diag->pid = pid;
			diag->fd = fd;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

/* In the group of this folder; the youngest process first, since who connects has often just begun. */
static bool is_of_group(struct netcatch_diag *diag, int group_fd, uint64_t inode, unsigned *looks)
{
	scoped_str struct str procs = {0};
	size_t end;

	if (fdio_read_file(group_fd, "cgroup.procs", PROCS_MAX, &procs) < 0)
		return false;
	for (end = procs.len; end > 0 && *looks < LOOKS_MAX;) {
		unsigned long pid;

		end--; /* its newline */
		while (end > 0 && procs.p[end - 1] != '\n')
			end--;
		pid = strtoul(procs.p + end, NULL, 10);
		if (is_of_process(diag, (uint32_t)pid, inode, looks))
			return true;
	}
	return false;
}

/* The folder of a group by its number: one of those below the sandbox's. */
static int open_group(int cgroup_fd, uint64_t group)
{
	scoped_fd int fd = openat(cgroup_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int found = -1;

	if (!dir)
		return -1;
	(void)take_fd(&fd);
	while (found < 0 && (entry = readdir(dir)))
		if (entry->d_ino == group && entry->d_name[0] != '.')
			found = openat(
				cgroup_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	closedir(dir);
	return found;
}

/* All groups below, where the kernel does not tell a socket's. */
static bool is_anywhere(struct netcatch_diag *diag, struct found *found, unsigned *looks)
{
	scoped_fd int fd = openat(diag->cgroup_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool is_found = false;

	if (!dir)
		return false;
	(void)take_fd(&fd);
	while (!is_found && (entry = readdir(dir))) {
		scoped_fd int group = -1;

		if (entry->d_type != DT_DIR || strcmp(entry->d_name, "..") == 0)
			continue;
		group = openat(diag->cgroup_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		is_found = group >= 0 && is_of_group(diag, group, found->inode, looks);
		if (is_found)
			found->group = entry->d_ino;
	}
	closedir(dir);
	return is_found;
}

static bool is_found(struct netcatch_diag *diag, struct found *found)
{
	scoped_fd int group = -1;
	unsigned looks = 0;

	if (found->has_group && is_beside_last(diag, found->inode))
		return true;
	group = found->has_group ? open_group(diag->cgroup_fd, found->group) : -1;
	if (group >= 0 && is_of_group(diag, group, found->inode, &looks))
		return true;
	return is_anywhere(diag, found, &looks); /* handed to a process of another exec */
}

/* ---- what it is called inside ---- */

/* The last of the numbers behind this word: the one of the innermost namespace. */
static uint32_t last_number(const char *text, const char *word)
{
	const char *p = text ? strstr(text, word) : NULL;
	unsigned long number = 0;

	for (p = p ? p + strlen(word) : "\n"; *p == '\t';) {
		char *next;

		number = strtoul(p, &next, 10);
		p = next > p ? next : "\n";
	}
	return (uint32_t)number;
}

static void describe(uint32_t host_pid, struct netcatch_owner *ret_owner)
{
	scoped_str struct str status = {0}, comm = {0};
	char path[PATH_LEN];

	(void)snprintf(path, sizeof(path), "/proc/%u/status", host_pid);
	if (fdio_read_file(AT_FDCWD, path, FILE_MAX, &status) < 0)
		return;
	ret_owner->pid = last_number(status.p, "\nNSpid:");
	ret_owner->host_pid = ret_owner->pid ? host_pid : 0;
	(void)snprintf(path, sizeof(path), "/proc/%u/comm", host_pid);
	if (fdio_read_file(AT_FDCWD, path, FILE_MAX, &comm) == 0 && comm.len > 1)
		(void)snprintf(ret_owner->comm, sizeof(ret_owner->comm), "%.*s", (int)comm.len - 1,
			comm.p);
}

void netcatch_diag_find(struct netcatch_diag *diag, const struct netcatch_key *key,
	struct netcatch_owner *ret_owner)
{
	struct found found;

	*ret_owner = (struct netcatch_owner){0};
	if (diag->sock < 0 || !find_socket(diag->sock, key, &found))
		return;
	if (is_found(diag, &found))
		describe(diag->pid, ret_owner);
	ret_owner->cgroup = found.group;
}
