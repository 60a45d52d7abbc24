/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the agent in the programs of an exec, and the commands right under it, by the rules that
 * view/command_list.h tells. Pure: looks only at the tree. */
#ifndef VIEW_AGENT_FIND_H
#define VIEW_AGENT_FIND_H

#include "view/process_tree.h"

/* Programs, in no order. */
struct agent_find_nodes {
	const struct process_node **items;
	size_t n, cap;
};
void agent_find_done(struct agent_find_nodes *nodes);

/* Adds the programs under root (one of an exec's first) that are commands of its agent; none where there is
 * no agent. agent: the name that the exec was started with, or empty. */
void agent_find_commands(
	const struct process_node *root, struct slice agent, struct agent_find_nodes *ret_nodes);

#endif
