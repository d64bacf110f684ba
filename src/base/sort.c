// Heap sort (Williams 1964). memcpy copies pointers of unknown type.
#include "base/sort.h"

#include <string.h>

static void *item(const char *items, size_t i)
{
	void *p;
	memcpy(&p, items + i * sizeof p, sizeof p);
	return p;
}

static void set(char *items, size_t i, void *p)
{
	memcpy(items + i * sizeof p, &p, sizeof p);
}

static void sink(char *items, size_t at, size_t n, bool (*before)(const void *a, const void *b))
{
	void *moving = item(items, at);
	for (;;) {
		size_t child = 2 * at + 1;
		if (child + 1 < n && before(item(items, child), item(items, child + 1)))
			child++;
		if (child >= n || !before(moving, item(items, child)))
			break;
		set(items, at, item(items, child));
		at = child;
	}
	set(items, at, moving);
}

void chi_heap_sort(void *items, size_t n, bool (*before)(const void *a, const void *b))
{
	for (size_t i = n / 2; i > 0; i--)
		sink(items, i - 1, n, before);
	for (size_t left = n; left > 1; left--) {
		void *first = item(items, 0);
		set(items, 0, item(items, left - 1));
		set(items, left - 1, first);
		sink(items, 0, left - 1, before);
	}
}
