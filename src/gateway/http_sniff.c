/* SPDX-License-Identifier: Apache-2.0 */
/* Tells HTTP from other bytes, and model APIs from other hosts. */
#include <strings.h>

#include "gateway/http_machine.h"

#define MAX_METHOD 32

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* Whether text begins with word or is the beginning of it. */
static enum http_kind begins(struct slice text, const char *word, enum http_kind kind)
{
	size_t n = strlen(word);

	if (strncasecmp(text.p, word, text.len < n ? text.len : n) != 0)
		return HTTP_KIND_OTHER;
	return text.len < n ? HTTP_KIND_MORE : kind;
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
	return plain == HTTP_KIND_MORE || tls == HTTP_KIND_MORE ? HTTP_KIND_MORE : HTTP_KIND_OTHER;
}

enum http_kind http_sniff(struct slice first)
{
	size_t n = sizeof(preface) - 1, i;

	if (!first.len)
		return HTTP_KIND_MORE;
	if (memcmp(first.p, preface, first.len < n ? first.len : n) == 0)
		return first.len < n ? HTTP_KIND_MORE : HTTP_KIND_HTTP2;
	for (i = 0; i < first.len && first.p[i] != ' '; i++)
		if (i >= MAX_METHOD ||
			((first.p[i] < 'A' || first.p[i] > 'Z') && first.p[i] != '-'))
			return HTTP_KIND_OTHER;
	if (i == first.len)
		return HTTP_KIND_MORE;
	return sniff_target((struct slice){.p = first.p, .len = i},
		(struct slice){.p = first.p + i + 1, .len = first.len - i - 1});
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
