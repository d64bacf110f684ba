// Heap sort (Williams 1964).
#include "train/order.h"

// items[at] may be too early for its place in the heap of n: moves it down.
static void sink(void **items, size_t at, size_t n, bool (*before)(const void *a, const void *b))
{
	void *moving = items[at];
	for (;;) {
		size_t child = 2 * at + 1;
		if (child + 1 < n && before(items[child], items[child + 1]))
			child++;
		if (child >= n || !before(moving, items[child]))
			break;
		items[at] = items[child];
		at = child;
	}
	items[at] = moving;
}

void chi_order(void **items, size_t n, bool (*before)(const void *a, const void *b))
{
	for (size_t i = n / 2; i > 0; i--)
		sink(items, i - 1, n, before);
	for (size_t left = n; left > 1; left--) {
		void *first = items[0];
		items[0] = items[left - 1];
		items[left - 1] = first;
		sink(items, 0, left - 1, before);
	}
}
