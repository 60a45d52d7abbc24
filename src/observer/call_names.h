/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OBSERVER_CALL_NAMES_H
#define OBSERVER_CALL_NAMES_H

const char *call_names_find(unsigned nr); /* "openat"; NULL where unknown */

#endif
