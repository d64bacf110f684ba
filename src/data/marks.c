// Marks, kept in the order of their elements. When there are many, every second one is forgotten.
#include "data/marks.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/philox.h"
#include "base/size.h"
#include "data/step.h"

enum { MOST_MARKS = 1 << 15 };

void chi_marks_init(chi_marks *m)
{
	chi_mutex_init(&m->lock, CHI_RANK_DATA, "marks");
	m->every = CHI_MARK_EVERY;
}

void chi_marks_free(chi_marks *m)
{
	chi_free(m->mark);
	chi_mutex_destroy(&m->lock);
}

// How many marks lie at or before so many elements.
static size_t count_before(const chi_marks *m, int64_t elements)
{
	size_t low = 0, high = m->n;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (m->mark[middle].elements <= elements)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void thin_out(chi_marks *m)
{
	m->n /= 2;
	for (size_t i = 0; i < m->n; i++)
		m->mark[i] = m->mark[2 * i + 1];
	if (m->every <= INT64_MAX / 2) // a repeat adds one for each pass, however often
		m->every *= 2;
}

int64_t chi_marks_next(chi_marks *m, int64_t elements)
{
	int64_t next;
	chi_mutex_lock(&m->lock);
	if (!chi_int64_add(elements, m->every - elements % m->every, &next))
		next = INT64_MAX;
	chi_mutex_unlock(&m->lock);
	return next;
}

static choir_status insert(chi_marks *m, const chi_mark *mark)
{
	const size_t at = count_before(m, mark->elements);
	if (at > 0 && m->mark[at - 1].elements == mark->elements) {
		m->mark[at - 1] = *mark; // of an earlier pass
		return CHOIR_OK;
	}
	void *marks = m->mark;
	if (!chi_grow(&marks, &m->room, m->n + 1, sizeof *m->mark))
		return CHOIR_NO_MEMORY;
	m->mark = marks;
	memmove(m->mark + at + 1, m->mark + at, (m->n - at) * sizeof *m->mark);
	m->mark[at] = *mark;
	m->n++;
	if (m->n == MOST_MARKS)
		thin_out(m);
	return CHOIR_OK;
}

choir_status chi_marks_add(chi_marks *m, const chi_mark *mark)
{
	chi_mutex_lock(&m->lock);
	const choir_status status = insert(m, mark);
	chi_mutex_unlock(&m->lock);
	return status;
}

void chi_marks_keep(chi_marks *m, int64_t file)
{
	size_t n = 0;
	chi_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->n; i++)
		if (m->mark[i].file == file)
			m->mark[n++] = m->mark[i];
	m->n = n;
	chi_mutex_unlock(&m->lock);
}

bool chi_marks_find(chi_marks *m, int64_t elements, chi_mark *found)
{
	chi_mutex_lock(&m->lock);
	const size_t n = count_before(m, elements);
	if (n > 0)
		*found = m->mark[n - 1];
	chi_mutex_unlock(&m->lock);
	return n > 0;
}

size_t chi_marks_choose(chi_marks *m, int64_t elements, chi_mark chosen[], size_t most)
{
	enum { LAST = 2 };
	chi_mutex_lock(&m->lock);
	const size_t before = count_before(m, elements);
	size_t at[CHI_MOST_MARKS], n = 0;
	for (size_t i = 0; i < LAST && i < m->n - before && n < most; i++)
		at[n++] = m->n - 1 - i;
	for (size_t back = 1; back <= before && n < most; back *= 2)
		at[n++] = before - back;
	for (size_t i = 0; i < n; i++) // they were found from the last to the first
		chosen[i] = m->mark[at[n - 1 - i]];
	chi_mutex_unlock(&m->lock);
	return n;
}

int64_t chi_marks_files(const chi_paths *paths, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++) {
		const char *slash = strrchr(paths->path[i], '/');
		sum = chi_hash_mix(sum ^ chi_hash_text(slash ? slash + 1 : paths->path[i]));
	}
	return (int64_t) sum;
}

// ---- Of a source.

void chi_places_init(chi_places *p)
{
	chi_marks_init(&p->marks);
	chi_places_begin(p);
}

void chi_places_free(chi_places *p)
{
	chi_marks_free(&p->marks);
}

void chi_places_begin(chi_places *p)
{
	p->delivered = 0;
	p->next = chi_marks_next(&p->marks, 0);
}

choir_status chi_places_add(
		chi_places *p, choir_dataset *d, const chi_paths *paths, const chi_mark *place)
{
	chi_mark mark = *place;
	mark.elements = p->delivered;
	mark.files = chi_marks_files(paths, (size_t) mark.file + 1);
	mark.dropped = (int64_t) chi_atomic64_load(&d->dropped);
	mark.skipped = (int64_t) chi_atomic64_load(&d->skipped);
	chi_atomic64_store(&d->delivered, (uint64_t) p->delivered);
	CHOIR_TRY(chi_marks_add(&p->marks, &mark));
	p->next = chi_marks_next(&p->marks, p->delivered);
	return CHOIR_OK;
}

bool chi_places_find(chi_places *p, choir_dataset *d, int64_t elements, chi_mark *place)
{
	if (!chi_marks_find(&p->marks, elements, place))
		return false;
	chi_atomic64_store(&d->dropped, (uint64_t) place->dropped);
	chi_atomic64_store(&d->skipped, (uint64_t) place->skipped);
	chi_atomic64_store(&d->delivered, (uint64_t) place->elements);
	p->delivered = place->elements;
	p->next = chi_marks_next(&p->marks, p->delivered);
	return true;
}

bool chi_places_fit(const chi_paths *paths, const chi_mark *mark)
{
	return mark->elements > 0 && mark->file >= 0 && (uint64_t) mark->file < paths->n &&
			mark->byte > 0 && mark->record > 0 && mark->dropped >= 0 && mark->skipped >= 0 &&
			mark->files == chi_marks_files(paths, (size_t) mark->file + 1);
}

// ---- Of a chain.

// Calls with the marks of each source of d that keeps some, in their order.
static void each_source(choir_dataset *d, int64_t *source,
		void (*fn)(choir_dataset *d, int64_t source, void *user), void *user)
{
	if (!d)
		return;
	if (d->step->marks)
		fn(d, (*source)++, user);
	each_source(d->from[0], source, fn, user);
	each_source(d->from[1], source, fn, user);
}

typedef struct {
	chi_mark *mark;
	size_t n, room;
	int64_t sources;
	choir_status status;
} marks_of_chain;

static void count(choir_dataset *d, int64_t source, void *user)
{
	(void) d;
	((marks_of_chain *) user)->sources = source + 1;
}

static void choose(choir_dataset *d, int64_t source, void *user)
{
	marks_of_chain *c = user;
	const size_t most = c->room / (size_t) c->sources;
	chi_mark *chosen = c->mark + c->n;
	const size_t n = chi_marks_choose(
			d->step->marks(d), (int64_t) chi_atomic64_load(&d->delivered), chosen, most);
	for (size_t i = 0; i < n; i++)
		chosen[i].source = source;
	c->n += n;
}

size_t chi_dataset_marks(choir_dataset *d, chi_mark mark[CHI_MOST_MARKS])
{
	marks_of_chain c = { .mark = mark, .room = CHI_MOST_MARKS };
	int64_t source = 0;
	each_source(d, &source, count, &c);
	source = 0;
	each_source(d, &source, choose, &c);
	return c.n;
}

static void take(choir_dataset *d, int64_t source, void *user)
{
	marks_of_chain *c = user;
	for (size_t i = 0; i < c->n && c->status == CHOIR_OK; i++)
		if (c->mark[i].source == source && d->step->fits(d, &c->mark[i]))
			c->status = chi_marks_add(d->step->marks(d), &c->mark[i]);
}

choir_status chi_dataset_take_marks(choir_dataset *d, size_t n, const chi_mark mark[])
{
	chi_mark copy[CHI_MOST_MARKS];
	marks_of_chain c = { .mark = copy, .n = n < CHI_MOST_MARKS ? n : CHI_MOST_MARKS };
	int64_t source = 0;
	memcpy(copy, mark, c.n * sizeof *copy);
	each_source(d, &source, take, &c);
	return c.status;
}
