/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions stand in a header that tools/bpf-embed made of the kernel half. Plain bpf(2) and not libbpf, which takes
 * several ms to look over a kernel that this has no questions about (docs/benchmarks.md). */
#include "netcatch/netcatch_load.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "netcatch/netcatch_wire.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/scoped.h"

#define LICENSE "Dual BSD/GPL"
#define LOG_LEN (1u << 20)

/* What can be filled in: maps first, then numbers. */
enum bpf_place_what {
#define PLACE_MAP(name, type, flags, key, value, max) BPF_PLACE_##name,
	NETCATCH_MAPS(PLACE_MAP)
#undef PLACE_MAP
#define PLACE_NUMBER(name) BPF_PLACE_##name,
		NETCATCH_NUMBERS(PLACE_NUMBER)
#undef PLACE_NUMBER
			BPF_N_PLACES
};

struct bpf_place {
	uint32_t insn;
	enum bpf_place_what what;
};

#include "netcatch.code.h"

struct program {
	const char *name;
	enum bpf_prog_type type;
	enum bpf_attach_type attach;
	const struct bpf_insn *code;
	size_t n_insns;
	const struct bpf_place *places;
	size_t n_places;
};

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const struct program programs[NETCATCH_N_PROGRAMS] = {
#define PROGRAM(name, type, attach) \
	{#name, BPF_PROG_TYPE_##type, BPF_##attach, netcatch_##name##_code, \
		LEN(netcatch_##name##_code), netcatch_##name##_places, \
		LEN(netcatch_##name##_places)},
	NETCATCH_PROGRAMS(PROGRAM)
#undef PROGRAM
};

struct map {
	const char *name;
	enum bpf_map_type type;
	uint32_t flags, key, value, max;
};

static const struct map maps[NETCATCH_N_MAPS] = {
#define MAP(name, type, flags, key, value, max) \
	{#name, BPF_MAP_TYPE_##type, flags, key, value, max},
	NETCATCH_MAPS(MAP)
#undef MAP
};

static int call(int command, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

void netcatch_object_init(struct netcatch_object *object)
{
	memset(object, 0xff, sizeof(*object)); /* -1, all of them */
}

static void close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		scoped_close(&fds[i]);
		fds[i] = -1;
	}
}

void netcatch_object_done(struct netcatch_object *object)
{
	close_all(object->links, NETCATCH_N_PROGRAMS);
	close_all(object->programs, NETCATCH_N_PROGRAMS);
	close_all(object->maps, NETCATCH_N_MAPS);
}

/* ---- maps ---- */

/* Storage of sockets has to tell the types of its key, an int, and of its value, here an array of bytes. */
struct types {
	struct btf_header head;
	struct {
		struct btf_type type;
		uint32_t integer;
	} ints[2];
	struct {
		struct btf_type type;
		struct btf_array array;
	} bytes;
	char strings[8];
};

enum { TYPE_INT = 1, TYPE_BYTE, TYPE_BYTES };

static int load_types(size_t value_len)
{
	struct types types = {
		.head = {.magic = BTF_MAGIC,
			.version = BTF_VERSION,
			.hdr_len = sizeof(types.head),
			.type_len = sizeof(types.ints) + sizeof(types.bytes),
			.str_off = sizeof(types.ints) + sizeof(types.bytes),
			.str_len = sizeof(types.strings)},
		.ints = {{{.name_off = 1, .info = BTF_KIND_INT << 24, .size = 4},
				 BTF_INT_SIGNED << 24 | 32},
			{{.name_off = 3, .info = BTF_KIND_INT << 24, .size = 1}, 8}},
		.bytes = {{.info = BTF_KIND_ARRAY << 24},
			{.type = TYPE_BYTE, .index_type = TYPE_INT, .nelems = (uint32_t)value_len}},
		.strings = "\0i\0b",
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.btf = (uintptr_t)&types;
	attr.btf_size = sizeof(types);
	return call(BPF_BTF_LOAD, &attr);
}

static int make_map(const struct map *map)
{
	scoped_fd int types = -1;
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = map->type;
	attr.map_flags = map->flags;
	attr.key_size = map->key;
	attr.value_size = map->value;
	attr.max_entries = map->max;
	(void)snprintf(attr.map_name, sizeof(attr.map_name), "%s", map->name);
	if (map->type == BPF_MAP_TYPE_SK_STORAGE) {
		types = load_types(map->value);
		if (types < 0)
			return types;
		attr.btf_fd = (uint32_t)types;
		attr.btf_key_type_id = TYPE_INT;
		attr.btf_value_type_id = TYPE_BYTES;
	}
	return call(BPF_MAP_CREATE, &attr);
}

int netcatch_load_maps(struct netcatch_object *object, struct err *err)
{
	for (size_t i = 0; i < NETCATCH_N_MAPS; i++) {
		object->maps[i] = make_map(&maps[i]);
		if (object->maps[i] < 0)
			return err_set(err, object->maps[i], "make the map '%s' of the network: %m",
				maps[i].name);
	}
	return 0;
}

/* ---- programs ---- */

static void fill_in(struct bpf_insn *code, const struct program *program,
	const struct netcatch_object *object, const struct netcatch_fields *fields)
{
	for (size_t i = 0; i < program->n_places; i++) {
		const struct bpf_place *place = &program->places[i];
		struct bpf_insn *insn =
			&code[place->insn]; /* a 64-bit load: the number's halves in two */

		if ((int)place->what < NETCATCH_N_MAPS) {
			insn->src_reg = BPF_PSEUDO_MAP_FD;
			insn->imm = object->maps[place->what];
		} else {
			insn->imm = (int32_t)fields->numbers[(int)place->what - NETCATCH_N_MAPS];
		}
	}
}

static union bpf_attr load_attr(const struct program *program, const struct bpf_insn *code)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = program->type;
	attr.expected_attach_type = program->attach;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = (uint32_t)program->n_insns;
	attr.license = (uintptr_t)LICENSE;
	(void)snprintf(attr.prog_name, sizeof(attr.prog_name), "%s", program->name);
	return attr;
}

/* Why the kernel refuses a program is in its log, which costs nothing when nobody looks. */
static void log_refusal(const struct program *program, const struct bpf_insn *code)
{
	union bpf_attr attr = load_attr(program, code);
	scoped_mem char *log = mem_zero(1, LOG_LEN);

	attr.log_buf = (uintptr_t)log;
	attr.log_size = LOG_LEN;
	attr.log_level = 1;
	if (call(BPF_PROG_LOAD, &attr) < 0)
		log_debug("the kernel refuses '%s': %s", program->name, log);
}

static int load_program(const struct program *program, const struct netcatch_object *object,
	const struct netcatch_fields *fields, struct err *err)
{
	scoped_mem struct bpf_insn *code =
		mem_copy(program->code, program->n_insns * sizeof(*code));
	union bpf_attr attr;
	int r;

	fill_in(code, program, object, fields);
	attr = load_attr(program, code);
	r = call(BPF_PROG_LOAD, &attr);
	if (r >= 0)
		return r;
	log_refusal(program, code);
	return err_set(err, r,
		"load the program '%s' of the network (CLOCHE_DEBUG=1 tells more): %m",
		program->name);
}

int netcatch_load(struct netcatch_object *object, const struct netcatch_fields *fields,
	unsigned which, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < NETCATCH_N_PROGRAMS; i++)
		if (which & 1u << i)
			r = object->programs[i] = load_program(&programs[i], object, fields, err);
	return r < 0 ? r : 0;
}

static int make_link(int program_fd, int target_fd, enum bpf_attach_type type)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)program_fd;
	attr.link_create.target_fd = (uint32_t)target_fd;
	attr.link_create.attach_type = type;
	return call(BPF_LINK_CREATE, &attr);
}

int netcatch_attach(struct netcatch_object *object, unsigned which, int netns_fd, int cgroup_fd,
	struct err *err)
{
	for (size_t i = 0; i < NETCATCH_N_PROGRAMS; i++) {
		bool is_netns = programs[i].type == BPF_PROG_TYPE_SK_LOOKUP;

		if (!(which & 1u << i) || programs[i].type == BPF_PROG_TYPE_SOCKET_FILTER)
			continue;
		object->links[i] = make_link(
			object->programs[i], is_netns ? netns_fd : cgroup_fd, programs[i].attach);
		if (object->links[i] < 0)
			return err_set(err, object->links[i],
				"attach the program '%s' of the network: %m", programs[i].name);
	}
	return 0;
}
