// Sorted by elements. A full index drops every second point.
#include "data/seek_index.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "data/dataset.h"

enum { MAX_SEEK_POINTS = 1 << 15 };

void chi_seek_index_init(chi_seek_index *m)
{
	chi_mutex_init(&m->lock, CHI_RANK_DATA, "marks");
	m->every = CHI_SEEK_POINT_EVERY;
}

void chi_seek_index_free(chi_seek_index *m)
{
	chi_free(m->point);
	chi_mutex_destroy(&m->lock);
}

static size_t count_before(const chi_seek_index *m, int64_t elements)
{
	size_t low = 0, high = m->n;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (m->point[middle].elements <= elements)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void thin_out(chi_seek_index *m)
{
	m->n /= 2;
	for (size_t i = 0; i < m->n; i++)
		m->point[i] = m->point[2 * i + 1];
	if (m->every <= INT64_MAX / 2)
		m->every *= 2;
}

int64_t chi_seek_index_next(chi_seek_index *m, int64_t elements)
{
	int64_t next;
	chi_mutex_lock(&m->lock);
	if (!chi_int64_add(elements, m->every - elements % m->every, &next))
		next = INT64_MAX;
	chi_mutex_unlock(&m->lock);
	return next;
}

static choir_status insert(chi_seek_index *m, const chi_seek_point *point)
{
	const size_t at = count_before(m, point->elements);
	if (at > 0 && m->point[at - 1].elements == point->elements) {
		m->point[at - 1] = *point;
		return CHOIR_OK;
	}
	if (!chi_grow(&m->point, &m->capacity, m->n + 1, sizeof *m->point))
		return CHOIR_NO_MEMORY;
	memmove(m->point + at + 1, m->point + at, (m->n - at) * sizeof *m->point);
	m->point[at] = *point;
	m->n++;
	if (m->n == MAX_SEEK_POINTS)
		thin_out(m);
	return CHOIR_OK;
}

choir_status chi_seek_index_add(chi_seek_index *m, const chi_seek_point *point)
{
	chi_mutex_lock(&m->lock);
	const choir_status status = insert(m, point);
	chi_mutex_unlock(&m->lock);
	return status;
}

void chi_seek_index_keep(chi_seek_index *m, int64_t file)
{
	size_t n = 0;
	chi_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->n; i++)
		if (m->point[i].file == file)
			m->point[n++] = m->point[i];
	m->n = n;
	chi_mutex_unlock(&m->lock);
}

bool chi_seek_index_find(chi_seek_index *m, int64_t elements, chi_seek_point *found)
{
	chi_mutex_lock(&m->lock);
	const size_t n = count_before(m, elements);
	if (n > 0)
		*found = m->point[n - 1];
	chi_mutex_unlock(&m->lock);
	return n > 0;
}

size_t chi_seek_index_choose(
		chi_seek_index *m, int64_t elements, chi_seek_point chosen[], size_t max)
{
	enum { LAST = 2 };
	chi_mutex_lock(&m->lock);
	const size_t before = count_before(m, elements);
	size_t at[CHI_MAX_SEEK_POINTS], n = 0;
	for (size_t i = 0; i < LAST && i < m->n - before && n < max; i++)
		at[n++] = m->n - 1 - i;
	for (size_t back = 1; back <= before && n < max; back *= 2)
		at[n++] = before - back;
	for (size_t i = 0; i < n; i++)
		chosen[i] = m->point[at[n - 1 - i]];
	chi_mutex_unlock(&m->lock);
	return n;
}

static int64_t hash_names(const chi_glob *paths, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++) {
		const char *slash = strrchr(paths->path[i], '/');
		sum = chi_hash_mix(sum ^ chi_hash_text(slash ? slash + 1 : paths->path[i]));
	}
	return (int64_t) sum;
}

void chi_places_init(chi_places *p, choir_dataset *d)
{
	d->places = p;
	chi_seek_index_init(&p->seek_index);
	chi_places_begin(p);
}

void chi_places_free(chi_places *p)
{
	chi_seek_index_free(&p->seek_index);
}

void chi_places_begin(chi_places *p)
{
	p->delivered = 0;
	p->next = chi_seek_index_next(&p->seek_index, 0);
}

choir_status chi_places_add(choir_dataset *d, const chi_seek_point *place)
{
	chi_places *p = d->places;
	chi_seek_point point = *place;
	point.elements = p->delivered;
	point.files = hash_names(d->paths, (size_t) point.file + 1);
	point.dropped = (int64_t) chi_atomic64_load(&d->dropped);
	point.skipped = (int64_t) chi_atomic64_load(&d->skipped);
	chi_atomic64_store(&d->delivered, (uint64_t) p->delivered);
	CHOIR_TRY(chi_seek_index_add(&p->seek_index, &point));
	p->next = chi_seek_index_next(&p->seek_index, p->delivered);
	return CHOIR_OK;
}

bool chi_places_find(choir_dataset *d, int64_t elements, chi_seek_point *place)
{
	chi_places *p = d->places;
	if (!chi_seek_index_find(&p->seek_index, elements, place))
		return false;
	chi_atomic64_store(&d->dropped, (uint64_t) place->dropped);
	chi_atomic64_store(&d->skipped, (uint64_t) place->skipped);
	chi_atomic64_store(&d->delivered, (uint64_t) place->elements);
	p->delivered = place->elements;
	p->next = chi_seek_index_next(&p->seek_index, p->delivered);
	return true;
}

chi_seek_index *chi_places_index(choir_dataset *d)
{
	return &d->places->seek_index;
}

bool chi_places_fit(const choir_dataset *d, const chi_seek_point *point)
{
	return point->elements > 0 && point->file >= 0 && (uint64_t) point->file < d->paths->n &&
			point->byte > 0 && point->record > 0 && point->dropped >= 0 && point->skipped >= 0 &&
			point->files == hash_names(d->paths, (size_t) point->file + 1);
}

static void each_source(choir_dataset *d, int64_t *source,
		void (*fn)(choir_dataset *d, int64_t source, void *user), void *user)
{
	if (!d)
		return;
	if (d->stage->seek_index)
		fn(d, (*source)++, user);
	each_source(d->from[0], source, fn, user);
	each_source(d->from[1], source, fn, user);
}

typedef struct {
	chi_seek_point *seek_point;
	size_t n, capacity;
	int64_t sources;
	choir_status status;
} seek_points_of_chain;

static void count(choir_dataset *d, int64_t source, void *user)
{
	(void) d;
	((seek_points_of_chain *) user)->sources = source + 1;
}

static void choose(choir_dataset *d, int64_t source, void *user)
{
	seek_points_of_chain *c = user;
	const size_t max = c->capacity / (size_t) c->sources;
	chi_seek_point *chosen = c->seek_point + c->n;
	const size_t n = chi_seek_index_choose(
			d->stage->seek_index(d), (int64_t) chi_atomic64_load(&d->delivered), chosen, max);
	for (size_t i = 0; i < n; i++)
		chosen[i].source = source;
	c->n += n;
}

size_t chi_dataset_seek_index(choir_dataset *d, chi_seek_point point[CHI_MAX_SEEK_POINTS])
{
	seek_points_of_chain c = { .seek_point = point, .capacity = CHI_MAX_SEEK_POINTS };
	int64_t source = 0;
	each_source(d, &source, count, &c);
	source = 0;
	each_source(d, &source, choose, &c);
	return c.n;
}

static void take(choir_dataset *d, int64_t source, void *user)
{
	seek_points_of_chain *c = user;
	for (size_t i = 0; i < c->n && c->status == CHOIR_OK; i++)
		if (c->seek_point[i].source == source && d->stage->fits(d, &c->seek_point[i]))
			c->status = chi_seek_index_add(d->stage->seek_index(d), &c->seek_point[i]);
}

choir_status chi_dataset_take_seek_index(choir_dataset *d, size_t n, const chi_seek_point point[])
{
	chi_seek_point copy[CHI_MAX_SEEK_POINTS];
	seek_points_of_chain c = { .seek_point = copy,
		.n = n < CHI_MAX_SEEK_POINTS ? n : CHI_MAX_SEEK_POINTS };
	int64_t source = 0;
	memcpy(copy, point, c.n * sizeof *copy);
	each_source(d, &source, take, &c);
	return c.status;
}
