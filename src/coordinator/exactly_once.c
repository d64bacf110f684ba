// A hash table by closure. A closure's changes follow each other from its hash on, so forgetting
// it examines one run of entries (Knuth, volume 3, 6.4, algorithm R).
#include "coordinator/exactly_once.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"

void chi_exactly_once_free(chi_exactly_once *m)
{
	chi_free(m->change);
	chi_free(m->fenced);
	*m = (chi_exactly_once){ 0 };
}

static size_t home(const chi_exactly_once *m, uint64_t closure)
{
	return (size_t) chi_hash_mix(closure) & (m->capacity - 1);
}

static size_t after(const chi_exactly_once *m, size_t i)
{
	return (i + 1) & (m->capacity - 1);
}

// An index, or capacity.
static size_t find(const chi_exactly_once *m, uint64_t closure, uint64_t ordinal)
{
	if (m->capacity == 0)
		return 0;
	for (size_t i = home(m, closure); m->change[i].closure != 0; i = after(m, i))
		if (m->change[i].closure == closure && m->change[i].ordinal == ordinal)
			return i;
	return m->capacity;
}

bool chi_exactly_once_have(const chi_exactly_once *m, uint64_t closure, uint64_t ordinal)
{
	return find(m, closure, ordinal) < m->capacity;
}

static void put(chi_exactly_once *m, chi_change change)
{
	size_t i = home(m, change.closure);
	while (m->change[i].closure != 0)
		i = after(m, i);
	m->change[i] = change;
	m->n++;
}

choir_status chi_exactly_once_add(chi_exactly_once *m, uint64_t closure, uint64_t ordinal)
{
	if (2 * (m->n + 1) > m->capacity) {
		chi_exactly_once more = *m;
		more.n = 0;
		more.capacity = m->capacity == 0 ? 64 : 2 * m->capacity;
		more.change = chi_alloc_array(more.capacity, sizeof *more.change);
		CHOIR_TRY(chi_made(more.change));
		for (size_t i = 0; i < m->capacity; i++)
			if (m->change[i].closure != 0)
				put(&more, m->change[i]);
		chi_free(m->change);
		*m = more;
	}
	put(m, (chi_change){ closure, ordinal });
	return CHOIR_OK;
}

static void take(chi_exactly_once *m, size_t hole)
{
	for (size_t i = after(m, hole); m->change[i].closure != 0; i = after(m, i)) {
		const size_t from = home(m, m->change[i].closure);
		const size_t distance = (i - from) & (m->capacity - 1);
		if (distance < ((i - hole) & (m->capacity - 1)))
			continue;
		m->change[hole] = m->change[i];
		hole = i;
	}
	m->change[hole].closure = 0;
	m->n--;
}

void chi_exactly_once_remove(chi_exactly_once *m, uint64_t closure, uint64_t ordinal)
{
	const size_t i = find(m, closure, ordinal);
	if (i < m->capacity)
		take(m, i);
}

void chi_exactly_once_forget(chi_exactly_once *m, uint64_t closure)
{
	for (size_t i = m->capacity == 0 ? 0 : home(m, closure);
			m->capacity > 0 && m->change[i].closure != 0;)
		if (m->change[i].closure == closure)
			take(m, i);
		else
			i = after(m, i);
}

choir_status chi_exactly_once_fence(chi_exactly_once *m, uint64_t incarnation)
{
	if (!chi_grow(&m->fenced, &m->fence_capacity, m->fences + 1, sizeof *m->fenced))
		return CHOIR_NO_MEMORY;
	m->fenced[m->fences++] = incarnation;
	return CHOIR_OK;
}

bool chi_exactly_once_fenced(const chi_exactly_once *m, uint64_t incarnation)
{
	for (size_t i = m->fences; i-- > 0;)
		if (m->fenced[i] == incarnation)
			return true;
	return false;
}
