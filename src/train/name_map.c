// Maps are short and read a few hundred times, so each look-up reads the text anew, line by line.
#include "train/name_map.h"

#include "base/error.h"

#include <string.h>

enum { WORDS = 3, WORD_SHOWN = 60 };

typedef struct {
	const char *text;
	size_t length;
} word;

// The words of a line, which ends at a newline, a comment or the end; one more than there is room
// for is counted. Moves *map behind it.
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

static int stars(const word *w)
{
	int n = 0;
	for (size_t i = 0; i < w->length; i++)
		n += w->text[i] == '*';
	return n;
}

// "1,0": each axis of so many once; how many, or 0.
static int read_axes(const word *w, int axis[CHI_NAME_MAP_AXES])
{
	int n = 0;
	unsigned seen = 0;
	for (size_t i = 0; i < w->length; i += 2) {
		const int a = w->text[i] - '0';
		if (n == CHI_NAME_MAP_AXES || a < 0 || a >= CHI_NAME_MAP_AXES || seen >> a & 1 ||
				(i + 1 < w->length && w->text[i + 1] != ','))
			return 0;
		seen |= 1u << a;
		axis[n++] = a;
	}
	return w->length % 2 == 1 && seen == (1u << n) - 1 ? n : 0;
}

static choir_status check_line(int number, int n, const word words[WORDS])
{
	int axis[CHI_NAME_MAP_AXES];
	char line[WORD_SHOWN], clean[WORD_SHOWN];
	const size_t shown = words[0].length < sizeof line ? words[0].length : sizeof line - 1;
	memcpy(line, words[0].text, shown);
	line[shown] = '\0';
	chi_text_clean(line, clean, sizeof clean);
	if (n < 2 || n > WORDS)
		return choir_fail(CHOIR_INVALID,
				"map: line %d, \"%s\", has %s: a tensor, a variable and perhaps axes are needed",
				number, clean, n < 2 ? "one word" : "more than three words");
	if (stars(&words[0]) > 1 || stars(&words[1]) > stars(&words[0]))
		return choir_fail(CHOIR_INVALID,
				"map: line %d, \"%s\": one star in the tensor, and at most one in the variable",
				number, clean);
	if (n == WORDS && read_axes(&words[2], axis) == 0)
		return choir_fail(CHOIR_INVALID,
				"map: line %d, \"%s\": axes as in 1,0 are needed, each once", number, clean);
	return CHOIR_OK;
}

choir_status chi_name_map_check(const char *map)
{
	word words[WORDS];
	for (int number = 1; map != NULL && *map != '\0'; number++) {
		const int n = read_line(&map, words);
		if (n > 0)
			CHOIR_TRY(check_line(number, n, words));
	}
	return CHOIR_OK;
}

// Whether name is like pattern, and what its star stands for.
static bool is_like(const char *name, const word *pattern, word *star)
{
	const size_t length = strlen(name);
	const char *at = memchr(pattern->text, '*', pattern->length);
	*star = (word){ name, 0 };
	if (at == NULL)
		return length == pattern->length && memcmp(name, pattern->text, length) == 0;
	const size_t before = (size_t) (at - pattern->text), after = pattern->length - before - 1;
	if (length < before + after || memcmp(name, pattern->text, before) != 0 ||
			memcmp(name + length - after, at + 1, after) != 0)
		return false;
	*star = (word){ name + before, length - before - after };
	return true;
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

choir_status chi_name_map_find(const char *map, const char *tensor, chi_mapped_name *found)
{
	word words[WORDS], star;
	bool named = false;
	*found = (chi_mapped_name){ .axes = 0 };
	while (!named && map != NULL && *map != '\0') {
		const int n = read_line(&map, words);
		named = n > 0 && is_like(tensor, &words[0], &star);
		if (!named)
			continue;
		found->left_out = words[1].length == 1 && words[1].text[0] == '-';
		found->axes = n == WORDS ? read_axes(&words[2], found->axis) : 0;
		add_name(&found->name, &words[1], &star);
	}
	if (!named) // its own, in which a star is a letter
		chi_text_add_bytes(&found->name, tensor, strlen(tensor));
	if (!found->name.failed)
		return CHOIR_OK;
	chi_text_free(&found->name);
	return CHOIR_NO_MEMORY;
}
