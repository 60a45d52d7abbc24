/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel half writes and user space reads: the records in a ring, the groups and slots in maps.
 *
 * A record is one of the structs below and, behind it, bytes whose lengths it tells. A path made by the
 * kernel half is its components, leaf first, each with a NUL behind it: "f\0dir\0" is /dir/f, nothing is
 * the root. Text is what the program passed, with its NUL. Both halves are of the same build: the pins are
 * named by the object's hash, so the layout may change freely. */
#ifndef OBSERVER_WIRE_H
#define OBSERVER_WIRE_H

#include <linux/types.h>

#define WIRE_CALLS_MAX  512       /* system call numbers the kernel half knows */
#define WIRE_SLOTS_MAX  4096      /* sandboxes traced at once on a host */
#define WIRE_GROUPS_MAX 65536     /* cgroups, over all of them */
#define WIRE_RECORD_MAX 32768     /* one record */
#define WIRE_PATH_MAX   8192      /* one path made by the kernel half */
#define WIRE_TEXT_MAX   4096      /* one path that a program passed: PATH_MAX */
#define WIRE_ARGV_MAX   (1 << 18) /* argument bytes kept of one exec */
#define WIRE_ARGV_HEAD  12288     /* of these, in the exec's own record */
#define WIRE_CHUNK_MAX  16384     /* and in each record before it */
#define WIRE_OUTPUT_MAX 4000      /* bytes copied of what a process writes to one stream */
#define WIRE_ID_SIZE    24        /* room for an id and a NUL */
#define WIRE_OPENS_MAX  131072    /* files of watched mounts, open at once, over all sandboxes */
#define WIRE_LOOKS_MAX  16        /* files looked at in one go */

enum wire_kind {
	WIRE_EXEC = 1, /* struct wire_exec: a program started, or a call that failed to */
	WIRE_EXIT,
	WIRE_FORK,
	WIRE_CALL, /* struct wire_call */
	WIRE_REFUSED,
	WIRE_OUTPUT,
	WIRE_TOTALS, /* struct wire_exit: what a program had written that another one replaces */
	WIRE_CHUNK,  /* more arguments of the exec that follows */
	WIRE_CLOSED, /* struct wire_closed */
};

/* head.flags */
#define WIRE_OWN_FILTER \
	(1u << 0) /* the program has a call filter of its own: results may be made up */
#define WIRE_SHARED_MM (1u << 1) /* somebody else can write to the memory that held the text */
#define WIRE_ENTERED   (1u << 2) /* in the box, but of no cgroup of it */
#define WIRE_COMPAT    (1u << 3) /* a 32-bit call: nr is of that table */
#define WIRE_CUT1      (1u << 4) /* the first path ends before the root */
#define WIRE_CUT2      (1u << 5)
#define WIRE_DELETED1  (1u << 6) /* the first path's file has no name any more */
#define WIRE_INTERNAL1 (1u << 7) /* it lies on a mount that is nowhere: memory, a pipe, a socket */
#define WIRE_FILE      (1u << 8) /* base1 is the file itself, there is no text */
#define WIRE_LOST_TEXT (1u << 9) /* the text was not there to be read */
#define WIRE_ARGV_CUT  (1u << 10)
#define WIRE_X32       (1u << 11) /* a call of the x32 table */
#define WIRE_MOUNT     (1u << 12) /* the file lies on a mount that is watched */

struct wire_head {
	__u64 ns;   /* CLOCK_MONOTONIC */
	__u32 exec; /* number that user space gave the group */
	__u32 pid;  /* as the box numbers it; 0: not in there */
	__u32 task;
	__u32 host_pid;
	__u32 lost; /* of the slot, when this was made */
	__s32 ret;
	__u32 flags;
	__u16 nr;
	__u8 kind;
	__u8 pad;
};
_Static_assert(sizeof(struct wire_head) == 40, "wire_head");

struct wire_call {
	struct wire_head head;
	__u64 arg[2]; /* what the table of calls names: flags, mode, size */
	__u32 fmode;  /* of the file, where there is one */
	__u16 imode;
	__u8 skip[2]; /* of the text, where /proc/self/fd/N stood for base */
	__u16 base_len[2];
	__u16 text_len[2];
	__u16 again_len[2]; /* with WIRE_SHARED_MM: the texts once more, read a little later */
	__u16 pad[2];
	/* With WIRE_MOUNT: the open file, which is counted from here on (0: there was no room to), and its inode.
	 * Numbers to compare, never to use as addresses. */
	__u64 file, inode;
};
_Static_assert(sizeof(struct wire_call) == 96, "wire_call");

struct wire_exec {
	struct wire_head head;
	__u64 argv_bytes; /* all of them, with their NULs */
	__u32 argc;
	__u32 kuid; /* host's number */
	__u32 ppid;
	__u16 path_len; /* of a program that started; else text */
	__u16 cwd_len;
	__u16 argv_len; /* in this record */
	__u8 skip;
	__u8 pad;
	__u32 chunks_len; /* in those before */
	__u64 file[2];    /* inodes at its descriptors 1 and 2 */
	__u64 inode;      /* with WIRE_MOUNT: of the program's file, as in wire_call */
};
_Static_assert(sizeof(struct wire_exec) == 96, "wire_exec");

struct wire_chunk {
	struct wire_head head;
	__u32 offset; /* in the argument bytes */
	__u32 len;
};
_Static_assert(sizeof(struct wire_chunk) == 48, "wire_chunk");

struct wire_exit {
	struct wire_head head; /* ret: as wait(2) gives it */
	__u64 written[2];      /* to its streams, not told yet */
	__u64 file[2];         /* inodes */
};
_Static_assert(sizeof(struct wire_exit) == 72, "wire_exit");

struct wire_fork {
	struct wire_head head;
	__u32 child;
	__u32 is_thread;
};
_Static_assert(sizeof(struct wire_fork) == 48, "wire_fork");

struct wire_refused {
	struct wire_head head;
	__u64 args[6];
};
_Static_assert(sizeof(struct wire_refused) == 88, "wire_refused");

struct wire_output {
	struct wire_head head;
	__u64 written;
	__u64 file;   /* inode */
	__u32 stream; /* 0: descriptor 1, 1: descriptor 2 */
	__u32 len;
};
_Static_assert(sizeof(struct wire_output) == 64, "wire_output");

/* Value of the map of cgroups: whose this one is. */
#define WIRE_GROUP_INTERNAL  (1u << 0)
#define WIRE_GROUP_PROCESSES (1u << 1)
#define WIRE_GROUP_FILES     (1u << 2)
#define WIRE_GROUP_OUTPUTS   (1u << 3)
#define WIRE_GROUP_MOUNTS    (1u << 4)
struct wire_group {
	__u64 dropped; /* records that found no room */
	__u32 slot;
	__u32 exec;
	__u32 flags;
	__u32 filters; /* call filters that make one too many: those at the first exec, and one. 0: not known yet */
	char id[WIRE_ID_SIZE];
};
_Static_assert(sizeof(struct wire_group) == 48, "wire_group");

/* What was read and written through one open file. */
struct wire_count {
	__u64 read, written;
	__u32 flags; /* WIRE_COUNT_* */
	__u32 pad;
};
#define WIRE_COUNT_MAPPED_READ  (1u << 0) /* also through memory, which is not counted */
#define WIRE_COUNT_MAPPED_WRITE (1u << 1)
#define WIRE_COUNT_CLONED       (1u << 2) /* its blocks were shared with another file's */
#define WIRE_COUNT_ASYNC        (1u << 3) /* also by io_submit(2), which is not counted */

/* Value of the map of open files, by the address of the kernel's file object. One that is told stays in the map
 * until its address is used again, its sandbox ends, or so many were told that user space clears them away. */
struct wire_open {
	__u64 opened_ns; /* head.ns of the record that told it; 0: told to be closed */
	__u64 inode;
	struct wire_count count;
	__u32 slot;
	__u32 pad;
};
_Static_assert(sizeof(struct wire_open) == 48, "wire_open");

/* The file object of a file is used for another one: so it is closed. */
struct wire_closed {
	struct wire_head head;
	__u64 file, opened_ns;
	struct wire_count count;
};
_Static_assert(sizeof(struct wire_closed) == 80, "wire_closed");

/* What user space asks about files, and the answers: the context of a program that it runs. */
enum wire_look_what {
	WIRE_LOOK_NONE,
	WIRE_LOOK_INODE, /* in: a descriptor of ours, as file. Out: inode */
	WIRE_LOOK_FILE, /* in: file and opened_ns. Out: state, and of one that is closed the count */
	WIRE_LOOK_END,  /* the same, and it is no longer counted though it be open */
};
enum wire_look_state {
	WIRE_LOOK_OPEN,
	WIRE_LOOK_CLOSED,
	WIRE_LOOK_GONE, /* a record tells of it, or did */
};
struct wire_look_item {
	__u64 file, opened_ns, inode;
	struct wire_count count;
	__u32 what, state;
};
_Static_assert(sizeof(struct wire_look_item) == 56, "wire_look_item");
struct wire_look {
	struct wire_look_item items[WIRE_LOOKS_MAX];
};

/* Value of the map of slots, mapped by user space: one cache line each. */
struct wire_slot {
	__u32 armed;   /* user space sleeps: wake it */
	__u32 pressed; /* it was told that the ring fills */
	__u64 dropped; /* over all groups */
	__u32 high;    /* bytes waiting that are worth a wake */
	__u32 level;   /* of the box's pid namespace, once a program has started in it */
	__s64 start_ns;
	__u32 id_base; /* the host's number for uid 0 of the box */
	__u32 pid_ns;
	__u32 mnt_ns;
	char id[WIRE_ID_SIZE - 4];
};
_Static_assert(sizeof(struct wire_slot) == 64, "wire_slot");

#endif
