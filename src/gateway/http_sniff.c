/* SPDX-License-Identifier: Apache-2.0 */
/* Tells HTTP from other bytes, and model APIs from other hosts. */
#include <string.h>
#include <strings.h>

#include "gateway/http_machine.h"

#define MAX_METHOD 32
#define MAX_LINE \
	2048 /* that is waited for, where its end has to be seen; a longer one is none of another protocol */

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* What a load balancer says in front of a request, in its two versions: a server that reads it takes what follows. */
static const char *const preambles[] = {"PROXY TCP", "PROXY UNKNOWN"};
static const char binary_preamble[] = {
	'\r', '\n', '\r', '\n', 0, '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};

/* Whether text begins with word or is the beginning of it. */
static enum http_kind begins(struct slice text, const char *word, enum http_kind kind)
{
	size_t n = strlen(word);

	if (strncasecmp(text.p, word, text.len < n ? text.len : n) != 0)
		return HTTP_KIND_OTHER;
	return text.len < n ? HTTP_KIND_MORE : kind;
}

/* Between words, to one server or another (RFC 9112, 3; Python splits at the rest). */
static bool is_blank(char c)
{
	unsigned char u = (unsigned char)c;

	return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n') || (u >= 0x1c && u <= 0x1f) ||
	       u == 0x85 || u == 0xa0;
}

static bool is_control(char c)
{
	return ((unsigned char)c < ' ' || c == 0x7f) && !is_blank(c) && c != '\n';
}

/* A line whose last word is "HTTP/" and a version. */
static bool names_version(struct slice line)
{
	static const char version[] = "HTTP/";
	size_t n = sizeof(version) - 1;

	for (size_t i = 1; i + n <= line.len; i++)
		if (is_blank(line.p[i - 1]) && strncasecmp(line.p + i, version, n) == 0)
			return true;
	return false;
}

/* Other text is not waited for: methods are words in capitals. */
static bool may_be_method(struct slice word)
{
	bool has_letter = false;

	if (word.len > MAX_METHOD || !http1_is_token(word))
		return false;
	for (size_t i = 0; i < word.len; i++) {
		if (word.p[i] >= 'a' && word.p[i] <= 'z')
			return false;
		has_letter |= word.p[i] >= 'A' && word.p[i] <= 'Z';
	}
	return has_letter;
}

/* Where the first words do not say it the end of the line does. */
static enum http_kind sniff_end(struct slice line, struct slice method)
{
	const char *end = memchr(line.p, '\n', line.len);
	size_t n = end ? (size_t)(end - line.p) : line.len;

	for (size_t i = 0; i < n; i++)
		if (is_control(line.p[i]))
			return HTTP_KIND_OTHER;
	if (end)
		return names_version((struct slice){.p = line.p, .len = n}) ? HTTP_KIND_HTTP1
		                                                            : HTTP_KIND_OTHER;
	if (!may_be_method(method))
		return HTTP_KIND_OTHER;
	return line.len < MAX_LINE ? HTTP_KIND_MORE : HTTP_KIND_HTTP1;
}

/* "0032git-upload-pack /path": a packet of git's own protocol, which goes on with a NUL. */
static bool is_packet(struct slice method)
{
	return method.len > 8 && memcmp(method.p + 4, "git-", 4) == 0 &&
	       strspn(method.p, "0123456789abcdef") >= 4;
}

static enum http_kind sniff_target(struct slice line, struct slice method, struct slice target)
{
	enum http_kind plain, tls;

	if (*target.p == '\n')
		return sniff_end(line, method);
	if (slice_is(method, "CONNECT"))
		return HTTP_KIND_HTTP1;
	if ((*target.p == '/' || *target.p == '*') && !is_packet(method))
		return HTTP_KIND_HTTP1;
	plain = begins(target, "http://", HTTP_KIND_HTTP1);
	tls = begins(target, "https://", HTTP_KIND_HTTP1);
	if (plain == HTTP_KIND_HTTP1 || tls == HTTP_KIND_HTTP1)
		return HTTP_KIND_HTTP1;
	return sniff_end(line, method);
}

/* The beginning of a line in which no word has ended. */
static enum http_kind sniff_word(struct slice line)
{
	bool has_more = false;

	for (size_t i = 0; i < line.len; i++)
		has_more |= line.p[i] < '0' || line.p[i] > '9'; /* than digits */
	return has_more && line.len <= MAX_METHOD && http1_is_token(line) ? HTTP_KIND_MORE
	                                                                  : HTTP_KIND_OTHER;
}

/* As servers read it that are less strict than we: empty lines and blanks before it, a method that nobody knows or in
 * lower case, blanks of other kinds or more than one, a target that is none. What is HTTP to any of them must not pass
 * as something else. */
static enum http_kind sniff_line(struct slice first)
{
	size_t from = 0, i, target;
	struct slice line, method;

	while (from < first.len && (is_blank(first.p[from]) || first.p[from] == '\n'))
		from++;
	line = (struct slice){.p = first.p + from, .len = first.len - from};
	if (!line.len)
		return HTTP_KIND_MORE;
	for (i = 0; i < line.len && !is_blank(line.p[i]) && line.p[i] != '\n';)
		i++;
	if (i == line.len)
		return sniff_word(line);
	method = (struct slice){.p = line.p, .len = i};
	for (target = i; target < line.len && is_blank(line.p[target]);)
		target++;
	if (!http1_is_token(method) || method.len > MAX_METHOD)
		return sniff_end(line, method);
	if (target == line.len)
		return HTTP_KIND_MORE;
	return sniff_target(
		line, method, (struct slice){.p = line.p + target, .len = line.len - target});
}

/* Programs have no reason to say it, and no request behind it would be read. */
static enum http_kind sniff_preamble(struct slice first)
{
	size_t n = sizeof(binary_preamble);

	if (memcmp(first.p, binary_preamble, first.len < n ? first.len : n) == 0)
		return first.len < n ? HTTP_KIND_MORE : HTTP_KIND_HTTP1;
	for (size_t i = 0; i < sizeof(preambles) / sizeof(preambles[0]); i++)
		if (slice_starts(first, preambles[i]))
			return HTTP_KIND_HTTP1;
	return HTTP_KIND_OTHER;
}

enum http_kind http_sniff(struct slice first)
{
	size_t n = sizeof(preface) - 1;
	enum http_kind kind;

	if (!first.len)
		return HTTP_KIND_MORE;
	if (memcmp(first.p, preface, first.len < n ? first.len : n) == 0)
		return first.len < n ? HTTP_KIND_MORE : HTTP_KIND_HTTP2;
	kind = sniff_preamble(first);
	return kind == HTTP_KIND_OTHER ? sniff_line(first) : kind;
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
