// One pool per device, never freed. Sizes are rounded up to classes, eight per power of two. Freed
// buffers stay in the list of their class.
#include "tensor/buffer.h"

#include "base/alloc.h"
#include "base/lock.h"

enum { SMALL = 512, CLASSES = 8 + 55 * 8, HEADS = 64 };

typedef struct chi_pool {
	choir_device *device;
	struct chi_pool *next;
	chi_mutex mutex;
	size_t in_use, peak;
	chi_buffer *free[CLASSES];
	chi_buffer *quarantined;
	chi_buffer *headers;
} pool;

// By the hash of the device's address. They only grow, so reading needs no lock.
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
	return size == b->bytes;
}

// Needs the pool's lock.
static void count(pool *p, size_t bytes)
{
	p->in_use += bytes;
	if (p->in_use > p->peak)
		p->peak = p->in_use;
}

// When the quarantine is over. Needs the pool's lock.
static void take_quarantined(pool *p)
{
	if (!p->quarantined || chi_device_is_quarantined(p->device))
		return;
	while (p->quarantined) {
		size_t size;
		chi_buffer *b = p->quarantined, **list = &p->free[class_of(b->bytes, &size)];
		p->quarantined = b->next;
		b->next = *list;
		*list = b;
	}
}

static chi_buffer *take_all(pool *p)
{
	chi_buffer *all = NULL;

	chi_mutex_lock(&p->mutex);
	take_quarantined(p);
	for (size_t i = 0; i <= CLASSES; i++) {
		chi_buffer **list = i < CLASSES ? &p->free[i] : &p->headers;
		while (*list) {
			chi_buffer *b = *list;
			*list = b->next;
			b->next = all;
			all = b;
		}
	}
	chi_mutex_unlock(&p->mutex);
	return all;
}

// False: nothing was unused.
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

// A full device of its own memory gives up what is unused in other classes.
static chi_buffer *make(pool *p, size_t size)
{
	chi_buffer *b = chi_alloc(sizeof(*b));
	if (!b)
		return NULL;
	choir_status status = chi_device_allocate(p->device, size, &b->memory);
	if (status == CHOIR_NO_MEMORY && !p->device->host_memory && trim(p))
		status = chi_device_allocate(p->device, size, &b->memory);
	if (status != CHOIR_OK) {
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
	if (bytes > SIZE_MAX / 4) {
		choir_fail(CHOIR_NO_MEMORY, "%s: %zu bytes are too many for a buffer", d->name, bytes);
		return NULL;
	}
	pool *p = find_or_make(d);
	if (!p)
		return NULL;
	size_t size;
	const size_t class = class_of(bytes, &size);
	chi_mutex_lock(&p->mutex);
	take_quarantined(p);
	chi_buffer *b = p->free[class];
	if (b) {
		p->free[class] = b->next;
		count(p, size);
	}
	chi_mutex_unlock(&p->mutex);
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
	chi_buffer *b = p->headers;
	if (b)
		p->headers = b->next;
	chi_mutex_unlock(&p->mutex);
	if (!b)
		b = chi_alloc(sizeof(*b));
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
	chi_buffer **list = &p->headers;
	if (!b->foreign) {
		size_t size;
		list = chi_device_is_quarantined(p->device) ? &p->quarantined
													: &p->free[class_of(b->bytes, &size)];
		p->in_use -= b->bytes;
	}
	b->next = *list;
	*list = b;
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
