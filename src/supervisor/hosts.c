// Lists of hosts. A name goes to ssh and launchers as an argument, so it must not look like an
// option.
#include "supervisor/hosts.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"

#include <ctype.h>
#include <string.h>

static bool is_name(const char *s, size_t length)
{
	if (length == 0 || length >= CHI_HOST_NAME || s[0] == '-')
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char) s[i]) && strchr(".-_@", s[i]) == NULL)
			return false;
	return true;
}

static choir_status add(chi_hosts *h, const char *where, char *item)
{
	item += strspn(item, " \t");
	item[strcspn(item, "#\r")] = '\0';
	for (size_t n = strlen(item); n > 0 && isspace((unsigned char) item[n - 1]); n--)
		item[n - 1] = '\0';
	if (item[0] == '\0')
		return CHOIR_OK;
	const size_t length = strcspn(item, ": \t");
	int64_t slots = 1;
	const char *rest = item + length;
	rest += strspn(rest, ": \t");
	if (strncmp(rest, "slots=", 6) == 0)
		rest += 6;
	const bool number = item[length] == '\0' || chi_parse_int64(rest, &slots);
	if (!is_name(item, length) || !number || slots < 1 || slots > CHI_MAX_WORKERS)
		return choir_fail(CHOIR_INVALID,
				"%s: found \"%.80s\"; a host such as a, a:2 or a slots=2 needed", where, item);
	if (h->n == CHI_MAX_HOSTS)
		return choir_fail(CHOIR_INVALID, "%s: more than %d hosts", where, CHI_MAX_HOSTS);
	chi_host *host = &h->host[h->n++];
	*host = (chi_host){ .slots = (int) slots };
	memcpy(host->name, item, length);
	return CHOIR_OK;
}

static choir_status add_all(chi_hosts *h, const char *where, char *text, const char *ends)
{
	for (char *next; text != NULL; text = next) {
		next = strpbrk(text, ends);
		if (next != NULL)
			*next++ = '\0';
		CHOIR_TRY(add(h, where, text));
	}
	return h->n > 0 ? CHOIR_OK : choir_fail(CHOIR_INVALID, "%s: no host", where);
}

static choir_status read_file(chi_hosts *h, const char *path, chi_file *f)
{
	enum { MAX = 1 << 20 };
	const uint64_t size = chi_file_size(f);
	if (size > MAX)
		return choir_fail(CHOIR_INVALID, "%s: %llu bytes; a list of hosts of up to %d needed",
				path, (unsigned long long) size, MAX);
	char *text = chi_alloc((size_t) size + 1);
	CHOIR_TRY(chi_made(text));
	choir_status status = chi_file_read(f, 0, text, (size_t) size);
	if (status == CHOIR_OK)
		status = add_all(h, path, text, "\n");
	chi_free(text);
	return status;
}

static choir_status read_list(chi_hosts *h, const char *list)
{
	chi_file *f = chi_file_open(list);
	if (f != NULL) {
		const choir_status status = read_file(h, list, f);
		chi_file_close(f);
		return status;
	}
	if (strchr(list, '/') != NULL)
		return choir_error_status();
	char *text = chi_strdup(list);
	CHOIR_TRY(chi_made(text));
	const choir_status status = add_all(h, "hosts", text, ",");
	chi_free(text);
	return status;
}

choir_status chi_hosts_read(chi_hosts *h, const char *list)
{
	chi_hosts *before = chi_alloc(sizeof *before);
	CHOIR_TRY(chi_made(before));
	*before = *h;
	h->n = 0;
	const choir_status status = list == NULL ? CHOIR_OK : read_list(h, list);
	for (int i = 0; status == CHOIR_OK && i < before->n; i++)
		if (before->host[i].lost)
			chi_hosts_lose(h, before->host[i].name);
	if (status != CHOIR_OK)
		*h = *before;
	chi_free(before);
	return status;
}

int chi_hosts_capacity(const chi_hosts *h)
{
	int capacity = 0;
	for (int i = 0; i < h->n; i++)
		capacity += h->host[i].lost ? 0 : h->host[i].slots;
	return capacity;
}

// A list may have "node3.cluster" or "me@node3" for a host that calls itself "node3".
static bool is_same(const char *name, const char *other)
{
	const char *at = strchr(name, '@');
	name = at == NULL ? name : at + 1;
	const size_t a = strcspn(name, "."), b = strcspn(other, ".");
	return strcmp(name, other) == 0 ||
			(a == b && strncmp(name, other, a) == 0 && (name[a] == '\0' || other[b] == '\0'));
}

void chi_hosts_lose(chi_hosts *h, const char *name)
{
	for (int i = 0; name[0] != '\0' && i < h->n; i++)
		if (is_same(h->host[i].name, name))
			h->host[i].lost = true;
}

const char *chi_hosts_of(const chi_hosts *h, int worker)
{
	for (int i = 0; i < h->n; i++) {
		if (h->host[i].lost)
			continue;
		if (worker < h->host[i].slots)
			return h->host[i].name;
		worker -= h->host[i].slots;
	}
	return NULL;
}

const char *chi_hosts_name(const chi_hosts *h, const char *own, int worker)
{
	for (int i = 0; i < h->n; i++)
		if (is_same(h->host[i].name, own))
			return h->host[i].name;
	const char *by_order = chi_hosts_of(h, worker); // the list has addresses, or other names
	return by_order == NULL ? own : by_order;
}

void chi_hosts_add_list(const chi_hosts *h, int workers, chi_text *out)
{
	bool first = true;
	for (int i = 0; i < h->n && workers > 0; i++) {
		const chi_host *host = &h->host[i];
		if (host->lost)
			continue;
		const int n = host->slots < workers ? host->slots : workers;
		chi_text_add(out, "%s%s:%d", first ? "" : ",", host->name, n);
		first = false;
		workers -= n;
	}
}
