/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the program that works on a sandbox's files from inside (src/files), and how it ends.
 *
 *   bytes 0-3  "CLF1"
 *   bytes 4-7  length of the head, little endian, at most FILES_WIRE_HEAD_MAX
 *   head       fields: a byte that names it, four of length, the bytes; numbers have eight
 *   content    content_len bytes, of create and upload
 *
 * Its standard output is the answer (a JSON object, or the bytes of a download), its second one the place it used where it
 * worked, else a sentence; its exit code is of enum files_wire_exit. */
#ifndef PROTO_FILES_WIRE_H
#define PROTO_FILES_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"
#include "util/str.h"

#define FILES_WIRE_START    8
#define FILES_WIRE_HEAD_MAX (4u << 20)

enum files_wire_op {
	FILES_WIRE_NONE,
	FILES_WIRE_CREATE,
	FILES_WIRE_VIEW,
	FILES_WIRE_REPLACE,
	FILES_WIRE_LS,
	FILES_WIRE_GLOB,
	FILES_WIRE_GREP,
	FILES_WIRE_UPLOAD,
	FILES_WIRE_DOWNLOAD,
};
/* As the exec log has it: "file_create", "view", "str_replace", ... */
const char *files_wire_name(enum files_wire_op op);
enum files_wire_op files_wire_find(const char *name); /* FILES_WIRE_NONE */

enum files_wire_exit {
	FILES_WIRE_OK = 0,
	FILES_WIRE_INVALID = 2,
	FILES_WIRE_NOT_FOUND,
	FILES_WIRE_EXISTS,
	FILES_WIRE_NOT_FILE,
	FILES_WIRE_NOT_FOLDER,
	FILES_WIRE_FORBIDDEN, /* not a place for this */
	FILES_WIRE_DENIED,    /* root inside may not either */
	FILES_WIRE_NO_SPACE,
	FILES_WIRE_TOO_LARGE,
	FILES_WIRE_NO_MATCH,
	FILES_WIRE_MANY_MATCHES,
	FILES_WIRE_TOO_SLOW,
	FILES_WIRE_CUT,    /* nobody reads on */
	FILES_WIRE_FAILED, /* and all above: it did not come to an end */
};

struct files_wire_request {
	enum files_wire_op op;
	struct slice path, pattern;
	struct slice old_text, new_text;
	struct slice only;             /* grep: pattern of the files to look into */
	int64_t first_line, last_line; /* view, from 1; 0: all */
	int64_t limit;                 /* of bytes or of results */
	int64_t mode;                  /* -1: of the file that was there, else 0644 */
	int64_t content_len;
	bool overwrite, parents, literal, ignore_case;
};

/* Adds start and head; the content comes behind. */
void files_wire_write(struct str *out, const struct files_wire_request *request);
/* The length of the head behind start; -EBADMSG. */
long files_wire_head_len(const char start[FILES_WIRE_START]);
/* Slices of ret point into head. -EBADMSG. */
int files_wire_read(struct slice head, struct files_wire_request *ret);

#endif
