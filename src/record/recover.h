/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over a record whose writer died. */
#ifndef RECORD_RECOVER_H
#define RECORD_RECOVER_H

#include "record/record_internal.h"

/* record->dirfd is open, all else empty. Takes the lock (-EBUSY while another has it), moves what is torn to
 * torn.bin, sets both journals to go on behind their last whole line, enters lost numbers as gaps. */
int recover_record(struct record *record, struct err *err);

#endif
