// One pool per device, never freed: a two-level segregated fit (TLSF; Masmano et al. 2004) with
// eight size classes per power of two. A large buffer may take a part of a larger free one; a
// freed part joins its free neighbours. So gradients use activations' memory, and repeated steps
// allocate nothing.
#include "tensor/buffer_pool.h"

#include "base/alloc.h"
#include "base/lock.h"
#include "base/status.h"

enum {
	SMALL = 512, // up to here multiples of 64 bytes
	CLASSES = 8 + 55 * 8,
	WORDS = CLASSES / 64 + 1,
	LARGE = 16 << 10, // smallest that takes a part
	MIN_REST = 4 << 10, // that is worth a part
	HEADS = 64
};

typedef struct chi_pool {
	choir_device *device;
	struct chi_pool *next;
	chi_mutex mutex;
	size_t in_use, peak;
	chi_buffer *free[CLASSES]; // by the largest class that fits into it
	uint64_t filled[WORDS]; // bit i: free[i] is not empty
	chi_buffer *quarantined;
	chi_buffer *headers;
} pool;

// By the hash of the device's address. Entries stay, so reading needs no lock.
static struct {
	chi_mutex lock;
	chi_atomic64 heads[HEADS];
} pools = { .lock = CHI_MUTEX_STATIC(CHI_RANK_POOL, "pools") };

static pool *first_pool(size_t head)
{
	return (pool *) (uintptr_t) chi_atomic64_load(&pools.heads[head]);
}

static pool *look_up(const choir_device *d)
{
	pool *p = first_pool((uintptr_t) d / 64 % HEADS);
	while (p && p->device != d)
		p = p->next;
	return p;
}

static bool release_unused(const choir_device *d);

static pool *find_or_make(choir_device *d)
{
	pool *p = look_up(d);
	if (p)
		return p;
	pool *made = chi_alloc(sizeof(*made));
	if (!made)
		return NULL;
	chi_mutex_lock(&pools.lock);
	p = look_up(d);
	if (!p) {
		const size_t head = (uintptr_t) d / 64 % HEADS;
		p = made;
		made = NULL;
		p->device = d;
		p->next = first_pool(head);
		chi_mutex_init(&p->mutex, CHI_RANK_POOL, "pool");
		chi_atomic64_store(&pools.heads[head], (uintptr_t) p);
		chi_atomic64_store(&d->release_unused, (uintptr_t) release_unused);
	}
	chi_mutex_unlock(&pools.lock);
	chi_free(made);
	return p;
}

// bytes: at most SIZE_MAX / 4.
static size_t class_of(size_t bytes, size_t *size)
{
	if (bytes <= SMALL) {
		const size_t index = bytes ? (bytes - 1) / 64 : 0;
		*size = (index + 1) * 64;
		return index;
	}
	const unsigned power = 63u - (unsigned) __builtin_clzll(bytes - 1);
	const size_t step = (size_t) 1 << (power - 3);
	const size_t index = (bytes - 1) / step - 8;
	*size = (index + 9) * step;
	return 8 + (power - 9) * 8 + index;
}

bool chi_buffer_fits(const chi_buffer *b, size_t bytes)
{
	size_t size;
	if (b->foreign || bytes > SIZE_MAX / 4)
		return false;
	class_of(bytes, &size);
	return size <= b->bytes && b->bytes - size < MIN_REST;
}

// Needs the pool's lock.
static void count(pool *p, size_t bytes)
{
	p->in_use += bytes;
	if (p->in_use > p->peak)
		p->peak = p->in_use;
}

// The functions on free buffers need the pool's lock.
static size_t list_of(const chi_buffer *b)
{
	size_t size;
	const size_t class = class_of(b->bytes, &size);
	return size > b->bytes ? class - 1 : class;
}

static void add_free(pool *p, chi_buffer *b)
{
	const size_t list = list_of(b);
	b->free = true;
	b->previous = NULL;
	b->next = p->free[list];
	if (b->next)
		b->next->previous = b;
	p->free[list] = b;
	p->filled[list / 64] |= (uint64_t) 1 << list % 64;
}

static void remove_free(pool *p, chi_buffer *b)
{
	const size_t list = list_of(b);
	b->free = false;
	if (b->next)
		b->next->previous = b->previous;
	if (b->previous)
		b->previous->next = b->next;
	else if (!(p->free[list] = b->next))
		p->filled[list / 64] &= ~((uint64_t) 1 << list % 64);
}

static void push_header(pool *p, chi_buffer *b)
{
	b->next = p->headers;
	p->headers = b;
}

static chi_buffer *pop_header(pool *p)
{
	chi_buffer *b = p->headers;
	if (!b)
		return chi_alloc(sizeof(*b));
	p->headers = b->next;
	return b;
}

// b takes over its neighbour.
static void join_after(pool *p, chi_buffer *b)
{
	chi_buffer *gone = b->after;
	b->bytes += gone->bytes;
	b->after = gone->after;
	if (b->after)
		b->after->before = b;
	push_header(p, gone);
}

static void give(pool *p, chi_buffer *b)
{
	if (b->after && b->after->free) {
		remove_free(p, b->after);
		join_after(p, b);
	}
	if (b->before && b->before->free) {
		b = b->before;
		remove_free(p, b);
		join_after(p, b);
	}
	add_free(p, b);
}

static bool split(pool *p, chi_buffer *b, size_t size)
{
	if (b->bytes - size < MIN_REST)
		return true;
	chi_buffer *rest = pop_header(p);
	if (!rest)
		return false;
	*rest = (chi_buffer){ .device = b->device,
		.memory = (char *) b->memory + size,
		.bytes = b->bytes - size,
		.pool = p,
		.before = b,
		.after = b->after };
	if (rest->after)
		rest->after->before = rest;
	b->after = rest;
	b->bytes = size;
	add_free(p, rest);
	return true;
}

static chi_buffer *find_free(const pool *p, size_t class, size_t size)
{
	if (p->free[class] || size < LARGE)
		return p->free[class];
	uint64_t mask = UINT64_MAX << class % 64;
	for (size_t word = class / 64; word < WORDS; word++, mask = UINT64_MAX)
		if (p->filled[word] & mask)
			return p->free[word * 64 + (size_t) __builtin_ctzll(p->filled[word] & mask)];
	return NULL;
}

static choir_status take(pool *p, size_t class, size_t size, chi_buffer **out)
{
	chi_buffer *b = *out = find_free(p, class, size);
	if (!b)
		return CHOIR_OK;
	remove_free(p, b);
	if (!split(p, b, size)) {
		add_free(p, b);
		return CHOIR_NO_MEMORY;
	}
	count(p, b->bytes);
	return CHOIR_OK;
}

// When the quarantine is over.
static void take_quarantined(pool *p)
{
	if (!p->quarantined || chi_device_is_quarantined(p->device))
		return;
	while (p->quarantined) {
		chi_buffer *b = p->quarantined;
		p->quarantined = b->next;
		give(p, b);
	}
}

// Those that are not parts, and the headers.
static chi_buffer *take_all(pool *p)
{
	chi_buffer *all = NULL;

	chi_mutex_lock(&p->mutex);
	take_quarantined(p);
	for (size_t i = 0; i < CLASSES; i++) {
		for (chi_buffer *b = p->free[i], *next; b; b = next) {
			next = b->next;
			if (b->before || b->after)
				continue;
			remove_free(p, b);
			chi_buffer_list_add(&all, b);
		}
	}
	while (p->headers) {
		chi_buffer *b = p->headers;
		p->headers = b->next;
		b->foreign = true;
		chi_buffer_list_add(&all, b);
	}
	chi_mutex_unlock(&p->mutex);
	return all;
}

static bool trim(pool *p)
{
	bool any = false;
	for (chi_buffer *b = take_all(p), *next; b; b = next) {
		next = b->next;
		any = any || !b->foreign;
		if (!b->foreign)
			chi_device_release(p->device, b->memory, b->bytes);
		chi_free(b);
	}
	return any;
}

// A full device first frees unused memory.
static choir_status allocate(pool *p, size_t size, void **memory)
{
	chi_error before;
	chi_error_save(&before);
	choir_status status = chi_device_allocate(p->device, size, memory);
	if (status != CHOIR_NO_MEMORY || p->device->host_memory || !trim(p))
		return status;
	status = chi_device_allocate(p->device, size, memory);
	if (status == CHOIR_OK)
		chi_error_restore(&before);
	return status;
}

static chi_buffer *make(pool *p, size_t size)
{
	chi_buffer *b = chi_alloc(sizeof(*b));
	if (!b)
		return NULL;
	if (allocate(p, size, &b->memory) != CHOIR_OK) {
		chi_free(b);
		return NULL;
	}
	b->device = p->device;
	b->pool = p;
	b->bytes = size;
	chi_mutex_lock(&p->mutex);
	count(p, size);
	chi_mutex_unlock(&p->mutex);
	return b;
}

chi_buffer *chi_buffer_new(choir_device *d, size_t bytes)
{
	if (bytes > SIZE_MAX / 4)
		return chi_fail_null(
				CHOIR_NO_MEMORY, "%s: %zu bytes are too many for a buffer", d->name, bytes);
	pool *p = find_or_make(d);
	if (!p)
		return NULL;
	size_t size;
	const size_t class = class_of(bytes, &size);
	chi_mutex_lock(&p->mutex);
	take_quarantined(p);
	chi_buffer *b;
	const choir_status status = take(p, class, size, &b);
	chi_mutex_unlock(&p->mutex);
	if (status != CHOIR_OK)
		return NULL;
	if (!b)
		b = make(p, size);
	if (!b)
		return NULL;
	b->next = NULL;
	chi_atomic32_store(&b->references, 1);
	return b;
}

chi_buffer *chi_buffer_wrap(
		choir_device *d, void *memory, size_t bytes, void (*release)(void *user), void *user)
{
	pool *p = find_or_make(d);
	if (!p)
		return NULL;
	chi_mutex_lock(&p->mutex);
	chi_buffer *b = pop_header(p);
	chi_mutex_unlock(&p->mutex);
	if (!b)
		return NULL;
	*b = (chi_buffer){ .device = d,
		.memory = memory,
		.bytes = bytes,
		.release = release,
		.user = user,
		.pool = p,
		.foreign = true };
	chi_atomic32_store(&b->references, 1);
	return b;
}

void chi_buffer_retain(chi_buffer *b)
{
	chi_atomic32_add(&b->references, 1);
}

void chi_buffer_release(chi_buffer *b)
{
	if (!b || chi_atomic32_add(&b->references, UINT32_MAX) != 1)
		return;
	pool *p = b->pool;
	if (b->release)
		b->release(b->user); // foreign code: no lock is held
	chi_mutex_lock(&p->mutex);
	if (b->foreign) {
		push_header(p, b);
	} else {
		p->in_use -= b->bytes;
		if (chi_device_is_quarantined(p->device))
			chi_buffer_list_add(&p->quarantined, b);
		else
			give(p, b);
	}
	chi_mutex_unlock(&p->mutex);
}

void chi_buffer_list_add(chi_buffer **list, chi_buffer *b)
{
	b->next = *list;
	*list = b;
}

void chi_buffer_release_all(chi_buffer **list)
{
	while (*list) {
		chi_buffer *b = *list;
		*list = b->next;
		chi_buffer_release(b);
	}
}

static bool release_unused(const choir_device *d)
{
	pool *p = look_up(d);
	return p != NULL && trim(p);
}

void chi_buffer_trim(void)
{
	for (size_t i = 0; i < HEADS; i++)
		for (pool *p = first_pool(i); p; p = p->next)
			(void) trim(p);
}

static size_t read_count(const choir_device *d, bool peak)
{
	pool *p = look_up(d);
	if (!p)
		return 0;
	chi_mutex_lock(&p->mutex);
	const size_t bytes = peak ? p->peak : p->in_use;
	chi_mutex_unlock(&p->mutex);
	return bytes;
}

size_t chi_buffer_in_use(const choir_device *d)
{
	return read_count(d, false);
}

size_t chi_buffer_peak(const choir_device *d)
{
	return read_count(d, true);
}

void chi_buffer_reset_peak(const choir_device *d)
{
	pool *p = look_up(d);
	if (!p)
		return;
	chi_mutex_lock(&p->mutex);
	p->peak = p->in_use;
	chi_mutex_unlock(&p->mutex);
}
