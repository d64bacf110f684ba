// Lines without a star are found by bisection; the few with a star are tried in turn.
#include "train/weights/name_map.h"

#include "base/alloc.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 6, WORD_SHOWN = 60, MAX_STARS = 1000 };

typedef struct {
	const char *text;
	size_t length;
} word;

struct chi_name_map_line {
	int number;
	word tensor, variable;
	chi_rearrangement how;
};

static int read_line(const char **map, word words[WORDS])
{
	static const char blank[] = " \t\r";
	const char *p = *map, *end = p + strcspn(p, "\n"), *stop = p + strcspn(p, "\n#");
	int n = 0;
	*map = *end == '\n' ? end + 1 : end;
	for (p += strspn(p, blank); p < stop && n <= WORDS; p += strspn(p, blank)) {
		const size_t length = strcspn(p, " \t\r\n#");
		if (n < WORDS)
			words[n] = (word){ p, length };
		n++;
		p += length;
	}
	return n;
}

static bool is(const word *w, const char *text)
{
	return w->length == strlen(text) && memcmp(w->text, text, w->length) == 0;
}

static int stars(const word *w)
{
	int n = 0;
	for (size_t i = 0; i < w->length; i++)
		n += w->text[i] == '*';
	return n;
}

// "1,0": each axis once.
static bool read_axes(const word *w, chi_rearrangement *how)
{
	int n = 0;
	unsigned seen = 0;
	for (size_t i = 0; i < w->length; i += 2) {
		const int a = w->text[i] - '0';
		if (n == CHI_NAME_MAP_AXES || a < 0 || a >= CHI_NAME_MAP_AXES || seen >> a & 1 ||
				(i + 1 < w->length && w->text[i + 1] != ','))
			return false;
		seen |= 1u << a;
		how->axis[n++] = a;
	}
	how->axes = n;
	return w->length % 2 == 1 && seen == (1u << n) - 1;
}

// 0: no number of 1 or more, or too large.
static int64_t read_dim(const word *w, size_t *i)
{
	size_t dim = 0;
	for (; *i < w->length && w->text[*i] >= '0' && w->text[*i] <= '9'; ++*i)
		if (!chi_size_multiply(dim, 10, &dim) ||
				!chi_size_add(dim, (size_t) (w->text[*i] - '0'), &dim) || dim > INT64_MAX)
			return 0;
	return (int64_t) dim;
}

// "10,64,7,7", or "10,(64,7,7)" for a file's [10, 3136], without overflow.
static bool read_shape(const word *w, chi_rearrangement *how)
{
	size_t product = 1, i = 0;
	choir_shape file = { 0 };
	bool open = false, grouped = false;
	for (;;) {
		bool joins = open;
		if (!open && i < w->length && w->text[i] == '(') {
			open = grouped = true;
			i++;
		}
		const int64_t dim = read_dim(w, &i);
		if (dim == 0 || how->shape.rank == CHOIR_MAX_RANK ||
				!chi_size_multiply(product, (size_t) dim, &product) || product > INT64_MAX)
			return false;
		how->shape.dim[how->shape.rank++] = dim;
		if (joins)
			file.dim[file.rank - 1] *= dim;
		else
			file.dim[file.rank++] = dim;
		if (open && i < w->length && w->text[i] == ')') {
			open = false;
			i++;
		}
		if (i == w->length)
			break;
		if (w->text[i++] != ',')
			return false;
	}
	how->reshaped = true;
	if (grouped)
		how->file = file;
	return !open;
}

static const char *read_rearrangement(int n, const word words[], chi_rearrangement *how)
{
	static const char axes[] = "axes such as 1,0 are needed, each of them once";
	if (n == 1)
		return read_axes(&words[0], how) ? NULL : axes;
	for (int i = 0; i < n; i += 2) {
		if (i == 0 && i + 1 < n && is(&words[i], "reshape")) {
			if (!read_shape(&words[i + 1], how))
				return "a shape such as in reshape 10,64,7,7 or reshape 10,(64,7,7) is needed";
		} else if (i + 1 < n && is(&words[i], "axes") && how->axes == 0) {
			if (!read_axes(&words[i + 1], how))
				return axes;
		} else
			return "after the two names only \"reshape SHAPE\" and then \"axes AXES\" may follow";
	}
	return how->reshaped && how->axes != 0 && how->axes != how->shape.rank
			? "the shape needs one axis for each dimension"
			: NULL;
}

static choir_status wrong_line(const chi_name_map_line *l, const char *needed)
{
	char line[WORD_SHOWN], clean[WORD_SHOWN];
	const size_t shown = l->tensor.length < sizeof line ? l->tensor.length : sizeof line - 1;
	memcpy(line, l->tensor.text, shown);
	line[shown] = '\0';
	return choir_fail(CHOIR_INVALID, "map: line %d, \"%s\": %s", l->number,
			chi_text_clean(line, clean, sizeof clean), needed);
}

static choir_status read_words(int n, const word words[WORDS], chi_name_map_line *l)
{
	l->tensor = words[0];
	if (n < 2)
		return wrong_line(
				l, "has one word; a tensor and a variable are needed, or torch or keras once");
	if (n > WORDS)
		return wrong_line(l,
				"has more than six words; a tensor, a "
				"variable and perhaps a shape and axes are needed");
	l->variable = words[1];
	if (stars(&words[0]) > 1 || stars(&words[1]) > stars(&words[0]))
		return wrong_line(
				l, "at most one star in the tensor, and no more in the variable, are possible");
	const char *needed = read_rearrangement(n - 2, words + 2, &l->how);
	return needed == NULL ? CHOIR_OK : wrong_line(l, needed);
}

static int compare_words(const word *a, const word *b)
{
	const size_t min = a->length < b->length ? a->length : b->length;
	const int order = memcmp(a->text, b->text, min);
	return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static int in_order(const void *a, const void *b)
{
	const chi_name_map_line *l = a, *k = b;
	const int star = stars(&l->tensor) - stars(&k->tensor);
	const int names =
			star != 0 || stars(&l->tensor) > 0 ? 0 : compare_words(&l->tensor, &k->tensor);
	if (star != 0 || names != 0)
		return star != 0 ? star : names;
	return (l->number > k->number) - (l->number < k->number);
}

static bool take_convention(chi_name_map *m, int n, const word *w)
{
	if (n != 1 || m->convention != CHI_CONVENTION_NONE)
		return false;
	m->convention = is(w, "torch") ? CHI_CONVENTION_TORCH
			: is(w, "keras")	   ? CHI_CONVENTION_KERAS
								   : CHI_CONVENTION_NONE;
	return m->convention != CHI_CONVENTION_NONE;
}

static choir_status add_line(chi_name_map *m, int number, int n, const word words[WORDS])
{
	if (!chi_grow(&m->line, &m->capacity, m->n + 1, sizeof *m->line))
		return CHOIR_NO_MEMORY;
	chi_name_map_line *l = &m->line[m->n++];
	*l = (chi_name_map_line){ .number = number };
	CHOIR_TRY(read_words(n, words, l));
	m->plain += stars(&l->tensor) == 0;
	m->permutes = m->permutes || l->how.axes > 0;
	return m->n - m->plain <= MAX_STARS ? CHOIR_OK
										: wrong_line(l, "at most 1000 lines may have a star");
}

choir_status chi_name_map_read(const char *map, chi_name_map *m)
{
	word words[WORDS];
	*m = (chi_name_map){ 0 };
	for (int number = 1; map != NULL && *map != '\0'; number++) {
		const int n = read_line(&map, words);
		if (n > 0 && !take_convention(m, n, words))
			CHOIR_TRY(add_line(m, number, n, words));
	}
	if (m->n > 0)
		qsort(m->line, m->n, sizeof *m->line, in_order);
	return CHOIR_OK;
}

void chi_name_map_free(chi_name_map *m)
{
	chi_free(m->line);
	*m = (chi_name_map){ 0 };
}

static bool is_like(const word *name, const word *pattern, word *star)
{
	const char *at = memchr(pattern->text, '*', pattern->length);
	const size_t before = (size_t) (at - pattern->text), after = pattern->length - before - 1;
	if (name->length < before + after || memcmp(name->text, pattern->text, before) != 0 ||
			memcmp(name->text + name->length - after, at + 1, after) != 0)
		return false;
	*star = (word){ name->text + before, name->length - before - after };
	return true;
}

static const chi_name_map_line *find_plain(const chi_name_map *m, const word *name)
{
	size_t low = 0, high = m->plain;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (compare_words(&m->line[middle].tensor, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < m->plain && compare_words(&m->line[low].tensor, name) == 0 ? &m->line[low] : NULL;
}

static const chi_name_map_line *find_line(const chi_name_map *m, const word *name, word *star)
{
	const chi_name_map_line *plain = find_plain(m, name);
	for (size_t i = m->plain; i < m->n; i++) {
		if (plain != NULL && plain->number < m->line[i].number)
			break;
		if (is_like(name, &m->line[i].tensor, star))
			return &m->line[i];
	}
	return plain;
}

static void add_name(chi_text *to, const word *variable, const word *star)
{
	const char *at = memchr(variable->text, '*', variable->length);
	const size_t before = at == NULL ? variable->length : (size_t) (at - variable->text);
	chi_text_add_bytes(to, variable->text, before);
	if (at == NULL)
		return;
	chi_text_add_bytes(to, star->text, star->length);
	chi_text_add_bytes(to, at + 1, variable->length - before - 1);
}

choir_status chi_name_map_find(const chi_name_map *m, const char *tensor, chi_mapped_name *found)
{
	const word name = { tensor, strlen(tensor) };
	word star = { tensor, 0 };
	const chi_name_map_line *l = find_line(m, &name, &star);
	*found = (chi_mapped_name){ .left_out = l != NULL && is(&l->variable, "-"),
		.by_line = l != NULL };
	if (l != NULL) {
		found->how = l->how;
		add_name(&found->name, &l->variable, &star);
	} else // a star in it is a letter
		chi_text_add_bytes(&found->name, tensor, name.length);
	if (!found->name.failed)
		return CHOIR_OK;
	chi_text_free(&found->name);
	return CHOIR_NO_MEMORY;
}

static const chi_name_map_line *line_after(const chi_name_map *m, int number)
{
	const chi_name_map_line *next = NULL;
	for (size_t i = 0; i < m->n; i++)
		if (m->line[i].number > number && (next == NULL || m->line[i].number < next->number))
			next = &m->line[i];
	return next;
}

static bool gives(const chi_name_map_line *l, const word *variable, word *star)
{
	if (stars(&l->variable) == 1)
		return is_like(variable, &l->variable, star);
	return stars(&l->tensor) == 0 && compare_words(&l->variable, variable) == 0;
}

static choir_status is_inverse(
		const chi_name_map *m, const char *tensor, const char *variable, bool *inverse)
{
	chi_mapped_name back;
	CHOIR_TRY(chi_name_map_find(m, tensor, &back));
	*inverse = !back.left_out && strcmp(back.name.data, variable) == 0;
	chi_text_free(&back.name);
	return CHOIR_OK;
}

choir_status chi_name_map_find_tensor(
		const chi_name_map *m, const char *variable, chi_mapped_name *found)
{
	const word name = { variable, strlen(variable) };
	bool inverse = false;
	*found = (chi_mapped_name){ 0 };
	for (const chi_name_map_line *l = line_after(m, 0); l != NULL; l = line_after(m, l->number)) {
		word star = { variable, 0 };
		if (!gives(l, &name, &star))
			continue;
		add_name(&found->name, &l->tensor, &star);
		const choir_status status = found->name.failed
				? CHOIR_NO_MEMORY
				: is_inverse(m, found->name.data, variable, &inverse);
		found->how = l->how;
		found->by_line = true;
		if (status == CHOIR_OK && inverse)
			return CHOIR_OK;
		chi_text_free(&found->name);
		*found = (chi_mapped_name){ 0 };
		CHOIR_TRY(status);
	}
	chi_text_add_bytes(&found->name, variable, name.length);
	choir_status status =
			found->name.failed ? CHOIR_NO_MEMORY : is_inverse(m, variable, variable, &inverse);
	if (status == CHOIR_OK && !inverse)
		status = choir_fail(CHOIR_INVALID,
				"map: no tensor is mapped to variable \"%.60s\"; a line for it is needed",
				variable);
	if (status != CHOIR_OK)
		chi_text_free(&found->name);
	return status;
}
