/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/claims.h"

#include <stdlib.h>

#include "util/mem.h"

struct claims {
	struct claim list[CLAIMS_MAX];
	size_t n;
};

struct claims *claims_new(void)
{
	return new0(struct claims);
}

void claims_free(struct claims *claims)
{
	if (!claims)
		return;
	for (size_t i = 0; i < claims->n; i++)
		free(claims->list[i].path);
	free(claims);
}

static void remove_at(struct claims *claims, size_t i)
{
	free(claims->list[i].path);
	claims->list[i] = claims->list[--claims->n];
}

bool claims_open(struct claims *claims, struct slice path, const struct claim *claim)
{
	if (claims->n == CLAIMS_MAX)
		return false;
	claims->list[claims->n] = *claim;
	claims->list[claims->n++].path = mem_copy(path.p, path.len);
	return true;
}

static bool is_at_or_below(struct slice name, struct slice path)
{
	return name.len >= path.len && memcmp(name.p, path.p, path.len) == 0 &&
	       (name.len == path.len || name.p[path.len] == '/');
}

void claims_settle(struct claims *claims, struct slice path)
{
	for (size_t i = claims->n; i-- > 0;)
		if (is_at_or_below(slice_of(claims->list[i].path), path))
			remove_at(claims, i);
}

bool claims_pop(struct claims *claims, int64_t before_ns, uint32_t exec, struct claim *ret_claim)
{
	for (size_t i = 0; i < claims->n; i++) {
		const struct claim *claim = &claims->list[i];

		if (claim->looked_ns >= before_ns && (exec == 0 || claim->exec != exec))
			continue;
		*ret_claim = *claim;
		ret_claim->path = NULL;
		remove_at(claims, i);
		return true;
	}
	return false;
}
