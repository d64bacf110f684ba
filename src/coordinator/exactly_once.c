// A hash table by closure. A closure's changes follow each other from its hash on, so forgetting
// it examines one run of entries (Knuth, volume 3, 6.4, algorithm R).
#include "coordinator/exactly_once.h"

#include "base/alloc.h"
#include "base/hash.h"

void chi_marks_free(chi_marks *m)
{
	chi_free(m->mark);
	chi_free(m->fenced);
	*m = (chi_marks){ 0 };
}

static size_t home(const chi_marks *m, uint64_t closure)
{
	return (size_t) chi_hash_mix(closure) & (m->capacity - 1);
}

static size_t after(const chi_marks *m, size_t i)
{
	return (i + 1) & (m->capacity - 1);
}

// An index, or capacity.
static size_t find(const chi_marks *m, uint64_t closure, uint64_t ordinal)
{
	if (m->capacity == 0)
		return 0;
	for (size_t i = home(m, closure); m->mark[i].closure != 0; i = after(m, i))
		if (m->mark[i].closure == closure && m->mark[i].ordinal == ordinal)
			return i;
	return m->capacity;
}

bool chi_marks_have(const chi_marks *m, uint64_t closure, uint64_t ordinal)
{
	return find(m, closure, ordinal) < m->capacity;
}

static void put(chi_marks *m, chi_mark mark)
{
	size_t i = home(m, mark.closure);
	while (m->mark[i].closure != 0)
		i = after(m, i);
	m->mark[i] = mark;
	m->n++;
}

choir_status chi_marks_add(chi_marks *m, uint64_t closure, uint64_t ordinal)
{
	if (2 * (m->n + 1) > m->capacity) {
		chi_marks more = *m;
		more.n = 0;
		more.capacity = m->capacity == 0 ? 64 : 2 * m->capacity;
		more.mark = chi_alloc_array(more.capacity, sizeof *more.mark);
		if (more.mark == NULL)
			return CHOIR_NO_MEMORY;
		for (size_t i = 0; i < m->capacity; i++)
			if (m->mark[i].closure != 0)
				put(&more, m->mark[i]);
		chi_free(m->mark);
		*m = more;
	}
	put(m, (chi_mark){ closure, ordinal });
	return CHOIR_OK;
}

// Also moves later entries nearer to their hash.
static void take(chi_marks *m, size_t hole)
{
	for (size_t i = after(m, hole); m->mark[i].closure != 0; i = after(m, i)) {
		const size_t from = home(m, m->mark[i].closure);
		const size_t distance = (i - from) & (m->capacity - 1);
		if (distance < ((i - hole) & (m->capacity - 1)))
			continue;
		m->mark[hole] = m->mark[i];
		hole = i;
	}
	m->mark[hole].closure = 0;
	m->n--;
}

void chi_marks_remove(chi_marks *m, uint64_t closure, uint64_t ordinal)
{
	const size_t i = find(m, closure, ordinal);
	if (i < m->capacity)
		take(m, i);
}

void chi_marks_forget(chi_marks *m, uint64_t closure)
{
	for (size_t i = m->capacity == 0 ? 0 : home(m, closure);
			m->capacity > 0 && m->mark[i].closure != 0;)
		if (m->mark[i].closure == closure)
			take(m, i);
		else
			i = after(m, i);
}

choir_status chi_marks_fence(chi_marks *m, uint64_t incarnation)
{
	if (!chi_grow(&m->fenced, &m->fence_capacity, m->fences + 1, sizeof *m->fenced))
		return CHOIR_NO_MEMORY;
	m->fenced[m->fences++] = incarnation;
	return CHOIR_OK;
}

bool chi_marks_fenced(const chi_marks *m, uint64_t incarnation)
{
	for (size_t i = m->fences; i-- > 0;)
		if (m->fenced[i] == incarnation)
			return true;
	return false;
}
