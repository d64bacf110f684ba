// Devices are never freed. One mutex guards their list. It is released while a device opens; other
// threads wait for the device.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/processors.h"
#include "base/text.h"
#include "device/cuda_loader.h"
#include "device/device.h"
#include "device/remote/remote_device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_KINDS = 16, KIND_SIZE = 16, ALIASES_SIZE = 64, SHOWN_SIZE = 96, KNOWN_SIZE = 320 };

static const double OPEN_SECONDS = 60.0;

typedef struct entry {
	struct entry *next;
	choir_device device;
	bool ready;
} entry;

typedef struct {
	choir_device_table table;
	char name[KIND_SIZE];
	char aliases[ALIASES_SIZE];
	int count;
	entry *entries;
} device_kind;

static chi_mutex list_mutex = CHI_MUTEX_STATIC(CHI_RANK_DEVICE, "devices");
static chi_cond list_changed;
static device_kind kinds[MAX_KINDS];
static int kind_count;

// Stubs for missing slots.

static choir_status missing(const char *slot)
{
	return choir_fail(
			CHOIR_UNSUPPORTED, "%s: the table of this kind of device has no such slot", slot);
}

static int missing_count(void)
{
	return 0;
}

static choir_status missing_open(void *self, int index)
{
	(void) self;
	(void) index;
	return missing("open");
}

static void missing_close(void *self)
{
	(void) self;
}

static void missing_describe(const void *self, choir_device_info *info)
{
	(void) self;
	(void) info;
}

static choir_status missing_allocate(void *self, size_t bytes, void **memory)
{
	(void) self;
	(void) bytes;
	*memory = NULL;
	return missing("allocate");
}

static void missing_release(void *self, void *memory, size_t bytes)
{
	(void) self;
	(void) memory;
	(void) bytes;
}

static choir_status missing_stream_open(void *self, void *stream)
{
	(void) self;
	(void) stream;
	return missing("stream_open");
}

static choir_status missing_copy(void *stream, void *to, const void *from, size_t bytes)
{
	(void) stream;
	(void) to;
	(void) from;
	(void) bytes;
	return missing("copy");
}

static choir_status missing_fill(void *stream, void *to, int byte, size_t bytes)
{
	(void) stream;
	(void) to;
	(void) byte;
	(void) bytes;
	return missing("fill");
}

static choir_status missing_mark(void *stream, uint64_t *event)
{
	(void) stream;
	*event = 0;
	return missing("record_event");
}

static choir_status missing_wait_for(void *stream, void *other_stream, uint64_t event)
{
	(void) stream;
	(void) other_stream;
	(void) event;
	return missing("wait_event");
}

static choir_status missing_wait(void *stream, uint64_t event, double seconds)
{
	(void) stream;
	(void) event;
	(void) seconds;
	return missing("wait");
}

static choir_status missing_host_allocate(void *self, size_t bytes, void **memory)
{
	(void) self;
	(void) bytes;
	*memory = NULL;
	return CHOIR_NO_MEMORY;
}

#define FILL(slot, stub) table->slot = table->slot != NULL ? table->slot : (stub)

static void fill_stubs(choir_device_table *table)
{
	FILL(count, missing_count);
	FILL(open, missing_open);
	FILL(close, missing_close);
	FILL(describe, missing_describe);
	FILL(allocate, missing_allocate);
	FILL(release, missing_release);
	FILL(stream_open, missing_stream_open);
	FILL(stream_close, missing_close);
	FILL(copy, missing_copy);
	FILL(fill, missing_fill);
	FILL(record_event, missing_mark);
	FILL(wait_event, missing_wait_for);
	FILL(wait, missing_wait);
	FILL(host_allocate, missing_host_allocate);
	FILL(host_release, missing_release);
}

static void add_kind(const choir_device_table *table, int count)
{
	device_kind *k = &kinds[kind_count++];
	k->table = *table;
	snprintf(k->name, sizeof k->name, "%s", table->kind);
	k->table.kind = k->name;
	snprintf(k->aliases, sizeof k->aliases, "%s", table->aliases == NULL ? "" : table->aliases);
	k->table.aliases = k->aliases;
	k->count = count;
	fill_stubs(&k->table);
}

static void lock_list(void)
{
	chi_mutex_lock(&list_mutex);
	if (kind_count > 0)
		return;
	chi_cond_init(&list_changed);
	add_kind(&chi_cpu_table, CHOIR_NONE);
}

// *length 0: there is none.
static const char *next_name(const char **list, size_t *length)
{
	const char *name = *list;
	*length = strcspn(name, ",");
	*list = name + *length + (name[*length] == ',');
	return name;
}

static bool is_called(const device_kind *k, const char *name)
{
	size_t length;
	if (strcasecmp(k->name, name) == 0)
		return true;
	for (const char *list = k->aliases; *list != '\0';) {
		const char *alias = next_name(&list, &length);
		if (strncasecmp(alias, name, length) == 0 && name[length] == '\0')
			return true;
	}
	return false;
}

static device_kind *find_kind(const char *name)
{
	for (int i = 0; i < kind_count; i++)
		if (is_called(&kinds[i], name))
			return &kinds[i];
	return NULL;
}

static bool good_kind(const char *kind)
{
	size_t length = kind == NULL ? 0 : strspn(kind, "abcdefghijklmnopqrstuvwxyz");
	return length > 0 && length < KIND_SIZE && kind[length] == '\0';
}

// Needs the mutex.
static choir_status check_aliases(const choir_device_table *table)
{
	char shown[SHOWN_SIZE], alias[KIND_SIZE];
	const char *list = table->aliases == NULL ? "" : table->aliases;
	size_t length;
	if (strlen(list) >= ALIASES_SIZE)
		return choir_fail(CHOIR_INVALID, "device kind \"%s\": its aliases have more than %d bytes",
				table->kind, ALIASES_SIZE - 1);
	while (*list != '\0') {
		const char *name = next_name(&list, &length);
		snprintf(alias, sizeof alias, "%.*s", (int) (length < KIND_SIZE ? length : 0), name);
		if (!good_kind(alias))
			return choir_fail(CHOIR_INVALID,
					"device kind \"%s\": alias of \"%s\" needs 1 to %d lower case letters",
					table->kind, chi_text_clean(table->aliases, shown, sizeof shown),
					KIND_SIZE - 1);
		if (find_kind(alias) != NULL)
			return choir_fail(CHOIR_INVALID,
					"device kind \"%s\": its alias \"%s\" is registered already", table->kind,
					alias);
	}
	return CHOIR_OK;
}

choir_status choir_register_device(const choir_device_table *given)
{
	choir_device_table table;
	CHOIR_TRY(chi_table_take("device", &table, sizeof table,
			offsetof(choir_device_table, kind) + sizeof table.kind, given));
	char shown[SHOWN_SIZE];
	const char *kind = table.kind == NULL ? "" : table.kind;
	if (!good_kind(kind))
		return choir_fail(CHOIR_INVALID, "device kind \"%s\": needs 1 to %d lower case letters",
				chi_text_clean(kind, shown, sizeof shown), KIND_SIZE - 1);
	int count = table.count == NULL ? 0 : table.count();
	if (count < CHOIR_NONE)
		return choir_fail(CHOIR_INVALID,
				"device kind \"%s\": its count is %d; 0 or more, or CHOIR_NONE, is needed", kind,
				count);
	choir_status status = CHOIR_OK;
	lock_list();
	if (find_kind(kind) != NULL)
		status = choir_fail(CHOIR_INVALID, "device kind \"%s\": is registered already", kind);
	else if (kind_count == MAX_KINDS)
		status = choir_fail(CHOIR_UNSUPPORTED,
				"device kind \"%s\": %d kinds are registered already; no more are possible", kind,
				MAX_KINDS);
	else if ((status = check_aliases(&table)) == CHOIR_OK)
		add_kind(&table, count);
	chi_mutex_unlock(&list_mutex);
	return status;
}

static bool is_of_cuda(const char *kind)
{
	return strcasecmp(kind, "gpu") == 0 || strcasecmp(kind, "cuda") == 0;
}

// Without the kind's count: one CPU per processor, none of other kinds.
static int default_count(const device_kind *k)
{
	if (k->count != CHOIR_NONE)
		return k->count;
	return strcmp(k->name, "cpu") == 0 ? chi_processor_count() : 0;
}

int choir_device_count(const char *kind)
{
	int count = 0;
	if (kind == NULL || is_of_cuda(kind))
		chi_cuda_open();
	lock_list();
	for (int i = 0; i < kind_count; i++)
		if (kind == NULL || is_called(&kinds[i], kind))
			count += default_count(&kinds[i]);
	chi_mutex_unlock(&list_mutex);
	return count;
}

// "cpu:0 to cpu:1 (more by name), cuda:0", truncated to fit.
static void list_known(char out[KNOWN_SIZE])
{
	size_t used = 0;
	out[0] = '\0';
	for (int i = 0; i < kind_count && used < KNOWN_SIZE; i++) {
		const device_kind *k = &kinds[i];
		char last[KIND_SIZE + 24] = "";
		int count = default_count(k);
		if (count > 1)
			snprintf(last, sizeof last, " to %s:%d", k->name, count - 1);
		if (count == 0 && k->count != CHOIR_NONE)
			continue;
		int wrote = snprintf(out + used, KNOWN_SIZE - used, "%s%s:0%s%s", used > 0 ? ", " : "",
				k->name, last, k->count == CHOIR_NONE ? " (more by name)" : "");
		used += wrote > 0 ? (size_t) wrote : 0;
	}
}

// Needs the mutex. note adds to the message.
static choir_device *fail_unknown(const char *name, const char *note)
{
	char shown[SHOWN_SIZE], known[KNOWN_SIZE];
	list_known(known);
	choir_fail(CHOIR_NOT_FOUND, "device \"%s\": is unknown%s; known: %s",
			chi_text_clean(name == NULL ? "" : name, shown, sizeof shown), note, known);
	return NULL;
}

choir_status chi_device_failed(const choir_device *d, const char *slot, choir_status status)
{
	if (status == CHOIR_OK)
		return CHOIR_OK;
	if (choir_error_status() == status) {
		chi_error_prefix("%s", d->name);
		return status;
	}
	// CHOIR_END records no text.
	return choir_fail(status == CHOIR_END ? CHOIR_INVALID : status, "%s: %s failed (%s)", d->name,
			slot, choir_status_name(status));
}

static entry *find_entry(const device_kind *k, int index)
{
	entry *e = k->entries;
	while (e != NULL && e->device.index != index)
		e = e->next;
	return e;
}

static void free_entry(entry *e)
{
	if (e != NULL)
		chi_free(e->device.self);
	chi_free(e);
}

static entry *new_entry(device_kind *k, int index, const char *name)
{
	entry *e = chi_alloc(sizeof *e);
	void *self = e == NULL ? NULL : chi_alloc(k->table.self_size);
	if (self == NULL) {
		chi_free(e);
		return NULL;
	}
	if (name == NULL)
		snprintf(e->device.name, sizeof e->device.name, "%s:%d", k->name, index);
	else
		snprintf(e->device.name, sizeof e->device.name, "%s", name);
	e->device.index = index;
	e->device.host_memory = k->table.host_memory;
	e->device.table = &k->table;
	e->device.self = self;
	e->next = k->entries;
	k->entries = e;
	return e;
}

static void remove_entry(device_kind *k, entry *e)
{
	entry **at = &k->entries;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	free_entry(e);
}

// Needs the mutex, and releases it around the table's functions.
static choir_device *open_entry(device_kind *k, int index, const char *name)
{
	entry *e = new_entry(k, index, name);
	if (e == NULL)
		return NULL;
	chi_mutex_unlock(&list_mutex);
	choir_status status =
			chi_device_failed(&e->device, "open", k->table.open(e->device.self, index));
	if (status != CHOIR_OK) {
		chi_error failure;
		chi_error_save(&failure);
		k->table.close(e->device.self);
		chi_error_restore(&failure);
	}
	chi_mutex_lock(&list_mutex);
	if (status == CHOIR_OK)
		e->ready = true;
	else
		remove_entry(k, e);
	chi_cond_broadcast(&list_changed);
	return status == CHOIR_OK ? &e->device : NULL;
}

// Needs the mutex.
static choir_device *find_or_open(device_kind *k, int index, const char *name)
{
	double deadline = chi_clock_deadline(OPEN_SECONDS);
	for (;;) {
		entry *e = find_entry(k, index);
		if (e == NULL)
			return open_entry(k, index, name);
		if (e->ready)
			return &e->device;
		if (!chi_cond_wait(&list_changed, &list_mutex, deadline))
			return chi_fail_null(CHOIR_TIMEOUT,
					"%s:%d: another thread has been opening it for %g s", k->name, index,
					OPEN_SECONDS);
	}
}

static choir_device *find_remote(const char *name)
{
	char canonical[CHI_REMOTE_NAME];
	int index;
	if (chi_remote_find(name, canonical, &index) != CHOIR_OK)
		return NULL;
	lock_list();
	device_kind *k = find_kind("remote");
	choir_device *d = NULL;
	if (k == NULL && kind_count < MAX_KINDS) {
		add_kind(&chi_remote_table, 0);
		k = find_kind("remote");
	}
	if (k == NULL || k->table.open != chi_remote_table.open)
		fail_unknown(name, " (another kind is registered as remote, or too many kinds are)");
	else
		d = find_or_open(k, index, canonical);
	chi_mutex_unlock(&list_mutex);
	return d;
}

// NVIDIA's names of GPUs and MIG instances.
static const char *how_to_name(const char *name)
{
	if (name != NULL && (strncmp(name, "MIG-", 4) == 0 || strncmp(name, "GPU-", 4) == 0))
		return "the variable CUDA_VISIBLE_DEVICES takes such a name; the device is then gpu:0";
	return "names are spelled as cpu:0 or /device:CPU:0";
}

choir_device *choir_device_find(const char *name)
{
	if (chi_remote_is_name(name))
		return find_remote(name);
	char kind[KIND_SIZE];
	int index = 0;
	bool good = chi_device_parse(name, kind, &index);
	char note[SHOWN_SIZE + KNOWN_SIZE] = "";
	if (good && is_of_cuda(kind) && chi_cuda_open() == NULL)
		snprintf(note, sizeof note, " (%s)", chi_cuda_missing());
	else if (!good)
		snprintf(note, sizeof note, " (%s)", how_to_name(name));
	lock_list();
	choir_device *d;
	device_kind *k = good ? find_kind(kind) : NULL;
	if (k == NULL || (k->count != CHOIR_NONE && index >= k->count))
		d = fail_unknown(name, note);
	else
		d = find_or_open(k, index, NULL);
	chi_mutex_unlock(&list_mutex);
	return d;
}

choir_status chi_device_list_accelerators(int capacity, choir_device *devices[], int *count)
{
	choir_status status = CHOIR_OK;
	*count = 0;
	if (chi_cuda_open() == NULL)
		chi_cuda_warn();
	lock_list();
	for (int i = 0; i < kind_count; i++)
		for (int d = 0; kinds[i].table.accelerator && d < kinds[i].count && *count < capacity &&
				status == CHOIR_OK;
				d++) {
			devices[*count] = find_or_open(&kinds[i], d, NULL);
			if (devices[*count] == NULL)
				status = choir_error_status();
			else
				++*count;
		}
	chi_mutex_unlock(&list_mutex);
	return status;
}

void *choir_device_self(const choir_device *d)
{
	return d == NULL ? NULL : d->self;
}

const char *choir_device_name(const choir_device *d)
{
	return d == NULL ? "" : d->name;
}

choir_status choir_device_describe(const choir_device *d, choir_device_info *info)
{
	if (d == NULL)
		return choir_fail(CHOIR_INVALID, "device description: the device is NULL");
	const size_t min = offsetof(choir_device_info, kind);
	if (info == NULL || info->size < min)
		return choir_fail(CHOIR_INVALID,
				"%s: description: its size is %zu; at least %zu is needed", d->name,
				info == NULL ? 0 : info->size, min);
	const size_t size = info->size;
	choir_device_info all = { .size = sizeof all, .kind = d->table->kind, .index = d->index };
	d->table->describe(d->self, &all);
	memset(info, 0, size);
	memcpy(info, &all, size < sizeof all ? size : sizeof all);
	info->size = size;
	return CHOIR_OK;
}

bool choir_device_report(const char *kind, int i, char *line, size_t size)
{
	if (kind == NULL || !is_of_cuda(kind) || i < 0 || line == NULL || size == 0)
		return false;
	const choir_cuda_plugin *cuda = chi_cuda_open();
	if (cuda != NULL)
		return cuda->describe(i, line, size);
	if (i == 0)
		snprintf(line, size, "%s", chi_cuda_missing());
	return i == 0;
}

bool chi_device_shares(const choir_device *a, const choir_device *b)
{
	return a == b || (a->host_memory && b->host_memory);
}

static choir_status fail_memory(const choir_device *d, size_t bytes)
{
	choir_device_info info = { .size = sizeof info };
	d->table->describe(d->self, &info);
	if (info.memory_total == 0)
		return choir_fail(CHOIR_NO_MEMORY, "%s: no memory for %zu bytes", d->name, bytes);
	return choir_fail(CHOIR_NO_MEMORY,
			"%s: no memory for %zu bytes; %" PRIu64 " of %" PRIu64 " bytes are free", d->name,
			bytes, info.memory_free, info.memory_total);
}

choir_status chi_device_allocate(choir_device *d, size_t bytes, void **memory)
{
	*memory = NULL;
	choir_status status = d->table->allocate(d->self, bytes, memory);
	if (status == CHOIR_OK)
		return CHOIR_OK;
	*memory = NULL;
	if (status == CHOIR_NO_MEMORY)
		return fail_memory(d, bytes);
	return chi_device_failed(d, "allocate", status);
}

void *chi_device_host_allocate(choir_device *d, size_t bytes)
{
	void *memory = NULL;
	chi_error before;
	chi_error_save(&before);
	if (d->table->host_allocate(d->self, bytes, &memory) != CHOIR_OK)
		memory = NULL;
	chi_error_restore(&before);
	return memory;
}

void chi_device_host_release(choir_device *d, void *memory, size_t bytes)
{
	d->table->host_release(d->self, memory, bytes);
}

void chi_device_release(choir_device *d, void *memory, size_t bytes)
{
	if (memory != NULL)
		d->table->release(d->self, memory, bytes);
}
