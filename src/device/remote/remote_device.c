// Calls queue commands for the server. Copies read host memory before they return.
#include "device/remote/remote_device.h"

#include "base/alloc.h"
#include "base/size.h"
#include "base/text.h"
#include "device/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAMES = 1024, LINE = 64, LENT = 1 << 15 };
static const char prefix[] = "remote:";
static const double CLOSE_SECONDS = 60;

typedef struct {
	char address[128], device[24];
} place;

// Entries are never removed. Ranked below a server's lock.
static struct {
	chi_mutex lock;
	int count;
	place place[NAMES];
	chi_atomic32 servers;
	chi_atomic64 server[CHI_REMOTE_SERVERS]; // pointers, constant once counted
} all = { .lock = CHI_MUTEX_STATIC(CHI_RANK_POOL, "remote devices") };

bool chi_remote_is_name(const char *name)
{
	return name != NULL && strncasecmp(name, prefix, sizeof prefix - 1) == 0;
}

static bool split(const char *name, place *p)
{
	char kind[16];
	int index;
	const char *address = name + sizeof prefix - 1, *slash = strrchr(address, '/');
	const size_t length = slash == NULL ? 0 : (size_t) (slash - address);
	if (strncmp(address, "unix:", 5) == 0 && slash != NULL && strchr(slash, ':') == NULL)
		return false; // the path of a socket, without a device
	if (length == 0 || length >= sizeof p->address || memchr(address, ':', length) == NULL ||
			!chi_device_parse(slash + 1, kind, &index))
		return false;
	memcpy(p->address, address, length);
	p->address[length] = '\0';
	snprintf(p->device, sizeof p->device, "%s:%d", kind, index);
	return true;
}

choir_status chi_remote_find(const char *name, char canonical[CHI_REMOTE_NAME], int *index)
{
	char shown[96];
	place p;
	if (!split(name, &p))
		return choir_fail(CHOIR_NOT_FOUND,
				"device \"%s\": is unknown; remote devices are spelled as "
				"remote:HOST:PORT/cpu:0 or remote:unix:PATH/cpu:0",
				chi_text_clean(name, shown, sizeof shown));
	snprintf(canonical, CHI_REMOTE_NAME, "%s%s/%s", prefix, p.address, p.device);
	choir_status status = CHOIR_OK;
	chi_mutex_lock(&all.lock);
	*index = 0;
	while (*index < all.count &&
			(strcmp(all.place[*index].address, p.address) != 0 ||
					strcmp(all.place[*index].device, p.device) != 0))
		++*index;
	if (*index == NAMES)
		status = choir_fail(CHOIR_UNSUPPORTED, "device \"%s\": this process has named %d others",
				canonical, NAMES);
	else if (*index == all.count)
		all.place[all.count++] = p;
	chi_mutex_unlock(&all.lock);
	return status;
}

static chi_remote_server *server_at(uint32_t number)
{
	return number >= chi_atomic32_load(&all.servers)
			? NULL
			: (chi_remote_server *) (uintptr_t) chi_atomic64_load(&all.server[number]);
}

// With the lock.
static chi_remote_server *find_server(const char *address)
{
	const uint32_t count = chi_atomic32_load(&all.servers);
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(server_at(i)->address, address) == 0)
			return server_at(i);
	if (count == CHI_REMOTE_SERVERS)
		return chi_fail_null(CHOIR_UNSUPPORTED,
				"this process has connections to %d servers; no more are "
				"possible",
				CHI_REMOTE_SERVERS);
	chi_remote_server *r = chi_remote_server_new(address, count);
	if (r != NULL) {
		chi_atomic64_store(&all.server[count], (uintptr_t) r);
		chi_atomic32_store(&all.servers, count + 1);
	}
	return r;
}

choir_status chi_remote_expand(const char *name, chi_remote_names names, int *n)
{
	place p;
	*n = 0;
	if (!chi_remote_is_name(name) || split(name, &p) || strlen(name) >= sizeof p.address ||
			strchr(name + sizeof prefix - 1, ':') == NULL)
		return CHOIR_OK;
	const char *address = name + sizeof prefix - 1;
	chi_mutex_lock(&all.lock);
	const chi_remote_server *r = find_server(address);
	chi_mutex_unlock(&all.lock);
	if (r == NULL)
		return choir_error_status();
	for (; *n < r->devices; ++*n)
		snprintf(names[*n], sizeof names[*n], "%s%s/%s", prefix, address, r->device[*n].name);
	return CHOIR_OK;
}

static choir_status find_device(const chi_remote_server *r, const char *name, int *device)
{
	chi_text known = { 0 };
	for (*device = 0; *device < r->devices; ++*device)
		if (strcmp(r->device[*device].name, name) == 0)
			return CHOIR_OK;
	for (int i = 0; i < r->devices; i++)
		chi_text_add(&known, "%s%s", i > 0 ? ", " : "", r->device[i].name);
	choir_fail(CHOIR_NOT_FOUND, "the server offers no %s; known: %s", name,
			known.failed ? "" : known.data);
	chi_text_free(&known);
	return CHOIR_NOT_FOUND;
}

static choir_status open_device(void *self, int index)
{
	chi_remote_self *d = self;
	chi_mutex_lock(&all.lock);
	const place p = all.place[index];
	d->server = find_server(p.address);
	chi_mutex_unlock(&all.lock);
	return d->server == NULL ? choir_error_status() : find_device(d->server, p.device, &d->device);
}

static void describe_device(const void *self, choir_device_info *info)
{
	const chi_remote_self *d = self;
	chi_remote_device *device = &d->server->device[d->device];
	info->cores = device->cores;
	chi_mutex_lock(&d->server->lock);
	info->memory_total = device->memory;
	info->memory_free = device->memory - device->used;
	chi_mutex_unlock(&d->server->lock);
}

static choir_status allocate(void *self, size_t bytes, void **memory)
{
	const chi_remote_self *d = self;
	chi_remote_server *r = d->server;
	chi_remote_device *device = &r->device[d->device];
	size_t rounded;
	if (!chi_size_round_up(bytes > 0 ? bytes : 1, LINE, &rounded))
		return CHOIR_NO_MEMORY;
	CHOIR_TRY(chi_remote_begin(r, NULL, CHI_COMMAND_ALLOCATE, 20));
	const uint64_t rest = ((uint64_t) 1 << 48) - LINE - (r->next_address & 0xffffffffffff);
	if (rounded > device->memory - device->used || rounded > rest) {
		chi_remote_cancel(r);
		return CHOIR_NO_MEMORY;
	}
	const uint64_t address = r->next_address;
	chi_pack_u32(&r->outbox, (uint32_t) d->device);
	chi_pack_u64(&r->outbox, address);
	chi_pack_u64(&r->outbox, rounded);
	if (!r->outbox.failed) {
		r->next_address += rounded + LINE; // a gap: no address is in two memories
		device->used += rounded;
	}
	CHOIR_TRY(chi_remote_end(r, NULL));
	*memory = (void *) (uintptr_t) address;
	return CHOIR_OK;
}

static void release(void *self, void *memory, size_t bytes)
{
	const chi_remote_self *d = self;
	chi_remote_server *r = d->server;
	size_t rounded = 0;
	chi_error before;
	chi_error_save(&before);
	if (chi_remote_begin(r, NULL, CHI_COMMAND_RELEASE, 8) == CHOIR_OK) {
		(void) chi_size_round_up(bytes > 0 ? bytes : 1, LINE, &rounded);
		r->device[d->device].used -= rounded;
		chi_pack_u64(&r->outbox, (uint64_t) (uintptr_t) memory);
		(void) chi_remote_end(r, NULL);
	}
	chi_error_restore(&before);
}

static choir_status open_stream(void *self, void *stream)
{
	const chi_remote_self *d = self;
	chi_remote_server *r = d->server;
	chi_remote_stream *s = stream;
	s->server = r;
	CHOIR_TRY(chi_remote_begin(r, NULL, CHI_COMMAND_OPEN, 4));
	s->number = ++r->next_stream; // in the order of the commands
	if (!r->outbox.failed)
		chi_put_number(r->outbox.data + r->start + 4, s->number, 4);
	chi_pack_u32(&r->outbox, (uint32_t) d->device);
	const bool failed = r->outbox.failed;
	if (!failed) {
		s->next = r->streams;
		r->streams = s;
	}
	return chi_remote_end(r, NULL);
}

// Commands that are still queued after a minute get no host memory.
static void close_stream(void *stream)
{
	chi_remote_stream *s = stream;
	chi_remote_server *r = s->server;
	if (chi_fork_generation() != r->generation)
		return;
	chi_error before;
	chi_error_save(&before);
	(void) chi_remote_wait(s, s->queued, CLOSE_SECONDS);
	if (chi_remote_begin(r, s, CHI_COMMAND_CLOSE, 0) == CHOIR_OK)
		(void) chi_remote_end(r, s);
	chi_mutex_lock(&r->lock);
	chi_remote_stream **at = &r->streams;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	for (int i = 0; i < CHI_REMOTE_LOANS; i++)
		if (r->loan[i].stream == s)
			r->loan[i].stream = NULL;
	chi_mutex_unlock(&r->lock);
	chi_free(s->fetches);
	chi_error_restore(&before);
}

static choir_status introduce(chi_remote_server *r, const chi_remote_server *other)
{
	if (other == r)
		return CHOIR_OK;
	CHOIR_TRY(chi_remote_begin(r, NULL, CHI_COMMAND_PEER, sizeof other->address + 20));
	if (r->knows[other->number]) {
		chi_remote_cancel(r);
		return CHOIR_OK;
	}
	chi_pack_u32(&r->outbox, other->number);
	chi_pack_u64(&r->outbox, other->hello.incarnation);
	chi_pack_text(&r->outbox, other->address);
	r->knows[other->number] = !r->outbox.failed;
	return chi_remote_end(r, NULL);
}

// The server's lock is held until the end.
static choir_status queue_take(chi_remote_stream *s, uint64_t to, const void *from, size_t bytes)
{
	chi_pack *p = &s->server->outbox;
	chi_pack_u64(p, to);
	chi_pack_u64(p, bytes);
	chi_pack_u64(p, (uintptr_t) from);
	return chi_remote_end(s->server, s);
}

// On this host. *lent: false if the bytes must be sent.
static choir_status lend_piece(
		chi_remote_stream *s, uint64_t to, const unsigned char *from, size_t bytes, bool *lent)
{
	chi_remote_loan *loan = bytes < LENT ? NULL : chi_remote_lend(s);
	*lent = loan != NULL;
	if (loan == NULL)
		return CHOIR_OK;
	memcpy(loan->memory, from, bytes);
	CHOIR_TRY(chi_remote_begin(s->server, s, CHI_COMMAND_TAKE, 24));
	loan->number = s->queued + 1;
	CHOIR_TRY(queue_take(s, to, loan->memory, bytes));
	chi_remote_flush(s->server);
	return CHOIR_OK;
}

static choir_status send_piece(
		chi_remote_stream *s, uint64_t to, const unsigned char *from, size_t bytes)
{
	bool lent;
	const choir_status status = lend_piece(s, to, from, bytes, &lent);
	if (lent)
		return status;
	CHOIR_TRY(chi_remote_begin(s->server, s, CHI_COMMAND_SEND, bytes + 8));
	chi_pack_u64(&s->server->outbox, to);
	chi_pack_raw(&s->server->outbox, from, bytes);
	return chi_remote_end(s->server, s);
}

static choir_status add_fetch(chi_remote_stream *s, void *to, size_t bytes)
{
	if (s->first_fetch > 0 && s->first_fetch + s->fetch_count == s->fetch_capacity) {
		memmove(s->fetches, s->fetches + s->first_fetch, s->fetch_count * sizeof *s->fetches);
		s->first_fetch = 0;
	}
	if (s->fetch_count == 0)
		s->first_fetch = 0;
	if (!chi_grow(&s->fetches, &s->fetch_capacity, s->first_fetch + s->fetch_count + 1,
				sizeof *s->fetches))
		return CHOIR_NO_MEMORY;
	s->fetches[s->first_fetch + s->fetch_count++] = (chi_remote_fetch){ s->queued + 1, to, bytes };
	return CHOIR_OK;
}

static choir_status fetch_piece(
		chi_remote_stream *s, unsigned char *to, uint64_t from, size_t bytes)
{
	chi_remote_server *r = s->server;
	CHOIR_TRY(chi_remote_begin(r, s, CHI_COMMAND_FETCH, 16));
	if (add_fetch(s, to, bytes) != CHOIR_OK) {
		chi_remote_cancel(r);
		return CHOIR_NO_MEMORY;
	}
	chi_pack_u64(&r->outbox, from);
	chi_pack_u64(&r->outbox, bytes);
	s->fetch_count -= r->outbox.failed;
	return chi_remote_end(r, s);
}

static choir_status move(chi_remote_stream *s, uint64_t to, uint64_t from, size_t bytes)
{
	const chi_remote_server *a = server_at(chi_remote_server_of(to));
	const chi_remote_server *b = server_at(chi_remote_server_of(from));
	if (a == NULL || b == NULL)
		return choir_fail(CHOIR_INVALID, "copy: an address of no server");
	CHOIR_TRY(introduce(s->server, a));
	CHOIR_TRY(introduce(s->server, b));
	CHOIR_TRY(chi_remote_begin(s->server, s, CHI_COMMAND_MOVE, 24));
	chi_pack_u64(&s->server->outbox, to);
	chi_pack_u64(&s->server->outbox, from);
	chi_pack_u64(&s->server->outbox, bytes);
	return chi_remote_end(s->server, s);
}

static choir_status copy(void *stream, void *to, const void *from, size_t bytes)
{
	chi_remote_stream *s = stream;
	const uint64_t a = (uint64_t) (uintptr_t) to, b = (uint64_t) (uintptr_t) from;
	if (bytes == 0)
		return CHOIR_OK;
	if (chi_remote_is_address(a) && chi_remote_is_address(b))
		return move(s, a, b, bytes);
	if (!chi_remote_is_address(a) && !chi_remote_is_address(b))
		return choir_fail(CHOIR_INVALID, "copy: both memories are the host's");
	for (size_t at = 0, piece; at < bytes; at += piece) {
		piece = bytes - at < CHI_REMOTE_PIECE ? bytes - at : CHI_REMOTE_PIECE;
		CHOIR_TRY(chi_remote_is_address(a)
						? send_piece(s, a + at, (const unsigned char *) from + at, piece)
						: fetch_piece(s, (unsigned char *) to + at, b + at, piece));
	}
	return CHOIR_OK;
}

choir_status chi_remote_copy_kept(void *stream, void *to, const void *from, size_t bytes)
{
	chi_remote_stream *s = stream;
	const uint64_t target = (uint64_t) (uintptr_t) to;
	for (size_t at = 0, piece; at < bytes; at += piece) {
		piece = bytes - at < CHI_REMOTE_PIECE ? bytes - at : CHI_REMOTE_PIECE;
		CHOIR_TRY(chi_remote_begin(s->server, s, CHI_COMMAND_TAKE, 24));
		if (piece < LENT || !s->server->reads) {
			chi_remote_cancel(s->server);
			return copy(s, (char *) to + at, (const char *) from + at, bytes - at);
		}
		CHOIR_TRY(queue_take(s, target + at, (const char *) from + at, piece));
	}
	chi_remote_flush(s->server);
	return CHOIR_OK;
}

static choir_status fill(void *stream, void *to, int byte, size_t bytes)
{
	chi_remote_stream *s = stream;
	if (bytes == 0)
		return CHOIR_OK;
	CHOIR_TRY(chi_remote_begin(s->server, s, CHI_COMMAND_FILL, 20));
	chi_pack_u64(&s->server->outbox, (uint64_t) (uintptr_t) to);
	chi_pack_u64(&s->server->outbox, bytes);
	chi_pack_u32(&s->server->outbox, (uint32_t) (unsigned char) byte);
	return chi_remote_end(s->server, s);
}

static choir_status record_event(void *stream, uint64_t *event)
{
	chi_remote_stream *s = stream;
	chi_mutex_lock(&s->server->lock);
	*event = s->queued;
	chi_mutex_unlock(&s->server->lock);
	return CHOIR_OK;
}

static chi_remote_followed *find_followed(chi_remote_stream *s, uint32_t server, uint32_t stream)
{
	for (int i = 0; i < CHI_REMOTE_FOLLOWED; i++)
		if (s->followed[i].stream == stream && s->followed[i].server == server)
			return &s->followed[i];
	return NULL;
}

static void add_followed(chi_remote_stream *s, const chi_remote_followed *f)
{
	chi_remote_followed *known = find_followed(s, f->server, f->stream);
	if (known != NULL && known->command >= f->command)
		return;
	if (known == NULL)
		known = &s->followed[s->oldest++ % CHI_REMOTE_FOLLOWED];
	*known = *f;
	known->since = s->queued + 1;
}

static bool follows(chi_remote_stream *s, const chi_remote_followed *f)
{
	chi_mutex_lock(&s->server->lock);
	const chi_remote_followed *known = find_followed(s, f->server, f->stream);
	const bool does = known != NULL && known->command >= f->command;
	chi_mutex_unlock(&s->server->lock);
	return does;
}

// known: of the other stream.
static choir_status queue_follow(
		chi_remote_stream *s, const chi_remote_followed *f, const chi_remote_followed known[])
{
	CHOIR_TRY(chi_remote_begin(s->server, s, CHI_COMMAND_FOLLOW, 16));
	chi_pack_u32(&s->server->outbox, f->server);
	chi_pack_u32(&s->server->outbox, f->stream);
	chi_pack_u64(&s->server->outbox, f->command);
	if (!s->server->outbox.failed) {
		add_followed(s, f);
		for (int i = 0; i < CHI_REMOTE_FOLLOWED; i++)
			if (known[i].since != 0 && known[i].since <= f->command)
				add_followed(s, &known[i]);
	}
	return chi_remote_end(s->server, s);
}

static choir_status wait_event(void *stream, void *other_stream, uint64_t event)
{
	chi_remote_stream *s = stream, *other = other_stream;
	chi_remote_followed known[CHI_REMOTE_FOLLOWED];
	chi_mutex_lock(&other->server->lock);
	const uint64_t queued = other->queued;
	const bool reached = other->reached >= event && (other->failed == 0 || other->failed > event);
	memcpy(known, other->followed, sizeof known);
	chi_mutex_unlock(&other->server->lock);
	if (event > queued)
		return choir_fail(CHOIR_INVALID,
				"event %" PRIu64 " does not exist; the last one is %" PRIu64, event, queued);
	const chi_remote_followed f = { other->server->number, other->number, event, 0 };
	if (reached || s == other || follows(s, &f))
		return CHOIR_OK;
	CHOIR_TRY(introduce(s->server, other->server));
	if (other->server != s->server)
		chi_remote_flush(other->server);
	return queue_follow(s, &f, known);
}

static choir_status wait_stream(void *stream, uint64_t event, double seconds)
{
	return chi_remote_wait(stream, event, seconds);
}

// Devices have names only.
static int count_devices(void)
{
	return 0;
}

const choir_device_table chi_remote_table = {
	.size = sizeof(choir_device_table),
	.version = CHOIR_TABLE_VERSION,
	.host_memory = false,
	.kind = "remote",
	.self_size = sizeof(chi_remote_self),
	.stream_size = sizeof(chi_remote_stream),
	.count = count_devices,
	.open = open_device,
	.describe = describe_device,
	.allocate = allocate,
	.release = release,
	.stream_open = open_stream,
	.stream_close = close_stream,
	.copy = copy,
	.fill = fill,
	.record_event = record_event,
	.wait_event = wait_event,
	.wait = wait_stream,
	.copies_at_once = true,
};
