// A tensor is stored as its largest absolute value and sums of all elements times cosines of
// different lengths, divided by the root of their number. So an error of all elements has its own
// size in the sums, and elements at wrong places change them, too.
#include "op/torch_stored.h"

#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SUMS = 8, LINE = 400 };
static const double MOST = 1e-5; // of the largest value

static void sums_of(choir_tensor *t, double out[SUMS + 1])
{
	const int64_t n = choir_shape_elements(&t->shape);
	void *data = calloc((size_t) n + 1, 8);
	assert_non_null(data);
	assert_int_equal(choir_tensor_to_host(t, data, chi_tensor_bytes(t)), CHOIR_OK);
	memset(out, 0, (SUMS + 1) * sizeof *out);
	for (int64_t i = 0; i < n; i++) {
		const double value = chi_dtype_load(t->dtype, data, i);
		out[0] = fmax(out[0], fabs(value));
		for (int k = 1; k <= SUMS; k++)
			out[k] += value * cos(0.7 * k * (double) (i + 1)) / sqrt((double) n);
	}
	free(data);
}

static void read_line(FILE *stored, const char *formula, char line[LINE])
{
	do {
		if (!fgets(line, LINE, stored))
			fail_msg("%s: torch_stored.txt ends before it", formula);
	} while (line[0] == '#');
	line[strcspn(line, "\n")] = '\0';
}

void torch_stored_check(FILE *stored, const char *formula, const char *what, choir_tensor *t)
{
	char line[LINE];
	double found[SUMS + 1];
	if (strcmp(what, "result") == 0) {
		read_line(stored, formula, line);
		if (strcmp(line, formula) != 0)
			fail_msg("torch_stored.txt has %s in place of %s", line, formula);
	}
	read_line(stored, formula, line);
	sums_of(t, found);
	char *at = line;
	double largest = 0;
	for (int k = 0; k <= SUMS; k++) {
		const char *number = at;
		const double needed = strtod(number, &at);
		if (at == number)
			fail_msg("%s: %s: %d numbers are stored; %d are needed", formula, what, k, SUMS + 1);
		largest = k == 0 ? needed : largest;
		if (!(fabs(found[k] - needed) <= MOST * largest))
			fail_msg(
					"%s: %s: sum %d is %.9g, but that of PyTorch %.9g, and the largest value %.9g",
					formula, what, k, found[k], needed, largest);
	}
}
