/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/http_problem.h"

#include "util/jsonw.h"

const char *http_problem_title(unsigned status)
{
	static const struct {
		unsigned status;
		const char *title;
	} titles[] = {
		{400, "Bad Request"},
		{403, "Forbidden"},
		{417, "Expectation Failed"},
		{421, "Misdirected Request"},
		{431, "Request Header Fields Too Large"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		if (titles[i].status == status)
			return titles[i].title;
	return "Refused";
}

/* By the rules of the sandbox, not by the server: those are told apart by what an agent should do next. */
static bool is_by_rule(unsigned status)
{
	return status == 403 || status == 421;
}

static void add_detail(struct str *out, const struct http_problem *p)
{
	if (is_by_rule(p->status)) {
		str_puts(out, "This request was refused by this sandbox's network rules");
		str_printf(out, p->host ? " for the host %s. " : "%s. ", p->host ? p->host : "");
	} else {
		str_puts(
			out, "This answer comes from the sandbox's gateway, not from the server. ");
	}
	str_puts(out, p->reason);
	if (out->len && out->p[out->len - 1] != '.')
		str_putc(out, '.');
	if (is_by_rule(p->status))
		str_puts(out,
			" Retrying will not help: nothing inside the sandbox can change the rules. "
			"Go on without it, or tell the user what was refused.");
}

void http_problem_write(struct str *out, const struct http_problem *p)
{
	scoped_str struct str detail = {0};
	struct jsonw j = jsonw_to(out);

	add_detail(&detail, p);
	jsonw_object(&j);
	jsonw_ktext(&j, "type",
		is_by_rule(p->status) ? "urn:cloche:refused-by-sandbox" : "urn:cloche:gateway");
	jsonw_ktext(&j, "title",
		is_by_rule(p->status) ? "Refused by this sandbox's rules"
				      : http_problem_title(p->status));
	jsonw_kint(&j, "status", p->status);
	jsonw_kslice(&j, "detail", str_slice(&detail));
	if (p->host)
		jsonw_ktext(&j, "host", p->host);
	if (p->rule && *p->rule)
		jsonw_ktext(&j, "rule", p->rule);
	jsonw_object_end(&j);
	str_putc(out, '\n');
}
