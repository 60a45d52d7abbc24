/* SPDX-License-Identifier: Apache-2.0 */
/* Tells HTTP from other bytes, and model APIs from other hosts. */
#include <string.h>
#include <strings.h>

#include "gateway/http_machine.h"

#define MAX_METHOD 32
#define MAX_LINE   1024 /* that is waited for, where its end has to be seen */

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* Whether text begins with word or is the beginning of it. */
static enum http_kind begins(struct slice text, const char *word, enum http_kind kind)
{
	size_t n = strlen(word);

	if (strncasecmp(text.p, word, text.len < n ? text.len : n) != 0)
		return HTTP_KIND_OTHER;
	return text.len < n ? HTTP_KIND_MORE : kind;
}

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "ftp://..." in an HTTP request is for that host, to many servers; in others, as RTSP, it is none of ours. */
static enum http_kind sniff_scheme(struct slice target)
{
	const char *end = memchr(target.p, '\n', target.len);
	size_t n = 0;

	while (n < target.len && is_alpha(target.p[n]))
		n++;
	if (begins((struct slice){.p = target.p + n, .len = target.len - n}, "://",
		    HTTP_KIND_HTTP1) == HTTP_KIND_OTHER)
		return HTTP_KIND_OTHER;
	if (!end)
		return target.len < MAX_LINE ? HTTP_KIND_MORE : HTTP_KIND_OTHER;
	return memmem(target.p, (size_t)(end - target.p), " HTTP/", strlen(" HTTP/"))
	               ? HTTP_KIND_HTTP1
	               : HTTP_KIND_OTHER;
}

static enum http_kind sniff_target(struct slice method, struct slice target)
{
	enum http_kind plain, tls;

	if (!target.len)
		return HTTP_KIND_MORE;
	if (*target.p == '/' || *target.p == '*' || slice_is(method, "CONNECT"))
		return HTTP_KIND_HTTP1;
	plain = begins(target, "http://", HTTP_KIND_HTTP1);
	tls = begins(target, "https://", HTTP_KIND_HTTP1);
	if (plain == HTTP_KIND_HTTP1 || tls == HTTP_KIND_HTTP1)
		return HTTP_KIND_HTTP1;
	return sniff_scheme(target);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* As servers read it that are less strict than we: empty lines before it, a method that nobody knows or in lower
 * case, more than one blank. What is HTTP to any of them must not pass as something else. */
static enum http_kind sniff_line(struct slice first)
{
	size_t from = 0, i, target;

	while (from < first.len && (first.p[from] == '\r' || first.p[from] == '\n'))
		from++;
	if (from == first.len)
		return HTTP_KIND_MORE;
	if (!is_alpha(first.p[from]))
		return HTTP_KIND_OTHER;
	for (i = from; i < first.len && !is_blank(first.p[i]); i++)
		if (i - from >= MAX_METHOD ||
			!http1_is_token((struct slice){.p = first.p + i, .len = 1}))
			return HTTP_KIND_OTHER;
	for (target = i; target < first.len && is_blank(first.p[target]);)
		target++;
	if (target == first.len)
		return HTTP_KIND_MORE;
	return sniff_target((struct slice){.p = first.p + from, .len = i - from},
		(struct slice){.p = first.p + target, .len = first.len - target});
}

enum http_kind http_sniff(struct slice first)
{
	size_t n = sizeof(preface) - 1;

	if (!first.len)
		return HTTP_KIND_MORE;
	if (memcmp(first.p, preface, first.len < n ? first.len : n) == 0)
		return first.len < n ? HTTP_KIND_MORE : HTTP_KIND_HTTP2;
	return sniff_line(first);
}

bool http_is_greeting(struct slice first)
{
	/* SETTINGS of stream 0, of at most 255 bytes. */
	static const char greeting[HTTP_GREETING] = {0, 0, 0, 4, 0, 0, 0, 0, 0};

	for (size_t i = 0; i < first.len && i < HTTP_GREETING; i++)
		if (i == 2 ? (unsigned char)first.p[i] % 6 != 0 : first.p[i] != greeting[i])
			return false;
	return first.len > 0;
}

bool http_is_model_api(const char *host)
{
	static const char *const names[] = {
		/* What begins with '.' or '-' stands for everything that ends so. */
		"api.anthropic.com",
		"api.openai.com",
		"chatgpt.com",
		".openai.azure.com",
		".services.ai.azure.com",
		"generativelanguage.googleapis.com",
		"cloudcode-pa.googleapis.com",
		"aiplatform.googleapis.com",
		"-aiplatform.googleapis.com",
		"openrouter.ai",
		"api.githubcopilot.com",
		".githubcopilot.com",
		"models.github.ai",
		"models.inference.ai.azure.com",
		"api.mistral.ai",
		"codestral.mistral.ai",
		"api.deepseek.com",
		"api.x.ai",
		"api.groq.com",
		"api.together.xyz",
		"api.together.ai",
		"api.fireworks.ai",
		"api.cohere.com",
		"api.perplexity.ai",
		"api.cerebras.ai",
		"api.moonshot.ai",
		"api.moonshot.cn",
		"api.z.ai",
		"dashscope.aliyuncs.com",
		"dashscope-intl.aliyuncs.com",
		"portal.qwen.ai",
		"opencode.ai",
		"router.huggingface.co",
	};
	struct slice name = slice_of(host);

	if (slice_starts(name, "bedrock") && slice_ends(name, ".amazonaws.com"))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (*names[i] == '.' || *names[i] == '-' ? slice_ends(name, names[i])
							 : slice_is(name, names[i]))
			return true;
	return false;
}
